//! What becomes of a run after its process went: a person's word on calls whose outcome is
//! unknown, going on, resuming unasked, an upgrade in place.

use std::fs;

use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use crate::fake_model::{Config, FakeModel, Recorded, Reply, Step};
use crate::rounds::rounds;
use crate::script::{UNTOLD, house, outcomes, spawn, workspace};
use crate::server::{House, PATIENCE, Server, Socket, TOKEN, client};
use crate::view::View;

/// Two calls of one reply, of which the process does not survive the second.
fn writes() -> [Step; 2] {
    ["a", "b"].map(|name| {
        Step::tool_call(
            "filesystem",
            json!({"action": "write", "path": format!("{name}.txt"), "content": name}),
        )
    })
}

/// A service whose run was cut off right after a call took effect, and before that was known.
async fn cut_after_effect(model: &FakeModel, variables: &[(&str, &str)]) -> (Server, String) {
    let url = model.url();
    let mut all = vec![("OLLAMA_HOST", url.as_str())];
    all.extend(variables);
    let house = House::new(&all);
    model.script(writes());
    let server = house.start_with(&[("NAVI_KILL_AT", "tool::done:2")]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "write both"}))
        .await;
    assert_eq!(tab.closed().await, 1006, "the process is killed");
    (server.crash_and_restart(), session)
}

async fn unknown(server: &Server, session: &str) -> Vec<Value> {
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    snapshot["unknown_calls"].as_array().unwrap().clone()
}

fn file(server: &Server, session: &str, name: &str) -> Option<String> {
    let folder = server
        .house()
        .data_dir()
        .join("session_files")
        .join(session);
    fs::read_to_string(folder.join(name)).ok()
}

async fn resolve(tab: &mut Socket, call_id: &Value, decision: &str) {
    tab.send(&json!({"type": "resolve_call", "call_id": call_id, "decision": decision}))
        .await;
}

async fn deny(tab: &mut Socket, asked: &Value) {
    tab.send(&json!({"type": "approve", "approval_id": asked["approval_id"], "decision": "deny"}))
        .await;
}

/// Whether these words stand in a request to the model, of which the last may be for a title.
fn was_sent(model: &FakeModel, words: &str) -> bool {
    let mut chats = model.chats().into_iter();
    chats.any(|chat| chat.body.to_string().contains(words))
}

#[tokio::test]
async fn after_its_effect_and_before_its_commit_the_person_is_asked_and_says_done() {
    let model = FakeModel::start();
    let (server, session) = cut_after_effect(&model, &[]).await;
    let calls = unknown(&server, &session).await;
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!(calls[0]["args"]["path"], "b.txt");
    assert_eq!(file(&server, &session, "b.txt").as_deref(), Some("b"));
    let (mut one, mut other) = (
        server.tab(&session, Some(0)).await,
        server.tab(&session, Some(0)).await,
    );
    resolve(&mut one, &calls[0]["call_id"], "done").await;
    for tab in [&mut one, &mut other] {
        let told = tab.next_of("call_resolved").await;
        assert_eq!(told["call_id"], calls[0]["call_id"]);
        assert_eq!(told["decision"], "done");
    }
    assert!(unknown(&server, &session).await.is_empty());
    // The first word counts.
    resolve(&mut other, &calls[0]["call_id"], "retry").await;
    assert_eq!(other.next_of("error").await["code"], "not_found");
    // It holds after another crash, and the model reads it.
    let server = server.crash_and_restart();
    assert!(unknown(&server, &session).await.is_empty());
    let mut tab = server.tab(&session, None).await;
    model.script([Step::text("both are there")]);
    tab.send(&json!({"type": "continue"})).await;
    let frames = tab.until("stream_end").await;
    assert!(frames.iter().all(|frame| frame["type"] != "tool_started"));
    assert!(was_sent(&model, "it took effect"));
    model.assert_clean();
}

#[tokio::test]
async fn a_call_that_is_to_be_made_again_is_made_once_more_and_first() {
    let model = FakeModel::start();
    let (server, session) = cut_after_effect(&model, &[]).await;
    fs::remove_file(
        server
            .house()
            .data_dir()
            .join("session_files")
            .join(&session)
            .join("b.txt"),
    )
    .unwrap();
    let calls = unknown(&server, &session).await;
    let path = format!(
        "/sessions/{session}/calls/{}",
        calls[0]["call_id"].as_str().unwrap()
    );
    let body = Some(json!({"decision": "retry"}));
    let (status, _) = server
        .call(reqwest::Method::POST, &path, body.clone())
        .await;
    assert_eq!(status, 204);
    let (status, error) = server.call(reqwest::Method::POST, &path, body).await;
    assert_eq!(
        (status.as_u16(), &error["code"]),
        (404, &json!("not_found"))
    );
    assert_eq!(
        file(&server, &session, "b.txt"),
        None,
        "not before it goes on"
    );
    let mut tab = server.tab(&session, None).await;
    model.script([Step::text("both are there")]);
    let path = format!("/sessions/{session}/continue");
    let (status, going) = server.call(reqwest::Method::POST, &path, None).await;
    assert_eq!(status, 202);
    let frames = tab.until("stream_end").await;
    assert_eq!(frames.last().unwrap()["run_id"], going["run_id"]);
    let made: Vec<_> = frames
        .iter()
        .filter(|frame| frame["type"] == "tool_call")
        .collect();
    assert_eq!(made.len(), 1);
    assert_eq!(made[0]["success"], true);
    assert_eq!(made[0]["args"]["path"], "b.txt");
    assert_ne!(made[0]["call_id"], calls[0]["call_id"]);
    assert_eq!(file(&server, &session, "b.txt").as_deref(), Some("b"));
    model.assert_clean();
}

#[tokio::test]
async fn a_call_that_is_left_is_left_and_one_that_nobody_decided_on_is_the_models_to_check() {
    let model = FakeModel::start();
    for (decision, words) in [(Some("skip"), "to leave it"), (None, "check before")] {
        let (server, session) = cut_after_effect(&model, &[]).await;
        let mut tab = server.tab(&session, None).await;
        if let Some(decision) = decision {
            let calls = unknown(&server, &session).await;
            resolve(&mut tab, &calls[0]["call_id"], decision).await;
            tab.next_of("call_resolved").await;
        }
        model.script([Step::text("well")]);
        tab.send(&json!({"type": "continue"})).await;
        let frames = tab.until("stream_end").await;
        assert!(frames.iter().all(|frame| frame["type"] != "tool_started"));
        assert!(was_sent(&model, words));
        assert!(unknown(&server, &session).await.is_empty());
    }
    model.assert_clean();
}

/// A run that is cut off while it reads.
async fn cut_while_reading(model: &FakeModel, resume: &str) -> (Server, String) {
    let url = model.url();
    let house = House::new(&[("OLLAMA_HOST", &url), ("NAVI_RESUME_RUNS", resume), UNTOLD]);
    let look = Step::tool_call("filesystem", json!({"action": "list", "path": "."}));
    model.script([Step::hold("look"), look]);
    let server = house.start();
    let before = model.chats().len();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    // To the call made again: the model may have been asked with the first one's result, too.
    model.script(Reply::new([Step::text("it is empty")]).results(2));
    tab.send(&json!({"type": "message", "content": "what is there?"}))
        .await;
    let is_asked = |chat: &Recorded| chat.body["tools"].is_array();
    model
        .wait_for(|chats| chats[before..].iter().any(is_asked))
        .await;
    // All before it is told: what is told next is the reply with the call's start, and without its
    // result, which comes later.
    server.get(&format!("/sessions/{session}")).await;
    server
        .arm("tool::call=sleep(5000)\nkill session::tell:1")
        .await;
    model.release("look");
    assert_eq!(tab.closed().await, 1006);
    (server.crash_and_restart(), session)
}

#[tokio::test]
async fn a_call_that_only_reads_is_made_again_when_the_run_goes_on() {
    let model = FakeModel::start();
    let (server, session) = cut_while_reading(&model, "ask").await;
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["state"], "interrupted");
    assert_eq!(snapshot["unknown_calls"], json!([]), "nobody need be asked");
    assert_eq!(snapshot["messages"][2]["outcome"], "interrupted");
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "continue"})).await;
    let made = tab.next_of("tool_call").await;
    assert_eq!(
        (&made["success"], &made["args"]["action"]),
        (&json!(true), &json!("list"))
    );
    assert_eq!(tab.next_of("stream_end").await["content"], "it is empty");
    model.assert_clean();
}

#[tokio::test]
async fn where_it_is_wished_a_run_that_only_read_resumes_by_itself() {
    let model = FakeModel::start();
    let (server, session) = cut_while_reading(&model, "reads").await;
    let mut tab = server.tab(&session, Some(0)).await;
    let frames = tab.until("stream_end").await;
    let cut_off = frames.iter().position(|f| f["type"] == "run_interrupted");
    let resumed = frames.iter().position(|f| f["code"] == "run_resumed");
    assert!(cut_off.is_some() && cut_off < resumed, "{frames:#?}");
    assert_eq!(frames.last().unwrap()["content"], "it is empty");
    model.assert_clean();
}

#[tokio::test]
async fn what_may_have_changed_something_never_resumes_by_itself() {
    let model = FakeModel::start();
    let (server, session) = cut_after_effect(&model, &[("NAVI_RESUME_RUNS", "reads")]).await;
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["state"], "interrupted");
    assert_eq!(snapshot["unknown_calls"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_run_that_brings_the_service_down_is_not_resumed_for_ever() {
    let model = FakeModel::start();
    let house = House::new(&[("OLLAMA_HOST", &model.url()), ("NAVI_RESUME_RUNS", "reads")]);
    // Each start dies at the run's first step.
    let deadly = [("NAVI_KILL_AT", "run::step:1")];
    let mut server = house.start_with(&deadly);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "hi"})).await;
    server.ended().await;
    let mut deaths = 1;
    let last = loop {
        // It is resumed at the start or never.
        let Ok(mut server) = house.try_start_with(&deadly) else {
            deaths += 1;
            continue;
        };
        let url = format!("{}/sessions/{session}", server.url);
        let rests = async {
            loop {
                let asked = client().get(&url).bearer_auth(TOKEN).send().await;
                if let Ok(answer) = asked
                    && let Ok(told) = answer.json::<Value>().await
                    && told["state"] == "interrupted"
                {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            _ = server.ended() => deaths += 1,
            () = rests => break server,
        }
        assert!(deaths < 10, "it is resumed for ever");
    };
    assert_eq!(deaths, 4, "the first time, and three times unasked");
    let snapshot = last.get(&format!("/sessions/{session}")).await;
    assert_eq!(
        (&snapshot["state"], &snapshot["can_continue"]),
        (&json!("interrupted"), &json!(true))
    );
}

/// Has the service become the same program again, and waits for it.
fn upgrade(server: &Server) {
    let output = server.house().run(&["upgrade"]);
    assert!(
        output.status.success(),
        "{} {}",
        String::from_utf8_lossy(&output.stderr),
        server.said()
    );
}

#[tokio::test]
async fn an_upgrade_between_two_steps_goes_on_and_tabs_notice_no_more_than_a_pause() {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    model.script([
        Step::text("I look. "),
        Step::hold("look"),
        writes()[0].clone(),
    ]);
    model.script([Step::text("done")]);
    tab.send(&json!({"type": "message", "content": "write one"}))
        .await;
    let mut view = View::default();
    view.apply_all(&tab.until("stream_delta").await);
    let pid = server.pid();
    let asked = Instant::now();
    std::thread::scope(|scope| {
        let upgrading = scope.spawn(|| upgrade(&server));
        // Otherwise the run may be over before it is asked to stop.
        while !server.said().contains("shutting down") && !upgrading.is_finished() {
            std::thread::sleep(Duration::from_millis(10));
        }
        model.release("look");
        upgrading.join().unwrap();
    });
    assert!(asked.elapsed() < PATIENCE);
    loop {
        match tab.next().await {
            crate::server::Told::Frame(frame) => view.apply(&frame),
            crate::server::Told::Closed(code) => {
                assert_eq!(code, 1012);
                break;
            }
        }
    }
    // The same address, process and run.
    let mut tab = server.tab(&session, Some(view.seq)).await;
    let frames = tab.until("stream_end").await;
    view.apply_all(&frames);
    assert_eq!(server.pid(), pid);
    assert_eq!(frames.last().unwrap()["content"], "done");
    let mut whole = View::default();
    let mut tab = server.tab(&session, Some(0)).await;
    let all = tab.until("stream_end").await;
    whole.apply_all(&all);
    assert_eq!(view, whole);
    for kind in ["run_interrupted", "error"] {
        assert!(all.iter().all(|frame| frame["type"] != kind), "{all:#?}");
    }
    let starts = all.iter().filter(|frame| frame["type"] == "stream_start");
    assert_eq!(starts.count(), 1);
    model.assert_clean();
}

/// Whatever is started next goes on with what was left for the upgrade.
#[tokio::test]
async fn a_signal_during_an_upgrade_ends_the_service_in_order() {
    let (model, house) = house(&[]);
    let mut server = house.start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    let waits = json!({"action": "run", "command": "until [ -e go ]; do sleep 0.05; done"});
    model.script([Step::tool_call("terminal", waits)]);
    model.script(Reply::new([Step::text("it came")]).results(1));
    tab.send(&json!({"type": "message", "content": "wait for it"}))
        .await;
    tab.next_of("tool_started").await;
    server.signal("USR2");
    server.says("shutting down for an upgrade").await;
    server.ask_to_end();
    server.says("no upgrade after all").await;
    fs::write(workspace(&server, &session).join("go"), "").unwrap();
    drop(tab);
    assert_eq!(server.ended().await.code(), Some(0), "{}", server.said());
    drop(server);

    let server = house.start();
    let mut tab = server.tab(&session, Some(0)).await;
    assert_eq!(tab.next_of("stream_end").await["content"], "it came");
    model.assert_clean();
}

#[tokio::test]
async fn an_upgrade_in_mid_text_keeps_what_was_said_and_asks_for_the_rest() {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    model.script([Step::text("half a sen"), Step::Silence]);
    model.script(Reply::new([Step::text("tence, and more")]));
    tab.send(&json!({"type": "message", "content": "tell me"}))
        .await;
    tab.next_of("stream_delta").await;
    upgrade(&server);
    let mut tab = server.tab(&session, Some(0)).await;
    let frames = tab.until("stream_end").await;
    assert_eq!(frames.last().unwrap()["content"], "tence, and more");
    assert!(
        frames
            .iter()
            .all(|frame| frame["type"] != "run_interrupted")
    );
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    let said: Vec<_> = snapshot["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| (&message["content"], &message["state"]))
        .collect();
    assert_eq!(said[1], (&json!("half a sen"), &json!("interrupted")));
    assert_eq!(said[2], (&json!("tence, and more"), &json!("complete")));
    model.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_come_during_an_upgrade_wait_and_are_not_refused() {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    let upgraded = std::sync::atomic::AtomicBool::new(false);
    let client = crate::server::client();
    let url = format!("{}/health", server.url);
    let ask = async {
        let mut asked = 0;
        while !upgraded.load(std::sync::atomic::Ordering::Relaxed) {
            // A connection of its own each time: one that was open may be cut.
            let request = client.get(&url).header("connection", "close");
            match request.send().await {
                Ok(answer) => assert!(answer.status().is_success() || answer.status() == 503),
                // One that the old process had taken may end with it; it is asked again.
                Err(error) => assert!(!error.is_connect(), "refused: {error}"),
            }
            asked += 1;
        }
        asked
    };
    let asked = std::thread::scope(|scope| {
        scope.spawn(|| {
            upgrade(&server);
            upgraded.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(ask))
    });
    assert!(asked > 1);
}

/// Some of them meet a program that has hardly begun.
#[tokio::test]
async fn upgrades_that_are_asked_for_all_the_time_end_nothing() {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    let session = server.new_session().await;
    let ask = async || {
        server.signal("USR2");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    for _ in 0..rounds(300, 1_500) {
        ask().await;
    }
    let until = Instant::now() + PATIENCE;
    while server.said().matches("ready to take over").count() < 2 {
        assert!(Instant::now() < until, "{}", server.said());
        ask().await;
    }
    // One that is under way has to be done first.
    while !server.house().run(&["upgrade"]).status.success() {
        assert!(Instant::now() < until, "{}", server.said());
    }
    model.script(Reply::new([Step::text("still here")]));
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "hello"}))
        .await;
    assert_eq!(tab.next_of("stream_end").await["content"], "still here");
    model.assert_clean();
}

/// The run goes on with a commit of its own: a tab that comes before that is told is shown it
/// from its start all the same.
#[tokio::test]
async fn a_tab_that_comes_before_a_waiting_run_goes_on_sees_it_from_its_start() {
    let model = FakeModel::start();
    model.script([writes()[0].clone()]);
    let url = model.url();
    let house = House::new(&[("OLLAMA_HOST", &url), ("NAVI_CONSENT_MODE", "ask")]);
    let server = house.start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "write"}))
        .await;
    let asked = tab.next_of("approval_requested").await;
    drop(server);
    let server = house.start_with(&[("FAILPOINTS", "journal::write=1*sleep(1000)")]);
    let mut tab = server.tab(&session, None).await;
    assert_eq!(tab.next_of("approval_requested").await, asked);
    deny(&mut tab, &asked).await;
    assert_eq!(tab.next_of("tool_call").await["success"], false);
    tab.next_of("stream_end").await;
    model.assert_clean();
}

#[tokio::test]
async fn a_question_outlives_a_restart_without_a_model_server() {
    let model = FakeModel::start();
    model.script([writes()[0].clone()]);
    let url = model.url();
    let house = House::new(&[("OLLAMA_HOST", &url), ("NAVI_CONSENT_MODE", "ask")]);
    let server = house.start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "write"}))
        .await;
    let asked = tab.next_of("approval_requested").await;
    model.configure(Config {
        ollama: false,
        openai: false,
        ..Config::default()
    });
    let server = server.crash_and_restart();
    server.says("run cannot go on yet").await;
    let mut tab = server.tab(&session, None).await;
    assert_eq!(tab.next_of("approval_requested").await, asked);
    tab.send(&json!({"type": "approve", "approval_id": asked["approval_id"], "decision": "once"}))
        .await;
    tab.next_of("approval_resolved").await;
    model.configure(Config::default());
    let frames = tab.until("stream_end").await;
    let results = frames.iter().filter(|frame| frame["type"] == "tool_call");
    let results: Vec<_> = results.map(|frame| &frame["success"]).collect();
    assert_eq!(results, [&json!(true)]);
    assert_eq!(file(&server, &session, "a.txt").as_deref(), Some("a"));
    model.assert_clean();
}

/// A run that asks whether it may make its first call, while a subagent does the second.
async fn asks_and_spawns(model: &FakeModel, child: Step) -> (Server, String, Socket) {
    let url = model.url();
    let house = House::new(&[("OLLAMA_HOST", &url), ("NAVI_CONSENT_MODE", "ask")]);
    let fetch = Step::tool_call("web_fetch", json!({"url": "https://example.com/"}));
    model.script(Reply::new([fetch, spawn("look around")]).when("do both"));
    model.script(Reply::new([child]).when("look around"));
    let server = house.start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "do both"}))
        .await;
    (server, session, tab)
}

async fn subagent_asks(model: &FakeModel) {
    model
        .wait_for(|chats| {
            let mut chats = chats.iter();
            chats.any(|chat| chat.last_user_text().contains("look around"))
        })
        .await;
}

/// Results are recorded in the order of the calls: that of the second waits for the first.
#[tokio::test]
async fn a_result_that_waits_behind_a_question_outlives_a_shutdown_and_an_upgrade() {
    for upgrades in [true, false] {
        let model = FakeModel::start();
        let (mut server, session, mut tab) =
            asks_and_spawns(&model, Step::text("it is empty")).await;
        tab.next_of("subagent_finished").await;
        drop(tab);
        if upgrades {
            upgrade(&server);
        } else {
            server.ask_to_end();
            assert_eq!(server.ended().await.code(), Some(0), "{}", server.said());
            server = server.house().start();
        }
        let mut tab = server.tab(&session, None).await;
        let asked = tab.next_of("approval_requested").await;
        deny(&mut tab, &asked).await;
        let frames = tab.until("stream_end").await;
        let results = frames.iter().filter(|frame| frame["type"] == "tool_call");
        let results: Vec<_> = results
            .map(|frame| (&frame["tool"], &frame["outcome"]))
            .collect();
        assert_eq!(
            results,
            [
                (&json!("web_fetch"), &json!("failed")),
                (&json!("spawn_agent"), &json!("success"))
            ],
            "upgrades: {upgrades}"
        );
        model.assert_clean();
    }
}

/// A run that goes on after a crash, and panics at its first step.
#[tokio::test]
async fn what_a_panic_leaves_unclear_is_asked_about_at_once() {
    let model = FakeModel::start();
    let (server, session, mut tab) = asks_and_spawns(&model, Step::Silence).await;
    tab.next_of("approval_requested").await;
    subagent_asks(&model).await;
    let house = server.house().clone();
    drop(server);
    let server = house.start_with(&[("FAILPOINTS", "run::step=1*panic(forced by a test)")]);
    let mut tab = server.tab(&session, Some(0)).await;
    assert_eq!(tab.next_of("error").await["code"], "run_failed");
    let calls = unknown(&server, &session).await;
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!(calls[0]["tool"], "spawn_agent");
    resolve(&mut tab, &calls[0]["call_id"], "skip").await;
    tab.next_of("call_resolved").await;
    assert!(unknown(&server, &session).await.is_empty());
    model.assert_clean();
}

#[tokio::test]
async fn a_denial_that_waits_behind_a_question_outlives_a_crash() {
    let (model, house) = house(&[("NAVI_CONSENT_MODE", "ask"), UNTOLD]);
    model.script(["a", "b"].map(|page| {
        let url = format!("https://example.com/{page}");
        Step::tool_call("web_fetch", json!({"url": url}))
    }));
    let server = house.start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "fetch both"}))
        .await;
    let first = tab.next_of("approval_requested").await;
    let second = tab.next_of("approval_requested").await;
    // The answer is written, and then what becomes of the call.
    server.arm("kill journal::written:2").await;
    deny(&mut tab, &second).await;
    assert_eq!(tab.closed().await, 1006);
    let server = server.crash_and_restart();
    let mut tab = server.tab(&session, None).await;
    deny(&mut tab, &first).await;
    tab.next_of("stream_end").await;
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(outcomes(&snapshot), ["failed", "failed"]);
    model.assert_clean();
}

/// Its result waits for that of the subagent, but it never began.
#[tokio::test]
async fn after_a_crash_nobody_is_asked_about_a_call_that_was_refused() {
    let (model, house) = house(&[]);
    let fetch = Step::tool_call("web_fetch", json!({"url": "ftp://example.com/"}));
    model.script(Reply::new([spawn("look around"), fetch]).when("do both"));
    model.script(Reply::new([Step::Silence]).when("look around"));
    let server = house.start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "do both"}))
        .await;
    subagent_asks(&model).await;
    let server = server.crash_and_restart();
    let calls = unknown(&server, &session).await;
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!(calls[0]["tool"], "spawn_agent");
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(outcomes(&snapshot), ["outcome_unknown", "failed"]);
    model.assert_clean();
}
