//! SPEC section 5: the tool loop, row by row, seen in one trace each.

use navi_actors::domain::context::Notes;
use navi_actors::protocol::chat::ChatRequest;
use navi_actors::protocol::command::{Decision, SendMode, UserInput};
use navi_actors::protocol::ids::SessionId;
use navi_actors::protocol::limits::PersonLimits;
use navi_actors::protocol::message::{MessageState, Role};
use serde_json::{Value, json};

use crate::house::{
    House, Say, Setup, Tab, first, in_system, kinds, profile, with_house, with_setup, write_call,
};

fn says(text: &str) -> [Say; 1] {
    [Say::Text(text.into())]
}

async fn begin(house: &House) -> (SessionId, Tab) {
    let session = house.session().await;
    let tab = house.tab(session, None).await;
    (session, tab)
}

/// A profile that may call tools once, and one that it can go on as.
fn brief_and_gardener() -> Setup {
    let mut brief = profile("plain");
    brief.max_iterations = 1;
    Setup {
        profiles: vec![brief, profile("gardener")],
        ..Setup::default()
    }
}

fn switch_to(profile_id: &str) -> Say {
    Say::Call("switch_profile", json!({ "profile_id": profile_id }))
}

/// The transient notes of a request.
fn notes(request: &ChatRequest) -> String {
    let notes = Notes::take(&mut request.messages.clone());
    notes.map_or_else(String::new, |notes| notes.text().to_owned())
}

fn results(frames: &[Value]) -> Vec<&str> {
    let ended = frames.iter().filter(|frame| frame["type"] == "tool_call");
    ended
        .map(|frame| frame["result"].as_str().unwrap())
        .collect()
}

#[test]
fn the_budget_is_told_once_some_is_used_and_is_not_stored() {
    let mut profile = profile("plain");
    profile.max_iterations = 10;
    let setup = Setup {
        profiles: vec![profile],
        ..Setup::default()
    };
    with_setup(setup, |house| async move {
        let (session, mut tab) = begin(&house).await;
        house.script([write_call("a.txt", "x")]);
        house.script(says("done"));
        house.say(session, "go").await;
        tab.until("stream_end").await;
        let asked = house.asked();
        assert_eq!(notes(&asked[0]), "");
        assert!(
            notes(&asked[1]).contains("iterations left"),
            "{}",
            notes(&asked[1])
        );
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        assert!(!format!("{:?}", snapshot.messages).contains("iterations left"));
    });
}

#[test]
fn the_goal_is_repeated_every_so_often() {
    let mut profile = profile("plain");
    profile.max_iterations = 10;
    profile.flags.goal_anchoring_interval = 2;
    let setup = Setup {
        profiles: vec![profile],
        ..Setup::default()
    };
    with_setup(setup, |house| async move {
        let (session, mut tab) = begin(&house).await;
        for n in 0..4 {
            house.script([write_call(&format!("{n}.txt"), "x")]);
        }
        house.script(says("done"));
        house.say(session, "paint the fence green").await;
        tab.until("stream_end").await;
        let with_goal: Vec<bool> = house
            .asked()
            .iter()
            .map(|request| {
                notes(request).contains("[goal]")
                    && notes(request).contains("paint the fence green")
            })
            .collect();
        assert_eq!(with_goal, [false, false, true, false, true]);
    });
}

#[test]
fn a_stalled_run_is_warned_and_the_third_same_call_is_refused() {
    let mut profile = profile("plain");
    profile.max_iterations = 10;
    profile.flags.anti_stall_threshold = 3;
    let setup = Setup {
        profiles: vec![profile],
        ..Setup::default()
    };
    with_setup(setup, |house| async move {
        let (session, mut tab) = begin(&house).await;
        for _ in 0..3 {
            house.script([Say::Call("filesystem", json!({"action": "list"}))]);
        }
        house.script(says("I am stuck"));
        house.say(session, "look").await;
        let frames = tab.until("stream_end").await;
        let ended: Vec<_> = frames
            .iter()
            .filter(|frame| frame["type"] == "tool_call")
            .map(|frame| frame["success"].as_bool().unwrap())
            .collect();
        assert_eq!(ended, [true, true, false], "{:?}", results(&frames));
        let warned: Vec<bool> = house
            .asked()
            .iter()
            .map(|r| notes(r).contains("[stall]"))
            .collect();
        assert_eq!(warned, [false, false, false, true]);
    });
}

#[test]
fn a_step_is_only_done_with_a_validation_where_the_flag_wants_it() {
    let mut profile = profile("plain");
    profile.flags.step_validation_enabled = true;
    let setup = Setup {
        profiles: vec![profile],
        ..Setup::default()
    };
    with_setup(setup, |house| async move {
        let (session, mut tab) = begin(&house).await;
        house.script([Say::Call(
            "todo",
            json!({"action": "add", "texts": ["dig"]}),
        )]);
        house.script([Say::Call(
            "todo",
            json!({"action": "mark", "ids": [1], "status": "done"}),
        )]);
        house.script([Say::Call(
            "todo",
            json!({"action": "mark", "ids": [1], "status": "done", "validation": "the hole is 2 m deep"}),
        )]);
        house.script(says("dug"));
        house.say(session, "dig").await;
        let frames = tab.until("stream_end").await;
        assert!(
            results(&frames)[1].contains("validation"),
            "{:?}",
            results(&frames)
        );
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        assert_eq!(
            snapshot.todo[0].note.as_deref(),
            Some("the hole is 2 m deep")
        );
    });
}

#[test]
fn a_failed_step_queues_a_replan_for_the_next_iteration_alone() {
    let mut profile = profile("plain");
    profile.flags.adaptive_replan_enabled = true;
    let setup = Setup {
        profiles: vec![profile],
        ..Setup::default()
    };
    with_setup(setup, |house| async move {
        let (session, mut tab) = begin(&house).await;
        house.script([Say::Call(
            "todo",
            json!({"action": "add", "texts": ["swim across"]}),
        )]);
        house.script([Say::Call(
            "todo",
            json!({"action": "mark", "ids": [1], "status": "failed", "note": "too cold"}),
        )]);
        house.script([write_call("boat.txt", "x")]);
        house.script(says("took the boat"));
        house.say(session, "cross").await;
        tab.until("stream_end").await;
        let asked = house.asked();
        let replans: Vec<bool> = asked
            .iter()
            .map(|r| notes(r).contains("[replan]"))
            .collect();
        assert_eq!(replans, [false, false, true, false]);
        assert!(notes(&asked[2]).contains("swim across"));
    });
}

#[test]
fn a_call_that_leaked_into_the_text_is_taken_as_a_call_and_never_shown() {
    with_house(|house| async move {
        let (session, mut tab) = begin(&house).await;
        let call = r#"{"name": "filesystem", "arguments": {"action": "write", "path": "a.txt", "content": "x"}}"#;
        let (head, tail) = call.split_at(30);
        house.script([Say::Text(head.into()), Say::Text(tail.into())]);
        house.script(says("{\"this\": \"is an answer\"}"));
        house.say(session, "write").await;
        let frames = tab.until("stream_end").await;
        assert_eq!(
            kinds(&frames),
            [
                "message_accepted",
                "stream_start",
                "tool_started",
                "tool_call",
                "stream_delta",
                "stream_end"
            ]
        );
        assert!(
            house
                .dir
                .join("session_files")
                .join(session.to_string())
                .join("a.txt")
                .exists()
        );
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        assert_eq!(snapshot.messages[1].content, None);
        assert_eq!(snapshot.messages[1].tool_calls.len(), 1);
    });
}

#[test]
fn a_switch_of_profile_holds_from_the_next_iteration_and_is_told_before_its_call_ends() {
    let setup = Setup {
        profiles: vec![profile("plain"), profile("gardener")],
        ..Setup::default()
    };
    with_setup(setup, |house| async move {
        let (session, mut tab) = begin(&house).await;
        house.script([switch_to("gardener")]);
        house.script(says("now I garden"));
        house.say(session, "garden!").await;
        let frames = tab.until("stream_end").await;
        assert_eq!(
            kinds(&frames)[2..5],
            ["tool_started", "profile_switched", "tool_call"].map(str::to_owned)
        );
        assert_eq!(
            first(&frames, "profile_switched")["profile_name"],
            "GARDENER"
        );
        let asked = house.asked();
        let prompt = |request: &ChatRequest| format!("{:?}", request.messages[0]);
        assert!(prompt(&asked[0]).contains("You are plain"));
        assert!(prompt(&asked[1]).contains("You are gardener"));
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        assert_eq!(snapshot.summary.profile_id, "gardener");
    });
}

#[test]
fn the_limit_is_that_of_the_profile_that_was_switched_to() {
    with_setup(brief_and_gardener(), |house| async move {
        let (session, mut tab) = begin(&house).await;
        house.script([switch_to("gardener")]);
        house.script(says("now I garden"));
        house.say(session, "garden!").await;
        let end = tab.until("stream_end").await.pop().unwrap();
        assert_eq!(end["completed"], true);
        assert!(!house.asked()[1].tools.is_empty());
    });
}

#[test]
fn a_run_that_goes_on_after_a_restart_has_the_limit_of_the_profile_it_switched_to() {
    in_system(|runtime, dir| async move {
        let house = House::open_with(&dir, runtime.clone(), brief_and_gardener()).await;
        let (session, mut tab) = begin(&house).await;
        let send = Say::Call("send", json!({"to": "bob"}));
        house.script([switch_to("gardener"), send]);
        house.say(session, "write to bob as a gardener").await;
        tab.until("approval_requested").await;
        house
            .engine
            .shutdown(std::time::Duration::from_secs(5))
            .await;
        drop((tab, house));

        let house = House::open_with(&dir, runtime, brief_and_gardener()).await;
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        let mut tab = house.tab(session, Some(snapshot.last_seq)).await;
        let asked = snapshot.approvals[0].approval_id;
        let denied = Decision::Deny.into();
        let answered = house
            .engine
            .approve(house.user, session, asked, denied)
            .await;
        answered.unwrap();
        let end = tab.until("stream_end").await.pop().unwrap();
        assert_eq!(end["completed"], true);
    });
}

#[test]
fn silence_at_the_limit_gives_no_more_tools() {
    let mut profile = profile("plain");
    profile.max_iterations = 2;
    let setup = Setup {
        profiles: vec![profile],
        ..Setup::default()
    };
    with_setup(setup, |house| async move {
        let (session, mut tab) = begin(&house).await;
        house.script([write_call("a.txt", "x")]);
        // It says nothing as its tools are over, and nothing again to the first question of how
        // things stand.
        house.script([]);
        house.script([]);
        house.script(says("one of two is done"));
        house.say(session, "go").await;
        let end = tab.until("stream_end").await.pop().unwrap();
        assert_eq!(
            (&end["completed"], &end["content"]),
            (&json!(false), &json!("one of two is done"))
        );
        let offered: Vec<bool> = house
            .asked()
            .iter()
            .map(|request| !request.tools.is_empty())
            .collect();
        assert_eq!(offered, [true, true, false, false]);
    });
}

#[test]
fn at_the_limit_the_model_says_how_things_stand_without_tools() {
    with_house(|house| async move {
        let (session, mut tab) = begin(&house).await;
        for n in 0..4 {
            house.script([write_call(&format!("{n}.txt"), "x")]);
        }
        house.script(says("two of three are done"));
        house.say(session, "go").await;
        let frames = tab.until("stream_end").await;
        let end = frames.last().unwrap();
        assert_eq!(
            (&end["completed"], &end["content"]),
            (&json!(false), &json!("two of three are done"))
        );
        let closing = house.asked().pop().unwrap();
        assert!(closing.tools.is_empty() && notes(&closing).contains("[limit]"));
    });
}

#[test]
fn what_a_run_waits_for_others_of_its_person_is_not_its_time() {
    let mut setup = Setup {
        people: Some(PersonLimits {
            runs: 1,
            uploads: 1,
            sessions: 10,
            files_mb: 1,
            tokens_a_day: 0,
            tabs: 10,
        }),
        ..Setup::default()
    };
    setup.runs.time = std::time::Duration::from_secs(5);
    with_setup(setup, |house| async move {
        let (first, mut its_tab) = begin(&house).await;
        house.script([Say::Silence]);
        house.script(says("I waited"));
        house.say(first, "go").await;
        its_tab.until("stream_start").await;
        let (second, mut tab) = begin(&house).await;
        house.say(second, "go").await;
        tab.until("run_waiting").await;
        // All the time that each has.
        let frames = its_tab.until("stream_end").await;
        assert_eq!(frames.last().unwrap()["completed"], false);
        let frames = tab.until("stream_end").await;
        let end = frames.last().unwrap();
        assert_eq!(
            (&end["completed"], &end["content"]),
            (&json!(true), &json!("fine"))
        );
    });
}

#[test]
fn a_run_that_was_let_in_goes_on_after_a_restart_whatever_its_person_used_since() {
    let setup = || Setup {
        people: Some(PersonLimits {
            runs: 2,
            uploads: 1,
            sessions: 10,
            files_mb: 1,
            tokens_a_day: 1,
            tabs: 10,
        }),
        ..Setup::default()
    };
    in_system(|runtime, dir| async move {
        let house = House::open_with(&dir, runtime.clone(), setup()).await;
        let (session, mut tab) = begin(&house).await;
        let (other, mut its_tab) = begin(&house).await;
        house.script([Say::Call("send", json!({"to": "bob"}))]);
        house.say(session, "write to bob").await;
        tab.until("approval_requested").await;
        // All that there is for a day.
        house.say(other, "hi").await;
        its_tab.until("stream_end").await;
        house
            .engine
            .shutdown(std::time::Duration::from_secs(5))
            .await;
        drop((tab, its_tab, house));

        let house = House::open_with(&dir, runtime, setup()).await;
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        let mut tab = house.tab(session, Some(snapshot.last_seq)).await;
        let asked = snapshot.approvals[0].approval_id;
        let denied = Decision::Deny.into();
        let answered = house
            .engine
            .approve(house.user, session, asked, denied)
            .await;
        answered.unwrap();
        let frames = tab.until("stream_end").await;
        assert_eq!(frames.last().unwrap()["content"], "fine");
        house.say(session, "and now?").await;
        let refused = tab.until("error").await.pop().unwrap();
        assert_eq!(refused["code"], "rate_limited", "{refused}");
    });
}

#[test]
fn a_run_whose_time_is_up_says_how_things_stand_and_can_be_continued() {
    let mut setup = Setup::default();
    // The call has to begin within it, on any machine.
    setup.runs.time = std::time::Duration::from_secs(5);
    with_setup(setup, |house| async move {
        let (session, mut tab) = begin(&house).await;
        house.script([Say::Call("sleep", json!({}))]);
        house.script(says("I was asleep"));
        house.say(session, "go").await;
        let frames = tab.until("stream_end").await;
        assert!(
            results(&frames)[0].contains("time limit"),
            "{:?}",
            results(&frames)
        );
        assert_eq!(frames.last().unwrap()["completed"], false);
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        assert!(snapshot.can_continue);
    });
}

#[test]
fn a_steered_message_reaches_the_run_before_its_next_model_call() {
    with_house(|house| async move {
        let (session, mut tab) = begin(&house).await;
        house.script([Say::Hold, write_call("a.txt", "x")]);
        house.script(says("with sugar then"));
        house.say(session, "make tea").await;
        house.requests_reach(1).await;
        let steer = UserInput {
            content: "with sugar".into(),
            mode: SendMode::Steer,
            ..UserInput::default()
        };
        let accepted = house.engine.send(house.user, session, steer).await.unwrap();
        assert!(accepted.queued);
        house.release();
        let frames = tab.until("stream_end").await;
        let steered = frames
            .iter()
            .find(|f| f["type"] == "message_steered")
            .unwrap();
        assert_eq!(steered["message_id"], json!(accepted.message_id));
        let asked = house.asked();
        assert_eq!(asked.len(), 2, "no run of its own");
        assert!(format!("{:?}", asked[1].messages).contains("with sugar"));
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        let roles: Vec<_> = snapshot.messages.iter().map(|m| m.role).collect();
        assert_eq!(
            roles,
            [
                Role::User,
                Role::Assistant,
                Role::Tool,
                Role::User,
                Role::Assistant
            ]
        );
        assert!(snapshot.queue.is_empty());
        assert!(
            snapshot
                .messages
                .iter()
                .all(|m| m.run_id == snapshot.messages[0].run_id)
        );
    });
}

#[test]
fn an_edited_message_is_a_branch_and_the_other_one_stays() {
    with_house(|house| async move {
        let (session, mut tab) = begin(&house).await;
        house.script(says("blue"));
        house.say(session, "my colour is blue").await;
        tab.until("stream_end").await;
        let before = house.engine.snapshot(house.user, session).await.unwrap();
        let first = before.messages[0].id;
        house.script(says("red"));
        let text = Some("my colour is red".to_owned());
        let branched = house
            .engine
            .start_branch(house.user, session, first, text)
            .await
            .unwrap();
        let frames = tab.until("stream_end").await;
        assert_eq!(frames[0]["type"], "branch_changed");
        let after = house.engine.snapshot(house.user, session).await.unwrap();
        let texts = |s: &navi_actors::protocol::session::SessionSnapshot| -> Vec<String> {
            s.messages
                .iter()
                .filter_map(|m| m.content.clone())
                .collect()
        };
        assert_eq!(texts(&after), ["my colour is red", "red"]);
        assert_eq!(after.forks.len(), 1);
        assert_eq!(
            (after.forks[0].message_id, after.forks[0].shown),
            (branched.message_id, branched.branch_id)
        );
        let sent = house.asked().pop().unwrap();
        assert!(!format!("{:?}", sent.messages).contains("blue"));
        // Back, and an answer made anew there.
        house
            .engine
            .show_branch(house.user, session, 0)
            .await
            .unwrap();
        let back = house.engine.snapshot(house.user, session).await.unwrap();
        assert_eq!(texts(&back), ["my colour is blue", "blue"]);
        house.script(says("azure"));
        house
            .engine
            .start_branch(house.user, session, first, None)
            .await
            .unwrap();
        tab.until("stream_end").await;
        let anew = house.engine.snapshot(house.user, session).await.unwrap();
        assert_eq!(texts(&anew), ["my colour is blue", "azure"]);
        assert!(
            anew.messages
                .iter()
                .all(|m| m.state == MessageState::Complete)
        );
    });
}
