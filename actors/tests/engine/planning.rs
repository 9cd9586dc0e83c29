//! SPEC section 4: what planning does to a run, row by row.

use navi_actors::protocol::chat::ChatMessage;
use navi_actors::protocol::message::Role;
use serde_json::json;

use crate::house::{House, Say, Setup, first, kinds, plain, profile, with_setup, write_call};

/// Words of the three questions by which a script tells them apart.
pub(crate) const ANALYSE: &str = "DIRECT";
pub(crate) const WRITE: &str = "TOOL: tool_name";

fn planner() -> Setup {
    let mut profile = profile("plain");
    profile.flags.planning_enabled = true;
    Setup {
        profiles: vec![profile],
        ..Setup::default()
    }
}

fn says(text: &str) -> [Say; 1] {
    [Say::Text(text.into())]
}

const PLAN: &str = "## Milestone 1: notes\n1. Read the notes - TOOL: filesystem\n2. Compare them - AGENT: plain\n3. Fly there - TOOL: teleport\n4. Sum up - SELF";

fn scripted_plan(house: &House) {
    house.answer(ANALYSE, says("Several files.\nREFLECT: no"));
    house.answer(WRITE, says(PLAN));
}

#[test]
fn a_direct_request_has_one_call_and_no_plan() {
    with_setup(planner(), |house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.answer(ANALYSE, says("DIRECT"));
        house.script(says("four"));
        house.say(session, "how much is two and two?").await;
        let frames = tab.until("stream_end").await;
        assert!(!kinds(&frames).contains(&"plan_ready".to_owned()));
        let planning = &house.requests()[0];
        assert!(!planning.streamed && !planning.think && planning.tools.is_empty());
        assert!((planning.temperature - 0.3).abs() < 1e-6);
    });
}

#[test]
fn what_can_only_be_simple_is_answered_without_a_question_of_planning() {
    with_setup(planner(), |house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.script(says("seven"));
        house.say(session, "3+4?").await;
        tab.until("stream_end").await;
        let asked = house.requests();
        assert!(asked[0].streamed, "{:?}", asked[0].messages);
    });
}

#[test]
fn a_plan_is_a_message_an_event_and_the_todo_list() {
    with_setup(planner(), |house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        scripted_plan(&house);
        house.script(says("all done"));
        house.say(session, "compare all notes").await;
        let frames = tab.until("stream_end").await;
        assert_eq!(
            kinds(&frames),
            [
                "message_accepted",
                "stream_start",
                "plan_ready",
                "todo_updated",
                "stream_delta",
                "stream_end"
            ]
        );
        let plan = first(&frames, "plan_ready");
        let executors: Vec<_> = plan["steps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| &s["executor"])
            .collect();
        assert_eq!(
            executors,
            [
                &json!("tool"),
                &json!("agent"),
                &json!("self"),
                &json!("self")
            ]
        );
        let items = first(&frames, "todo_updated")["items"].as_array().unwrap();
        assert_eq!(items.len(), executors.len());
        assert_eq!(items[0]["id"], 1);
        assert_eq!(items[0]["text"], "Read the notes");
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        let roles: Vec<_> = snapshot
            .messages
            .iter()
            .map(|m| (m.role, m.is_plan))
            .collect();
        assert_eq!(
            roles,
            [
                (Role::User, false),
                (Role::Assistant, true),
                (Role::Assistant, false)
            ]
        );
        assert_eq!(json!(snapshot.messages[1].id), plan["message_id"]);
        assert_eq!(snapshot.plan.unwrap().steps.len(), 4);
        // The model reads it as its own words.
        let request = house.asked().pop().unwrap();
        assert!(request.messages.iter().any(|message| matches!(
            &**message,
            ChatMessage::Assistant { content, .. } if content.contains("Read the notes")
        )));
    });
}

#[test]
fn where_steps_are_to_be_proven_a_call_begins_one_and_the_model_ends_it() {
    let mut setup = planner();
    setup.profiles[0].flags.step_validation_enabled = true;
    with_setup(setup, |house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.answer(ANALYSE, says("Two files.\nREFLECT: no"));
        let plan = "1. Write the first - TOOL: filesystem\n2. Write the second - TOOL: filesystem";
        house.answer(WRITE, says(plan));
        house.script([write_call("a.txt", "x")]);
        house.script([write_call("b.txt", "x")]);
        house.script([Say::Call(
            "todo",
            json!({"action": "mark", "ids": [1], "status": "done", "validation": "a.txt is there"}),
        )]);
        house.script(says("all done"));
        house.say(session, "write both notes").await;
        let frames = tab.until("stream_end").await;
        let lists = frames.iter().filter(|it| it["type"] == "todo_updated");
        let statuses: Vec<_> = lists
            .map(|list| json!([list["items"][0]["status"], list["items"][1]["status"]]))
            .collect();
        assert_eq!(
            statuses,
            [
                json!(["pending", "pending"]),
                json!(["in_progress", "pending"]),
                json!(["in_progress", "in_progress"]),
                json!(["done", "in_progress"]),
            ]
        );
        let told = format!("{:?}", house.asked()[0].messages);
        assert!(told.contains("each as done with a validation"), "{told}");
    });
}

#[test]
fn the_review_runs_only_where_the_flag_and_the_analysis_want_it() {
    for (flag, reflect, calls) in [(true, "yes", 3), (true, "no", 2), (false, "yes", 2)] {
        let mut setup = planner();
        setup.profiles[0].flags.planning_phase2_enabled = flag;
        with_setup(setup, |house| async move {
            let session = house.session().await;
            let mut tab = house.tab(session, None).await;
            house.answer(ANALYSE, says(&format!("Hard.\nREFLECT: {reflect}")));
            if calls == 3 {
                house.answer(
                    "simpler",
                    says("Risks: the moon is far.\nSimpler: look up."),
                );
            }
            house.answer(WRITE, says("1. Look up - SELF"));
            house.say(session, "fly to the moon").await;
            tab.until("stream_end").await;
            let mut whole = house.requests();
            whole.retain(|request| !request.streamed);
            assert_eq!(whole.len(), calls, "{flag} {reflect}");
            let review_told =
                format!("{:?}", whole[calls - 1].messages).contains("the moon is far");
            assert_eq!(review_told, calls == 3);
        });
    }
}

#[test]
fn a_reply_without_numbered_steps_is_no_plan() {
    with_setup(planner(), |house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.answer(ANALYSE, says("Hm.\nREFLECT: no"));
        house.answer(WRITE, says("First this, then that."));
        house.say(session, "do things").await;
        let frames = tab.until("stream_end").await;
        assert!(!kinds(&frames).contains(&"plan_ready".to_owned()));
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        assert_eq!((snapshot.messages.len(), snapshot.plan), (2, None));
    });
}

#[test]
fn a_failure_of_planning_costs_the_plan_and_never_the_run() {
    with_setup(planner(), |house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.answer(
            ANALYSE,
            [Say::Fail(navi_actors::llm::LlmError::Malformed {
                message: "nonsense".into(),
            })],
        );
        house.script(says("still here"));
        house.say(session, "do things").await;
        let frames = tab.until("stream_end").await;
        assert_eq!(frames.last().unwrap()["content"], "still here");
    });
}

#[test]
fn a_plain_run_does_not_plan() {
    with_setup(planner(), |house| async move {
        let session = house.session().await;
        house.script(says("plain"));
        let answer = house
            .engine
            .run_plain(house.user, session, plain("do things"))
            .await;
        assert_eq!(answer.unwrap().content, "plain");
        assert!(house.requests()[0].streamed);
    });
}

#[test]
fn stop_ends_a_silent_planning_call() {
    with_setup(planner(), |house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.answer(ANALYSE, [Say::Silence]);
        house.say(session, "do things").await;
        house.requests_reach(1).await;
        house.engine.stop(house.user, session).await.unwrap();
        tab.until("stream_stopped").await;
        house.streams_dropped(1).await;
    });
}
