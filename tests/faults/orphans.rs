//! Row: orphaned tool processes after `kill -9`, Stop, a time-out. There are none.
//!
//! Each program here does its best to stay: it leaves its process group, its session and its
//! parent. What the sandbox itself ends, and how, is in `tests/security/sandbox.rs`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Step};
use crate::processes::{begun, gone, is_root, marker, processes_with};
use crate::script::{house, outcomes, snapshot, workspace};
use crate::server::{House, PATIENCE, Server, Socket, Told};

fn sandboxed(variables: &[(&str, &str)]) -> (FakeModel, House) {
    let user = if is_root() { "nobody" } else { "" };
    let mut all = vec![("NAVI_SANDBOX_USER", user)];
    all.extend(variables);
    house(&all)
}

/// A command that stays, and one that got away from it.
fn stays(mark: &str) -> String {
    format!("(setsid sleep {mark} &) ; setsid sleep {mark} & sleep {mark}")
}

fn terminal(command: &str, background: bool) -> Step {
    Step::tool_call(
        "terminal",
        json!({"action": "run", "command": command, "background": background}),
    )
}

/// Has the model make this call in a new session.
async fn call(model: &FakeModel, server: &Server, call: Step) -> (String, Socket) {
    model.script([call]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "run"}))
        .await;
    (session, tab)
}

/// What its end does to a command, its descendants, and the result of its call.
#[tokio::test]
async fn nothing_outlives_a_kill_of_the_service() {
    for background in [false, true] {
        let mark = marker();
        let (model, house) = sandboxed(&[]);
        let server = house.start();
        let (session, mut tab) = call(&model, &server, terminal(&stays(&mark), background)).await;
        if background {
            tab.next_of("stream_end").await;
        }
        begun(&mark).await;
        let server = server.crash_and_restart();
        gone(&mark).await;
        let found = snapshot(&server, &session).await;
        let outcome = if background {
            "success"
        } else {
            "outcome_unknown"
        };
        assert_eq!(outcomes(&found), [outcome]);
        model.assert_clean();
    }
}

#[tokio::test]
async fn stop_ends_the_whole_tree() {
    let mark = marker();
    let (model, house) = sandboxed(&[]);
    let server = house.start();
    let (session, mut tab) = call(&model, &server, terminal(&stays(&mark), false)).await;
    begun(&mark).await;
    tab.send(&json!({"type": "stop"})).await;
    tab.next_of("stream_stopped").await;
    gone(&mark).await;
    assert_eq!(outcomes(&snapshot(&server, &session).await), ["stopped"]);
}

#[tokio::test]
async fn no_command_outlives_its_time() {
    // On a machine that is too busy to begin it in time, it gets more.
    for seconds in ["1", "10", "45"] {
        let mark = marker();
        let (model, house) = sandboxed(&[("NAVI_TERMINAL_MAX_SECONDS", seconds)]);
        let server = house.start();
        let command = format!("touch began; {}", stays(&mark));
        let (session, mut tab) = call(&model, &server, terminal(&command, false)).await;
        let result = tab.next_of("tool_call").await;
        gone(&mark).await;
        let text = result["result"].as_str().unwrap();
        let told = format!("did not end within {seconds} s");
        assert!(text.contains(&told), "{text}");
        tab.next_of("stream_end").await;
        if workspace(&server, &session).join("began").exists() {
            return;
        }
    }
    panic!("it never began");
}

/// Two signals: the service ends at once, and drops nothing.
#[tokio::test]
async fn no_command_outlives_a_hurried_end() {
    let mark = marker();
    let (model, house) = sandboxed(&[]);
    let mut server = house.start();
    let (_, tab) = call(&model, &server, terminal(&stays(&mark), false)).await;
    begun(&mark).await;
    server.ask_to_end();
    server.says("shutting down").await;
    server.ask_to_end();
    assert_eq!(server.ended().await.code(), Some(130));
    drop(tab);
    gone(&mark).await;
}

/// A tool of the user's own that stays for as long as it is let, allowed.
async fn own_tool(server: &Server, name: &str, mark: &str, effect: &str, seconds: u32) {
    let folder = server.house().data_dir().join("tools").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("run.sh");
    let script = format!("#!/bin/sh\necho began >&2\n{}\n", stays(mark));
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let manifest = format!(
        "name = \"{name}\"\ndescription = \"Stays.\"\neffect = \"{effect}\"\nexecutable = \"run.sh\"\ntime_limit_seconds = {seconds}\n"
    );
    // Written aside and put in place: it is looked at whole.
    let aside = folder.join("tool.new");
    std::fs::write(&aside, manifest).unwrap();
    std::fs::rename(aside, folder.join("tool.toml")).unwrap();
    let tool = until(server, "/tools", |tools| {
        let mut tools = tools.as_array()?.iter();
        tools
            .find(|it| it["name"] == name && it["sha256"].is_string())
            .cloned()
    })
    .await;
    let allowed = json!({"sha256": tool["sha256"]});
    let path = format!("/tools/{name}/allow");
    let (status, answer) = server.call(Method::POST, &path, Some(allowed)).await;
    assert!(status.is_success(), "{answer}");
}

/// What a path answers, once it is as wanted. Its changes are told to no page that waits.
async fn until<T>(server: &Server, path: &str, wanted: impl Fn(&Value) -> Option<T>) -> T {
    // A server in Python may take its time to begin.
    let until = std::time::Instant::now() + 3 * PATIENCE;
    loop {
        let answer = server.get(path).await;
        if let Some(found) = wanted(&answer) {
            return found;
        }
        assert!(std::time::Instant::now() < until, "{path}: {answer:#}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Says yes until a frame of this kind comes.
async fn allow_until(tab: &mut Socket, kind: &str) -> Value {
    loop {
        match tab.next().await {
            Told::Frame(frame) if frame["type"] == kind => return frame,
            Told::Frame(frame) if frame["type"] == "approval_requested" => {
                let id = &frame["approval_id"];
                tab.send(&json!({"type": "approve", "approval_id": id, "decision": "once"}))
                    .await;
            }
            Told::Frame(_) => {}
            Told::Closed(code) => panic!("closed with {code}"),
        }
    }
}

/// With a sandbox that holds it, and without: it is the user's word that it may do anything.
#[tokio::test]
async fn no_tool_of_the_users_own_outlives_a_kill_a_stop_or_its_time() {
    for effect in ["read", "host"] {
        let (model, house) = sandboxed(&[]);
        let mark = marker();
        let mut server = house.start();
        own_tool(&server, "stays", &mark, effect, 600).await;
        for ends in ["stop", "kill"] {
            let (session, mut tab) =
                call(&model, &server, Step::tool_call("stays", json!({}))).await;
            allow_until(&mut tab, "tool_started").await;
            begun(&mark).await;
            let outcome = if ends == "stop" {
                tab.send(&json!({"type": "stop"})).await;
                tab.next_of("stream_stopped").await;
                "stopped"
            } else {
                server = server.crash_and_restart();
                "outcome_unknown"
            };
            gone(&mark).await;
            let found = snapshot(&server, &session).await;
            assert_eq!(outcomes(&found), [outcome], "{effect}, {ends}");
        }
        // On a machine that is too busy to begin it in time, it gets more.
        for seconds in [2, 10, 45] {
            let name = format!("stays_{seconds}");
            own_tool(&server, &name, &mark, effect, seconds).await;
            let (_, mut tab) = call(&model, &server, Step::tool_call(&name, json!({}))).await;
            let result = allow_until(&mut tab, "tool_call").await;
            gone(&mark).await;
            tab.next_of("stream_end").await;
            assert_eq!(result["outcome"], "failed", "{effect}: {result}");
            if result["result"]
                .as_str()
                .unwrap()
                .contains("It said: began")
            {
                break;
            }
            assert_ne!(seconds, 45, "it never began: {result}");
        }
        assert_eq!(model.violations(), Vec::<String>::new());
    }
}

/// A server that goes on when nobody talks to it any more, with a child of its own.
fn put_server(data: &Path, mark: &str) {
    let program = data.join("stays.py");
    let wild = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_server.py");
    std::fs::write(
        &program,
        format!(
            "import runpy, subprocess, sys, time\n\
             subprocess.Popen(['setsid', 'sleep', '{mark}'])\n\
             sys.argv = ['server', 'well']\n\
             runpy.run_path('{wild}')\n\
             time.sleep(1000)\n"
        ),
    )
    .unwrap();
    let server = json!({"command": "python3", "args": [program, mark]});
    let config = json!({"mcpServers": {"stays": server}});
    let aside = data.join("mcp.new");
    std::fs::write(&aside, config.to_string()).unwrap();
    std::fs::rename(aside, data.join("mcp.json")).unwrap();
}

#[tokio::test]
async fn no_mcp_server_outlives_a_kill_of_the_service() {
    let (_model, house) = sandboxed(&[]);
    let server = house.start();
    let mark = marker();
    put_server(&house.data_dir(), &mark);
    let ready = |servers: &Value| (servers[0]["state"] == "ready").then_some(());
    until(&server, "/mcp", ready).await;
    let first = processes_with(&mark);
    assert!(first.len() >= 2, "it and its child");
    let server = server.crash_and_restart();
    until(&server, "/mcp", ready).await;
    // Those of the new service are others.
    let patience = std::time::Instant::now() + PATIENCE;
    while processes_with(&mark).iter().any(|pid| first.contains(pid)) {
        assert!(std::time::Instant::now() < patience, "{first:?} are left");
        // Processes of others cannot be awaited.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    drop(server);
    gone(&mark).await;
}
