//! Attacks on consent: answers that are not the user's to this very call.
//!
//! Each change of a call after its approval, at each moment, is in the engine's own tests
//! (`actors/tests/engine/consent.rs`).

use std::path::PathBuf;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::talking;
use crate::fake_model::{FakeModel, Reply, Step};
use crate::server::{Server, Socket};

const ASKS: (&str, &str) = ("NAVI_CONSENT_MODE", "ask");
const NOBODY: &str = "00000000-0000-7000-8000-000000000000";

fn write(path: &str) -> Step {
    Step::tool_call(
        "filesystem",
        json!({"action": "write", "path": path, "content": "x"}),
    )
}

fn file(server: &Server, session: &str, path: &str) -> PathBuf {
    let files = server.house().data_dir().join("session_files");
    files.join(session).join(path)
}

/// A session whose model wants to write a file, and its request for that.
async fn asked(model: &FakeModel, server: &Server, path: &str) -> (String, Socket, Value) {
    model.script(vec![write(path)]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "write"}))
        .await;
    let request = tab.next_of("approval_requested").await;
    (session, tab, request)
}

fn approve(request: &Value, decision: &str) -> Value {
    json!({"type": "approve", "approval_id": request["approval_id"], "decision": decision})
}

async fn answer(
    server: &Server,
    session: &str,
    approval: &str,
    body: Value,
) -> (StatusCode, Value) {
    let path = format!("/sessions/{session}/approvals/{approval}");
    server.call(Method::POST, &path, Some(body)).await
}

#[tokio::test]
async fn approved_twice() {
    let (model, server) = talking(&[ASKS]);
    let (session, mut tab, request) = asked(&model, &server, "a.txt").await;
    let mut other = server.tab(&session, None).await;
    tab.send(&approve(&request, "deny")).await;
    tab.next_of("approval_resolved").await;
    // The other tab, and a script, come too late.
    other.send(&approve(&request, "once")).await;
    let refused = other.next_of("error").await;
    assert_eq!(refused["code"], "approval_resolved");
    assert!(refused.get("seq").is_none());
    let id = request["approval_id"].as_str().unwrap();
    let late = answer(&server, &session, id, json!({"decision": "allow"})).await;
    assert_eq!(late.0, StatusCode::CONFLICT);
    assert_eq!(late.1["code"], "approval_resolved");
    tab.next_of("stream_end").await;
    assert!(!file(&server, &session, "a.txt").exists());
    let log = server.get("/consent/log").await;
    let entries = log["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{log}");
    assert_eq!(entries[0]["decision"], "deny");
    assert_eq!(entries[0]["by"], "user");
    model.assert_clean();
}

#[tokio::test]
async fn a_script_changed_after_its_approval() {
    let (model, server) = talking(&[ASKS]);
    let session = server.new_session().await;
    let script = file(&server, &session, "check.sh");
    std::fs::create_dir_all(script.parent().unwrap()).unwrap();
    let mut tab = server.tab(&session, None).await;
    for (then, runs) in [("touch pwned", false), ("touch made", true)] {
        std::fs::write(&script, "touch made").unwrap();
        model.script(vec![Step::tool_call(
            "terminal",
            json!({"action": "run", "command": "sh check.sh"}),
        )]);
        tab.send(&json!({"type": "message", "content": "check"}))
            .await;
        let request = tab.next_of("approval_requested").await;
        std::fs::write(&script, then).unwrap();
        tab.send(&approve(&request, "once")).await;
        let call = tab.next_of("tool_call").await;
        assert_eq!(call["success"], runs, "{call}");
        let text = call["result"].as_str().unwrap();
        assert_eq!(text.contains("changed after approval"), !runs, "{text}");
        tab.next_of("stream_end").await;
    }
    assert!(!file(&server, &session, "pwned").exists());
    assert!(file(&server, &session, "made").exists());
}

/// A session whose folder has these files, and whose model makes this call.
async fn calling(
    model: &FakeModel,
    server: &Server,
    files: &[(&str, &str)],
    call: Step,
) -> (String, Socket) {
    model.script(vec![call]);
    let session = server.new_session().await;
    for (path, content) in files {
        let path = file(server, &session, path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "go on"}))
        .await;
    (session, tab)
}

fn run(command: &str) -> Step {
    Step::tool_call("terminal", json!({"action": "run", "command": command}))
}

/// What a person is shown, each detail by its label.
fn shown(request: &Value, label: &str) -> String {
    let details = request["request"]["details"].as_array().unwrap().iter();
    let found = details.filter(|detail| detail["label"] == label);
    let texts: Vec<&str> = found.map(|one| one["text"].as_str().unwrap()).collect();
    texts.join("\n")
}

#[tokio::test]
async fn the_middle_of_a_long_command() {
    let (model, server) = talking(&[ASKS]);
    let command = format!("{0}touch pwned\n{0}", "true\n".repeat(3_000));
    let (_, mut tab) = calling(&model, &server, &[], run(&command)).await;
    let request = tab.next_of("approval_requested").await;
    assert_eq!(shown(&request, "command"), command.trim());
}

#[tokio::test]
async fn more_than_anyone_can_be_shown() {
    let (model, server) = talking(&[ASKS]);
    let content = format!("{0}rm -rf ~\n{0}", "a line\n".repeat(20_000));
    let call = json!({"action": "write", "path": "a.sh", "content": content});
    let call = Step::tool_call("filesystem", call);
    let (session, mut tab) = calling(&model, &server, &[], call).await;
    let frames = tab.until("stream_end").await;
    assert!(frames.iter().all(|f| f["type"] != "approval_requested"));
    let call = frames.iter().find(|f| f["type"] == "tool_call").unwrap();
    assert_eq!(call["success"], false);
    let told = call["result"].as_str().unwrap();
    assert!(told.contains("split it into smaller calls"), "{told}");
    assert!(!file(&server, &session, "a.sh").exists());
    let log = server.get("/consent/log").await;
    assert_eq!(log["entries"][0]["decision"], "deny");
}

#[tokio::test]
async fn content_that_is_called_binary() {
    let (model, server) = talking(&[ASKS]);
    let large = "x".repeat(17 << 20);
    for before in [None, Some("\0\u{1}binary"), Some(large.as_str())] {
        let files: Vec<_> = before
            .map(|content| ("a.sh", content))
            .into_iter()
            .collect();
        let call =
            json!({"action": "write", "path": "a.sh", "content": "#!/bin/sh\n\0\nrm -rf ~\n"});
        let call = Step::tool_call("filesystem", call);
        let (_, mut tab) = calling(&model, &server, &files, call).await;
        let request = tab.next_of("approval_requested").await;
        let changes = shown(&request, "changes");
        assert!(changes.contains("+rm -rf ~"), "{changes}");
        assert!(changes.contains("+\\u{0}"), "{changes}");
    }
}

#[tokio::test]
async fn characters_that_nobody_sees() {
    let (model, server) = talking(&[ASKS]);
    let hidden = [
        '\u{ad}',
        '\u{34f}',
        '\u{61c}',
        '\u{115f}',
        '\u{200b}',
        '\u{200d}',
        '\u{202e}',
        '\u{2066}',
        '\u{2800}',
        '\u{3164}',
        '\u{fe0f}',
        '\u{ffa0}',
        '\u{e0041}',
        '\u{e0100}',
        '\u{a0}',
    ];
    let command = format!("echo {}.", String::from_iter(hidden));
    let (_, mut tab) = calling(&model, &server, &[], run(&command)).await;
    let request = tab.next_of("approval_requested").await;
    for text in [
        shown(&request, "command"),
        request["request"]["summary"].as_str().unwrap().to_owned(),
        request["request"]["always"].as_str().unwrap().to_owned(),
        request["request"]["phrases"]
            .to_string()
            .replace(r"\\", r"\"),
    ] {
        assert!(text.is_ascii(), "{text}");
        for c in hidden {
            let name = c.escape_default().to_string();
            assert!(text.contains(&name), "{name} in {text}");
        }
    }
}

#[tokio::test]
async fn a_script_that_the_command_comes_to_by_a_way_of_its_own() {
    let (model, server) = talking(&[ASKS]);
    let many = format!("{} && sh run.sh", vec!["true"; 40].join(" && "));
    for (command, script) in [
        ("cd sub && sh ./run.sh", "sub/run.sh"),
        ("cd sub; cd deep; ./run.sh", "sub/deep/run.sh"),
        ("(exec sh<run.sh)", "run.sh"),
        ("sh -c '. ./run.sh'", "run.sh"),
        ("make deploy", "Makefile"),
        ("make -C sub", "sub/Makefile"),
        ("npm run build", "package.json"),
        (many.as_str(), "run.sh"),
    ] {
        let (session, mut tab) =
            calling(&model, &server, &[(script, "touch made")], run(command)).await;
        let request = tab.next_of("approval_requested").await;
        std::fs::write(file(&server, &session, script), "touch pwned").unwrap();
        tab.send(&approve(&request, "once")).await;
        let call = tab.next_of("tool_call").await;
        let text = call["result"].as_str().unwrap();
        assert!(text.contains("changed after approval"), "{command}: {text}");
        assert!(
            shown(&request, "what is held").contains(script),
            "{request}"
        );
        tab.next_of("stream_end").await;
    }
}

#[tokio::test]
async fn a_file_that_a_subagent_changes_while_another_one_asks() {
    let (model, server) = talking(&[ASKS]);
    let spawn = |task: &str| Step::tool_call("spawn_agent", json!({"task": task}));
    model.script(Reply::new([run("sh run.sh")]).when("run the script"));
    let change = json!({"action": "write", "path": "lib.sh", "content": "touch pwned"});
    let change = Step::tool_call("filesystem", change);
    model.script(Reply::new([change]).when("change the file"));
    model.script(Reply::new([spawn("run the script"), spawn("change the file")]).when("both"));
    // Whose subagents have both tools.
    let profile = json!({"profile_id": "server_admin"});
    let session = server.post("/sessions", profile).await["session_id"].clone();
    let session = session.as_str().unwrap();
    let folder = file(&server, session, "");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("run.sh"), ". ./lib.sh").unwrap();
    std::fs::write(folder.join("lib.sh"), "touch made").unwrap();
    let mut tab = server.tab(session, None).await;
    tab.send(&json!({"type": "message", "content": "both"}))
        .await;
    let mut asked = Vec::new();
    while asked.len() < 2 {
        asked.push(tab.next_of("approval_requested").await);
    }
    for tool in ["filesystem", "terminal"] {
        let request = asked.iter().find(|frame| frame["tool"] == tool).unwrap();
        tab.send(&approve(request, "once")).await;
        let call = loop {
            let call = tab.next_of("tool_call").await;
            if call["tool"] == tool {
                break call;
            }
        };
        let text = call["result"].as_str().unwrap();
        let refused = text.contains("changed after approval");
        assert_eq!(refused, tool == "terminal", "{text}");
    }
    assert!(!folder.join("pwned").exists() && !folder.join("made").exists());
}

#[tokio::test]
async fn approval_of_another_session() {
    let (model, server) = talking(&[ASKS]);
    let (session, mut tab, request) = asked(&model, &server, "a.txt").await;
    let other = server.new_session().await;
    let mut other_tab = server.tab(&other, None).await;
    other_tab.send(&approve(&request, "once")).await;
    assert_eq!(
        other_tab.next_of("error").await["code"],
        "approval_not_found"
    );
    let id = request["approval_id"].as_str().unwrap();
    for (session, id) in [
        (other.as_str(), id),
        (session.as_str(), NOBODY),
        // A run's id is no approval's.
        (session.as_str(), request["run_id"].as_str().unwrap()),
    ] {
        let (status, error) = answer(&server, session, id, json!({"decision": "allow"})).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{error}");
        assert_eq!(error["code"], "approval_not_found");
    }
    let waiting = server.get(&format!("/sessions/{session}/approvals")).await;
    assert_eq!(waiting["approvals"][0]["approval_id"], id);
    tab.send(&approve(&request, "once")).await;
    tab.next_of("stream_end").await;
    assert!(file(&server, &session, "a.txt").exists());
}

#[tokio::test]
async fn answers_that_are_none_change_nothing() {
    let (model, server) = talking(&[ASKS]);
    let (session, mut tab, request) = asked(&model, &server, "a.txt").await;
    let id = request["approval_id"].as_str().unwrap();
    for body in [
        json!({}),
        json!({"decision": "yes"}),
        json!({"decision": true}),
        json!({"decision": "allow", "always": "yes"}),
        json!({"decision": "allow", "tool": "filesystem"}),
        json!({"decision": "deny", "note": "x".repeat(501)}),
    ] {
        let (status, error) = answer(&server, &session, id, body.clone()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(error["code"], "invalid_field", "{body}");
    }
    let (status, error) = answer(&server, &session, "1", json!({"decision": "allow"})).await;
    assert_eq!(
        (status, &error["code"]),
        (StatusCode::BAD_REQUEST, &json!("invalid_id"))
    );
    let mode = format!("/sessions/{session}/mode");
    for body in [json!({"mode": "all"}), json!({}), json!({"mode": null})] {
        let (status, _) = server.call(Method::PATCH, &mode, Some(body)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
    }
    for path in [
        "/consent/log?limit=0",
        "/consent/log?limit=201",
        "/consent/log?before=x",
    ] {
        let (status, _) = server.call(Method::GET, path, None).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}");
    }
    let gone = format!("/consent/rules/{NOBODY}");
    let (status, error) = server.call(Method::DELETE, &gone, None).await;
    assert_eq!(
        (status, &error["code"]),
        (StatusCode::NOT_FOUND, &json!("rule_not_found"))
    );
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["mode"], "ask");
    assert_eq!(snapshot["approvals"][0]["approval_id"], id);
    let given = answer(
        &server,
        &session,
        id,
        json!({"decision": "deny", "note": "no"}),
    )
    .await;
    assert_eq!(given.0, StatusCode::NO_CONTENT);
    tab.next_of("stream_end").await;
    assert!(!file(&server, &session, "a.txt").exists());
}

#[tokio::test]
async fn a_rule_covers_its_own_calls_and_can_be_taken_back() {
    let (model, server) = talking(&[ASKS]);
    let (session, mut tab, request) = asked(&model, &server, "a.txt").await;
    assert!(request["request"]["always"].is_string());
    tab.send(&approve(&request, "always")).await;
    tab.next_of("stream_end").await;
    let rules = server.get("/consent/rules").await;
    let rule = rules["rules"][0]["id"].as_str().unwrap();
    assert_eq!(rules["rules"][0]["tool"], "filesystem");
    // The same again, in the same session: not asked.
    model.script(vec![write("a.txt")]);
    tab.send(&json!({"type": "message", "content": "again"}))
        .await;
    let frames = tab.until("stream_end").await;
    assert!(frames.iter().all(|f| f["type"] != "approval_requested"));
    let path = format!("/consent/rules/{rule}");
    let (status, _) = server.call(Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    model.script(vec![write("a.txt")]);
    tab.send(&json!({"type": "message", "content": "and again"}))
        .await;
    let request = tab.next_of("approval_requested").await;
    tab.send(&approve(&request, "deny")).await;
    tab.next_of("stream_end").await;
    let page = server.get("/consent/log?limit=1").await;
    assert_eq!(page["entries"][0]["decision"], "deny");
    let next = page["next"].as_i64().unwrap();
    let page = server.get(&format!("/consent/log?before={next}")).await;
    let by: Vec<_> = page["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| &e["by"])
        .collect();
    assert_eq!(by, ["rule", "user"]);
    assert!(file(&server, &session, "a.txt").exists());
}

#[tokio::test]
async fn a_plain_run_with_nobody_to_ask_is_denied() {
    let (model, server) = talking(&[ASKS]);
    let session = server.new_session().await;
    let path = format!("/sessions/{session}/messages");
    model.script(vec![write("a.txt")]);
    server.post(&path, json!({"content": "write"})).await;
    assert!(!file(&server, &session, "a.txt").exists());
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    let told = snapshot["messages"][2]["content"].as_str().unwrap();
    assert!(told.contains("nobody can be asked"), "{told}");
    let wrong = json!({"content": "write", "consent": "yes"});
    let (status, _) = server.call(Method::POST, &path, Some(wrong)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    model.script(vec![write("a.txt")]);
    let allows = json!({"content": "write", "consent": "allow"});
    server.post(&path, allows).await;
    assert!(file(&server, &session, "a.txt").exists());
}

#[tokio::test]
async fn killed_while_an_approval_waits_and_allowed_after_the_restart() {
    let (model, server) = talking(&[ASKS]);
    let (session, mut tab, request) = asked(&model, &server, "a.txt").await;
    let seq = tab.next_of("run_waiting").await["seq"].as_u64().unwrap();
    let server = server.crash_and_restart();
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["state"], "running");
    assert_eq!(
        snapshot["approvals"][0]["approval_id"],
        request["approval_id"]
    );
    assert_eq!(snapshot["approvals"][0]["request"], request["request"]);
    assert_eq!(snapshot["run"]["run_id"], request["run_id"]);
    // And once more: it waits on however often.
    let server = server.crash_and_restart();
    model.script(vec![Step::text("written")]);
    let mut tab = server.tab(&session, Some(seq)).await;
    tab.send(&approve(&request, "once")).await;
    let frames = tab.until("stream_end").await;
    let kinds: Vec<_> = frames.iter().map(|f| f["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds[..3],
        ["approval_resolved", "tool_started", "tool_call"],
        "{kinds:?}"
    );
    assert!(file(&server, &session, "a.txt").exists());
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["state"], "idle");
    let results = snapshot["messages"].as_array().unwrap().iter();
    assert_eq!(results.filter(|m| m["role"] == "tool").count(), 1);
    // A tab that comes without a cursor to a run that waited gets it from its start: so does
    // one after it.
    model.assert_clean();
}

#[tokio::test]
async fn killed_while_an_approval_waits_and_denied_after_the_restart() {
    let (model, server) = talking(&[ASKS]);
    let (session, _, request) = asked(&model, &server, "a.txt").await;
    let server = server.crash_and_restart();
    // From the start of the run, as a tab without a cursor gets it.
    let mut tab = server.tab(&session, None).await;
    let first = tab.next_of("approval_requested").await;
    assert_eq!(first["approval_id"], request["approval_id"]);
    let id = request["approval_id"].as_str().unwrap();
    let given = answer(&server, &session, id, json!({"decision": "deny"})).await;
    assert_eq!(given.0, StatusCode::NO_CONTENT);
    let call = tab.next_of("tool_call").await;
    assert_eq!(call["success"], false);
    tab.next_of("stream_end").await;
    assert!(!file(&server, &session, "a.txt").exists());
    let again = answer(&server, &session, id, json!({"decision": "allow"})).await;
    assert_eq!(again.0, StatusCode::CONFLICT);
    model.assert_clean();
}

#[tokio::test]
async fn killed_while_an_approval_waits_and_stopped_after_the_restart() {
    let (model, server) = talking(&[ASKS]);
    let (session, _, _) = asked(&model, &server, "a.txt").await;
    let server = server.crash_and_restart();
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "stop"})).await;
    let frames = tab.until("stream_stopped").await;
    let resolved = frames.iter().find(|f| f["type"] == "approval_resolved");
    assert_eq!(resolved.unwrap()["by"], "stop");
    assert!(!file(&server, &session, "a.txt").exists());
    model.assert_clean();
}

#[tokio::test]
async fn a_subagents_request_is_the_sessions_and_ends_with_its_process() {
    let (model, server) = talking(&[ASKS]);
    model.script(vec![Step::tool_call(
        "spawn_agent",
        json!({"task": "write the file"}),
    )]);
    model.script(Reply::new([write("a.txt")]).when("write the file"));
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "go"})).await;
    let request = tab.next_of("approval_requested").await;
    assert_eq!(request["is_subagent"], true);
    assert!(request["parent_run_id"].is_string());
    let server = server.crash_and_restart();
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["state"], "interrupted");
    assert_eq!(snapshot["approvals"], json!([]));
    let id = request["approval_id"].as_str().unwrap();
    let late = answer(&server, &session, id, json!({"decision": "allow"})).await;
    assert_eq!(late.0, StatusCode::CONFLICT);
    assert!(!file(&server, &session, "a.txt").exists());
}
