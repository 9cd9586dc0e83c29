//! Whatever the model says, stops, crashes or fails: each tool call has exactly one result, in
//! order, in `messages` and in what is sent. The whole engine, and a store that survives it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use navi_actors::domain::permissions::Memory;
use navi_actors::llm::LlmError;
use navi_actors::protocol::chat::ChatMessage;
use navi_actors::protocol::command::SendMode;
use navi_actors::protocol::ids::{CallId, SessionId};
use navi_actors::protocol::message::{Message, Role, ToolOutcome};
use navi_actors::protocol::prompt::PromptMessage;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use crate::alone;
use crate::house::{House, Say, Setup, Tab, in_system, input, write_call};

/// A run that says nothing for so long is stopped: a tool or a model that never ends.
const QUIET: Duration = Duration::from_millis(60);

/// What comes between a run and its end, and after which of its frames.
#[derive(Clone, Debug)]
enum Mishap {
    None,
    Stop,
    /// The process is gone; what was committed is not.
    Crash,
    Shutdown,
    Steer,
    /// A message that waits for its own run.
    Queue,
}

#[derive(Clone, Debug)]
struct Turn {
    replies: Vec<Vec<Say>>,
    mishap: Mishap,
    after: usize,
    /// A panic in Navi's own code: where, and at which passing.
    panic: Option<(&'static str, usize)>,
    /// Whether it goes on from what was cut off, where it can, before it asks anew.
    goes_on: bool,
}

fn say() -> impl Strategy<Value = Say> {
    let call = |name: &'static str, args: Value| Just(Say::Call(name, args));
    prop_oneof![
        4 => (0..9).prop_map(|n| write_call(&format!("{n}.txt"), "x")),
        2 => (0..9).prop_map(|n| Say::Call("filesystem", json!({"action": "read", "path": format!("{n}.txt")}))),
        1 => call("todo", json!({"action": "add", "texts": ["one", "two"]})),
        2 => call("spawn_agent", json!({"task": "help"})),
        1 => call("sleep", json!({})),
        1 => call("switch_profile", json!({"profile_id": "nobody"})),
        1 => call("no_such_tool", json!({"a": 1})),
        1 => call("filesystem", json!({"action": "fly"})),
        1 => call("filesystem", json!("no {json")),
        1 => call("", json!({})),
        2 => "[a-zї ]{0,12}".prop_map(Say::Text),
        1 => Just(Say::Text(r#"{"name": "todo", "arguments": {"action": "list"}}"#.into())),
        1 => Just(Say::Thinking("hm".into())),
        1 => Just(Say::Silence),
        1 => Just(Say::Fail(LlmError::EndedEarly)),
        1 => Just(Say::Fail(LlmError::Malformed { message: "no".into() })),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    let mishap = prop_oneof![
        3 => Just(Mishap::None),
        2 => Just(Mishap::Stop),
        3 => Just(Mishap::Crash),
        1 => Just(Mishap::Shutdown),
        1 => Just(Mishap::Steer),
        1 => Just(Mishap::Queue),
    ];
    let panics = ["run::step", "tool::call", "session::stream", "llm::acquire"];
    let panic = prop::option::weighted(0.25, (prop::sample::select(panics.to_vec()), 0..4_usize));
    let replies = prop::collection::vec(prop::collection::vec(say(), 0..5), 0..6);
    (replies, mishap, 1..14_usize, panic, any::<bool>()).prop_map(
        |(replies, mishap, after, panic, goes_on)| Turn {
            replies,
            mishap,
            after,
            panic,
            goes_on,
        },
    )
}

/// Goes through the turns, and holds what every one of them leaves behind to the rule.
async fn live(turns: Vec<Turn>, dir: &Path, runtime: Arc<tokio::runtime::Runtime>) {
    let open = |dir: std::path::PathBuf| {
        let runtime = Arc::clone(&runtime);
        async move { House::open_with(&dir, runtime, Setup::default()).await }
    };
    let mut home = dir.join("0");
    std::fs::create_dir(&home).unwrap();
    let mut house = open(home.clone()).await;
    let session = house.session().await;
    for (number, turn) in turns.into_iter().enumerate() {
        let scenario = fail::FailScenario::setup();
        if let Some((point, passing)) = turn.panic {
            fail::cfg(point, &format!("{passing}*off->1*panic(forced by a test)")).unwrap();
        }
        let mut tab = house.tab(session, None).await;
        for reply in turn.replies {
            house.script(reply);
        }
        let goes_on = turn.goes_on && house.engine.continue_run(house.user, session).await.is_ok();
        if !goes_on {
            // A session that a panic takes down answers that this was not stored.
            let _ = house.engine.send(house.user, session, input("go")).await;
        }
        let ended = watch(&house, &mut tab, session, turn.after, &turn.mishap).await;
        drop(scenario);
        check_requests(&house);
        match turn.mishap {
            Mishap::Crash => {
                let next = dir.join((number + 1).to_string());
                copy_store(&home, &next);
                house.engine.shutdown(Duration::ZERO).await;
                home = next;
                house = open(home.clone()).await;
            }
            Mishap::Shutdown => {
                house.engine.shutdown(Duration::from_secs(1)).await;
                house = open(home.clone()).await;
            }
            Mishap::None | Mishap::Stop | Mishap::Steer | Mishap::Queue => assert!(ended),
        }
        check_session(&house, session).await;
    }
    // Everything that was left behind is taken by the next call of the model.
    let mut tab = house.tab(session, None).await;
    settle(&house, &mut tab, session).await;
    house.script([Say::Text("fine".into())]);
    house.say(session, "and now?").await;
    house.requests_reach(1).await;
    settle(&house, &mut tab, session).await;
    check_requests(&house);
    check_session(&house, session).await;
    assert!(!house.requests().is_empty());
    house.engine.shutdown(Duration::from_secs(1)).await;
}

/// Watches until the session rests, and does the mishap on the way. False where it was left
/// before that.
async fn watch(
    house: &House,
    tab: &mut Tab,
    session: SessionId,
    after: usize,
    mishap: &Mishap,
) -> bool {
    for _ in 0..after {
        if tokio::time::timeout(QUIET, tab.next()).await.is_err() {
            break;
        }
    }
    let engine = &house.engine;
    let more = |mode| {
        let mut more = input("more");
        more.mode = mode;
        engine.send(house.user, session, more)
    };
    match mishap {
        Mishap::Crash | Mishap::Shutdown => return false,
        Mishap::Stop => drop(engine.stop(house.user, session).await),
        Mishap::Steer => drop(more(SendMode::Steer).await),
        Mishap::Queue => drop(more(SendMode::Queue).await),
        Mishap::None => {}
    }
    settle(house, tab, session).await;
    true
}

/// Reads on until nothing goes any more, and stops what would never end.
async fn settle(house: &House, tab: &mut Tab, session: SessionId) {
    for _ in 0..200 {
        while tokio::time::timeout(QUIET, tab.next()).await.is_ok() {}
        match house.engine.snapshot(house.user, session).await {
            Ok(snapshot) if snapshot.run.is_none() && snapshot.queue.is_empty() => return,
            Ok(_) => drop(house.engine.stop(house.user, session).await),
            // It is being read again.
            Err(_) => {}
        }
    }
    panic!("the session never rests");
}

/// The state of the disk at this moment, as a crash leaves it.
fn copy_store(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    // Small enough that nothing is moved from the journal to the database meanwhile.
    for file in ["navi.db", "navi.db-wal"] {
        std::fs::copy(from.join(file), to.join(file)).unwrap();
    }
}

async fn check_session(house: &House, session: SessionId) {
    let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
    if snapshot.run.is_none() {
        check(snapshot.messages.iter().map(link_of));
    }
    let context = house
        .engine
        .context(house.user, session, Memory::Shown)
        .await
        .unwrap();
    check(context.messages.iter().map(sent_link));
}

fn check_requests(house: &House) {
    for request in house.requests() {
        check(request.messages.iter().map(sent_link));
    }
}

/// What matters of a message here.
#[derive(Debug)]
enum Link {
    Calls(Vec<CallId>),
    Result(Option<CallId>),
}

fn link_of(message: &Message) -> Link {
    match &message.tool_call_id {
        Some(id) => Link::Result(Some(id.clone())),
        None => Link::Calls(
            message
                .tool_calls
                .iter()
                .map(|call| call.id.clone())
                .collect(),
        ),
    }
}

fn sent_link(message: &PromptMessage) -> Link {
    match &**message {
        ChatMessage::Tool { call_id, .. } => Link::Result(Some(call_id.clone())),
        ChatMessage::Assistant { tool_calls, .. } => {
            Link::Calls(tool_calls.iter().map(|call| call.id.clone()).collect())
        }
        ChatMessage::System { .. } | ChatMessage::User { .. } => Link::Calls(Vec::new()),
    }
}

fn check(links: impl Iterator<Item = Link>) {
    let links: Vec<Link> = links.collect();
    let mut open = Vec::new();
    for link in &links {
        match link {
            Link::Result(id) => assert_eq!(open.pop(), id.clone(), "{links:#?}"),
            Link::Calls(calls) => {
                assert!(open.is_empty(), "calls without results: {links:#?}");
                open = calls.iter().rev().cloned().collect();
            }
        }
    }
    assert!(open.is_empty(), "calls without results: {links:#?}");
}

#[test]
fn each_call_has_exactly_one_result_whatever_happens() {
    let _alone = alone();
    let config = Config {
        cases: 12,
        failure_persistence: None,
        // Each case is a whole engine: the failing one is told as it is.
        max_shrink_iters: 0,
        ..Config::default()
    };
    let seed = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, seed);
    let turns = prop::collection::vec(turn(), 1..4);
    let outcome = runner.run(&turns, |turns| {
        in_system(|runtime, dir| async move { live(turns, &dir, runtime).await });
        Ok(())
    });
    outcome.unwrap();
}

/// It waits for its turn behind a call that goes on.
#[test]
fn a_refused_call_never_began_though_a_crash_came_before_its_result() {
    let _alone = alone();
    in_system(|runtime, dir| async move {
        let _no_panics = fail::FailScenario::setup();
        let (before, after) = (dir.join("before"), dir.join("after"));
        std::fs::create_dir(&before).unwrap();
        let house = House::open_with(&before, Arc::clone(&runtime), Setup::default()).await;
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([
            Say::Call("spawn_agent", json!({"task": "hang on"})),
            Say::Call("no_such_tool", json!({})),
        ]);
        house.answer("hang on", [Say::Silence]);
        house.say(session, "go").await;
        let told = tab.until("subagent_started").await;
        let begun = told.iter().filter(|frame| frame["type"] == "tool_started");
        let begun: Vec<&Value> = begun.map(|frame| &frame["tool"]).collect();
        assert_eq!(begun, ["spawn_agent"]);
        copy_store(&before, &after);
        house.engine.shutdown(Duration::ZERO).await;

        let house = House::open_with(&after, runtime, Setup::default()).await;
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        let results = snapshot.messages.iter().filter(|it| it.role == Role::Tool);
        let outcomes: Vec<Option<ToolOutcome>> = results.map(|it| it.outcome).collect();
        assert_eq!(outcomes.len(), 2);
        assert_eq!(outcomes[1], Some(ToolOutcome::Failed));
        assert!(
            snapshot
                .unknown_calls
                .iter()
                .all(|call| call.tool != "no_such_tool")
        );
        house.engine.shutdown(Duration::ZERO).await;
    });
}
