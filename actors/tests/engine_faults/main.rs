//! A fault in one part touches no other. A program of its own, since fail points are the
//! whole process's.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    unused_imports,
    reason = "tests; the house is shared with the engine's other tests"
)]

mod history;
#[path = "../engine/house/mod.rs"]
mod house;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use navi_actors::llm::LlmError;
use navi_actors::memory::MemoryTimes;
use navi_actors::protocol::error::ErrorCode;

use crate::house::{House, PATIENCE, Say, Setup, in_system, input, kinds, with_house, write_call};

/// The fail points are the whole process's: one test at a time has them, with all that goes on in it.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    // One that failed left nothing there.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A panic at one place, once.
struct Panic(fail::FailScenario<'static>);

impl Panic {
    fn at(point: &'static str) -> Self {
        Self::after(0, point)
    }

    /// The same, after the place was passed so many times.
    fn after(passes: usize, point: &'static str) -> Self {
        let scenario = fail::FailScenario::setup();
        let actions = format!("{passes}*off->1*panic(forced by a test)");
        fail::cfg(point, &actions).unwrap();
        Self(scenario)
    }
}

#[test]
fn a_panic_in_a_tool_is_its_result() {
    let _alone = alone();
    with_house(|house| async move {
        let _panic = Panic::at("tool::call");
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([write_call("a", "x")]);
        house.script([Say::Text("other way".into())]);
        house.say(session, "hi").await;
        let frames = tab.until("stream_end").await;
        let result = frames.iter().find(|f| f["type"] == "tool_call").unwrap();
        assert_eq!(result["success"], false);
        assert!(
            result["result"]
                .as_str()
                .unwrap()
                .contains("mistake in Navi")
        );
    });
}

#[test]
fn a_panic_in_a_run_fails_it_and_the_session_goes_on() {
    let _alone = alone();
    with_house(|house| async move {
        let _panic = Panic::at("run::step");
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.say(session, "hi").await;
        let frames = tab.until("error").await;
        assert_eq!(frames.last().unwrap()["code"], "run_failed");
        house.say(session, "again").await;
        tab.until("stream_end").await;
    });
}

#[test]
fn a_panic_in_a_child_is_a_failed_result_of_its_parent() {
    let _alone = alone();
    with_house(|house| async move {
        // The parent's call of the model and of its tool come first.
        let _panic = Panic::after(2, "run::step");
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([Say::Call(
            "spawn_agent",
            serde_json::json!({"task": "help me"}),
        )]);
        house.script([Say::Text("then alone".into())]);
        house.say(session, "go").await;
        let frames = tab.until("stream_end").await;
        let of = |kind: &str| frames.iter().position(|frame| frame["type"] == kind);
        let (finished, result) = (of("subagent_finished").unwrap(), of("tool_call").unwrap());
        assert!(finished < result, "{:?}", kinds(&frames));
        assert_eq!(frames[finished]["completed_normally"], false);
        assert_eq!(frames[result]["success"], false);
        assert_eq!(frames.last().unwrap()["content"], "then alone");
    });
}

#[test]
fn a_panic_in_a_session_interrupts_its_run_and_the_tab_stays() {
    let _alone = alone();
    with_house(|house| async move {
        let other = house.session().await;
        let mut bystander = house.tab(other, None).await;
        let _panic = Panic::at("session::stream");
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([Say::Hold, Say::Text("never told".into())]);
        house.say(session, "hi").await;
        house.release();
        let frames = tab.until("run_interrupted").await;
        assert_eq!(
            kinds(&frames),
            ["message_accepted", "stream_start", "run_interrupted"]
        );
        house.say(session, "again").await;
        tab.until("stream_end").await;
        house.say(other, "hi").await;
        bystander.until("stream_end").await;
    });
}

#[test]
fn a_start_that_is_not_written_is_refused_and_nobody_hears_what_its_model_said() {
    let _alone = alone();
    with_house(|house| async move {
        let _alone = fail::FailScenario::setup();
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.say(session, "hi").await;
        tab.until("stream_end").await;
        house.engine.snapshot(house.user, session).await.unwrap();
        house.answer("lost words", [Say::Text("unheard".into())]);
        fail::cfg("journal::write", "1*panic(forced by a test)").unwrap();
        let lost = house.engine.send(house.user, session, input("lost words"));
        let refused = lost.await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::StoreUnavailable);

        let again = async {
            // The journal is there again after a while.
            while house
                .engine
                .send(house.user, session, input("again"))
                .await
                .is_err()
            {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, again).await.unwrap();
        let frames = tab.until("stream_end").await;
        assert_eq!(kinds(&frames)[..2], ["message_accepted", "stream_start"]);
        let all = format!("{frames:?}");
        assert!(!all.contains("unheard") && !all.contains("lost"), "{all}");
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        assert_eq!(snapshot.messages.len(), 4);
    });
}

#[test]
fn a_tab_begins_anew_where_the_commit_of_what_it_was_told_failed() {
    let _alone = alone();
    with_house(|house| async move {
        let _scenario = fail::FailScenario::setup();
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([
            Say::Text("told ".into()),
            Say::Hold,
            Say::Text("and never written".into()),
        ]);
        house.say(session, "hi").await;
        tab.until("stream_delta").await;
        fail::cfg("journal::write", "1*panic(forced by a test)").unwrap();
        house.release();
        let frames = tab.until("resync").await;
        let cut_off = frames.iter().find(|frame| frame["type"] == "error");
        assert_eq!(cut_off.unwrap()["code"], "store_unavailable");
        let anew = frames.last().unwrap();
        assert_eq!(anew["reason"], "epoch_changed");
        let messages = anew["session"]["messages"].to_string();
        assert!(!messages.contains("never written"), "{anew}");
        // Its run is closed once there is a journal again.
        if anew["session"]["can_continue"] != true {
            tab.until("run_interrupted").await;
        }
        let stored = house.engine.snapshot(house.user, session).await.unwrap();
        assert!(stored.can_continue);
        let messages = serde_json::to_string(&stored.messages).unwrap();
        assert!(!messages.contains("never written"), "{messages}");
        house.say(session, "again").await;
        tab.until("stream_end").await;
    });
}

#[test]
fn a_panic_in_a_model_actor_is_told_and_the_run_goes_on() {
    let _alone = alone();
    with_house(|house| async move {
        let _panic = Panic::at("llm::acquire");
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.say(session, "hi").await;
        let frames = tab.until("stream_end").await;
        assert!(frames.iter().any(|f| f["reason"] == "retry"));
        house.say(session, "again").await;
        tab.until("stream_end").await;
    });
}

#[test]
fn a_call_that_fails_before_its_first_chunk_is_tried_again() {
    let _alone = alone();
    with_house(|house| async move {
        let _no_panics = fail::FailScenario::setup();
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([Say::Fail(LlmError::Busy {
            status: 503,
            message: "loading".into(),
            retry_after: None,
        })]);
        house.script([Say::Text("now".into())]);
        house.say(session, "hi").await;
        let frames = tab.until("stream_end").await;
        assert!(frames.iter().any(|f| f["reason"] == "retry"));
        assert_eq!(frames.last().unwrap()["content"], "now");
    });
}

#[test]
fn an_error_in_mid_stream_keeps_the_text_and_is_not_tried_again() {
    let _alone = alone();
    with_house(|house| async move {
        let _no_panics = fail::FailScenario::setup();
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([Say::Text("half".into()), Say::Fail(LlmError::EndedEarly)]);
        house.say(session, "hi").await;
        let frames = tab.until("error").await;
        assert_eq!(frames.last().unwrap()["code"], "backend_stream_broken");
        assert_eq!(house.requests().len(), 1);
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        assert_eq!(
            snapshot.messages.last().unwrap().content.as_deref(),
            Some("half")
        );
    });
}

#[test]
fn a_panic_in_the_memory_leaves_the_session_unread_and_is_survived() {
    let _alone = alone();
    let times = MemoryTimes {
        idle_after: Duration::from_millis(500),
        ..MemoryTimes::default()
    };
    in_system(|runtime, dir| async move {
        let _panic = Panic::at("memory::read");
        let setup = Setup {
            memory: times,
            ..Setup::default()
        };
        let house = House::open_with(&dir, runtime, setup).await;
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([Say::Text("nice".into())]);
        house.say(session, "my sister is Olena").await;
        tab.until("stream_end").await;
        let facts = r#"[{"category": "people", "key": "sister_name", "value": "Olena"}]"#;
        house.whole([Say::Text(facts.into())]);
        let memory = house.engine.memory();
        let read = async {
            while memory.facts(house.user).await.unwrap().is_empty() {
                memory.read_idle(house.user);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, read).await.unwrap();
    });
}
