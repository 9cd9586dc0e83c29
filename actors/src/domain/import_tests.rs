//! Files as conversations.

use serde_json::{Value, json};

use super::*;

const PNG: &str = "iVBORw0KGgpyZXN0";

fn now() -> DateTime<Utc> {
    "2026-05-01T12:00:00Z".parse().unwrap()
}

fn read(file: Value) -> Result<Conversation, NaviError> {
    conversation(serde_json::from_value(file).unwrap(), now())
}

fn refused(messages: &Value) -> (ErrorCode, String) {
    let error = read(json!({"messages": messages})).unwrap_err();
    (error.code, error.message)
}

#[test]
fn what_was_said_stays_and_every_id_is_new() {
    let file = json!({
        "id": "old", "pinned": true, "mode": "auto", "title": " Lamps ",
        "created_at": "2026-01-01T08:00:00Z", "last_active": "2026-01-02T08:00:00Z",
        "messages": [
            {"id": "m1", "run_id": "r1", "role": "user", "content": "on?", "client_id": "c",
             "images": [PNG, format!("data:image/png;base64,{PNG}"), "%%"],
             "files": [{"name": "a.txt"}], "created_at": "2026-01-01T08:00:00Z"},
            {"run_id": "r1", "role": "assistant", "content": null, "thinking": "look",
             "tool_calls": [{"id": "k", "name": "lamp", "arguments": {"n": 1}}]},
            {"run_id": "r1", "role": "tool", "tool_call_id": "k", "name": "another",
             "content": "on", "outcome": "success", "duration_ms": 7, "images": [PNG]},
            {"run_id": "r1", "role": "assistant", "content": "On.", "state": "stopped",
             "created_at": "2036-01-01T08:00:00Z"},
        ],
    });
    let read_once = read(file.clone()).unwrap();
    assert_eq!(read_once.title, "Lamps");
    assert_eq!(
        read_once.left_out,
        LeftOut {
            images: 2,
            files: 1
        }
    );
    let [asked, called, result, said] = &read_once.messages[..] else {
        panic!("{read_once:?}");
    };
    assert_eq!(asked.images, [PNG, PNG]);
    assert!(asked.files.is_empty() && asked.client_id.is_none());
    assert!(
        read_once
            .messages
            .iter()
            .all(|it| it.run_id == asked.run_id)
    );
    assert_eq!(called.created_at, asked.created_at);
    assert_eq!(result.tool_call_id.as_ref(), Some(&called.tool_calls[0].id));
    assert_ne!(called.tool_calls[0].id.0, "k");
    // The call says which tool it was of, and nobody that it was of the session's own.
    assert_eq!(result.name.as_deref(), Some("lamp"));
    assert!(result.outside && !said.outside);
    assert_eq!(said.created_at, now());

    let again = read(file).unwrap();
    assert_ne!(again.messages[0].id, asked.id);
    assert_ne!(again.messages[0].run_id, asked.run_id);
}

#[test]
fn a_bare_list_of_messages_has_a_run_for_each_question() {
    let read = read(json!({"messages": [
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "1"},
        {"role": "user", "content": "two"},
    ]}))
    .unwrap();
    let runs: Vec<RunId> = read.messages.iter().map(|it| it.run_id).collect();
    assert!(runs[0] != runs[1] && runs[1] == runs[2] && runs[2] != runs[3]);
    assert_eq!((read.title.as_str(), read.created_at), ("one", now()));
}

#[test]
fn a_message_that_was_only_a_file_stays() {
    let read = read(json!({"messages": [
        {"role": "user", "content": null, "files": [{"name": "a.png"}]},
        {"role": "user", "content": "What is it?"},
    ]}))
    .unwrap();
    assert_eq!(read.messages.len(), 2);
    assert_eq!(
        (read.title.as_str(), read.left_out.files),
        ("What is it?", 1)
    );
}

#[test]
fn what_is_wrong_is_told_with_its_message() {
    let call =
        json!({"role": "assistant", "tool_calls": [{"id": "k", "name": "x", "arguments": {}}]});
    let result = json!({"role": "tool", "tool_call_id": "k", "content": ""});
    for (messages, words) in [
        (json!([]), "1 to 10000 messages"),
        (json!([{"role": "system", "content": "Obey."}]), "system"),
        (json!([result]), "must name a call"),
        (json!([call, result, result]), "message 3: a result must"),
        (
            json!([{"role": "assistant", "tool_calls": [call["tool_calls"][0], call["tool_calls"][0]]}]),
            "same id",
        ),
        (json!([{"role": "tool", "content": ""}]), "tool_call_id"),
        (
            json!([{"role": "user", "tool_calls": call["tool_calls"]}]),
            "only the assistant",
        ),
    ] {
        let (code, told) = refused(&messages);
        assert_eq!(code, ErrorCode::InvalidField);
        assert!(told.contains(words), "{told}");
    }
    let long = json!([{"role": "user", "content": "x".repeat(MAX_CONTENT_BYTES + 1)}]);
    assert_eq!(refused(&long).0, ErrorCode::MessageTooLarge);
    let many = json!(vec![json!({"role": "user"}); MAX_MESSAGES + 1]);
    assert_eq!(refused(&many).0, ErrorCode::InvalidField);
}

#[test]
fn a_result_is_of_the_last_call_with_its_name() {
    let call =
        json!({"role": "assistant", "tool_calls": [{"id": "k", "name": "x", "arguments": {}}]});
    let result = json!({"role": "tool", "tool_call_id": "k", "content": ""});
    let messages = json!([call, call, result, call, result]);
    let read = read(json!({"messages": messages})).unwrap().messages;
    for at in [1, 3] {
        let answered = read[at + 1].tool_call_id.as_ref();
        assert_eq!(answered, Some(&read[at].tool_calls[0].id));
    }
}
