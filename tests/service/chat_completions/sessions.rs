//! Conversations that stay, by their names.

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{ask, chunks, joined, said, streamed, talking};
use crate::fake_model::{Recorded, Step};

#[tokio::test]
async fn a_session_goes_on_and_the_page_shows_it() {
    let (model, server) = talking();
    let headers = [("x-navi-session", "chat-of-another-program")];
    model.script(vec![Step::text("One.")]);
    let first = ask(&server, &said("Count."), &headers).await;
    let session = first.headers()["x-navi-session"]
        .to_str()
        .unwrap()
        .to_owned();
    let is_title = |call: &Recorded| call.body["messages"][0].to_string().contains("a title");
    model.wait_for(|chats| chats.iter().any(is_title)).await;
    model.script(vec![Step::text("Two.")]);
    let body = json!({"model": "navi", "messages": [
        {"role": "user", "content": "what the program made up"},
        {"role": "assistant", "content": "as well"},
        {"role": "user", "content": "Go on."},
    ]});
    let second = chunks(ask(&server, &streamed(body), &headers).await).await;
    assert_eq!(joined(&second, "content"), "Two.");

    let shown = server.get(&format!("/sessions/{session}")).await;
    let texts: Vec<&str> = shown["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| message["content"].as_str())
        .collect();
    assert_eq!(texts, ["Count.", "One.", "Go on.", "Two."]);
    // By its own id too.
    model.script(vec![Step::text("Three.")]);
    let third = ask(&server, &said("More."), &[("x-navi-session", &session)]).await;
    assert_eq!(third.headers()["x-navi-session"], *session);
}

#[tokio::test]
async fn a_message_that_is_withdrawn_on_the_page_is_an_error() {
    let (model, server) = talking();
    let headers = [("x-navi-session", "busy")];
    model.script(vec![Step::text("Long"), Step::hold("work")]);
    let first = ask(&server, &streamed(said("Work.")), &headers).await;
    let session = first.headers()["x-navi-session"]
        .to_str()
        .unwrap()
        .to_owned();
    let mut tab = server.tab(&session, Some(0)).await;
    tab.next_of("stream_delta").await;
    let second = ask(&server, &streamed(said("And then?")), &headers).await;
    let waiting = loop {
        let told = tab.next_of("message_accepted").await;
        if told["content"] == "And then?" {
            break told["message_id"].clone();
        }
    };
    tab.send(&json!({"type": "withdraw", "message_id": waiting}))
        .await;
    let second = chunks(second).await;
    assert_eq!(second.last().unwrap()["error"]["code"], "message_not_found");
}

#[tokio::test]
async fn a_message_that_a_stop_held_back_is_an_error_and_no_endless_wait() {
    let (model, server) = talking();
    let headers = [("x-navi-session", "held")];
    model.script(vec![Step::text("Long"), Step::Silence]);
    let first = ask(&server, &streamed(said("Work.")), &headers).await;
    let session = first.headers()["x-navi-session"]
        .to_str()
        .unwrap()
        .to_owned();
    let mut tab = server.tab(&session, Some(0)).await;
    tab.next_of("stream_delta").await;
    let second = ask(&server, &streamed(said("And then?")), &headers).await;
    while tab.next_of("message_accepted").await["content"] != "And then?" {}
    tab.send(&json!({"type": "stop", "hold": true})).await;
    let second = chunks(second).await;
    let error = &second.last().unwrap()["error"];
    assert!(
        error["message"].as_str().unwrap().contains("held"),
        "{error}"
    );
    let waits = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(waits["queue"][0]["content"], "And then?");

    // Asked again it is the message that waits there, and the stop is long past.
    let again = ask(&server, &streamed(said("And then?")), &headers).await;
    let again = chunks(again).await;
    let error = &again.last().unwrap()["error"];
    assert!(
        error["message"].as_str().unwrap().contains("held"),
        "{error}"
    );
}

#[tokio::test]
async fn a_name_whose_session_was_deleted_leads_to_a_new_one() {
    let (model, server) = talking();
    let headers = [("x-navi-session", "gone")];
    let mut sessions = Vec::new();
    for _ in 0..2 {
        model.script(vec![Step::text("Hi.")]);
        let response = ask(&server, &said("Hello."), &headers).await;
        assert_eq!(response.status(), StatusCode::OK);
        let session = response.headers()["x-navi-session"].to_str().unwrap();
        sessions.push(session.to_owned());
        let path = format!("/sessions/{session}");
        assert!(
            server
                .call(Method::DELETE, &path, None)
                .await
                .0
                .is_success()
        );
    }
    assert_ne!(sessions[0], sessions[1]);
}

#[tokio::test]
async fn a_session_that_comes_back_has_its_name_again_unless_another_one_has_it() {
    let (_model, server) = talking();
    let asks = async |name: &str| -> String {
        let response = ask(&server, &said("Hello."), &[("x-navi-session", name)]).await;
        assert_eq!(response.status(), StatusCode::OK);
        let session = &response.headers()["x-navi-session"];
        session.to_str().unwrap().to_owned()
    };
    let does = async |method: Method, path: &str| {
        let (status, said) = server.call(method, path, None).await;
        assert!(status.is_success(), "{said}");
    };
    let delete = async |id: &str| does(Method::DELETE, &format!("/sessions/{id}")).await;
    let restore = async |id: &str| does(Method::POST, &format!("/sessions/{id}/restore")).await;

    let first = asks("trips").await;
    delete(&first).await;
    restore(&first).await;
    assert_eq!(asks("trips").await, first, "nothing was begun meanwhile");
    delete(&first).await;
    let second = asks("trips").await;
    assert_ne!(second, first);
    restore(&first).await;
    assert_eq!(asks("trips").await, second, "the name is taken");
    delete(&second).await;
    assert_eq!(asks("trips").await, first, "it is free again");
    // By its own id it is always the same.
    delete(&first).await;
    let other = asks(&first).await;
    assert_ne!(other, first);
    restore(&first).await;
    assert_eq!(asks(&first).await, first);
    // So it is for a process that was never told.
    restore(&second).await;
    let newest = asks("trips").await;
    let server = server.crash_and_restart();
    let response = ask(&server, &said("Hello."), &[("x-navi-session", "trips")]).await;
    assert_eq!(response.headers()["x-navi-session"], *newest);
}
