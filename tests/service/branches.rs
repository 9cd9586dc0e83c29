//! Branches over REST: an edited message, an answer made anew, the way back.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Step};
use crate::server::{House, Server, Socket};

const NOBODY: &str = "00000000-0000-7000-8000-000000000000";

fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

async fn say(server: &Server, session: &str, text: &str) {
    let path = format!("/sessions/{session}/messages");
    server.post(&path, json!({"content": text})).await;
}

/// Ids and texts of what is shown.
async fn shown(server: &Server, session: &str) -> Vec<(String, String)> {
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    let messages = snapshot["messages"].as_array().unwrap().iter();
    let text = |message: &Value, field: &str| message[field].as_str().unwrap().to_owned();
    messages
        .map(|message| (text(message, "id"), text(message, "content")))
        .collect()
}

fn texts(shown: &[(String, String)]) -> Vec<&str> {
    shown.iter().map(|(_, text)| text.as_str()).collect()
}

async fn branch(server: &Server, session: &str, body: Value) -> (StatusCode, Value) {
    let path = format!("/sessions/{session}/branches");
    server.call(Method::POST, &path, Some(body)).await
}

async fn show(server: &Server, session: &str, branch_id: u64) -> (StatusCode, Value) {
    let path = format!("/sessions/{session}/branch");
    let body = json!({ "branch_id": branch_id });
    server.call(Method::PUT, &path, Some(body)).await
}

/// A session of two turns, and a tab on it.
async fn conversation(server: &Server) -> (String, Socket) {
    let session = server.new_session().await;
    say(server, &session, "one").await;
    say(server, &session, "two").await;
    let last = server.get(&format!("/sessions/{session}")).await["last_seq"].as_u64();
    let tab = server.tab(&session, last).await;
    (session, tab)
}

#[tokio::test]
async fn a_message_is_edited_and_the_other_way_stays_reachable() {
    let (model, server) = talking();
    let (session, mut tab) = conversation(&server).await;
    let before = shown(&server, &session).await;
    let (status, branched) = branch(
        &server,
        &session,
        json!({"message_id": before[2].0, "content": "zwei"}),
    )
    .await;
    assert_eq!(status, StatusCode::ACCEPTED, "{branched}");
    assert_ne!(branched["message_id"], before[2].0.as_str());
    let frames = tab.until("stream_end").await;
    assert_eq!(frames[0]["type"], "branch_changed");
    assert_eq!(frames[0]["branch_id"], branched["branch_id"]);
    assert!(
        frames
            .iter()
            .all(|frame| frame["run_id"] == branched["run_id"]),
        "{frames:#?}"
    );
    let after = shown(&server, &session).await;
    assert_eq!(
        texts(&after),
        ["one", "You said: one", "zwei", "You said: zwei"]
    );
    assert_eq!(after[..2], before[..2], "what stands before it is shared");
    // The model is not told of the other way.
    let asked = model.chats();
    let asked = asked.iter().rfind(|it| it.last_user_text() == "zwei");
    let sent = asked.unwrap().body["messages"].as_array().unwrap();
    assert!(sent.iter().all(|message| message["content"] != "two"));

    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(
        snapshot["forks"],
        json!([{"message_id": after[2].0, "branch_ids": [0, 1], "shown": 1}])
    );
    let (status, _) = show(&server, &session, 0).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(tab.next_of("branch_changed").await["branch_id"], 0);
    assert_eq!(shown(&server, &session).await, before);
    // It goes on where it is shown, and a restart keeps both.
    let server = server.crash_and_restart();
    say(&server, &session, "three").await;
    let now = shown(&server, &session).await;
    assert_eq!(texts(&now)[3..5], ["You said: two", "three"]);
    show(&server, &session, 1).await;
    assert_eq!(shown(&server, &session).await, after);
    model.assert_clean();
}

#[tokio::test]
async fn an_answer_is_made_anew() {
    let (model, server) = talking();
    let (session, mut tab) = conversation(&server).await;
    let before = shown(&server, &session).await;
    model.script([Step::text("another answer")]);
    let (status, branched) = branch(&server, &session, json!({"message_id": before[0].0})).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{branched}");
    assert_eq!(branched["message_id"], before[0].0.as_str());
    tab.until("stream_end").await;
    let after = shown(&server, &session).await;
    assert_eq!(after[0], before[0], "the message is the same");
    assert_eq!(texts(&after), ["one", "another answer"]);
    show(&server, &session, 0).await;
    assert_eq!(shown(&server, &session).await, before);
    model.assert_clean();
}

#[tokio::test]
async fn what_cannot_be_branched_is_refused_and_changes_nothing() {
    let (model, server) = talking();
    let (session, mut tab) = conversation(&server).await;
    let (other, _) = conversation(&server).await;
    let before = shown(&server, &session).await;
    let theirs = shown(&server, &other).await;
    for (body, expected, code) in [
        (json!({"message_id": before[1].0}), 404, "message_not_found"),
        (
            json!({"message_id": before[1].0, "content": "x"}),
            404,
            "message_not_found",
        ),
        (json!({"message_id": theirs[0].0}), 404, "message_not_found"),
        (json!({"message_id": NOBODY}), 404, "message_not_found"),
        (
            json!({"message_id": before[0].0, "content": " "}),
            400,
            "empty_message",
        ),
        (json!({"message_id": "one"}), 400, "invalid_field"),
        (
            json!({"message_id": before[0].0, "text": "x"}),
            400,
            "invalid_field",
        ),
        (json!({}), 400, "invalid_field"),
    ] {
        let (status, answer) = branch(&server, &session, body.clone()).await;
        assert_eq!(
            (status.as_u16(), &answer["code"]),
            (expected, &json!(code)),
            "{body}: {answer}"
        );
    }
    let (status, answer) = show(&server, &session, 7).await;
    assert_eq!(
        (status.as_u16(), &answer["code"]),
        (404, &json!("not_found"))
    );
    let (status, answer) = branch(&server, NOBODY, json!({"message_id": before[0].0})).await;
    assert_eq!(
        (status.as_u16(), &answer["code"]),
        (404, &json!("session_not_found"))
    );

    model.script([Step::text("wait"), Step::hold("gate")]);
    tab.send(&json!({"type": "message", "content": "three"}))
        .await;
    tab.next_of("stream_delta").await;
    for (status, answer) in [
        branch(&server, &session, json!({"message_id": before[0].0})).await,
        show(&server, &session, 0).await,
    ] {
        assert_eq!(
            (status.as_u16(), &answer["code"]),
            (409, &json!("session_busy"))
        );
    }
    model.release("gate");
    tab.next_of("stream_end").await;
    let after = shown(&server, &session).await;
    assert_eq!(after[..4], before);
    assert_eq!(after.len(), 6);

    // A message of a way that is not shown is not there to be edited.
    branch(
        &server,
        &session,
        json!({"message_id": before[0].0, "content": "eins"}),
    )
    .await;
    tab.next_of("stream_end").await;
    let (status, _) = branch(&server, &session, json!({"message_id": before[2].0})).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
