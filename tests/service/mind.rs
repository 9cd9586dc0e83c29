//! SPEC sections 3 to 8 from outside: plans, steering, switches, subagents, what is sent.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Reply, Step};
use crate::server::{House, Server, Socket};

const NOBODY: &str = "00000000-0000-7000-8000-000000000000";

fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

async fn tab(server: &Server) -> (String, Socket) {
    let session = server.new_session().await;
    let tab = server.tab(&session, None).await;
    (session, tab)
}

async fn say(tab: &mut Socket, text: &str) {
    tab.send(&json!({"type": "message", "content": text})).await;
}

fn kinds(frames: &[Value]) -> Vec<&str> {
    frames
        .iter()
        .map(|frame| frame["type"].as_str().unwrap())
        .collect()
}

fn place(frames: &[Value], kind: &str) -> usize {
    let mut kinds = kinds(frames).into_iter();
    kinds
        .position(|it| it == kind)
        .unwrap_or_else(|| panic!("no {kind}: {frames:#?}"))
}

fn spawn(task: &str) -> Step {
    Step::tool_call("spawn_agent", json!({"task": task}))
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
    body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(line)
        .collect()
}

/// How the notes of a run begin.
const NOTE: &str = "[navi-note-";

/// Those up to the notes at the end.
fn lasting(body: &Value) -> Vec<Value> {
    let mut lines = lines(body);
    let last = lines.last_mut().unwrap();
    let text = last[1].as_str().unwrap().to_owned();
    match text.split_once(NOTE) {
        Some(("", _)) => drop(lines.pop()),
        Some((before, _)) => last[1] = json!(before.strip_suffix("\n\n").unwrap()),
        None => {}
    }
    lines
}

fn tool_names(body: &Value, of: impl Fn(&Value) -> Value) -> Vec<Value> {
    body["tools"].as_array().unwrap().iter().map(of).collect()
}

#[tokio::test]
async fn a_plan_is_told_before_any_tool_and_stands_in_the_messages() {
    let (model, server) = talking();
    let (session, mut tab) = tab(&server).await;
    let whole = |text: &str| Reply::new([Step::text(text)]).streamed(false);
    model.script(whole("Several files.\nREFLECT: no").temperature(0.3));
    model.script(
        whole(
            "1. Write it - TOOL: filesystem\n2. Look through it - AGENT: nobody\n3. Say so - SELF",
        )
        .temperature(0.3),
    );
    model.script([Step::tool_call(
        "filesystem",
        json!({"action": "write", "path": "a.txt", "content": "x"}),
    )]);
    model.script([Step::text("done")]);
    say(&mut tab, "write a.txt and check it").await;
    let frames = tab.until("stream_end").await;
    let at = |kind| place(&frames, kind);
    assert!(at("stream_start") < at("plan_ready") && at("plan_ready") < at("tool_started"));
    let plan = &frames[at("plan_ready")];
    assert!(
        plan["plan"].as_str().unwrap().contains("1. Write it"),
        "{plan}"
    );
    let items = frames[at("todo_updated")]["items"].as_array().unwrap();
    let items: Vec<_> = items.iter().map(|item| &item["text"]).collect();
    assert_eq!(items, ["Write it", "Look through it", "Say so"]);
    // An unknown profile is no executor.
    let executors: Vec<_> = plan["steps"].as_array().unwrap().iter().collect();
    assert_eq!(executors[1]["executor"], "self");

    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["messages"][1]["is_plan"], true);
    assert_eq!(snapshot["messages"][1]["role"], "assistant");
    let chats = model.chats();
    let bodies = chats.iter().map(|chat| &chat.body);
    let planning: Vec<&Value> = bodies.take_while(|body| body["stream"] == false).collect();
    assert_eq!(planning.len(), 2);
    for body in planning {
        assert_eq!(body["think"], false);
        assert_eq!(body["options"]["temperature"], json!(0.3));
        assert!(body.get("tools").is_none());
    }
    // A plain run has none.
    let path = format!("/sessions/{session}/messages");
    let plain = server.post(&path, json!({"content": "and now?"})).await;
    assert_eq!(plain["content"], "You said: and now?");
    let all = server.get(&format!("/sessions/{session}")).await;
    let plans = all["messages"].as_array().unwrap().iter();
    assert_eq!(
        plans.filter(|message| message["is_plan"] == true).count(),
        1
    );
    model.assert_clean();
}

#[tokio::test]
async fn the_context_is_exactly_what_is_sent() {
    let (model, server) = talking();
    let path = "/memory/facts/places/home";
    server
        .call(Method::PUT, path, Some(json!({"value": "Lviv"})))
        .await;
    // The model rewrites the summary a moment later: what is sent is to stand still here.
    while !server.get("/memory").await["summary"]
        .to_string()
        .contains("You said")
    {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let (session, mut tab) = tab(&server).await;
    let path = format!("/sessions/{session}/context");
    let fresh = server.get(&path).await;
    model.script([
        Step::text("I look. "),
        Step::tool_call("todo", json!({"action": "list"})),
        Step::tool_call("no_such_tool", json!({})),
    ]);
    model.script([Step::text("nothing"), Step::hold("gate")]);
    say(&mut tab, "what is to do?").await;
    tab.next_of("tool_call").await;
    let streams = |chats: &[crate::fake_model::Recorded]| -> Vec<Value> {
        let bodies = chats.iter().map(|chat| chat.body.clone());
        bodies.filter(|body| body["stream"] == true).collect()
    };
    let chats = model.wait_for(|chats| streams(chats).len() == 2).await;
    let sent = streams(&chats);
    let during = server.get(&path).await;
    assert_eq!(lasting(&during), lasting(&sent[1]));
    model.release("gate");
    tab.next_of("stream_end").await;

    // Before the first message too: what is there then is how the first call begins.
    let head = lines(&fresh);
    assert_eq!(head, lines(&sent[0])[..head.len()]);
    assert!(fresh.to_string().contains("Lviv"), "{fresh}");

    let after = server.get(&path).await;
    say(&mut tab, "thanks").await;
    tab.next_of("stream_end").await;
    let next = streams(&model.chats()).pop().unwrap();
    let mut expected = lasting(&after);
    expected.push(line(&json!({"role": "user", "content": "thanks"})));
    assert_eq!(expected, lasting(&next));
    assert_eq!(after["model"], next["model"]);
    assert_eq!(
        tool_names(&after, |tool| tool["name"].clone()),
        tool_names(&next, |tool| tool["function"]["name"].clone())
    );
    let apart =
        after["temperature"].as_f64().unwrap() - next["options"]["temperature"].as_f64().unwrap();
    assert!(apart.abs() < 1e-6);
    assert_eq!(after["context_window"], next["options"]["num_ctx"]);
    model.assert_clean();
}

/// A body's prompt as Ollama makes it: all system messages first, then the tools.
fn rendered(body: &Value) -> String {
    let messages = body["messages"].as_array().unwrap();
    let is_system = |message: &&Value| message["role"] == "system";
    let (systems, talk): (Vec<_>, Vec<_>) = messages.iter().partition(is_system);
    let mut prompt = String::new();
    for message in systems {
        prompt += &format!("{}\n\n", message["content"].as_str().unwrap());
    }
    prompt += &format!("{}\n", body["tools"]);
    for message in talk {
        let content = message["content"].as_str().unwrap_or_default();
        prompt += &format!(
            "<{}>{content}\n{}\n",
            message["role"], message["tool_calls"]
        );
    }
    prompt
}

#[tokio::test]
async fn what_reaches_the_server_grows_at_its_end_alone() {
    let model = FakeModel::start();
    let servers = [
        House::new(&[("OLLAMA_HOST", &model.url())]),
        House::new(&[("OPENAI_BASE_URL", &format!("{}/v1", model.url()))]),
    ];
    for house in servers {
        let server = house.start();
        let known = model.chats().len();
        let (_, mut tab) = tab(&server).await;
        for turn in 0..3 {
            for path in ["a.txt", "b.txt"] {
                model.script([
                    Step::Thinking("hm".into()),
                    Step::tool_call(
                        "filesystem",
                        json!({"action": "write", "path": format!("{turn}{path}"), "content": "x"}),
                    ),
                ]);
            }
            model.script([Step::text("done")]);
            say(&mut tab, &format!("turn {turn}")).await;
            tab.next_of("stream_end").await;
        }
        let bodies: Vec<Value> = model
            .chats()
            .split_off(known)
            .into_iter()
            .map(|it| it.body)
            .collect();
        let bodies: Vec<&Value> = bodies
            .iter()
            .filter(|body| body["stream"] == true)
            .collect();
        assert_eq!(bodies.len(), 9);
        assert!(bodies.iter().any(|body| rendered(body).contains(NOTE)));
        for pair in bodies.windows(2) {
            let (before, after) = (rendered(pair[0]), rendered(pair[1]));
            let (before, _) = before.split_once(NOTE).unwrap_or((&before, ""));
            assert!(after.starts_with(before.trim_end()), "{before}---\n{after}");
            assert_eq!(pair[0]["tools"].to_string(), pair[1]["tools"].to_string());
        }
    }
    model.assert_clean();
}

#[tokio::test]
async fn a_message_is_steered_into_the_run() {
    let (model, server) = talking();
    let (session, mut tab) = tab(&server).await;
    model.script([
        Step::text("first "),
        Step::hold("gate"),
        Step::tool_call("todo", json!({"action": "list"})),
    ]);
    model.script([Step::text("short")]);
    say(&mut tab, "tell me").await;
    let run = tab.next_of("stream_delta").await["run_id"].clone();
    tab.send(&json!({"type": "message", "content": "be short", "mode": "steer", "client_id": "s"}))
        .await;
    let accepted = tab.next_of("message_accepted").await;
    assert_eq!(
        (&accepted["queued"], &accepted["client_id"]),
        (&json!(true), &json!("s"))
    );
    model.release("gate");
    let frames = tab.until("stream_end").await;
    let steered = &frames[place(&frames, "message_steered")];
    assert_eq!(steered["message_id"], accepted["message_id"]);
    assert!(
        frames.iter().all(|frame| frame["run_id"] == run),
        "{frames:#?}"
    );
    let last = model
        .chats()
        .into_iter()
        .rfind(|it| it.body["stream"] == true);
    assert_eq!(last.unwrap().last_user_text(), "be short");
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    let messages = snapshot["messages"].as_array().unwrap().iter();
    let roles: Vec<_> = messages.map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user", "assistant"]);
    model.assert_clean();
}

#[tokio::test]
async fn a_switch_of_profile_is_told_before_its_tools_result() {
    let (model, server) = talking();
    let (session, mut tab) = tab(&server).await;
    let switch = |id: &str| Step::tool_call("switch_profile", json!({"profile_id": id}));
    model.script([switch("nobody"), switch("server_admin")]);
    model.script([Step::text("at your servers")]);
    say(&mut tab, "look at the logs").await;
    let frames = tab.until("stream_end").await;
    let told: Vec<&str> = kinds(&frames)
        .into_iter()
        .filter(|kind| matches!(*kind, "tool_started" | "tool_call" | "profile_switched"))
        .collect();
    assert_eq!(
        told,
        [
            "tool_started",
            "tool_call",
            "tool_started",
            "profile_switched",
            "tool_call"
        ]
    );
    let switched = &frames[place(&frames, "profile_switched")];
    assert_eq!(switched["profile_id"], "server_admin");
    assert_eq!(switched["profile_name"], "Server Administrator");
    let streams: Vec<Value> = model
        .chats()
        .into_iter()
        .map(|it| it.body)
        .filter(|body| body["stream"] == true)
        .collect();
    let system = |at: usize| streams[at]["messages"][0]["content"].as_str().unwrap();
    assert_ne!(system(0), system(1));
    assert_eq!(streams[1]["options"]["temperature"], json!(0.2));
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["profile_id"], "server_admin");
    model.assert_clean();
}

#[tokio::test]
async fn who_waits_for_another_session_is_told_so() {
    let (model, server) = talking();
    let (_, mut first) = tab(&server).await;
    model.script([Step::text("one"), Step::hold("gate")]);
    say(&mut first, "long").await;
    first.next_of("stream_delta").await;
    let (session, mut second) = tab(&server).await;
    let path = format!("/sessions/{session}/messages");
    let plain = server.post(&path, json!({"content": "short"}));
    let watched = async {
        let waiting = second.next_of("run_waiting").await;
        assert_eq!(waiting["reason"], "lane", "{waiting}");
        assert!(!waiting["detail"].as_str().unwrap().is_empty());
        model.release("gate");
        first.next_of("stream_end").await;
        second.next_of("stream_end").await
    };
    let (answer, end) = tokio::join!(plain, watched);
    assert_eq!(answer["content"], "You said: short");
    assert_eq!(end["content"], answer["content"]);
}

#[tokio::test]
async fn who_waits_before_it_plans_is_told_what_for() {
    let (model, server) = talking();
    let (_, mut first) = tab(&server).await;
    model.script([Step::text("one"), Step::hold("gate")]);
    say(&mut first, "long").await;
    first.next_of("stream_delta").await;
    let (_, mut second) = tab(&server).await;
    say(&mut second, "short").await;
    let waiting = second.next_of("run_waiting").await;
    assert_eq!(waiting["reason"], "lane", "{waiting}");
    model.release("gate");
    first.next_of("stream_end").await;
    let end = second.next_of("stream_end").await;
    assert_eq!(end["content"], "You said: short");
}

#[tokio::test]
async fn one_subagent_is_stopped_and_the_run_goes_on() {
    let (model, server) = talking();
    let (session, mut tab) = tab(&server).await;
    model.script([spawn("the left side"), spawn("the right side")]);
    model.script(Reply::new([Step::Silence]).when("the left side"));
    model.script(Reply::new([Step::text("right")]).when("the right side"));
    model.script(Reply::new([Step::text("half of it")]).when("both sides"));
    say(&mut tab, "both sides").await;
    // They begin side by side, in whatever order.
    let mut frames = tab.until("subagent_started").await;
    frames.extend(tab.until("subagent_started").await);
    let is_left = |frame: &&Value| frame["task"] == "the left side";
    let left = frames.iter().find(is_left).unwrap().clone();
    let stop = |run: &Value| {
        let run = run.as_str().unwrap().to_owned();
        format!("/sessions/{session}/subagents/{run}/stop")
    };
    model
        .wait_for(|chats| {
            chats
                .iter()
                .any(|it| it.last_user_text() == "the left side")
        })
        .await;
    let told = server.post(&stop(&left["run_id"]), json!({})).await;
    assert_eq!(told, json!({"stopped": true}));
    frames.extend(tab.until("stream_end").await);
    assert_eq!(frames.last().unwrap()["content"], "half of it");
    let results: Vec<&str> = frames
        .iter()
        .filter(|frame| frame["type"] == "tool_call")
        .map(|frame| frame["result"].as_str().unwrap())
        .collect();
    assert!(
        results[0].starts_with("completed_normally: false"),
        "{results:?}"
    );
    assert!(
        results[1].starts_with("completed_normally: true"),
        "{results:?}"
    );
    for frame in &frames {
        let of_child = ["subagent_started", "subagent_finished"]
            .contains(&frame["type"].as_str().unwrap())
            || frame["is_subagent"] == true;
        assert_eq!(
            of_child,
            frame.get("parent_run_id").is_some_and(|it| !it.is_null()),
            "{frame}"
        );
    }
    let again = server.post(&stop(&left["run_id"]), json!({})).await;
    assert_eq!(again, json!({"stopped": false}));
    for (path, status, code) in [
        (stop(&json!("left")), 400, "invalid_id"),
        (
            format!("/sessions/{NOBODY}/subagents/{NOBODY}/stop"),
            404,
            "session_not_found",
        ),
    ] {
        let (answered, body) = server.call(Method::POST, &path, Some(json!({}))).await;
        assert_eq!((answered.as_u16(), &body["code"]), (status, &json!(code)));
    }
    model.assert_clean();
}

/// All pages of a run's events.
async fn pages(server: &Server, session: &str, run: &str) -> Vec<Vec<Value>> {
    let path = format!("/sessions/{session}/runs/{run}/events");
    let mut pages = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = server.get(&format!("{path}{cursor}")).await;
        pages.push(page["events"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => cursor = format!("?cursor={next}"),
            None => return pages,
        }
        assert!(pages.len() < 200, "it never ends");
    }
}

#[tokio::test]
async fn the_events_of_a_run_can_be_read_again_page_by_page() {
    let (model, server) = talking();
    let (session, mut tab) = tab(&server).await;
    model.script([spawn("write much")]);
    let many: Vec<Step> = (0..120)
        .map(|n| {
            let content = "x".repeat(9_000);
            Step::tool_call(
                "filesystem",
                json!({"action": "write", "path": format!("{n}.txt"), "content": content}),
            )
        })
        .collect();
    model.script(Reply::new(many).when("write much"));
    model.script(
        Reply::new([Step::text("written")])
            .when("write much")
            .last(""),
    );
    model.script([Step::text("all written")]);
    say(&mut tab, "have much written").await;
    let told = tab.until("stream_end").await;
    say(&mut tab, "thanks").await;
    tab.until("stream_end").await;

    let numbered = |frames: &[Value], run: Option<&Value>| -> Vec<Value> {
        let numbered = frames.iter().filter(|frame| frame["seq"].is_u64());
        numbered
            .filter(|frame| run.is_none_or(|run| frame["run_id"] == *run))
            .cloned()
            .collect()
    };
    let run = told[0]["run_id"].as_str().unwrap();
    let read = pages(&server, &session, run).await;
    assert!(read.len() > 1, "one page holds all: make it more");
    let read = read.concat();
    assert_eq!(numbered(&read, None), numbered(&told, None));
    let started = &told[place(&told, "subagent_started")]["run_id"];
    let of_child = pages(&server, &session, started.as_str().unwrap())
        .await
        .concat();
    assert_eq!(numbered(&of_child, None), numbered(&told, Some(started)));

    let path = format!("/sessions/{session}/runs");
    for (path, status, code) in [
        (
            format!("{path}/{run}/events?cursor=7"),
            400,
            "invalid_field",
        ),
        (format!("{path}/{NOBODY}/events"), 404, "not_found"),
        (format!("{path}/7/events"), 400, "invalid_id"),
        (
            format!("/sessions/{NOBODY}/runs/{run}/events"),
            404,
            "session_not_found",
        ),
    ] {
        let (answered, body) = server.call(Method::GET, &path, None).await;
        assert_eq!(
            (answered.as_u16(), &body["code"]),
            (status, &json!(code)),
            "{path}"
        );
    }
}

#[tokio::test]
async fn at_the_limit_the_model_says_how_things_stand() {
    let model = FakeModel::start();
    let house = House::new(&[
        ("OLLAMA_HOST", &model.url()),
        ("NAVI_DEFAULT_PROFILE", "once"),
    ]);
    let folder = house.data_dir().join("profiles");
    std::fs::create_dir_all(&folder).unwrap();
    let profile = "id = \"once\"\nname = \"Once\"\ndescription = \"x\"\nsystem_prompt = \"Once.\"\n\
         enabled_tools = [\"todo\"]\ntemperature = 0.5\nplanning_enabled = false\nmax_iterations = 1\n";
    std::fs::write(folder.join("once.toml"), profile).unwrap();
    let server = house.start();
    let (session, mut tab) = tab(&server).await;
    model.script([Step::tool_call("todo", json!({"action": "list"}))]);
    model.script(Reply::new([Step::text("nothing is done")]).with_tools(false));
    say(&mut tab, "do it all").await;
    let end = tab.next_of("stream_end").await;
    assert_eq!(
        (&end["completed"], &end["content"]),
        (&json!(false), &json!("nothing is done"))
    );
    assert_eq!(
        server.get(&format!("/sessions/{session}")).await["can_continue"],
        true
    );
    tab.send(&json!({"type": "continue"})).await;
    assert_eq!(tab.next_of("stream_end").await["completed"], true);
    let (status, _) = server
        .call(
            Method::POST,
            &format!("/sessions/{session}/stop"),
            Some(json!({})),
        )
        .await;
    assert_eq!(status, StatusCode::OK);
    model.assert_clean();
}
