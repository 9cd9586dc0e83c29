//! User tools, MCP servers and skills: they come and go while Navi runs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::FakeModel;
use crate::server::{House, PATIENCE, Server, Told};

/// A service with a model that does what it is told.
fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Written aside and put in place, as editors do.
    let aside = path.with_extension("new");
    fs::write(&aside, text).unwrap();
    fs::set_permissions(&aside, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(aside, path).unwrap();
}

fn shell_tool(server: &Server, name: &str, script: &str) {
    let folder = server.house().data_dir().join("tools").join(name);
    write(&folder.join("run.sh"), &format!("#!/bin/sh\n{script}\n"));
    let manifest = format!(
        "name = \"{name}\"\ndescription = \"Does it.\"\neffect = \"read\"\nexecutable = \"run.sh\"\n"
    );
    write(&folder.join("tool.toml"), &manifest);
}

/// The tool of this name, once it is as wanted.
async fn tool(server: &Server, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    until(server, "/tools", |tools| {
        let mut tools = tools.as_array()?.iter();
        tools.find(|it| it["name"] == name && wanted(it)).cloned()
    })
    .await
}

async fn mcp_server(server: &Server, name: &str, state: &str) -> Value {
    until(server, "/mcp", |servers| {
        let mut servers = servers.as_array()?.iter();
        servers
            .find(|it| it["name"] == name && it["state"] == state)
            .cloned()
    })
    .await
}

/// What a path answers, once it is as wanted. Its changes are told to no page that waits.
async fn until<T>(server: &Server, path: &str, wanted: impl Fn(&Value) -> Option<T>) -> T {
    // Servers that others wrote load much before they answer, and are started again after a while.
    let until = tokio::time::Instant::now() + 5 * PATIENCE;
    loop {
        let answer = server.get(path).await;
        if let Some(found) = wanted(&answer) {
            return found;
        }
        assert!(tokio::time::Instant::now() < until, "{path}: {answer:#}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

async fn allow(server: &Server, tool: &Value) -> StatusCode {
    let path = format!("/tools/{}/allow", tool["name"].as_str().unwrap());
    let body = json!({"sha256": tool["sha256"]});
    server.call(Method::POST, &path, Some(body)).await.0
}

/// A message's whole run, with yes to whatever is asked. Gives back each call's result. Its tab is
/// its own: one that is not read for as long as a server takes to come is taken for gone.
async fn run(server: &Server, session: &str, text: &str) -> Vec<Value> {
    let mut tab = server.tab(session, None).await;
    tab.send(&json!({"type": "message", "content": text})).await;
    let mut results = Vec::new();
    loop {
        match tab.next().await {
            Told::Frame(frame) if frame["type"] == "approval_requested" => {
                let id = &frame["approval_id"];
                tab.send(&json!({"type": "approve", "approval_id": id, "decision": "once"}))
                    .await;
            }
            Told::Frame(frame) if frame["type"] == "tool_call" => results.push(frame),
            Told::Frame(frame) if frame["type"] == "stream_end" => return results,
            Told::Frame(_) => {}
            Told::Closed(code) => panic!("closed with {code}"),
        }
    }
}

#[tokio::test]
async fn a_tool_comes_is_allowed_changes_and_goes_while_navi_runs() {
    let (model, server) = talking();
    let session = server.new_session().await;
    // Not there: the model has nothing to call.
    assert_eq!(
        run(&server, &session, "use the tool: greet {}").await,
        Vec::<Value>::new()
    );

    shell_tool(&server, "greet", "echo hello from a file");
    let new = tool(&server, "greet", |it| it["state"] == "new").await;
    assert_eq!(
        run(&server, &session, "use the tool: greet {}").await,
        Vec::<Value>::new()
    );
    let forged = json!({"name": "greet", "sha256": "0".repeat(64)});
    assert_eq!(allow(&server, &forged).await, StatusCode::CONFLICT);
    let nobody = json!({"name": "nobody", "sha256": new["sha256"]});
    assert_eq!(allow(&server, &nobody).await, StatusCode::NOT_FOUND);

    assert_eq!(allow(&server, &new).await, StatusCode::NO_CONTENT);
    tool(&server, "greet", |it| it["state"] == "allowed").await;
    let results = run(&server, &session, "use the tool: greet {}").await;
    assert_eq!(results[0]["result"], "hello from a file\n");
    assert_eq!(results[0]["success"], true);

    // The allowance outlives the process.
    let server = server.crash_and_restart();
    tool(&server, "greet", |it| it["state"] == "allowed").await;

    shell_tool(&server, "greet", "echo something else");
    let changed = tool(&server, "greet", |it| it["state"] == "changed").await;
    assert_eq!(
        run(&server, &session, "use the tool: greet {}").await,
        Vec::<Value>::new()
    );
    assert_eq!(
        allow(&server, &new).await,
        StatusCode::CONFLICT,
        "not what was seen"
    );
    assert_eq!(allow(&server, &changed).await, StatusCode::NO_CONTENT);
    let results = run(&server, &session, "use the tool: greet {}").await;
    assert_eq!(results[0]["result"], "something else\n");

    let (status, _) = server
        .call(Method::DELETE, "/tools/greet/allow", None)
        .await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    tool(&server, "greet", |it| it["state"] == "new").await;
    fs::remove_dir_all(server.house().data_dir().join("tools/greet")).unwrap();
    until(&server, "/tools", |tools| {
        (*tools == json!([])).then_some(())
    })
    .await;
    model.assert_clean();
}

#[tokio::test]
async fn what_is_wrong_with_extensions_is_shown_and_the_rest_goes_on() {
    let (_model, server) = talking();
    let mut page = server.socket("/ws/sessions").await;
    let data = server.house().data_dir();
    shell_tool(&server, "good", "true");
    write(&data.join("tools/bad/tool.toml"), "name = 3");
    write(&data.join("skills/bad/SKILL.md"), "no front matter");
    write(
        &data.join("mcp.json"),
        "{\"mcpServers\": {\"old\": {\"type\": \"sse\", \"url\": \"http://localhost\"}}}",
    );
    let wanted = [
        "tool bad: tool.toml",
        "skills/bad is left out",
        "server `old` is left out",
    ];
    loop {
        let frame = page.next_of("status").await;
        let warnings = frame["status"]["warnings"].to_string();
        if wanted.iter().all(|it| warnings.contains(it)) {
            break;
        }
    }
    tool(&server, "good", |it| it["state"] == "new").await;
    let failed = tool(&server, "bad", |it| it["state"] == "failed").await;
    assert_eq!(failed["sha256"], Value::Null);
}

#[tokio::test]
async fn a_skill_stands_in_the_prompt_and_is_read_on_demand() {
    let (model, server) = talking();
    let skill = server.house().data_dir().join("skills/rhymes/SKILL.md");
    write(
        &skill,
        "---\nname: rhymes\ndescription: Writes rhymes.\n---\nRhyme every line.\n",
    );
    until(&server, "/skills", |skills| {
        (skills[0]["name"] == "rhymes").then_some(())
    })
    .await;
    let session = server.new_session().await;
    let results = run(
        &server,
        &session,
        "use the tool: skill {\"name\": \"rhymes\"}",
    )
    .await;
    assert_eq!(results[0]["result"], "Rhyme every line.");
    let chats = model.chats();
    let systems = chats.iter().filter(|chat| chat.body["stream"] != false);
    for system in systems.map(|chat| chat.body["messages"][0]["content"].as_str().unwrap()) {
        assert!(system.ends_with("- rhymes: Writes rhymes."), "{system}");
    }
    model.assert_clean();
}

// ---------------------------------------------------------------- servers that others wrote

fn node_server(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/mcp/node_modules/@modelcontextprotocol")
        .join(name)
        .join("dist/index.js");
    assert!(
        path.is_file(),
        "install them: npm --prefix tests/mcp ci, as ./check does"
    );
    path
}

fn python() -> String {
    std::env::var("NAVI_TEST_MCP_PYTHON").expect(
        "NAVI_TEST_MCP_PYTHON names a Python with tests/mcp/requirements.txt, as ./check makes it",
    )
}

#[tokio::test]
async fn servers_that_others_wrote_are_used_and_kept_alive() {
    let (model, server) = talking();
    let data = server.house().data_dir();
    let config = json!({"mcpServers": {
        "everything": {"command": "node", "args": [node_server("server-everything"), "stdio"]},
        "memory": {"command": "node", "args": [node_server("server-memory")],
            "env": {"MEMORY_FILE_PATH": data.join("graph.jsonl")}},
        "time": {"command": python(), "args": ["-m", "mcp_server_time", "--local-timezone", "Europe/Kyiv"]},
        "broken": {"command": "/nowhere/at-all"},
    }});
    write(&data.join("mcp.json"), &config.to_string());
    for name in ["everything", "memory", "time"] {
        let up = mcp_server(&server, name, "ready").await;
        assert!(!up["tools"].as_array().unwrap().is_empty(), "{up}");
    }
    let broken = mcp_server(&server, "broken", "waiting").await;
    assert!(
        broken["last_error"]
            .as_str()
            .unwrap()
            .contains("could not be started")
    );

    let session = server.new_session().await;
    let calls = [
        ("mcp__everything__echo {\"message\": \"hello\"}", "hello"),
        ("mcp__everything__get-tiny-image {}", "image"),
        (
            "mcp__time__convert_time {\"source_timezone\": \"Europe/Kyiv\", \"time\": \"12:00\", \"target_timezone\": \"UTC\"}",
            "Europe/Kyiv",
        ),
        (
            "mcp__memory__create_entities {\"entities\": [{\"name\": \"Ann\", \"entityType\": \"person\", \"observations\": [\"likes tea\"]}]}",
            "Ann",
        ),
        ("mcp__memory__search_nodes {\"query\": \"tea\"}", "Ann"),
    ];
    for (call, told) in calls {
        let results = run(&server, &session, &format!("use the tool: {call}")).await;
        assert_eq!(results[0]["success"], true, "{call}: {results:#?}");
        let result = results[0]["result"].as_str().unwrap();
        assert!(result.contains(told), "{call}: {result}");
    }

    // It is killed, and comes back.
    let before = mcp_server(&server, "time", "ready").await;
    kill_child(server.pid(), "mcp_server_time");
    until(&server, "/mcp", |servers| {
        let mut servers = servers.as_array()?.iter();
        servers.find(|it| {
            it["name"] == "time" && it["state"] == "ready" && it["since"] != before["since"]
        })?;
        Some(())
    })
    .await;
    let now = "use the tool: mcp__time__get_current_time {\"timezone\": \"UTC\"}";
    assert_eq!(run(&server, &session, now).await[0]["success"], true);

    // One that the file has no more goes, with its tools.
    write(&data.join("mcp.json"), "{\"mcpServers\": {}}");
    until(&server, "/mcp", |servers| {
        (*servers == json!([])).then_some(())
    })
    .await;
    assert_eq!(run(&server, &session, now).await, Vec::<Value>::new());
    model.assert_clean();
}

/// Kills the child of a process whose command line has this in it.
fn kill_child(parent: u32, words: &str) {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let child = processes.map(|entry| entry.path()).find(|path| {
        let read = |name: &str| fs::read_to_string(path.join(name)).unwrap_or_default();
        let status = read("status");
        let is_child = status
            .lines()
            .any(|line| line == format!("PPid:\t{parent}"));
        is_child && read("cmdline").contains(words)
    });
    let child = child.expect("it runs");
    let kill = std::process::Command::new("sh")
        .args(["-c", "kill -KILL \"$0\""])
        .arg(child.file_name().unwrap())
        .status();
    assert!(kill.unwrap().success());
}

/// A server over HTTP, on a free port. Killed when this is dropped.
struct HttpServer(std::process::Child);

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_server_is_used_over_streamable_http() {
    let (model, server) = talking();
    // Below those that the system gives to whoever asks for any: it is free until node listens.
    let first = 20_000 + std::process::id() % 10_000;
    let port = (first..30_000)
        .find(|port| std::net::TcpListener::bind(format!("127.0.0.1:{port}")).is_ok())
        .expect("a free port");
    let _http = HttpServer(
        std::process::Command::new("node")
            .arg(node_server("server-everything"))
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap(),
    );
    let url = format!("http://127.0.0.1:{port}/mcp");
    let config = json!({"mcpServers": {"far": {"url": url, "tools": ["echo", "get-sum"]}}});
    write(
        &server.house().data_dir().join("mcp.json"),
        &config.to_string(),
    );
    // It may have been asked before it listened: then it is asked again.
    let up = mcp_server(&server, "far", "ready").await;
    assert_eq!(up["tools"], json!(["mcp__far__echo", "mcp__far__get-sum"]));
    let session = server.new_session().await;
    let results = run(
        &server,
        &session,
        "use the tool: mcp__far__get-sum {\"a\": 2, \"b\": 40}",
    )
    .await;
    assert!(
        results[0]["result"].as_str().unwrap().contains("42"),
        "{results:#?}"
    );
    model.assert_clean();
}
