//! A hang in each kind of actor: a watchdog finds it, what can be is started again elsewhere,
//! and everything else goes on.

use std::process::Command;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Step};
use crate::server::{House, PATIENCE, Server, Socket};

/// How long a thread may be silent here. Six times as long, and the process ends.
const SILENT_SECONDS: &str = "2";
/// Longer than any test.
const FOR_GOOD: &str = "sleep(600000)";
/// As `navi_actors::watchdog` has it.
const HUNG: i32 = 70;
/// How the log tells that sessions were taken to another thread.
const REPLACED: &str = "a thread of sessions hangs";

/// A service in which a fail point blocks its thread.
fn hanging(model: &FakeModel, fault: &str) -> Server {
    house(model).start_with(&[("FAILPOINTS", fault)])
}

fn house(model: &FakeModel) -> House {
    House::new(&[
        ("OLLAMA_HOST", &model.url()),
        ("NAVI_WATCHDOG_SECONDS", SILENT_SECONDS),
    ])
}

async fn say(tab: &mut Socket, text: &str) {
    tab.send(&json!({"type": "message", "content": text})).await;
}

async fn snapshot(server: &Server, session: &str) -> Value {
    server.get(&format!("/sessions/{session}")).await
}

/// Asks for the warnings until one holds these words. The threads that hang are not those that
/// answer this.
async fn warned(server: &Server, words: &str) {
    warnings_become(server, words, true).await;
}

/// Asks for the warnings until none holds these words.
async fn unwarned(server: &Server, words: &str) {
    warnings_become(server, words, false).await;
}

async fn warnings_become(server: &Server, words: &str, there: bool) {
    let until = Instant::now() + PATIENCE;
    loop {
        let told = server.get("/api/status").await["warnings"].to_string();
        if told.contains(words) == there {
            return;
        }
        assert!(Instant::now() < until, "{words}: {told}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn times(server: &Server, words: &str) -> usize {
    server.said().matches(words).count()
}

/// Numbered events follow on one another, but for a snapshot that replaces what was there.
fn assert_gapless(frames: &[Value]) {
    let mut seq = None;
    for frame in frames.iter().filter(|frame| frame["seq"].is_u64()) {
        let this = frame["seq"].as_u64().unwrap();
        if frame["type"] != "resync" {
            assert!(seq.is_none_or(|seq| this == seq + 1), "{frames:#?}");
        }
        seq = Some(this);
    }
}

#[tokio::test]
async fn a_session_that_hangs_is_read_again_and_the_others_go_on() {
    let model = FakeModel::start();
    let server = hanging(&model, &format!("session::send=1*{FOR_GOOD}"));
    let mut others = Vec::new();
    for _ in 0..12 {
        let session = server.new_session().await;
        let epoch = snapshot(&server, &session).await["epoch"].clone();
        others.push((session, epoch));
    }
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    let before = snapshot(&server, &session).await["epoch"].clone();
    say(&mut tab, "hang").await;
    let answers = others.iter().map(|(session, _)| {
        let path = format!("/sessions/{session}/messages");
        let body = json!({"content": "hi"});
        let server = &server;
        async move { server.call(Method::POST, &path, Some(body)).await }
    });
    let answers = join_all(answers).await;
    let mut untouched = 0;
    for ((session, before), (status, answer)) in others.iter().zip(answers) {
        let epoch = &snapshot(&server, session).await["epoch"];
        if status.is_success() && epoch == before {
            assert_eq!(answer["content"], "You said: hi");
            untouched += 1;
            continue;
        }
        // It lived on the thread that hung: either it was asked before that was known, or after.
        assert!(
            epoch.as_i64() > before.as_i64(),
            "{session}: {status} {answer}"
        );
        let path = format!("/sessions/{session}/messages");
        let again = server.post(&path, json!({"content": "again"})).await;
        assert_eq!(again["content"], "You said: again");
    }
    assert!(untouched > 0, "every session hung with one");

    // Its own tab is told to begin anew, and can.
    let mut frames = tab.until("resync").await;
    let epoch = frames.last().unwrap()["session"]["epoch"].clone();
    assert!(epoch.as_i64() > before.as_i64());
    say(&mut tab, "hi").await;
    frames.extend(tab.until("stream_end").await);
    assert_eq!(frames.last().unwrap()["content"], "You said: hi");
    assert_gapless(&frames);
    warned(&server, "hung once").await;
    assert_eq!(times(&server, REPLACED), 1, "{}", server.said());
    model.assert_clean();
}

#[tokio::test]
async fn the_slot_of_a_run_whose_thread_hangs_before_it_calls_goes_to_others() {
    let model = FakeModel::start();
    let house = House::new(&[
        ("OLLAMA_HOST", &model.url()),
        ("NAVI_WATCHDOG_SECONDS", SILENT_SECONDS),
        ("LLM_PARALLEL", "1"),
    ]);
    let fault = format!("run::slot=1*{FOR_GOOD}");
    let server = house.start_with(&[("FAILPOINTS", &fault)]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    say(&mut tab, "hang").await;
    warned(&server, "hung once").await;

    let other = server.new_session().await;
    let path = format!("/sessions/{other}/messages");
    let answer = server.post(&path, json!({"content": "hi"})).await;
    assert_eq!(answer["content"], "You said: hi");
    let frames = tab.until("resync").await;
    assert_eq!(frames.last().unwrap()["session"]["state"], "interrupted");
    model.assert_clean();
}

#[tokio::test]
async fn a_run_that_hangs_is_interrupted_and_writes_nothing_when_it_wakes() {
    let model = FakeModel::start();
    let write = json!({"action": "write", "path": "a.txt", "content": "x"});
    model.script([Step::tool_call("filesystem", write)]);
    // Planning, the first call, its tool, and there it hangs for longer than is borne.
    let server = hanging(&model, "run::step=3*off->1*pause");
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    say(&mut tab, "write it down").await;
    let mut frames = tab.until("resync").await;
    let told = &frames.last().unwrap()["session"];
    assert_eq!(told["state"], "interrupted", "{told}");
    assert_eq!(told["can_continue"], true);

    server.arm("run::step=off").await;
    // What must not come has its time to come.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = snapshot(&server, &session).await;
    assert_eq!(after["last_seq"], told["last_seq"]);
    assert_eq!(after["messages"], told["messages"]);
    assert_eq!(model.chats().len(), 2, "it went on after it was given up");
    tab.send(&json!({"type": "continue"})).await;
    frames.extend(tab.until("stream_end").await);
    assert_gapless(&frames);
    let ended = snapshot(&server, &session).await;
    let roles = ended["messages"].as_array().unwrap().iter();
    let roles: Vec<_> = roles.map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    assert_eq!(times(&server, REPLACED), 1, "{}", server.said());
    model.assert_clean();
}

/// Its slot of the backend would be lost with it.
#[tokio::test]
async fn a_session_that_hangs_in_mid_answer_gives_its_slot_to_others() {
    let model = FakeModel::start();
    let server = hanging(&model, &format!("session::stream=1*{FOR_GOOD}"));
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    say(&mut tab, "hang").await;
    tab.next_of("stream_start").await;
    tab.next_of("resync").await;
    for _ in 0..2 {
        let other = server.new_session().await;
        let path = format!("/sessions/{other}/messages");
        let answer = server.post(&path, json!({"content": "hi"})).await;
        assert_eq!(answer["content"], "You said: hi");
    }
    tab.send(&json!({"type": "continue"})).await;
    assert_eq!(tab.next_of("stream_end").await["content"], "You said: hang");
}

/// What a hung run had given to a tool goes on beside it, and ends with it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_tools_of_a_run_that_hangs_end_with_it() {
    let model = FakeModel::start();
    // No other process sleeps for exactly as long.
    let mark = format!("3600.{}", std::process::id());
    let call = json!({"action": "run", "command": format!("echo begun; sleep {mark}")});
    model.script([Step::tool_call("terminal", call)]);
    let house = House::new(&[
        ("OLLAMA_HOST", &model.url()),
        ("NAVI_WATCHDOG_SECONDS", SILENT_SECONDS),
        ("NAVI_SANDBOX_USER", if is_root() { "nobody" } else { "" }),
    ]);
    let fault = format!("session::send=1*off->1*{FOR_GOOD}");
    let server = house.start_with(&[("FAILPOINTS", &fault)]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    say(&mut tab, "sleep").await;
    tab.next_of("tool_output").await;
    let until = Instant::now() + PATIENCE;
    while !sleeps(&mark) {
        assert!(Instant::now() < until, "the tool does not run");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The session's thread stops while its tool works.
    say(&mut tab, "hang").await;
    let told = tab.next_of("resync").await["session"].clone();
    assert_eq!(told["state"], "interrupted", "{told}");
    let result = told["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(result["outcome"], "outcome_unknown", "{told}");
    let until = Instant::now() + PATIENCE;
    while sleeps(&mark) {
        assert!(Instant::now() < until, "the tool outlived its run");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn is_root() -> bool {
    let told = Command::new("id").arg("-u").output().expect("id");
    told.stdout.trim_ascii() == b"0"
}

/// Whether a process sleeps for as long as the mark says.
fn sleeps(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("processes");
    processes.filter_map(Result::ok).any(|process| {
        std::fs::read(process.path().join("cmdline")).is_ok_and(|words| {
            let mut words = words.split(|byte| *byte == 0);
            words
                .next()
                .is_some_and(|program| program.ends_with(b"sleep"))
                && words.next() == Some(mark.as_bytes())
        })
    })
}

#[tokio::test]
async fn services_that_hang_for_a_while_are_told_and_everything_goes_on() {
    let points = [
        ("llm::acquire", "services"),
        ("journal::append", "journal"),
        ("journal::write", "journal"),
    ];
    for (point, thread) in points {
        let model = FakeModel::start();
        let server = hanging(&model, &format!("{point}=2*off->1*pause"));
        let sessions = [server.new_session().await, server.new_session().await];
        let [one, other] = &sessions;
        let mut tabs = [server.tab(one, None).await, server.tab(other, None).await];
        for tab in &mut tabs {
            say(tab, "hi").await;
        }
        warned(&server, &format!("({thread}) does not answer")).await;
        server.arm(&format!("{point}=off")).await;
        for tab in &mut tabs {
            let frames = tab.until("stream_end").await;
            assert_eq!(frames.last().unwrap()["content"], "You said: hi", "{point}");
            assert_gapless(&frames);
        }
        server.says("answers again").await;
        unwarned(&server, &format!("({thread}) does not answer")).await;
        assert_eq!(times(&server, REPLACED), 0, "{}", server.said());
        model.assert_clean();
    }
}

#[tokio::test]
async fn services_that_hang_for_good_end_the_process_and_nothing_is_lost() {
    for point in ["llm::acquire", "journal::written"] {
        let model = FakeModel::start();
        let house = house(&model);
        let mut server = house.start_with(&[("FAILPOINTS", &format!("{point}=1*{FOR_GOOD}"))]);
        let session = server.new_session().await;
        let mut tab = server.tab(&session, None).await;
        tab.send(&json!({"type": "message", "content": "hi", "client_id": "c"}))
            .await;
        let status = server.ended().await;
        assert_eq!(status.code(), Some(HUNG), "{point}: {}", server.said());

        let server = house.start();
        let stored = snapshot(&server, &session).await;
        assert_eq!(stored["state"], "interrupted", "{point}: {stored}");
        assert_eq!(stored["messages"][0]["content"], "hi");
        let mut tab = server.tab(&session, Some(0)).await;
        tab.next_of("run_interrupted").await;
        tab.send(&json!({"type": "continue"})).await;
        assert_eq!(tab.next_of("stream_end").await["content"], "You said: hi");
        model.assert_clean();
    }
}

#[tokio::test]
async fn a_machine_that_sleeps_hangs_nobody() {
    let model = FakeModel::start();
    let server = house(&model).start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    say(&mut tab, "hold gate").await;
    let mut frames = tab.until("stream_delta").await;
    let before = snapshot(&server, &session).await["epoch"].clone();
    // Time is the fault here: longer than a thread may be silent.
    server.signal("STOP");
    tokio::time::sleep(Duration::from_secs(5)).await;
    server.signal("CONT");
    model.release("gate");
    frames.extend(tab.until("stream_end").await);
    assert_eq!(frames.last().unwrap()["content"], "before after ");
    assert_gapless(&frames);
    assert_eq!(snapshot(&server, &session).await["epoch"], before);
    for words in [REPLACED, "a thread hangs"] {
        assert_eq!(times(&server, words), 0, "{}", server.said());
    }
    model.assert_clean();
}
