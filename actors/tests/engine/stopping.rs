//! Stop, and the shutdown.

use std::time::{Duration, Instant};

use navi_actors::llm::LlmError;
use navi_actors::protocol::message::MessageState;
use navi_actors::services::RunLimits;
use serde_json::json;

use crate::house::{
    House, Say, Setup, Tab, appears, in_system, kinds, with_house, with_setup, write_call,
};

async fn stop_takes_effect(house: &House, session: navi_actors::protocol::ids::SessionId) {
    let mut tab = house.tab(session, None).await;
    assert!(house.engine.stop(house.user, session).await.unwrap());
    tab.until("stream_stopped").await;
}

#[test]
fn stop_ends_a_silent_backend() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([Say::Silence]);
        house.say(session, "hi").await;
        tab.until("stream_start").await;
        while house.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        stop_takes_effect(&house, session).await;
        house.streams_dropped(1).await;
    });
}

#[test]
fn stop_in_mid_text_keeps_what_was_said() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([Say::Text("half a sen".into()), Say::Silence]);
        house.say(session, "hi").await;
        tab.until("stream_delta").await;
        stop_takes_effect(&house, session).await;
        house.streams_dropped(1).await;
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        let last = snapshot.messages.last().unwrap();
        assert_eq!(last.content.as_deref(), Some("half a sen"));
        assert_eq!(last.state, MessageState::Stopped);
        house.say(session, "again").await;
        tab.until("stream_end").await;
    });
}

#[test]
fn stop_ends_a_tool_that_would_not_end() {
    with_house(|house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([Say::Call("sleep", json!({})), write_call("never.txt", "x")]);
        house.say(session, "hi").await;
        tab.until("tool_started").await;
        let workspace = house.dir.join("session_files").join(session.to_string());
        appears(&workspace.join("began")).await;
        stop_takes_effect(&house, session).await;
        let frames = tab.until("stream_stopped").await;
        let outcomes: Vec<_> = frames
            .iter()
            .filter(|frame| frame["type"] == "tool_call")
            .map(|frame| frame["outcome"].as_str().unwrap())
            .collect();
        assert_eq!(outcomes, ["stopped", "stopped"]);
        appears(&workspace.join("ended")).await;
        assert!(!workspace.join("never.txt").exists());
    });
}

#[test]
fn stop_without_a_run_says_so() {
    with_house(|house| async move {
        let session = house.session().await;
        assert!(!house.engine.stop(house.user, session).await.unwrap());
    });
}

#[test]
fn a_shutdown_interrupts_and_the_next_start_goes_on() {
    in_system(|runtime, dir| async move {
        let house = House::open(&dir, runtime.clone()).await;
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([write_call("a", "x")]);
        house.script([Say::Text("so far".into()), Say::Silence]);
        house.say(session, "hi").await;
        tab.until("stream_delta").await;
        house.engine.shutdown(Duration::from_secs(8)).await;
        let frames = tab.until("run_interrupted").await;
        assert_eq!(frames.last().unwrap()["can_continue"], true);
        assert!(tab.ended().await);

        let house = House::open(&dir, runtime).await;
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        assert!(snapshot.can_continue);
        assert_eq!(
            snapshot.messages.last().unwrap().content.as_deref(),
            Some("so far")
        );
        let mut tab = house.tab(session, None).await;
        house
            .engine
            .continue_run(house.user, session)
            .await
            .unwrap();
        let frames = tab.until("stream_end").await;
        assert_eq!(
            kinds(&frames),
            ["stream_start", "stream_delta", "stream_end"]
        );
    });
}

#[test]
fn a_pause_before_a_retry_ends_when_the_runs_time_is_up() {
    let runs = RunLimits {
        time: Duration::from_secs(5),
        ..RunLimits::default()
    };
    let setup = Setup {
        runs,
        ..Setup::default()
    };
    with_setup(setup, |house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script([Say::Fail(LlmError::Busy {
            status: 429,
            message: "come again".into(),
            // It is given half a minute.
            retry_after: Some(Duration::from_secs(3600)),
        })]);
        house.script([Say::Text("so far, nothing".into())]);
        let asked = Instant::now();
        house.say(session, "hi").await;
        let frames = tab.until("stream_end").await;
        assert!(asked.elapsed() < Duration::from_secs(20), "{frames:#?}");
        let end = frames.last().unwrap();
        assert_eq!(end["content"], "so far, nothing");
        assert_eq!(end["completed"], false);
    });
}

/// A run waits for the model, and when its time is up once more, to say how things stand.
async fn its_time_goes_by_in_line(tab: &mut Tab, is_subagent: bool) {
    for _ in 0..2 {
        let waiting = tab.until("run_waiting").await.pop().unwrap();
        assert_eq!(waiting["reason"], "lane", "{waiting}");
        assert_eq!(waiting["is_subagent"] == true, is_subagent, "{waiting}");
    }
}

#[test]
fn a_runs_time_goes_by_while_it_waits_for_the_model() {
    let mut setup = Setup::default();
    setup.runs.time = Duration::from_secs(12);
    with_setup(setup, |house| async move {
        let (early, late) = (house.session().await, house.session().await);
        let mut first = house.tab(early, None).await;
        let mut second = house.tab(late, None).await;
        let write = write_call("a.txt", "x");
        house.script([Say::Text("Well,".into()), Say::Hold, write]);
        house.say(early, "hi").await;
        first.until("stream_delta").await;
        // So much later the other one's time is up.
        tokio::time::sleep(Duration::from_secs(5)).await;
        house.script([Say::Text("Hm".into()), Say::Silence]);
        house.say(late, "me too").await;
        second.until("run_waiting").await;
        // The other one is next, and keeps the model.
        house.release();
        its_time_goes_by_in_line(&mut first, false).await;
        for session in [early, late] {
            assert!(house.engine.stop(house.user, session).await.unwrap());
        }
        first.until("stream_stopped").await;
    });
}

#[test]
fn a_subagents_time_goes_by_while_it_waits_for_the_model() {
    let runs = RunLimits {
        child_time: Duration::from_secs(5),
        ..RunLimits::default()
    };
    let setup = Setup {
        runs,
        ..Setup::default()
    };
    with_setup(setup, |house| async move {
        let (parent, other) = (house.session().await, house.session().await);
        let mut first = house.tab(parent, None).await;
        let mut second = house.tab(other, None).await;
        let spawn = Say::Call("spawn_agent", json!({"task": "wait in line"}));
        house.script([Say::Text("Well,".into()), Say::Hold, spawn]);
        house.say(parent, "hi").await;
        first.until("stream_delta").await;
        // The other one is next, and keeps the model.
        house.script([Say::Text("Hm".into()), Say::Silence]);
        house.say(other, "me too").await;
        second.until("run_waiting").await;
        house.release();
        first.until("subagent_started").await;
        its_time_goes_by_in_line(&mut first, true).await;
        for session in [parent, other] {
            assert!(house.engine.stop(house.user, session).await.unwrap());
        }
        first.until("stream_stopped").await;
    });
}
