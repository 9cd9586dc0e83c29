//! Requests that come again, and clients that go.

use eventsource_stream::Eventsource as _;
use futures_util::StreamExt as _;
use reqwest::StatusCode;
use serde_json::Value;

use super::{ask, chunks, joined, said, streamed, talking};
use crate::fake_model::{Recorded, Step};

#[tokio::test]
async fn a_request_that_comes_again_joins_the_run_that_goes() {
    let (model, server) = talking();
    model.script(vec![
        Step::text("Slowly"),
        Step::hold("go"),
        Step::text(", but once."),
    ]);
    let body = said("Once.");
    let first = ask(&server, &streamed(body.clone()), &[]).await;
    let mut first = first.bytes_stream().eventsource();
    loop {
        let event = first.next().await.unwrap().unwrap();
        if event.data.contains("Slowly") {
            break;
        }
    }
    drop(first);
    let headers = [("x-stainless-retry-count", "1")];
    let again = ask(&server, &streamed(body), &headers).await;
    model.release("go");
    let again = chunks(again).await;
    assert_eq!(joined(&again, "content"), "Slowly, but once.");
    assert_eq!(model.chats().len(), 1);
}

#[tokio::test]
async fn a_key_that_comes_again_with_another_request_is_refused() {
    let (model, server) = talking();
    let key = [("idempotency-key", "one")];
    model.script(vec![Step::text("Once.")]);
    for _ in 0..2 {
        let answer = ask(&server, &said("Say it."), &key).await;
        let answer: Value = answer.json().await.unwrap();
        assert_eq!(answer["choices"][0]["message"]["content"], "Once.");
    }
    let refused = ask(&server, &said("Say more."), &key).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
    let refusal: Value = refused.json().await.unwrap();
    assert_eq!(refusal["error"]["type"], "invalid_request_error");
    let message = refusal["error"]["message"].as_str().unwrap();
    assert!(message.contains("Idempotency-Key"), "{message}");
    assert_eq!(model.chats().len(), 1);
}

#[tokio::test]
async fn a_key_stands_for_its_first_question_after_a_restart_too() {
    let (model, mut server) = talking();
    let keys: [&[(&str, &str)]; 2] = [
        &[("idempotency-key", "one")],
        &[("idempotency-key", "two"), ("x-navi-session", "a-room")],
    ];
    for key in keys {
        model.script(vec![Step::text("Once.")]);
        let first = ask(&server, &said("Say it."), key).await;
        assert_eq!(first.status(), StatusCode::OK);
        server = server.crash_and_restart();
        let refused = ask(&server, &said("Say more."), key).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
        let answer = ask(&server, &said("Say it."), key).await;
        let answer: Value = answer.json().await.unwrap();
        assert_eq!(answer["choices"][0]["message"]["content"], "Once.");
    }
}

#[tokio::test]
async fn a_client_that_goes_for_good_stops_what_nobody_could_read() {
    let (model, server) = talking();
    model.script(vec![Step::text("To whom"), Step::hold("never")]);
    let mut stream = ask(&server, &streamed(said("Hello?")), &[])
        .await
        .bytes_stream()
        .eventsource();
    while !stream.next().await.unwrap().unwrap().data.contains("whom") {}
    drop(stream);
    let closed = |chats: &[Recorded]| chats[0].closed_early_ms.is_some();
    model.wait_for(closed).await;
}
