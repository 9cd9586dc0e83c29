//! Attacks on a denial: ways around what a person forbade, and reasons that are none.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::talking;
use crate::fake_model::{FakeModel, Reply, Step};
use crate::server::{Server, Socket};

const ASKS: (&str, &str) = ("NAVI_CONSENT_MODE", "ask");

fn write(path: &str) -> Step {
    let arguments = json!({"action": "write", "path": path, "content": "x"});
    Step::tool_call("filesystem", arguments)
}

fn spawn(task: &str) -> Step {
    Step::tool_call("spawn_agent", json!({"task": task}))
}

fn answer(request: &Value, decision: &str) -> Value {
    json!({"type": "approve", "approval_id": request["approval_id"], "decision": decision})
}

/// Whether the next write of a file is made, with nobody asked about it.
async fn is_written(tab: &mut Socket) -> bool {
    let frames = tab.until("stream_end").await;
    assert!(
        frames
            .iter()
            .all(|frame| frame["type"] != "approval_requested")
    );
    let mut calls = frames.iter().filter(|frame| frame["type"] == "tool_call");
    let call = calls.find(|call| call["tool"] == "filesystem").unwrap();
    call["success"] == true
}

/// A session in which writing is forbidden from now on.
async fn forbidden(model: &FakeModel, server: &Server) -> (String, Socket) {
    model.script(vec![write("a.txt")]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "write"}))
        .await;
    let request = tab.next_of("approval_requested").await;
    tab.send(&answer(&request, "never")).await;
    tab.next_of("stream_end").await;
    (session, tab)
}

#[tokio::test]
async fn what_was_forbidden_by_every_way_that_is_asked_about_nothing() {
    let (model, server) = talking(&[ASKS]);
    let (session, mut tab) = forbidden(&model, &server).await;
    let mode = format!("/sessions/{session}/mode");
    server
        .call(Method::PATCH, &mode, Some(json!({"mode": "auto"})))
        .await;
    // By the run itself, in a directory of its own making, and by a subagent.
    for script in [
        write("a.txt"),
        write("deep/er/b.txt"),
        spawn("write the file"),
    ] {
        model.script(vec![script]);
        model.script(Reply::new([write("a.txt")]).when("write the file"));
        tab.send(&json!({"type": "message", "content": "go on"}))
            .await;
        assert!(!is_written(&mut tab).await);
    }
    // By a run that may do anything, in another conversation.
    let other = server.new_session().await;
    model.script(vec![write("a.txt")]);
    let plain = json!({"content": "write", "consent": "allow"});
    server
        .post(&format!("/sessions/{other}/messages"), plain)
        .await;
    let snapshot = server.get(&format!("/sessions/{other}")).await;
    let told = snapshot["messages"][2]["content"].as_str().unwrap();
    assert!(told.contains("forbidden this once and for all"), "{told}");
    let log = server.get("/consent/log?limit=4").await;
    for entry in log["entries"].as_array().unwrap() {
        assert_eq!(
            (&entry["by"], &entry["decision"]),
            (&json!("rule"), &json!("deny")),
            "{entry}"
        );
        assert!(entry["rule"].is_string(), "{entry}");
    }
}

#[tokio::test]
async fn a_question_from_before_it_was_forbidden_that_is_always_allowed() {
    let (model, server) = talking(&[ASKS]);
    for task in ["the first file", "the second file"] {
        model.script(Reply::new([write("a.txt")]).when(task));
    }
    model.script(Reply::new([spawn("the first file"), spawn("the second file")]).when("both"));
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "both"}))
        .await;
    let requests = [
        tab.next_of("approval_requested").await,
        tab.next_of("approval_requested").await,
    ];
    // Another tab, which has not seen it yet, allows what this one forbade.
    let mut other = server.tab(&session, None).await;
    tab.send(&answer(&requests[0], "never")).await;
    tab.next_of("approval_resolved").await;
    other.send(&answer(&requests[1], "always")).await;
    tab.next_of("stream_end").await;
    let rules = server.get("/consent/rules").await;
    assert_eq!(rules["rules"].as_array().unwrap().len(), 1, "{rules}");
    assert_eq!(rules["rules"][0]["decision"], "deny");
    model.script(vec![write("a.txt")]);
    tab.send(&json!({"type": "message", "content": "again"}))
        .await;
    assert!(!is_written(&mut tab).await);
}

#[tokio::test]
async fn reasons_that_are_none_change_nothing() {
    let (model, server) = talking(&[ASKS]);
    model.script(vec![write("a.txt")]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "write"}))
        .await;
    let request = tab.next_of("approval_requested").await;
    let id = request["approval_id"].as_str().unwrap();
    let path = format!("/sessions/{session}/approvals/{id}");
    for (decision, note) in [
        ("deny", json!("x".repeat(501))),
        ("never", json!("x".repeat(501))),
        ("deny", json!("one line\nand another")),
        ("deny", json!("a\u{0}b")),
        ("deny", json!("a\u{1b}[2Jb")),
        ("deny", json!("a\u{202e}b")),
        ("deny", json!(["no"])),
        // An allowance has no reason against it.
        ("once", json!("go on")),
        ("always", json!("go on")),
    ] {
        let body = json!({"decision": decision, "note": note});
        let (status, error) = server.call(Method::POST, &path, Some(body.clone())).await;
        assert_eq!(
            (status, &error["code"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_field")),
            "{body}"
        );
        let mut frame = answer(&request, decision);
        frame["note"] = note;
        tab.send(&frame).await;
        assert_eq!(
            tab.next_of("error").await["code"],
            "invalid_field",
            "{frame}"
        );
    }
    let waiting = server.get(&format!("/sessions/{session}/approvals")).await;
    assert_eq!(waiting["approvals"][0]["approval_id"], id);
    assert_eq!(server.get("/consent/rules").await["rules"], json!([]));
    // As long as it may be, in characters.
    let mut denial = answer(&request, "deny");
    denial["note"] = json!("ї".repeat(500));
    tab.send(&denial).await;
    assert_eq!(
        tab.next_of("approval_resolved").await["note"],
        denial["note"]
    );
}
