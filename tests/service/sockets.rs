//! The sockets from outside.

use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::fake_model::{FakeModel, Step};
use crate::server::{House, Server, TOKEN, Told};

const NOBODY: &str = "00000000-0000-7000-8000-000000000000";

fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

/// The text of an answer as its deltas give it.
fn streamed(frames: &[Value]) -> String {
    frames
        .iter()
        .filter(|frame| frame["type"] == "stream_delta")
        .filter_map(|frame| frame["delta"].as_str())
        .collect()
}

#[tokio::test]
async fn a_message_is_accepted_answered_and_numbered() {
    let (model, server) = talking();
    model.script(vec![Step::text("Hello "), Step::text("there")]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "hi", "client_id": "c1"}))
        .await;
    let frames = tab.until("stream_end").await;
    assert_eq!(frames[0]["type"], "message_accepted");
    assert_eq!(frames[0]["client_id"], "c1");
    assert_eq!(streamed(&frames), "Hello there");
    assert_eq!(frames.last().unwrap()["content"], "Hello there");
    let numbers: Vec<u64> = frames
        .iter()
        .filter_map(|frame| frame["seq"].as_u64())
        .collect();
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected);

    let mut late = server.tab(&session, Some(0)).await;
    let again = late.until("stream_end").await;
    assert_eq!(streamed(&again), "Hello there");
}

#[tokio::test]
async fn the_same_client_id_with_other_words_is_answered_with_the_first() {
    let (model, server) = talking();
    model.script(vec![Step::text("one"), Step::hold("forever")]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    let message = |content: &str, client_id: &str| -> Value {
        json!({"type": "message", "content": content, "client_id": client_id, "mode": "steer"})
    };
    tab.send(&message("first", "a")).await;
    tab.next_of("stream_delta").await;
    // It waits for the run of the first.
    tab.send(&message("second", "b")).await;
    tab.next_of("message_accepted").await;
    for (client_id, content, queued) in [("a", "first", false), ("b", "second", true)] {
        tab.send(&message("other words", client_id)).await;
        let told = tab.next_of("message_accepted").await;
        assert_eq!(told["client_id"], client_id);
        assert_eq!(told["content"], content);
        assert_eq!(told["queued"], queued);
        assert_eq!(told["mode"], if queued { "steer" } else { "queue" });
        assert!(told.get("seq").is_none(), "{told}");
    }
}

#[tokio::test]
async fn stop_works_while_the_backend_is_silent() {
    let (model, server) = talking();
    model.script(vec![Step::text("one"), Step::hold("forever")]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "hi"})).await;
    tab.next_of("stream_delta").await;
    tab.send(&json!({"type": "stop"})).await;
    tab.next_of("stream_stopped").await;
}

#[tokio::test]
async fn a_wrong_address_is_told_by_the_close_code() {
    let server = House::new(&[]).start();
    for (path, code) in [
        (format!("/ws/sessions/{NOBODY}"), 4004),
        ("/ws/sessions/nonsense".to_owned(), 4004),
        (format!("/ws/sessions/{NOBODY}?after=x"), 1008),
    ] {
        let mut tab = server.socket(&path).await;
        assert_eq!(tab.next().await, Told::Closed(code), "{path}");
    }
}

#[tokio::test]
async fn a_ping_is_answered_on_both_sockets() {
    let server = House::new(&[]).start();
    let session = server.new_session().await;
    let tab = server.tab(&session, None).await;
    let list = server.socket("/ws/sessions").await;
    for mut socket in [tab, list] {
        socket.send(&json!({"type": "ping"})).await;
        let told = socket.next_of("pong").await;
        assert!(told.get("seq").is_none(), "{told}");
    }
}

#[tokio::test]
async fn bad_frames_are_answered_to_that_tab_alone() {
    let server = House::new(&[]).start();
    let session = server.new_session().await;
    let mut other = server.tab(&session, None).await;
    let mut tab = server.tab(&session, None).await;
    for (message, code) in [
        (Message::text("nonsense"), "invalid_json"),
        (Message::text("[]"), "invalid_field"),
        (Message::text("{}"), "invalid_field"),
        (
            Message::text(r#"{"type":"dance","client_id":"c"}"#),
            "unknown_type",
        ),
        (
            Message::text(r#"{"type":"message","client_id":"c"}"#),
            "invalid_field",
        ),
        (
            Message::text(r#"{"type":"message","content":" ","client_id":"c"}"#),
            "empty_message",
        ),
        (
            Message::text(r#"{"type":"message","content":"x","images":["%"],"client_id":"c"}"#),
            "invalid_image",
        ),
        (
            Message::text(r#"{"type":"continue"}"#),
            "nothing_to_continue",
        ),
        (
            Message::text(format!(r#"{{"type":"withdraw","message_id":"{NOBODY}"}}"#)),
            "message_not_found",
        ),
        (
            Message::text(format!(
                r#"{{"type":"approve","approval_id":"{NOBODY}","decision":"once"}}"#
            )),
            "approval_not_found",
        ),
        (
            Message::text(format!(
                r#"{{"type":"message","content":[0{}"#,
                ",0".repeat(100_000)
            )),
            "frame_too_large",
        ),
        (Message::binary(vec![1, 2, 3]), "binary_frame"),
    ] {
        let has_id = message
            .to_text()
            .is_ok_and(|text| text.contains("client_id"));
        tab.send_raw(message).await;
        let told = tab.next_of("error").await;
        assert_eq!(told["code"], code);
        assert!(told.get("seq").is_none());
        assert_eq!(told["client_id"].as_str(), has_id.then_some("c"), "{told}");
    }
    // The other tab heard nothing of it: the first thing it is told is its own error.
    other.send_raw(Message::text("x")).await;
    assert!(matches!(other.next().await, Told::Frame(frame) if frame["code"] == "invalid_json"));
    assert_eq!(
        server.get(&format!("/sessions/{session}")).await["messages"],
        json!([])
    );
}

#[tokio::test]
async fn fragments_are_joined_and_bounded() {
    let (_model, server) = talking();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    let text = json!({"type": "message", "content": "in — parts"}).to_string();
    let bytes = text.as_bytes();
    let cut = text.find('—').unwrap() + 1;
    let fragment = |bytes: &[u8], code, last| {
        Message::Frame(Frame::message(bytes.to_vec(), OpCode::Data(code), last))
    };
    tab.send_raw(fragment(&bytes[..cut], Data::Text, false))
        .await;
    tab.send_raw(fragment(&bytes[cut..], Data::Continue, true))
        .await;
    assert_eq!(
        tab.next_of("message_accepted").await["content"],
        "in — parts"
    );

    let mut tab = server.tab(&session, Some(u64::from(u32::MAX))).await;
    tab.next_of("resync").await;
    let piece = vec![b'x'; 8 << 20];
    tab.send_raw(fragment(b"\"", Data::Text, false)).await;
    for _ in 0..8 {
        if !tab
            .try_send_raw(fragment(&piece, Data::Continue, false))
            .await
        {
            break;
        }
    }
    let code = tab.closed().await;
    assert!(code == 1009 || code == 1006, "{code}");
}

/// As much of a frame's bytes as came, of those that it announces.
fn begun(first: u8, announced: u64, came: usize) -> Vec<u8> {
    let mut bytes = vec![first, 0xff];
    bytes.extend(announced.to_be_bytes());
    let key = [0; 4];
    bytes.extend(key);
    bytes.resize(bytes.len() + came, b'x');
    bytes
}

#[tokio::test]
async fn a_frame_that_announces_too_much_is_refused_at_its_header() {
    let server = House::new(&[]).start();
    let session = server.new_session().await;
    for (path, announced, came) in [
        (format!("/ws/sessions/{session}"), 49 << 20, 1 << 20),
        (format!("/ws/sessions/{session}"), u64::MAX, 0),
        ("/ws/sessions".to_owned(), 5 << 10, 100),
    ] {
        let mut socket = server.socket(&path).await;
        socket.send_bytes(&begun(0x81, announced, came)).await;
        assert_eq!(socket.closed().await, 1009, "{path} {announced}");
    }
}

#[tokio::test]
async fn a_large_message_that_stops_coming_is_given_up() {
    let server = House::new(&[("NAVI_SLOW_BODY_SECONDS", "1")]).start();
    let session = server.new_session().await;
    let came = 100 << 10;
    // A frame whose end is missing, and a whole one of a message whose end is.
    for (first, announced) in [(0x81, 200 << 10), (0x01, 100 << 10)] {
        let mut tab = server.tab(&session, None).await;
        tab.send_bytes(&begun(first, announced, came)).await;
        assert_eq!(tab.closed().await, 1008, "{announced}");
    }
}

#[tokio::test]
async fn a_flood_is_closed_and_others_are_not() {
    let server = House::new(&[]).start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    // Faster than 50 a second it is on any machine, and what it is told is read meanwhile.
    let code = 'flood: {
        for _ in 0..200 {
            for _ in 0..50 {
                tab.try_send_raw(Message::text("{}")).await;
            }
            for _ in 0..50 {
                if let Told::Closed(code) = tab.next().await {
                    break 'flood code;
                }
            }
        }
        panic!("it may send as much as it likes");
    };
    assert_eq!(code, 1008);
    let mut other = server.tab(&session, None).await;
    other.send_raw(Message::text("{}")).await;
    other.next_of("error").await;
}

#[tokio::test]
async fn another_page_gets_no_socket() {
    let server = House::new(&[]).start();
    let session = server.new_session().await;
    let path = format!("/ws/sessions/{session}");
    let bearer = ("authorization", format!("Bearer {TOKEN}"));
    let evil = ("origin", "http://evil.example".to_owned());
    for (headers, expected) in [
        (vec![], StatusCode::UNAUTHORIZED),
        (vec![bearer.clone(), evil], StatusCode::FORBIDDEN),
    ] {
        match server.socket_with(&path, &headers).await {
            Err(Error::Http(response)) => {
                assert_eq!(response.status().as_u16(), expected.as_u16());
            }
            other => panic!("{other:?}"),
        }
    }
    let own = ("origin", server.url.clone());
    assert!(server.socket_with(&path, &[bearer, own]).await.is_ok());
}

#[tokio::test]
async fn the_list_is_told_whole_and_then_by_its_changes() {
    let server = House::new(&[]).start();
    let first = server.new_session().await;
    let mut page = server.socket("/ws/sessions").await;
    let Told::Frame(whole) = page.next().await else {
        panic!("closed");
    };
    assert_eq!(whole["type"], "sessions");
    assert_eq!(whole["sessions"][0]["id"], first.as_str());
    assert!(whole["status"]["version"].is_string());
    let second = server.new_session().await;
    let changed = page.next_of("session_changed").await;
    assert_eq!(changed["session"]["id"], second.as_str());
}

#[tokio::test]
async fn a_shutdown_is_orderly() {
    let (model, mut server) = talking();
    model.script(vec![Step::text("one"), Step::hold("forever")]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    let mut page = server.socket("/ws/sessions").await;
    tab.send(&json!({"type": "message", "content": "hi"})).await;
    tab.next_of("stream_delta").await;
    server.ask_to_end();
    tab.next_of("run_interrupted").await;
    assert_eq!(tab.closed().await, 1012);
    assert_eq!(page.closed().await, 1012);
    assert!(server.ended().await.success(), "{}", server.said());
}
