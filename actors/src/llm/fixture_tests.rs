//! Recorded answers of real servers, read whole and in every way that a network cuts them.

use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use proptest::prelude::*;

use crate::protocol::chat::ChatDelta;

use super::frames::ByteStream;
use super::reply::MAX_REPLY_BYTES;
use super::{ChatStream, LlmError, ollama, openai};

pub(super) type Outcome = Vec<Result<ChatDelta, LlmError>>;

#[derive(Clone, Copy, Debug)]
pub(super) enum Protocol {
    Ollama,
    OpenAi,
}

pub(super) fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Runs one decoder over a body that arrives in these pieces.
pub(super) fn decode(protocol: Protocol, pieces: &[&[u8]]) -> Outcome {
    let pieces: Vec<Result<Bytes, LlmError>> = pieces
        .iter()
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    collect(stream_of(protocol, Box::pin(stream::iter(pieces))))
}

fn stream_of(protocol: Protocol, bytes: ByteStream) -> ChatStream {
    match protocol {
        Protocol::Ollama => ollama::read(bytes),
        Protocol::OpenAi => openai::read(bytes),
    }
}

fn collect(stream: ChatStream) -> Outcome {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(stream.collect())
}

/// Runs of text and of reasoning as one delta each: what a reader sees.
fn joined(outcome: Outcome) -> Vec<serde_json::Value> {
    let mut deltas: Vec<ChatDelta> = Vec::new();
    let mut shown = Vec::new();
    for item in outcome {
        match (item, deltas.last_mut()) {
            (Ok(ChatDelta::Text(more)), Some(ChatDelta::Text(text))) => text.push_str(&more),
            (Ok(ChatDelta::Thinking(more)), Some(ChatDelta::Thinking(text))) => {
                text.push_str(&more);
            }
            (Ok(delta), _) => deltas.push(delta),
            (Err(error), _) => shown.push(serde_json::json!({ "error": error.to_string() })),
        }
    }
    let deltas = deltas
        .into_iter()
        .map(|delta| serde_json::to_value(delta).unwrap());
    deltas.chain(shown).collect()
}

/// Every recorded stream, by name.
fn recordings() -> Vec<(Protocol, String, Vec<u8>)> {
    let mut found = Vec::new();
    for (protocol, folder, ending) in [
        (Protocol::Ollama, "ollama", "ndjson"),
        (Protocol::OpenAi, "openai", "sse"),
    ] {
        for entry in fs::read_dir(fixtures().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|found| found == ending) {
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                found.push((
                    protocol,
                    format!("{folder}/{name}"),
                    fs::read(path).unwrap(),
                ));
            }
        }
    }
    found.sort_by(|left, right| left.1.cmp(&right.1));
    assert!(found.len() > 40, "the recordings are there");
    found
}

#[test]
fn each_recording_is_read_as_it_was_meant() {
    let read: serde_json::Map<String, serde_json::Value> = recordings()
        .into_iter()
        .map(|(protocol, name, body)| (name, joined(decode(protocol, &[&body])).into()))
        .collect();
    insta::assert_json_snapshot!("recordings", read);
}

/// Every place between two bytes is a cut once, the others being far away.
#[test]
fn a_cut_at_any_byte_changes_nothing() {
    const APART: usize = 101;
    for (protocol, name, body) in recordings() {
        let whole = decode(protocol, &[&body]);
        for first in 1..=APART.min(body.len()) {
            let (head, rest) = body.split_at(first);
            let pieces: Vec<&[u8]> = [head].into_iter().chain(rest.chunks(APART)).collect();
            assert_eq!(
                decode(protocol, &pieces),
                whole,
                "{name}, cut from {first} on"
            );
        }
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(decode(protocol, &bytes), whole, "{name}, byte by byte");
    }
}

#[test]
fn a_body_that_ends_too_soon_is_never_taken_for_an_answer() {
    for (protocol, name, body) in recordings() {
        let whole = decode(protocol, &[&body]);
        if !matches!(whole.last(), Some(Ok(ChatDelta::Done { .. }))) {
            continue;
        }
        // What says that the answer is complete stands near the end: check each place before.
        let enough = match protocol {
            Protocol::Ollama => memchr(&body, b"\"done\":true"),
            Protocol::OpenAi => memchr(&body, b"\"finish_reason\":\"")
                .or_else(|| memchr(&body, b"\"finish_reason\": \"")),
        };
        for at in (0..enough.expect("an end")).step_by(37) {
            let cut = decode(protocol, &[&body[..at]]);
            assert_eq!(
                cut.last(),
                Some(&Err(LlmError::EndedEarly)),
                "{name}, ends at {at}"
            );
        }
    }
}

fn memchr(body: &[u8], wanted: &[u8]) -> Option<usize> {
    body.windows(wanted.len())
        .position(|window| window == wanted)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn cuts_at_many_places_change_nothing(
        which in any::<prop::sample::Index>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let recordings = recordings();
        let (protocol, name, body) = which.get(&recordings);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut rest = body.as_slice();
        let mut taken = 0;
        for cut in cuts {
            let (piece, tail) = rest.split_at(cut - taken);
            pieces.push(piece);
            rest = tail;
            taken = cut;
        }
        pieces.push(rest);
        prop_assert_eq!(decode(*protocol, &pieces), decode(*protocol, &[body]), "{}", name);
    }

    /// Whatever comes: no panic, at most one end, and nothing after it.
    #[test]
    fn nonsense_ends_in_one_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        for protocol in [Protocol::Ollama, Protocol::OpenAi] {
            assert_one_end(&decode(protocol, &[&bytes]));
        }
    }

    #[test]
    fn a_damaged_recording_does_no_harm(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let recordings = recordings();
        let (protocol, _, body) = which.get(&recordings);
        let mut body = body.clone();
        for (at, byte) in damage {
            *at.get_mut(&mut body) = byte;
        }
        assert_one_end(&decode(*protocol, &[&body]));
    }
}

fn assert_one_end(outcome: &Outcome) {
    let is_end =
        |item: &Result<ChatDelta, LlmError>| matches!(item, Err(_) | Ok(ChatDelta::Done { .. }));
    let ends = outcome.iter().filter(|item| is_end(item)).count();
    assert_eq!(ends, 1, "{outcome:?}");
    assert!(outcome.last().is_some_and(is_end), "{outcome:?}");
}

#[test]
fn an_answer_without_end_is_cut_off() {
    let limit = Err(LlmError::ReplyTooLong {
        limit_bytes: MAX_REPLY_BYTES,
    });
    let text = "x".repeat(60_000);
    let line = format!("{{\"message\":{{\"content\":\"{text}\"}}}}\n");
    let event = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
    let arguments = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"name\":\"t\",\"arguments\":\"{text}\"}}}}]}}}}]}}\n\n"
    );
    for (protocol, piece) in [
        (Protocol::Ollama, line),
        (Protocol::OpenAi, event),
        (Protocol::OpenAi, arguments),
    ] {
        let endless = stream::repeat_with(move || Ok(Bytes::from(piece.clone())));
        let outcome = collect(stream_of(protocol, Box::pin(endless)));
        assert_eq!(outcome.last(), Some(&limit), "{protocol:?}");
    }
}

#[test]
fn a_line_without_end_is_refused() {
    for protocol in [Protocol::Ollama, Protocol::OpenAi] {
        let endless = stream::repeat_with(|| Ok(Bytes::from_static(&[b'x'; 16 * 1024])));
        let outcome = collect(stream_of(protocol, Box::pin(endless)));
        assert!(
            matches!(outcome.as_slice(), [Err(LlmError::Malformed { .. })]),
            "{protocol:?}: {outcome:?}"
        );
    }
}
