//! A session's events without WebSocket, read by a parser of other hands.

use std::future::ready;

use eventsource_stream::{Event, Eventsource as _};
use futures_util::{Stream, StreamExt as _};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Step};
use crate::server::{House, PATIENCE, Server, TOKEN, client};

/// What comes of a request, event by event.
struct EventStream(std::pin::Pin<Box<dyn Stream<Item = Event>>>);

impl EventStream {
    async fn open(server: &Server, path: &str, last: Option<&str>) -> Self {
        Self::with(server, path, last, TOKEN).await
    }

    async fn with(server: &Server, path: &str, last: Option<&str>, token: &str) -> Self {
        let mut request = client()
            .get(format!("{}{path}", server.url))
            .bearer_auth(token);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        let events = response.bytes_stream().eventsource();
        Self(Box::pin(
            events
                .take_while(|event| ready(event.is_ok()))
                .filter_map(|event| ready(event.ok())),
        ))
    }

    async fn next(&mut self) -> Option<Event> {
        let next = tokio::time::timeout(PATIENCE, self.0.next());
        next.await.expect("something comes, or its end")
    }

    /// Every event up to one of this type, as their data, with the last one's id.
    async fn until(&mut self, kind: &str) -> (Vec<Value>, String) {
        let mut frames = Vec::new();
        loop {
            let event = self.next().await.expect("more events");
            let frame: Value = serde_json::from_str(&event.data).unwrap();
            if let Some(seq) = frame["seq"].as_u64() {
                assert_eq!(event.id, seq.to_string());
            }
            let found = frame["type"] == kind;
            frames.push(frame);
            if found {
                return (frames, event.id);
            }
        }
    }
}

fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

fn without_text(frames: Vec<Value>) -> Vec<Value> {
    let numbered = frames.into_iter().filter(|frame| frame["seq"].is_u64());
    numbered.collect()
}

#[tokio::test]
async fn events_are_those_of_a_tab_and_go_on_behind_the_last_one() {
    let (model, server) = talking();
    let session = server.new_session().await;
    let path = format!("/sessions/{session}/events");
    let mut events = EventStream::open(&server, &format!("{path}?after=0"), None).await;
    let mut tab = server.tab(&session, Some(0)).await;

    model.script(vec![Step::text("Hello "), Step::text("there")]);
    tab.send(&json!({"type": "message", "content": "hi"})).await;
    let (told, last) = events.until("stream_end").await;
    let shown = tab.until("stream_end").await;
    assert_eq!(without_text(told.clone()), without_text(shown));
    let text: String = told.iter().filter_map(|it| it["delta"].as_str()).collect();
    assert_eq!(text, "Hello there");

    // The connection is cut, and more comes meanwhile.
    drop(events);
    model.script(vec![Step::text("Once more")]);
    tab.send(&json!({"type": "message", "content": "again"}))
        .await;
    let missed = tab.until("stream_end").await;
    let mut events = EventStream::open(&server, &format!("{path}?after=0"), Some(&last)).await;
    let (told, _) = events.until("stream_end").await;
    assert_eq!(without_text(told), without_text(missed));
}

#[tokio::test]
async fn a_cursor_that_is_ahead_gets_the_session_as_it_stands() {
    let (model, server) = talking();
    model.script(vec![Step::text("Hello")]);
    let session = server.new_session().await;
    server
        .post(
            &format!("/sessions/{session}/messages"),
            json!({"content": "hi"}),
        )
        .await;
    let path = format!("/sessions/{session}/events?messages=1");
    let mut events = EventStream::open(&server, &path, Some("4000000")).await;
    let (told, id) = events.until("resync").await;
    let resync = &told[0];
    assert_eq!(resync["reason"], "cursor_ahead");
    assert_eq!(resync["session"]["messages"][0]["content"], "hi");
    assert_eq!(id, resync["session"]["last_seq"].to_string());
}

#[tokio::test]
async fn what_is_wrong_is_told_before_the_stream() {
    let server = House::new(&[]).start();
    let session = server.new_session().await;
    let path = format!("/sessions/{session}/events");
    for (path, last, status, code) in [
        ("/sessions/nonsense/events", "", 400, "invalid_id"),
        (
            "/sessions/00000000-0000-7000-8000-000000000000/events",
            "",
            404,
            "session_not_found",
        ),
        (&*format!("{path}?after=x"), "", 400, "invalid_field"),
        (&*path, "a-word", 400, "invalid_field"),
        (&*path, "-1", 400, "invalid_field"),
    ] {
        let response = client()
            .get(format!("{}{path}", server.url))
            .bearer_auth(TOKEN)
            .header("last-event-id", last)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), status, "{path} {last}");
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["code"], code, "{path} {last}");
    }
    let nobody = client().get(format!("{}{path}", server.url)).send();
    assert_eq!(nobody.await.unwrap().status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn events_end_with_their_session_and_with_their_token() {
    let server = House::new(&[]).start();
    let session = server.new_session().await;
    let path = format!("/sessions/{session}/events");
    let made = server.post("/api/tokens", json!({"name": "script"})).await;
    let token = made["token"].as_str().unwrap();
    let mut held = EventStream::with(&server, &path, None, token).await;
    let mut other = EventStream::open(&server, &path, None).await;

    let id = made["id"].as_str().unwrap();
    let token_path = format!("/api/tokens/{id}");
    let (removed, _) = server.call(Method::DELETE, &token_path, None).await;
    assert!(removed.is_success());
    let last = held.next().await.expect("a reason");
    assert_eq!(last.event, "closed");
    let reason: Value = serde_json::from_str(&last.data).unwrap();
    assert_eq!(reason["code"], "unauthorized");
    assert_eq!(held.next().await, None);

    let session_path = format!("/sessions/{session}");
    let (deleted, _) = server.call(Method::DELETE, &session_path, None).await;
    assert!(deleted.is_success());
    while let Some(event) = other.next().await {
        assert_ne!(event.event, "closed");
    }
}

#[tokio::test]
async fn a_closed_door_says_what_opens_it() {
    let server = House::new(&[("NAVI_DOORS", "none")]).start();
    let session = server.new_session().await;
    let events = format!("/sessions/{session}/events");
    for (method, path) in [(Method::GET, events.as_str()), (Method::POST, "/api/mcp")] {
        let (status, body) = server.call(method, path, None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert!(body["message"].as_str().unwrap().contains("NAVI_DOORS"));
    }
}
