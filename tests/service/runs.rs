//! Runs looked into afterwards: their events and calls, what was sent at each, and the same
//! again with another model.

use std::process::{Output, Stdio};

use reqwest::Method;
use serde_json::{Value, json};

use crate::fake_model::{Config, FakeModel, Recorded, Reply, Step};
use crate::server::{House, Server, Socket, TOKEN, client};

const NOBODY: &str = "00000000-0000-7000-8000-000000000000";
/// Stands in the question for a summary.
const SUMMARY: &str = "<conversation>";

fn talking() -> (FakeModel, House) {
    let model = FakeModel::start();
    model.configure(Config {
        models: vec!["fake:latest".to_owned(), "other:latest".to_owned()],
        ..Config::default()
    });
    let house = House::new(&[
        ("OLLAMA_HOST", &model.url()),
        ("OLLAMA_DEFAULT_MODEL", "fake:latest"),
        ("CONTEXT_KEEP_RECENT", "1"),
    ]);
    (model, house)
}

async fn say(tab: &mut Socket, text: &str) {
    tab.send(&json!({"type": "message", "content": text})).await;
}

fn write(path: &str) -> Step {
    let arguments = json!({"action": "write", "path": path, "content": "x"});
    Step::tool_call("filesystem", arguments)
}

/// Who says what, and calls what, in Ollama's terms and in Navi's.
fn line(message: &Value) -> Value {
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    let calls: Vec<Value> = calls
        .map(|call| match call.get("function") {
            Some(function) => json!([call["id"], function["name"], function["arguments"]]),
            None => json!([call["id"], call["name"], call["arguments"]]),
        })
        .collect();
    let id = message.get("tool_call_id").or(message.get("call_id"));
    json!([message["role"], message["content"], calls, id])
}

fn lines(body: &Value) -> Vec<Value> {
    let messages = body["messages"].as_array().unwrap();
    messages.iter().map(line).collect()
}

/// The same request, as Navi shows it and as the model server got it.
fn assert_same(shown: &Value, sent: &Value) {
    assert_eq!(lines(shown), lines(sent));
    assert_eq!(shown["model"], sent["model"]);
    assert_eq!(shown["streamed"], sent["stream"]);
    assert_eq!(shown["context_window"], sent["options"]["num_ctx"]);
    let names = |body: &Value, of: &dyn Fn(&Value) -> Value| -> Vec<Value> {
        let tools = body["tools"].as_array().into_iter().flatten();
        tools.map(of).collect()
    };
    let shown_tools = names(shown, &|tool| json!([tool["name"], tool["parameters"]]));
    let sent_tools = names(sent, &|tool| {
        json!([tool["function"]["name"], tool["function"]["parameters"]])
    });
    assert_eq!(shown_tools, sent_tools);
}

/// A run and those under it, as `GET /runs/{id}` gives them.
async fn family(server: &Server, run: &Value) -> Vec<Value> {
    let mut all = vec![
        server
            .get(&format!("/runs/{}", run.as_str().unwrap()))
            .await,
    ];
    let mut at = 0;
    while at < all.len() {
        for child in all[at]["children"].as_array().unwrap().clone() {
            all.push(
                server
                    .get(&format!("/runs/{}", child.as_str().unwrap()))
                    .await,
            );
        }
        at += 1;
    }
    all
}

/// Each call of these runs with what is shown of it, in the order in which they began.
async fn calls(server: &Server, runs: &[Value]) -> Vec<(Value, Value)> {
    let mut all = Vec::new();
    for run in runs {
        let id = run["run"]["run_id"].as_str().unwrap();
        for call in run["calls"].as_array().unwrap() {
            let shown = server.get(&format!("/runs/{id}/calls/{}", call["n"])).await;
            all.push((call.clone(), shown));
        }
    }
    all.sort_by_key(|(call, _)| {
        let at = call["started_at"].as_str().unwrap();
        at.parse::<chrono::DateTime<chrono::Utc>>().unwrap()
    });
    all
}

fn of_kind<'a>(calls: &'a [(Value, Value)], kind: &str) -> Vec<&'a (Value, Value)> {
    let calls = calls.iter();
    calls.filter(|(call, _)| call["kind"] == kind).collect()
}

/// The reply with this text.
fn reply<'a>(calls: &'a [(Value, Value)], text: &str) -> &'a Value {
    let mut calls = calls.iter();
    let found = calls.find(|(_, shown)| shown["reply"]["content"] == text);
    &found.unwrap_or_else(|| panic!("nobody said {text}")).1["reply"]
}

/// Plans, writes a file, has a subagent look, fills the window, is compressed, and goes on.
async fn long_talk(model: &FakeModel, server: &Server) -> String {
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    say(&mut tab, "hello").await;
    tab.next_of("stream_end").await;

    let whole = |text: &str| Reply::new([Step::text(text)]).streamed(false);
    let planned = |text: &str| whole(text).temperature(0.3).when("write a.txt");
    model.script(planned("Several files.\nREFLECT: no"));
    let plan = "1. Write it - TOOL: filesystem\n2. Look through it - AGENT: secretary";
    model.script(planned(plan));
    let asks = |step| Reply::new([Step::Thinking("hm".into()), Step::text("I write."), step]);
    model.script(asks(write("a.txt")).with_tools(true).when("write a.txt"));
    let spawn = Step::tool_call("spawn_agent", json!({"task": "count the files"}));
    model.script(Reply::new([spawn]).with_tools(true).when("write a.txt"));
    let list = Step::tool_call("filesystem", json!({"action": "list", "path": "."}));
    model.script(Reply::new([list]).when("count the files"));
    model.script(Reply::new([Step::text("one file")]).when("count the files"));
    model.script(
        Reply::new([
            Step::text("done"),
            Step::Finish {
                reason: "stop".to_owned(),
                prompt_tokens: 60_000,
                completion_tokens: 100,
            },
        ])
        .when("write a.txt"),
    );
    model.script(whole("- they wrote a.txt").last(SUMMARY));
    say(&mut tab, "write a.txt and have it counted").await;
    tab.next_of("context_compressed").await;
    say(&mut tab, "thanks").await;
    tab.next_of("stream_end").await;
    session
}

#[tokio::test]
async fn what_was_sent_at_each_call_is_made_again() {
    let (model, house) = talking();
    let server = house.start();
    let session = long_talk(&model, &server).await;
    // Another way of the conversation, and a restart, change nothing of what was.
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    let first = snapshot["messages"][0]["id"].clone();
    let path = format!("/sessions/{session}/branches");
    let mut tab = server.tab(&session, snapshot["last_seq"].as_u64()).await;
    server
        .post(
            &path,
            json!({"message_id": first, "content": "good morning"}),
        )
        .await;
    tab.next_of("stream_end").await;
    let server = server.crash_and_restart();

    let listed = server.get(&format!("/sessions/{session}/runs")).await;
    let listed = listed["runs"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 4, "{listed:#?}");
    let mut runs = Vec::new();
    for run in &listed {
        let family = family(&server, &run["run_id"]).await;
        assert_eq!(&family[0]["run"], run);
        assert_eq!(run["state"], "completed");
        runs.extend(family);
    }
    assert_eq!(runs.len(), 5, "one has a subagent");
    let calls = calls(&server, &runs).await;
    for (call, shown) in &calls {
        assert_eq!(shown["exact"], true, "{call}");
        assert_eq!(call["outcome"], "done");
    }
    let chats = model.chats();
    let streamed: Vec<&Recorded> = chats
        .iter()
        .filter(|chat| chat.body["stream"] == true)
        .collect();
    let turns = of_kind(&calls, "turn");
    assert_eq!(turns.len(), streamed.len());
    for ((call, shown), chat) in turns.iter().zip(&streamed) {
        assert_same(&shown["request"], &chat.body);
        assert!(call["first_chunk_ms"].as_u64() <= call["duration_ms"].as_u64());
        assert!(call["prompt_tokens"].as_u64() > Some(0), "{call}");
    }
    let beside: Vec<&Recorded> = chats
        .iter()
        .filter(|chat| chat.body["stream"] == false)
        .collect();
    // Small talk is never planned: both are of the one that is.
    let plans = of_kind(&calls, "plan");
    assert_eq!(plans.len(), 2);
    let summaries = of_kind(&calls, "summary");
    assert_eq!(summaries.len(), 1);
    for (_, shown) in plans.iter().chain(&summaries) {
        let sent = beside
            .iter()
            .find(|chat| lines(&chat.body) == lines(&shown["request"]));
        assert_same(&shown["request"], &sent.unwrap().body);
    }
    assert_eq!(summaries[0].1["reply"]["content"], "- they wrote a.txt");

    // What was said, by whom ever.
    let wrote = reply(&calls, "I write.");
    assert_eq!(wrote["thinking"], "hm");
    assert_eq!(wrote["tool_calls"][0]["name"], "filesystem");
    assert_eq!(reply(&calls, "one file")["tool_calls"], json!([]));
    model.assert_clean();
}

#[tokio::test]
async fn calls_stand_between_the_events_and_a_call_that_is_cut_off_is_told() {
    let (model, house) = talking();
    let server = house.start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    model.script([write("a.txt")]);
    model.script([Step::text("I am about to"), Step::Silence]);
    say(&mut tab, "write it").await;
    let started = tab.next_of("stream_start").await;
    let result = tab.next_of("tool_call").await;
    tab.next_of("stream_delta").await;
    tab.send(&json!({"type": "stop"})).await;
    tab.next_of("stream_stopped").await;
    let run = started["run_id"].as_str().unwrap();
    let details = server.get(&format!("/runs/{run}")).await;
    assert_eq!(details["run"]["state"], "stopped");
    let calls = details["calls"].as_array().unwrap();
    let short: Vec<Value> = calls
        .iter()
        .map(|call| json!([call["n"], call["kind"], call["outcome"]]))
        .collect();
    assert_eq!(
        short,
        [
            json!([1, "plan", "done"]),
            json!([2, "turn", "done"]),
            json!([3, "turn", "stopped"])
        ]
    );
    assert!(calls[1]["after_seq"].as_u64() < result["seq"].as_u64());
    assert!(calls[2]["after_seq"].as_u64() >= result["seq"].as_u64());
    let cut_off = server.get(&format!("/runs/{run}/calls/3")).await;
    assert_eq!(cut_off["exact"], true);
    assert_eq!(cut_off["reply"]["content"], "I am about to");

    for (path, status, code) in [
        (format!("/runs/{NOBODY}"), 404, "not_found"),
        (format!("/runs/{NOBODY}/calls/1"), 404, "not_found"),
        (format!("/runs/{run}/calls/4"), 404, "not_found"),
        (format!("/runs/{run}/calls/0"), 404, "not_found"),
        (format!("/runs/{run}/calls/one"), 400, "invalid_id"),
        ("/runs/one".to_owned(), 400, "invalid_id"),
        (format!("/sessions/{NOBODY}/runs"), 404, "session_not_found"),
        (
            format!("/sessions/{session}/runs?before=x"),
            400,
            "invalid_id",
        ),
    ] {
        let (answered, body) = server.call(Method::GET, &path, None).await;
        let answered = (answered.as_u16(), &body["code"]);
        assert_eq!(answered, (status, &json!(code)), "{path}");
    }
    let before = format!("/sessions/{session}/runs?before={run}");
    assert_eq!(server.get(&before).await["runs"], json!([]));
}

#[tokio::test]
async fn a_file_that_has_gone_makes_a_request_inexact_and_that_is_said() {
    let (_model, house) = talking();
    let server = house.start();
    let session = server.new_session().await;
    let body = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nthe words of the file\r\n--b--\r\n";
    let answer = client()
        .post(format!("{}/sessions/{session}/files", server.url))
        .bearer_auth(TOKEN)
        .header("content-type", "multipart/form-data; boundary=b")
        .body(body)
        .send();
    let uploaded: Value = answer.await.unwrap().json().await.unwrap();
    let file = &uploaded["files"][0];
    let mut tab = server.tab(&session, None).await;
    let named = json!([{"name": file["name"], "path": file["path"]}]);
    tab.send(&json!({"type": "message", "content": "read it", "files": named}))
        .await;
    let end = tab.next_of("stream_end").await;
    let run = end["run_id"].as_str().unwrap();
    let path = format!("/runs/{run}/calls/2");
    let shown = server.get(&path).await;
    assert!(
        shown.to_string().contains("the words of the file"),
        "{shown}"
    );
    assert_eq!(shown["exact"], true);
    let id = file["file_id"].as_str().unwrap();
    let (status, body) = server
        .call(
            Method::DELETE,
            &format!("/sessions/{session}/files/{id}"),
            None,
        )
        .await;
    assert!(status.is_success(), "{body}");
    let shown = server.get(&path).await;
    assert_eq!(shown["exact"], false);
    let output = house.run(&["runs", "show", run, "--call", "2"]);
    let told = stdout(&output);
    assert!(told.contains("NOT exactly what was sent"), "{told}");
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn the_command_shows_runs_beside_a_service() {
    let (model, house) = talking();
    let server = house.start();
    let session = long_talk(&model, &server).await;
    let listed = stdout(&house.run(&["runs", "list"]));
    assert_eq!(listed.lines().count(), 3, "{listed}");
    let json = stdout(&house.run(&["runs", "list", "--session", &session, "--json"]));
    let runs: Vec<Value> = serde_json::from_str(&json).unwrap();
    let run = runs[1]["run_id"].as_str().unwrap();
    assert!(listed.contains(run));
    let before = ["runs", "list", "--session", &session, "--before", run];
    assert_eq!(stdout(&house.run(&before)).lines().count(), 1);

    let shown = stdout(&house.run(&["runs", "show", run]));
    let place = |words: &str| {
        let at = shown.find(words);
        at.unwrap_or_else(|| panic!("{words} is missing: {shown}"))
    };
    let order = [
        "run ",
        "stream_start fake:latest as secretary",
        "model call 1 (plan)",
        "plan_ready",
        "model call 3 (turn) fake:latest: done",
        "tool_started filesystem",
        "tool_call filesystem: success",
        "subagent: ",
        "stream_end done",
        "context_compressed",
    ];
    let places: Vec<usize> = order.iter().map(|words| place(words)).collect();
    assert!(places.is_sorted(), "{order:?} {places:?} {shown}");
    assert!(shown.contains("60000 + 100 tokens"), "{shown}");

    let whole = stdout(&house.run(&["runs", "show", run, "--json"]));
    let whole: Value = serde_json::from_str(&whole).unwrap();
    let mut told = server.get(&format!("/runs/{run}")).await;
    let events = server
        .get(&format!("/sessions/{session}/runs/{run}/events"))
        .await;
    told["events"] = events["events"].clone();
    // Streamed text is told with the time at which it is read.
    let timeless = |mut run: Value| {
        for event in run["events"].as_array_mut().unwrap() {
            if event["seq"].is_null() {
                event["at"] = Value::Null;
            }
        }
        run
    };
    assert_eq!(timeless(whole), timeless(told));

    let call = stdout(&house.run(&["runs", "show", run, "--call", "3"]));
    for words in [
        "This is what was sent, to the byte.",
        "=== system",
        "=== user\nwrite a.txt and have it counted",
        "(thinking) hm",
        "calls filesystem {",
    ] {
        assert!(call.contains(words), "{words}: {call}");
    }
    let json = stdout(&house.run(&["runs", "show", run, "--call", "3", "--json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json, server.get(&format!("/runs/{run}/calls/3")).await);

    for wrong in [
        vec!["runs", "show", NOBODY],
        vec!["runs", "show", run, "--call", "99"],
        vec!["runs", "replay", NOBODY, "--model", "other"],
    ] {
        let output = house.run(&wrong);
        assert_eq!(output.status.code(), Some(1), "{wrong:?}");
        assert!(stderr(&output).contains("navi: "), "{}", stderr(&output));
    }
}

/// A run that writes two files; with its id, and where the first of them is.
async fn two_files(model: &FakeModel, server: &Server) -> (String, std::path::PathBuf) {
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    model.script(Reply::new([Step::text("First."), write("a.txt")]));
    model.script(Reply::new([Step::text("Second."), write("b.txt")]));
    model.script([Step::text("Both are there.")]);
    say(&mut tab, "write both").await;
    let end = tab.next_of("stream_end").await;
    let file = server.house().data_dir().join("session_files");
    let file = file.join(&session).join("a.txt");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x");
    (end["run_id"].as_str().unwrap().to_owned(), file)
}

fn of_other(chats: &[Recorded]) -> Vec<&Value> {
    let bodies = chats.iter().map(|chat| &chat.body);
    bodies
        .filter(|body| body["model"] == "other:latest")
        .collect()
}

#[tokio::test]
async fn a_replay_asks_the_other_model_and_runs_no_tool() {
    let (model, house) = talking();
    let server = house.start();
    let (run, file) = two_files(&model, &server).await;
    let run = run.as_str();
    let sent: Vec<Value> = model.chats().into_iter().map(|chat| chat.body).collect();
    let sent: Vec<&Value> = sent.iter().filter(|it| it["stream"] == true).collect();
    std::fs::write(&file, "changed since").unwrap();

    model.script(Reply::new([Step::text("Here goes."), write("a.txt")]));
    model.script(Reply::new([write("b.txt")]));
    model.script([Step::text("Both are there.")]);
    let replay = ["runs", "replay", run, "--model", "other", "--json"];
    let output = house.run(&replay);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["same"], true);
    assert_eq!(
        (&report["recorded_model"], &report["model"]),
        (&json!("fake:latest"), &json!("other:latest"))
    );
    let steps = report["steps"].as_array().unwrap();
    let compared: Vec<Value> = steps
        .iter()
        .map(|step| json!([step["n"], step["same_calls"], step["same_text"]]))
        .collect();
    assert_eq!(
        compared,
        [
            json!([2, true, false]),
            json!([3, true, false]),
            json!([4, true, true])
        ]
    );
    // It was sent what was sent then, in its own words.
    let chats = model.chats();
    let asked = of_other(&chats);
    assert_eq!(asked.len(), 3);
    assert_eq!(lines(asked[0]), lines(sent[0]));
    let own = lines(sent[2]).into_iter().map(|mut line| {
        if line[1] == "First." {
            line[1] = json!("Here goes.");
        } else if line[1] == "Second." {
            line[1] = json!("");
        }
        line
    });
    assert_eq!(lines(asked[2]), own.collect::<Vec<_>>());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "changed since");
    let listed = stdout(&house.run(&["runs", "list"]));
    assert_eq!(listed.lines().count(), 1, "nothing was stored: {listed}");
    model.assert_clean();
}

#[tokio::test]
async fn a_replay_ends_where_the_other_model_does_what_was_not_done() {
    let (model, house) = talking();
    let server = house.start();
    let (run, file) = two_files(&model, &server).await;
    let run = run.as_str();
    std::fs::remove_file(&file).unwrap();
    // The other order, with the results of then; and then something new.
    model.script(Reply::new([write("b.txt")]));
    model.script(Reply::new([write("c.txt")]));
    let output = house.run(&["runs", "replay", run, "--model", "other"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let told = stdout(&output);
    for words in [
        "OTHER CALLS",
        "on its own way",
        "Here it goes another way",
        "c.txt",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let chats = model.chats();
    let last = lines(of_other(&chats).pop().unwrap());
    assert!(last.iter().any(|line| line[0] == "tool"), "{last:?}");
    assert!(!file.exists() && !file.with_file_name("c.txt").exists());

    // From a later event on.
    let details = server.get(&format!("/runs/{run}")).await;
    let later = details["calls"][3]["after_seq"].to_string();
    model.script([Step::text("Both are there.")]);
    let from = ["runs", "replay", run, "--model", "other", "--from", &later];
    let output = house.run(&from);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("call 4: the same"));
    let beyond = ["runs", "replay", run, "--model", "other", "--from", "9999"];
    assert!(
        stderr(&house.run(&beyond)).contains("no model call of this run began after event 9999")
    );
    let nobody = ["runs", "replay", run, "--model", "nobody"];
    let output = house.run(&nobody);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("fake:latest, other:latest"),
        "{}",
        stderr(&output)
    );
    model.assert_clean();
}

#[tokio::test]
async fn a_replay_is_ended_by_hand() {
    let (model, house) = talking();
    let server = house.start();
    let (run, _) = two_files(&model, &server).await;
    let run = run.as_str();
    drop(server);
    model.script([Step::Silence]);
    // It needs no service.
    let mut child = house
        .command(&["runs", "replay", run, "--model", "other"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    model.wait_for(|chats| !of_other(chats).is_empty()).await;
    let interrupt = format!("kill -INT {}", child.id());
    let asked = std::process::Command::new("sh")
        .args(["-c", &interrupt])
        .status();
    assert!(asked.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let chats = model.wait_for(|chats| {
        let mut chats = chats.iter();
        chats.any(|chat| chat.closed_early_ms.is_some())
    });
    assert!(!chats.await.is_empty());
}
