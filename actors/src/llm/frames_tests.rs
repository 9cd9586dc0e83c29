#![allow(clippy::unwrap_used, reason = "a test says so by failing")]

use super::*;

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

type Outcome = Result<Frame, LlmError>;

fn frames(cut: fn(ByteStream) -> FrameStream, pieces: &[&[u8]]) -> Vec<Outcome> {
    let pieces: Vec<_> = pieces
        .iter()
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    block_on(cut(Box::pin(stream::iter(pieces))).collect())
}

fn data(text: &str) -> Outcome {
    Ok(Frame::Data(text.to_owned()))
}

fn event_stream(bytes: ByteStream) -> FrameStream {
    sse_or_json(bytes, 1000)
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
        assert_eq!(frames(ndjson, &[left, right]), expected, "cut at {at}");
    }
}

#[test]
fn a_last_line_counts_only_when_it_is_whole() {
    assert_eq!(
        frames(ndjson, &[b"{\"a\":1}\n{\"b\":"]),
        [data("{\"a\":1}")]
    );
    assert_eq!(
        frames(event_stream, &[b"data: {\"a\":1}"]),
        [data("{\"a\":1}")]
    );
    assert_eq!(
        frames(event_stream, &[b"data: 1\n\ndata: [DONE]"]),
        [data("1"), data("[DONE]")]
    );
    assert_eq!(
        frames(event_stream, &[b"data: 1\n\ndata: {\"a\""]),
        [data("1")]
    );
}

#[test]
fn events_are_read_by_the_specification() {
    let cases: [(&[u8], &[Outcome]); 9] = [
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
            &[Ok(Frame::Error("boom".to_owned()))],
        ),
        (b"\xef\xbb\xbfdata: x\n\n", &[data("x")]),
        (b"data: x\r\rdata: y\r\n\r\n", &[data("x"), data("y")]),
        (b"\n\n\n", &[]),
    ];
    for (body, expected) in cases {
        for at in 0..=body.len() {
            let (left, right) = body.split_at(at);
            let shown = String::from_utf8_lossy(body);
            assert_eq!(
                frames(event_stream, &[left, right]),
                expected,
                "{shown:?}, cut at {at}"
            );
        }
    }
}

#[test]
fn a_byte_that_is_no_text_costs_one_character() {
    let body = b"data: a\xffb\n\ndata: c\n\n";
    assert_eq!(
        frames(event_stream, &[body]),
        [data("a\u{fffd}b"), data("c")]
    );
}

#[test]
fn a_document_in_place_of_a_stream_is_one_frame() {
    let document = b"\xef\xbb\xbf \n{\n \"a\": 1\n}\n";
    for at in 0..document.len() {
        let (left, right) = document.split_at(at);
        let found = frames(event_stream, &[left, right]);
        assert_eq!(found, [data("{\n \"a\": 1\n}")], "cut at {at}");
    }
    assert_eq!(
        frames(event_stream, &[b"{\"a\": "]),
        [Err(LlmError::EndedEarly)]
    );
    let long = [b"{\"a\":\"".as_slice(), &[b'x'; 2000]];
    let limit = LlmError::ReplyTooLong { limit_bytes: 1000 };
    assert_eq!(frames(event_stream, &long), [Err(limit)]);
}

#[test]
fn a_web_page_is_named_as_one() {
    let found = frames(event_stream, &[b"  <!doctype html>"]);
    assert!(
        matches!(found.as_slice(), [Err(LlmError::Malformed { message })] if message.contains("web page"))
    );
}

#[test]
fn an_event_of_endless_lines_is_refused() {
    let line = [b"data: ".as_slice(), &[b'x'; 64 * 1024], b"\n"].concat();
    let pieces = vec![line.as_slice(); 17];
    assert_eq!(
        frames(event_stream, &pieces).first(),
        Some(&Err(too_long()))
    );
}

#[test]
fn what_came_before_a_broken_connection_is_still_told() {
    let pieces = [
        Ok(Bytes::from_static(b"{\"a\":1}\n{\"b")),
        Err(LlmError::EndedEarly),
    ];
    let found: Vec<_> = block_on(ndjson(Box::pin(stream::iter(pieces))).collect());
    assert_eq!(found, [data("{\"a\":1}"), Err(LlmError::EndedEarly)]);
}
