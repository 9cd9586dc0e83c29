use super::*;

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

type Outcome = Result<Payload, LlmError>;

/// The longest document that these tests take.
const LIMIT: usize = 1000;

fn frames(pieces: &[&[u8]]) -> Vec<Outcome> {
    let pieces: Vec<_> = pieces
        .iter()
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    block_on(answer(Box::pin(stream::iter(pieces)), LIMIT).collect())
}

fn data(text: &str) -> Outcome {
    Ok(Payload::Data(text.to_owned()))
}

#[test]
fn lines_end_in_every_known_way() {
    let body = b"{\"a\":1}\n\n{\"b\":2}\r\n\r{\"c\":3}\r{\"d\":4}";
    let expected = [
        data("{\"a\":1}"),
        data("{\"b\":2}"),
        data("{\"c\":3}"),
        data("{\"d\":4}"),
    ];
    for at in 0..body.len() {
        let (left, right) = body.split_at(at);
        assert_eq!(frames(&[left, right]), expected, "cut at {at}");
    }
}

#[test]
fn a_last_line_counts_only_when_it_is_whole() {
    assert_eq!(frames(&[b"{\"a\":1}\n{\"b\":"]), [data("{\"a\":1}")]);
    assert_eq!(frames(&[b"data: {\"a\":1}"]), [data("{\"a\":1}")]);
    assert_eq!(
        frames(&[b"data: 1\n\ndata: [DONE]"]),
        [data("1"), data("[DONE]")]
    );
    assert_eq!(frames(&[b"data: 1\n\ndata: {\"a\""]), [data("1")]);
}

#[test]
fn a_mark_in_mid_stream_is_no_field_and_many_lines_are_one_event() {
    let marked = b"data: 1\n\n\xef\xbb\xbfdata: 2\n\nid: 7\ndata: 3\n\n";
    assert_eq!(frames(&[marked]), [data("1"), data("3")]);
    // Copied with each line, that is tens of gigabytes.
    let lines = "data: x\n".repeat(100_000);
    let expected = vec!["x"; 100_000].join("\n");
    assert_eq!(frames(&[lines.as_bytes()]), [data(&expected)]);
}

#[test]
fn events_are_read_by_the_specification() {
    let cases: [(&[u8], &[Outcome]); 10] = [
        (b"data:x\n\n", &[data("x")]),
        (b": ping\n\n: ping\ndata: x\n\n", &[data("x")]),
        (b"data: a\ndata: b\n\n", &[data("a\nb")]),
        (b"data: a\r\ndata: b\r\n\r\n", &[data("a\nb")]),
        (
            b"id: 1\nretry: 5\nevent: message\ndata: x\n\n",
            &[data("x")],
        ),
        (
            b"event: error\ndata: boom\n\n",
            &[Ok(Payload::Error("boom".to_owned()))],
        ),
        (b"\xef\xbb\xbfdata: x\n\n", &[data("x")]),
        (b"data: x\r\rdata: y\r\n\r\n", &[data("x"), data("y")]),
        (b"\n\n\n", &[]),
        (
            b"data:\n\ndata: \n\nevent: ping\ndata:\n\ndata: x\n\n",
            &[data("x")],
        ),
    ];
    for (body, expected) in cases {
        for at in 0..=body.len() {
            let (left, right) = body.split_at(at);
            let shown = String::from_utf8_lossy(body);
            assert_eq!(frames(&[left, right]), expected, "{shown:?}, cut at {at}");
        }
    }
}

#[test]
fn a_byte_that_is_no_text_costs_one_character() {
    let body = b"data: a\xffb\n\ndata: c\n\n";
    assert_eq!(frames(&[body]), [data("a\u{fffd}b"), data("c")]);
}

#[test]
fn a_document_in_place_of_a_stream_is_one_frame() {
    let document = b"\xef\xbb\xbf \n{\n \"a\": 1\n}\n";
    for at in 0..document.len() {
        let (left, right) = document.split_at(at);
        let found = frames(&[left, right]);
        assert_eq!(found, [data("{\n \"a\": 1\n}")], "cut at {at}");
    }
    assert_eq!(frames(&[b"{\"a\": "]), [Err(LlmError::EndedEarly)]);
    let long = [b"{\"a\":\"".as_slice(), &[b'x'; 2000]];
    let limit = LlmError::ReplyTooLong { limit_bytes: 1000 };
    assert_eq!(frames(&long), [Err(limit)]);
}

#[test]
fn documents_are_told_from_lines_by_the_first_of_them() {
    let cases: [(&[u8], &[Outcome]); 6] = [
        (b"{\"a\":1}", &[data("{\"a\":1}")]),
        (b"\n\r\n  {\"a\":1}\n", &[data("{\"a\":1}")]),
        (
            b"{\"a\":1}\n{\"b\":\n",
            &[data("{\"a\":1}"), data("{\"b\":")],
        ),
        (b"{\n\"a\":\"\n{\"", &[data("{\n\"a\":\"\n{\"")]),
        (b"{\n\"a\":1\n}\n", &[data("{\n\"a\":1\n}")]),
        (b"{\n\"a\":1\n", &[Err(LlmError::EndedEarly)]),
    ];
    for (body, expected) in cases {
        for at in 0..=body.len() {
            let (left, right) = body.split_at(at);
            let shown = String::from_utf8_lossy(body);
            assert_eq!(frames(&[left, right]), expected, "{shown:?}, cut at {at}");
        }
    }
    let lines = vec![b"{\n \"a\": 1,\n".as_slice(); 100];
    let limit = LlmError::ReplyTooLong { limit_bytes: LIMIT };
    assert_eq!(frames(&lines), [Err(limit)]);
}

#[test]
fn a_web_page_is_named_as_one() {
    let found = frames(&[b"  <!doctype html>"]);
    assert!(
        matches!(found.as_slice(), [Err(LlmError::Malformed { message })] if message.contains("web page"))
    );
}

#[test]
fn an_event_of_endless_lines_is_refused() {
    let line = [b"data: ".as_slice(), &[b'x'; 64 * 1024], b"\n"].concat();
    let pieces = vec![line.as_slice(); 17];
    assert_eq!(frames(&pieces).first(), Some(&Err(too_long())));
}

#[test]
fn what_came_before_a_broken_connection_is_still_told() {
    let pieces = [
        Ok(Bytes::from_static(b"{\"a\":1}\n{\"b")),
        Err(LlmError::EndedEarly),
    ];
    let found: Vec<_> = block_on(answer(Box::pin(stream::iter(pieces)), LIMIT).collect());
    assert_eq!(found, [data("{\"a\":1}"), Err(LlmError::EndedEarly)]);
}
