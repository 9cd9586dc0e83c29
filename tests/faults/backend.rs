//! A backend that is silent, slow, reset after N bytes for each N, that answers 429 or 503,
//! breaks off, talks nonsense, or does not end: SPEC section 5. What was said is kept, a call is
//! made again only before its first chunk, and Stop works within a second.
//!
//! What a server asks for by `Retry-After` is in `retries.rs`.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::fake_model::{Config, FakeModel, Recorded, Reply, Step};
use crate::rounds::{Chance, rounds};
use crate::server::{House, Server, Socket};

/// How many services try faults side by side: most of a fault is waiting.
const LANES: usize = 4;

/// What Navi speaks with its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Ollama,
    OpenAi,
}

impl Protocol {
    /// A backend that speaks this, and a service that knows no other. It starts beside what else
    /// the test does, which has connections that are given up where they say nothing for long.
    pub(super) async fn talking(self, variables: &[(&str, &str)]) -> (FakeModel, Server) {
        let model = FakeModel::start();
        let url = model.url();
        let own = match self {
            Self::Ollama => [("LLM_BACKEND", "ollama"), ("OLLAMA_HOST", url.as_str())],
            Self::OpenAi => [("LLM_BACKEND", "openai"), ("OPENAI_BASE_URL", url.as_str())],
        };
        model.configure(Config {
            ollama: self == Self::Ollama,
            openai: self == Self::OpenAi,
            ..Config::default()
        });
        let house = House::new(&[&own, variables].concat());
        let server = tokio::task::spawn_blocking(move || house.start());
        (model, server.await.expect("it starts"))
    }

    fn chat_path(self) -> &'static str {
        match self {
            Self::Ollama => "/api/chat",
            Self::OpenAi => "/v1/chat/completions",
        }
    }
}

/// The calls of the run that answers this message.
pub(super) fn calls(model: &FakeModel, message: &str) -> Vec<Recorded> {
    let chats = model.chats().into_iter();
    chats
        .filter(|chat| chat.body["stream"] != false && chat.last_user_text() == message)
        .collect()
}

pub(super) async fn say(server: &Server, message: &str) -> (String, Socket) {
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": message}))
        .await;
    (session, tab)
}

/// The frame that ends a run, however it ends.
pub(super) async fn end_of(tab: &mut Socket) -> Value {
    loop {
        let crate::server::Told::Frame(frame) = tab.next().await else {
            panic!("the tab was closed");
        };
        let kind = frame["type"].as_str().unwrap();
        if matches!(kind, "stream_end" | "stream_stopped" | "error") {
            return frame;
        }
    }
}

async fn last_message(server: &Server, session: &str) -> Value {
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    let messages = snapshot["messages"].as_array().unwrap();
    messages.last().unwrap().clone()
}

/// What a fault comes to.
#[derive(Clone, Copy, Debug)]
enum Comes {
    /// To this error, after one call, with what had been said kept.
    AnError(&'static str),
    /// To the answer of a second call.
    ASecondCall,
    AnAnswer(&'static str),
}

struct Fault {
    name: &'static str,
    steps: Vec<Step>,
    comes: Comes,
}

fn fault(name: &'static str, steps: impl Into<Vec<Step>>, comes: Comes) -> Fault {
    Fault {
        name,
        steps: steps.into(),
        comes,
    }
}

fn faults(protocol: Protocol) -> Vec<Fault> {
    let half = || Step::text("half ");
    let raw = |text: &str| Step::Raw(text.to_owned());
    let nonsense = |text: &str| match protocol {
        Protocol::Ollama => Step::Raw(format!("{text}\n")),
        Protocol::OpenAi => Step::Raw(format!("data: {text}\n\n")),
    };
    let endless = |piece: &str| Step::EndlessRaw {
        piece: piece.to_owned(),
        every_ms: 20,
    };
    let compressed = Step::Respond {
        status: 200,
        headers: [("Content-Encoding".to_owned(), "gzip".to_owned())].into(),
        body: "no gzip".to_owned(),
    };
    let slow = |n: u32| [Step::Text(format!("{n} ")), Step::DelayMs(2_000)];
    let broken = Comes::AnError("backend_stream_broken");
    let first = Comes::AnError("first_chunk_timeout");
    let later = Comes::AnError("chunk_timeout");
    let keep_alive = match protocol {
        Protocol::Ollama => "\n",
        Protocol::OpenAi => ": still here\n\n",
    };
    vec![
        fault("silent", [Step::Silence], first),
        fault("silent after the head", [Step::Begin, Step::Silence], first),
        fault("nothing but signs of life", [endless(keep_alive)], first),
        fault(
            "endless empty pieces",
            [Step::EndlessText {
                piece: String::new(),
                every_ms: 20,
            }],
            first,
        ),
        fault("silent in mid-stream", [half(), Step::Silence], later),
        fault(
            "slow",
            (0..6).flat_map(slow).collect::<Vec<_>>(),
            Comes::AnAnswer("0 1 2 3 4 5 "),
        ),
        fault(
            "an error in mid-stream",
            [half(), Step::Error("out of memory".to_owned())],
            broken,
        ),
        fault("no end", [half(), Step::End], broken),
        fault("cut in mid-stream", [half(), Step::Close], broken),
        fault("reset in mid-stream", [half(), Step::Reset], broken),
        fault(
            "nonsense in mid-stream",
            [half(), nonsense("} nonsense {")],
            broken,
        ),
        fault("a number in mid-stream", [half(), nonsense("7")], broken),
        fault(
            "a list in mid-stream",
            [half(), nonsense("[[[1]]]")],
            broken,
        ),
        fault(
            "deep nesting in mid-stream",
            [half(), nonsense(&"[".repeat(50_000))],
            broken,
        ),
        fault(
            "a call that is cut off",
            [
                half(),
                Step::tool_call(
                    "filesystem",
                    json!({"action": "write", "path": "cut.txt", "content": "x"}),
                ),
                Step::Close,
            ],
            broken,
        ),
        fault(
            "a web page",
            [raw("<html><title>Hello</title></html>")],
            broken,
        ),
        fault("a compressed body", [compressed], broken),
        fault(
            "an error at first",
            [Step::Error("no slot".to_owned())],
            Comes::ASecondCall,
        ),
        fault(
            "an empty body",
            [Step::Begin, Step::End],
            Comes::ASecondCall,
        ),
        fault("no body", [Step::Begin, Step::Close], Comes::ASecondCall),
        fault("nothing at all", [Step::Cut], Comes::ASecondCall),
        fault("a reset at first", [Step::Reset], Comes::ASecondCall),
        fault(
            "no HTTP",
            [
                Step::Bytes(b"220 mail.example ESMTP\r\n".to_vec()),
                Step::Cut,
            ],
            Comes::ASecondCall,
        ),
    ]
}

async fn each_fault_comes_to_what_it_should(protocol: Protocol) {
    let mut lanes: [Vec<Fault>; LANES] = std::array::from_fn(|_| Vec::new());
    for (at, fault) in faults(protocol).into_iter().enumerate() {
        // What waits for a limit has a service with short ones, where nothing else can meet them.
        let waits = matches!(fault.comes, Comes::AnError(code) if code.ends_with("_timeout"));
        let lane = if waits { 0 } else { 1 + at % (LANES - 1) };
        lanes[lane].push(fault);
    }
    let lanes = lanes.into_iter().zip(["6", "10", "10", "10"]);
    join_all(lanes.map(|(faults, limit)| come_to_what_they_should(protocol, faults, limit))).await;
}

async fn come_to_what_they_should(protocol: Protocol, faults: Vec<Fault>, seconds: &str) {
    let limits = [
        ("LLM_STREAM_FIRST_CHUNK_TIMEOUT", seconds),
        ("LLM_STREAM_CHUNK_TIMEOUT", seconds),
    ];
    let (model, server) = protocol.talking(&limits).await;
    for Fault { name, steps, comes } in faults {
        model.script(Reply::new(steps).when(name));
        let (session, mut tab) = say(&server, name).await;
        let end = end_of(&mut tab).await;
        let calls = calls(&model, name);
        let told = format!("{protocol:?}, {name}: {end}");
        match comes {
            Comes::AnError(code) => {
                assert_eq!(end["code"], code, "{told}");
                assert_eq!(calls.len(), 1, "{told}");
                let limit = match code {
                    "first_chunk_timeout" => "LLM_STREAM_FIRST_CHUNK_TIMEOUT",
                    "chunk_timeout" => "LLM_STREAM_CHUNK_TIMEOUT",
                    _ => "",
                };
                assert!(end["message"].as_str().unwrap().contains(limit), "{told}");
                model.wait_for(over).await;
                let last = last_message(&server, &session).await;
                let said = [&last["role"], &last["content"], &last["state"]];
                // Only these say something before they fail.
                if name.contains("mid-stream")
                    || matches!(name, "no end" | "a call that is cut off")
                {
                    assert_eq!(said, ["assistant", "half ", "failed"], "{told}");
                    assert!(last["tool_calls"].as_array().is_none_or(Vec::is_empty));
                } else {
                    assert_eq!(last["role"], "user", "{told}");
                }
            }
            Comes::ASecondCall => {
                assert_eq!(end["content"], format!("You said: {name}"), "{told}");
                assert_eq!(calls.len(), 2, "{told}");
            }
            Comes::AnAnswer(answer) => {
                assert_eq!(end["content"], answer, "{told}");
                assert_eq!(calls.len(), 1, "{told}");
            }
        }
        let workspace = server
            .house()
            .data_dir()
            .join("session_files")
            .join(&session);
        assert!(!workspace.join("cut.txt").exists());
        // Whatever it was, the conversation goes on.
        tab.send(&json!({"type": "message", "content": "again"}))
            .await;
        assert_eq!(
            end_of(&mut tab).await["content"],
            "You said: again",
            "{name}"
        );
    }
    model.assert_clean();
}

/// That no call goes on: the backend has seen each of them end.
pub(super) fn over(chats: &[Recorded]) -> bool {
    let mut chats = chats.iter();
    chats.all(|chat| chat.finished_ms.is_some() || chat.closed_early_ms.is_some())
}

#[tokio::test]
async fn a_backend_silent_slow_or_broken_over_ollamas_protocol() {
    each_fault_comes_to_what_it_should(Protocol::Ollama).await;
}

#[tokio::test]
async fn a_backend_silent_slow_or_broken_over_openais_protocol() {
    each_fault_comes_to_what_it_should(Protocol::OpenAi).await;
}

/// As a slow model writes a file: piece by piece, with nothing to show before it is whole.
#[tokio::test]
async fn a_call_may_take_longer_to_be_written_than_a_pause() {
    let (model, server) = Protocol::OpenAi
        .talking(&[("LLM_STREAM_CHUNK_TIMEOUT", "10")])
        .await;
    let fragment = |name: Option<&str>, arguments: &str| {
        let call = json!({"index": 0, "function": {"name": name, "arguments": arguments}});
        let chunk = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]});
        Step::Raw(format!("data: {chunk}\n\n"))
    };
    let begins = r#"{"action": "write", "path": "slow.txt", "content": ""#;
    let mut steps = vec![
        Step::text("I write it."),
        fragment(Some("filesystem"), begins),
    ];
    for _ in 0..12 {
        steps.extend([Step::DelayMs(1_000), fragment(None, "word ")]);
    }
    steps.push(fragment(None, "\"}"));
    model.script(Reply::new(steps).when("slowly"));
    let (session, mut tab) = say(&server, "slowly").await;
    let end = end_of(&mut tab).await;
    assert_eq!(end["type"], "stream_end", "{end}");
    let workspace = server.house().data_dir().join("session_files");
    let written = std::fs::read_to_string(workspace.join(session).join("slow.txt"));
    assert_eq!(written.unwrap(), "word ".repeat(12));
}

const PIECES: [&str; 3] = ["one ", "two 🌍 ", "three"];

/// The bytes of a small answer.
async fn recorded(protocol: Protocol) -> Vec<u8> {
    let model = FakeModel::start();
    model.script(PIECES.map(Step::text));
    let address = model.url().replace("http://", "");
    let mut socket = TcpStream::connect(address).await.unwrap();
    let body =
        json!({"model": "fake", "stream": true, "messages": [{"role": "user", "content": "hi"}]});
    let body = body.to_string();
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: fake\r\nContent-Length: {}\r\n\r\n",
        protocol.chat_path(),
        body.len()
    );
    socket.write_all((head + &body).as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n0\r\n\r\n") {
        assert_ne!(socket.read_buf(&mut bytes).await.unwrap(), 0);
    }
    bytes
}

/// How much of an answer must have come for so many of its pieces to be told, and for all of it.
fn thresholds(protocol: Protocol, bytes: &[u8]) -> Vec<usize> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let (frame_end, last) = match protocol {
        Protocol::Ollama => ("\n", "\"done\":true"),
        Protocol::OpenAi => ("\n\n", "\"finish_reason\":\"stop\""),
    };
    let marks = PIECES.map(|piece| json!(piece).to_string());
    let mut at = 0;
    let marks = marks.iter().map(String::as_str).chain([last]);
    marks
        .map(|mark| {
            at += text[at..].find(mark).expect("the mark");
            at += text[at..].find(frame_end).expect("its end") + frame_end.len();
            at
        })
        .collect()
}

async fn reset_after_each_byte(protocol: Protocol) {
    let mut chance = Chance::new();
    let bytes = recorded(protocol).await;
    let step = (bytes.len() / rounds(24, bytes.len())).max(1);
    let first = usize::try_from(chance.between(0, step as u64)).unwrap();
    let lanes = (0..LANES).map(|lane| {
        let places = (first..=bytes.len()).step_by(step);
        reset_at(protocol, &bytes, places.skip(lane).step_by(LANES))
    });
    join_all(lanes).await;
}

async fn reset_at(protocol: Protocol, bytes: &[u8], places: impl Iterator<Item = usize>) {
    let (model, server) = protocol.talking(&[]).await;
    let thresholds = thresholds(protocol, bytes);
    for (turn, n) in places.enumerate() {
        let message = format!("reset after <{n}>");
        // By turns with a reset and with a goodbye in the middle.
        let cut = [Step::Reset, Step::Cut][turn % 2].clone();
        let reply = [Step::Bytes(bytes[..n].to_vec()), cut];
        model.script(Reply::new(reply).when(&message));
        let (session, mut tab) = say(&server, &message).await;
        let end = end_of(&mut tab).await;
        let calls = calls(&model, &message).len();
        let told = thresholds.iter().filter(|it| **it <= n).count();
        let kept = PIECES[..told.min(PIECES.len())].concat();
        let context = format!("{protocol:?}, {n} of {thresholds:?}: {end}");
        if told == 0 {
            assert_eq!(end["content"], format!("You said: {message}"), "{context}");
            assert_eq!(calls, 2, "{context}");
        } else if told == thresholds.len() {
            assert_eq!(end["content"], kept, "{context}");
            assert_eq!(calls, 1, "{context}");
        } else {
            assert_eq!(end["code"], "backend_stream_broken", "{context}");
            assert_eq!(calls, 1, "{context}");
            let last = last_message(&server, &session).await;
            assert_eq!(
                [&last["content"], &last["state"]],
                [kept.as_str(), "failed"],
                "{context}"
            );
        }
    }
    model.assert_clean();
}

#[tokio::test]
async fn a_backend_reset_after_each_number_of_bytes_over_ollamas_protocol() {
    reset_after_each_byte(Protocol::Ollama).await;
}

#[tokio::test]
async fn a_backend_reset_after_each_number_of_bytes_over_openais_protocol() {
    reset_after_each_byte(Protocol::OpenAi).await;
}

async fn endless_text(protocol: Protocol) {
    let (model, server) = protocol.talking(&[]).await;
    let endless = || Step::EndlessText {
        piece: "0123456789abcdef".repeat(256),
        every_ms: 0,
    };
    // As fast as it can, until it is too much.
    model.script([endless()]);
    let (session, mut tab) = say(&server, "go on").await;
    let end = end_of(&mut tab).await;
    assert_eq!(end["code"], "reply_too_long", "{end}");
    model.wait_for(over).await;
    let last = last_message(&server, &session).await;
    let kept = last["content"].as_str().unwrap().len();
    assert!((7_000_000..=8_400_000).contains(&kept), "{kept}");
    assert_eq!(last["state"], "failed");

    // Stop reaches it in time though nobody reads what it says.
    model.script([endless()]);
    let (session, mut tab) = say(&server, "and on").await;
    tab.next_of("stream_delta").await;
    server
        .post(&format!("/sessions/{session}/stop"), json!({}))
        .await;
    model.wait_for(over).await;
    assert_eq!(end_of(&mut tab).await["type"], "stream_stopped");
    let last = last_message(&server, &session).await;
    assert_eq!(last["state"], "stopped");
    model.assert_clean();
}

#[tokio::test]
async fn endless_text_is_cut_off_and_can_be_stopped_over_ollamas_protocol() {
    endless_text(Protocol::Ollama).await;
}

#[tokio::test]
async fn endless_text_is_cut_off_and_can_be_stopped_over_openais_protocol() {
    endless_text(Protocol::OpenAi).await;
}
