//! What a person answers to a question: over either door, and what becomes of it.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Reply, Step};
use crate::server::{House, Server, Socket};

const WHY: &str = "not there; use `drafts/` instead";

fn write(path: &str) -> Step {
    let arguments = json!({"action": "write", "path": path, "content": "x"});
    Step::tool_call("filesystem", arguments)
}

/// A session whose model wants to write a file, in the mode that asks, with two tabs.
async fn asked(model: &FakeModel, server: &Server) -> (String, [Socket; 2], Value) {
    model.script(vec![write("a.txt")]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    let other = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "write"}))
        .await;
    let request = tab.next_of("approval_requested").await;
    (session, [tab, other], request)
}

fn asking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let settings = [("OLLAMA_HOST", &*model.url()), ("NAVI_CONSENT_MODE", "ask")];
    let server = House::new(&settings).start();
    (model, server)
}

#[tokio::test]
async fn a_request_says_in_codes_too_what_it_says_in_english() {
    let (model, server) = asking();
    let (_, _, asked) = asked(&model, &server).await;
    let request = &asked["request"];
    assert_eq!(request["summary"], "create `a.txt`");
    assert_eq!(
        request["phrases"],
        json!({
            "summary": {"code": "create", "params": {"path": "a.txt"}},
            "reason": [{"code": "asks_first"}],
            "always": {"code": "changes_here"},
        })
    );
    let path = &request["details"][0];
    assert_eq!(
        path,
        &json!({
            "label": "path", "code": "path", "kind": "text",
            "text": "a.txt (in this conversation's folder)",
            "phrase": {"code": "here", "params": {"path": "a.txt"}},
        })
    );
}

#[tokio::test]
async fn a_session_may_begin_in_a_mode_of_its_own() {
    let (model, server) = asking();
    let created = server.post("/sessions", json!({"mode": "edits"})).await;
    let session = created["session_id"].as_str().unwrap();
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["mode"], "edits");
    model.script(vec![write("a.txt")]);
    let mut tab = server.tab(session, None).await;
    tab.send(&json!({"type": "message", "content": "write"}))
        .await;
    assert_eq!(tab.next_of("tool_call").await["outcome"], "success");
    let wrong = Some(json!({"mode": "never"}));
    let (status, refused) = server.call(Method::POST, "/sessions", wrong).await;
    assert_eq!(
        (status, &refused["code"]),
        (StatusCode::BAD_REQUEST, &json!("invalid_field"))
    );
}

#[tokio::test]
async fn a_person_who_denies_may_say_why() {
    let (model, server) = asking();
    for over_rest in [false, true] {
        let (session, mut tabs, request) = asked(&model, &server).await;
        let id = request["approval_id"].as_str().unwrap();
        if over_rest {
            let path = format!("/sessions/{session}/approvals/{id}");
            let denial = json!({"decision": "deny", "note": format!(" {WHY}\n")});
            let (status, _) = server.call(Method::POST, &path, Some(denial)).await;
            assert_eq!(status, StatusCode::NO_CONTENT);
        } else {
            let denial =
                json!({"type": "approve", "approval_id": id, "decision": "deny", "note": WHY});
            tabs[0].send(&denial).await;
        }
        for tab in &mut tabs {
            let resolved = tab.next_of("approval_resolved").await;
            assert_eq!(
                (&resolved["decision"], &resolved["note"]),
                (&json!("deny"), &json!(WHY))
            );
            let call = tab.next_of("tool_call").await;
            let told = call["result"].as_str().unwrap();
            assert!(told.ends_with(&format!("The user says: {WHY}")), "{told}");
            tab.next_of("stream_end").await;
        }
        // The model reads it, and whoever loads the conversation or the list. A title is asked for
        // whenever.
        let chats = model.chats();
        let answering = chats.iter().rfind(|chat| chat.body["stream"] != false);
        let sent = answering.unwrap().body.to_string();
        assert!(sent.contains(WHY), "{sent}");
        let snapshot = server.get(&format!("/sessions/{session}")).await;
        assert!(
            snapshot["messages"][2]["content"]
                .as_str()
                .unwrap()
                .ends_with(WHY)
        );
        let log = server.get("/consent/log?limit=1").await;
        assert_eq!(log["entries"][0]["note"], WHY);
        assert!(log["entries"][0].get("rule").is_none(), "{log}");
    }
    model.assert_clean();
}

#[tokio::test]
async fn a_subagent_is_told_why_not_and_so_is_every_tab() {
    let (model, server) = asking();
    let spawn = Step::tool_call("spawn_agent", json!({"task": "write the file"}));
    model.script(Reply::new([write("a.txt")]).when("write the file"));
    model.script(Reply::new([spawn]).when("go"));
    let session = server.new_session().await;
    let mut tabs = [
        server.tab(&session, None).await,
        server.tab(&session, None).await,
    ];
    tabs[0]
        .send(&json!({"type": "message", "content": "go"}))
        .await;
    let request = tabs[0].next_of("approval_requested").await;
    assert_eq!(request["is_subagent"], true);
    let denial = |note: &str| json!({"type": "approve", "approval_id": request["approval_id"], "decision": "deny", "note": note});
    tabs[1].send(&denial(WHY)).await;
    for tab in &mut tabs {
        let resolved = tab.next_of("approval_resolved").await;
        assert_eq!(resolved["note"], WHY);
    }
    // Whoever comes later changes nothing of it.
    tabs[0].send(&denial("another reason")).await;
    let late = tabs[0].next_of("error").await;
    assert_eq!(late["code"], "approval_resolved");
    tabs[0].next_of("stream_end").await;
    let asked = model.chats();
    let told = |words: &str| asked.iter().any(|it| it.body.to_string().contains(words));
    assert!(told(WHY) && !told("another reason"));
}

#[tokio::test]
async fn what_is_always_denied_is_refused_unasked_until_the_rule_is_taken_back() {
    let (model, server) = asking();
    let (_, mut tabs, request) = asked(&model, &server).await;
    let words = request["request"]["always"].clone();
    let [tab, _] = &mut tabs;
    tab.send(&json!({"type": "approve", "approval_id": request["approval_id"], "decision": "never", "note": WHY}))
        .await;
    let resolved = tab.next_of("approval_resolved").await;
    assert_eq!(
        (&resolved["decision"], &resolved["note"]),
        (&json!("never"), &json!(WHY))
    );
    tab.next_of("stream_end").await;
    let rules = server.get("/consent/rules").await;
    let rule = &rules["rules"][0];
    assert_eq!(
        (&rule["decision"], &rule["words"]),
        (&json!("deny"), &words)
    );
    let covers = &request["request"]["phrases"]["always"];
    assert_eq!(&rule["phrase"], covers, "{rule}");

    // In another conversation too, whatever its mode.
    let session = server.new_session().await;
    let mode = format!("/sessions/{session}/mode");
    server
        .call(Method::PATCH, &mode, Some(json!({"mode": "auto"})))
        .await;
    let mut tab = server.tab(&session, None).await;
    model.script(vec![write("b.txt")]);
    tab.send(&json!({"type": "message", "content": "write"}))
        .await;
    let frames = tab.until("stream_end").await;
    assert!(
        frames
            .iter()
            .all(|frame| frame["type"] != "approval_requested")
    );
    let call = frames
        .iter()
        .find(|frame| frame["type"] == "tool_call")
        .unwrap();
    assert_eq!(call["success"], false, "{call}");
    let log = server.get("/consent/log?limit=1").await;
    let entry = &log["entries"][0];
    assert_eq!(
        (&entry["decision"], &entry["by"], &entry["rule"]),
        (&json!("deny"), &json!("rule"), &words)
    );
    assert_eq!(&entry["phrases"]["rule"], covers, "{entry}");
    assert_eq!(entry["phrases"]["summary"]["code"], "create", "{entry}");

    let path = format!("/consent/rules/{}", rule["id"].as_str().unwrap());
    let (status, _) = server.call(Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    model.script(vec![write("b.txt")]);
    tab.send(&json!({"type": "message", "content": "again"}))
        .await;
    assert_eq!(tab.next_of("tool_call").await["success"], true);
}
