//! SPEC section 6: children of a run, row by row.

use std::time::Duration;

use navi_actors::protocol::chat::ChatMessage;
use navi_actors::protocol::profile::Profile;
use serde_json::{Value, json};

use crate::house::{
    House, Say, Setup, Tab, assert_gapless, first, kinds, profile, with_house, with_setup,
    write_call,
};
use crate::planning::{ANALYSE, WRITE};

fn spawn(task: &str) -> Say {
    Say::Call("spawn_agent", json!({"task": task}))
}

fn says(text: &str) -> [Say; 1] {
    [Say::Text(text.into())]
}

fn of_type<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    frames
        .iter()
        .filter(|frame| frame["type"] == kind)
        .collect()
}

/// The result of the only `spawn_agent` call.
fn result(frames: &[Value]) -> String {
    let ended = frames
        .iter()
        .find(|frame| frame["type"] == "tool_call" && frame["tool"] == "spawn_agent")
        .unwrap();
    ended["result"].as_str().unwrap().to_owned()
}

async fn ask(house: &House) -> (navi_actors::protocol::ids::SessionId, Tab) {
    let session = house.session().await;
    let tab = house.tab(session, None).await;
    (session, tab)
}

#[test]
fn a_child_runs_between_its_calls_start_and_end_and_its_events_are_marked() {
    with_house(|house| async move {
        let (session, mut tab) = ask(&house).await;
        house.script([spawn("count the stars")]);
        house.answer("count the stars", [write_call("stars.txt", "7")]);
        house.answer("count the stars", says("seven"));
        house.script(says("there are seven"));
        house.say(session, "how many stars?").await;
        let frames = tab.until("stream_end").await;
        assert_gapless(&frames, 1);
        assert_eq!(
            kinds(&frames),
            [
                "message_accepted",
                "stream_start",
                "tool_started",
                "subagent_started",
                "tool_started",
                "tool_call",
                "stream_delta",
                "subagent_finished",
                "tool_call",
                "stream_delta",
                "stream_end"
            ]
        );
        let root = frames[0]["run_id"].clone();
        let at = |kind: &str| frames.iter().position(|frame| frame["type"] == kind);
        let (from, to) = (at("subagent_started"), at("subagent_finished"));
        let of_child = &frames[from.unwrap()..=to.unwrap()];
        let begun = &of_child[0];
        let child = begun["run_id"].clone();
        assert_ne!(child, root);
        for frame in of_child {
            assert_eq!(
                (&frame["run_id"], &frame["parent_run_id"]),
                (&child, &root),
                "{frame}"
            );
            assert_eq!(frame["is_subagent"], true, "{frame}");
        }
        assert_eq!(begun["call_id"], first(&frames, "tool_started")["call_id"]);
        assert_eq!(begun["task"], "count the stars");
        assert_eq!(of_child.last().unwrap()["completed_normally"], true);
        assert!(result(&frames).starts_with("completed_normally: true"));
        assert!(result(&frames).contains("seven"));
        // The child's files are the session's; its conversation is nobody's.
        let file = house
            .dir
            .join("session_files")
            .join(session.to_string())
            .join("stars.txt");
        assert_eq!(std::fs::read_to_string(file).unwrap(), "7");
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        assert_eq!(snapshot.messages.len(), 4);
    });
}

#[test]
fn a_child_sees_only_what_it_is_given_and_has_its_own_prompt() {
    with_house(|house| async move {
        let (session, mut tab) = ask(&house).await;
        house.script([Say::Call(
            "spawn_agent",
            json!({"task": "look it up", "context": "the file is a.txt"}),
        )]);
        house.answer("look it up", says("found"));
        house.say(session, "my secret is 42").await;
        tab.until("stream_end").await;
        let requests = house.requests();
        let child = &requests[1];
        let ChatMessage::System { content } = &*child.messages[0] else {
            panic!("{child:?}")
        };
        assert!(content.contains("helper of kind plain"), "{content}");
        let all = format!("{:?}", child.messages);
        assert!(
            all.contains("the file is a.txt") && !all.contains("my secret is 42"),
            "{all}"
        );
        assert!(child.tools.iter().all(|tool| tool.name != "switch_profile"));
    });
}

#[test]
fn several_children_of_one_reply_run_at_the_same_time() {
    with_house(|house| async move {
        let (session, mut tab) = ask(&house).await;
        house.script([spawn("the left"), spawn("the right")]);
        // Both wait in a tool: were they one after the other, the second never began.
        house.answer("the left", [Say::Call("sleep", json!({}))]);
        house.answer("the right", [Say::Call("sleep", json!({}))]);
        house.say(session, "both sides").await;
        let mut frames = Vec::new();
        while of_type(&frames, "tool_started")
            .iter()
            .filter(|f| f["tool"] == "sleep")
            .count()
            < 2
        {
            frames.push(tab.next().await);
        }
        assert_eq!(of_type(&frames, "subagent_started").len(), 2);
        house.engine.stop(house.user, session).await.unwrap();
        frames.extend(tab.until("stream_stopped").await);
        assert_gapless(&frames, 1);
        // Stop reached both: every call has its result and every frame its end.
        assert_eq!(
            of_type(&frames, "tool_started").len(),
            of_type(&frames, "tool_call").len()
        );
        assert_eq!(of_type(&frames, "subagent_finished").len(), 2);
    });
}

#[test]
fn one_child_can_be_stopped_and_the_parent_goes_on() {
    with_house(|house| async move {
        let (session, mut tab) = ask(&house).await;
        house.script([spawn("wait forever")]);
        house.answer("wait forever", [Say::Silence]);
        house.script(says("without it then"));
        house.say(session, "go").await;
        let frames = tab.until("subagent_started").await;
        let child = frames.last().unwrap()["run_id"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        house.requests_reach(2).await;
        assert!(
            house
                .engine
                .stop_subagent(house.user, session, child)
                .await
                .unwrap()
        );
        let frames = tab.until("stream_end").await;
        assert!(
            result(&frames).starts_with("completed_normally: false"),
            "{}",
            result(&frames)
        );
        assert_eq!(frames.last().unwrap()["content"], "without it then");
        house.streams_dropped(1).await;
        assert!(
            !house
                .engine
                .stop_subagent(house.user, session, child)
                .await
                .unwrap()
        );
    });
}

#[test]
fn a_child_that_loops_ends_at_its_own_iteration_limit() {
    with_house(|house| async move {
        let (session, mut tab) = ask(&house).await;
        house.script([spawn("run in circles")]);
        for n in 0..4 {
            house.answer("run in circles", [write_call(&format!("{n}.txt"), "x")]);
        }
        house.answer("run in circles", says("I got to four"));
        house.script(says("fine"));
        house.say(session, "go").await;
        let frames = tab.until("stream_end").await;
        assert!(result(&frames).starts_with("completed_normally: false"));
        assert!(result(&frames).contains("I got to four"));
        assert_eq!(
            of_type(&frames, "subagent_finished")[0]["completed_normally"],
            false
        );
        assert_eq!(frames.last().unwrap()["completed"], true);
    });
}

#[test]
fn a_child_that_hangs_ends_at_its_time_limit() {
    let mut setup = Setup::default();
    // Its call has to begin within it, on any machine.
    setup.runs.child_time = Duration::from_secs(5);
    with_setup(setup, |house| async move {
        let (session, mut tab) = ask(&house).await;
        house.script([spawn("sleep well")]);
        house.answer("sleep well", [Say::Call("sleep", json!({}))]);
        house.answer("sleep well", says("I could not finish"));
        house.script(says("fine"));
        house.say(session, "go").await;
        let frames = tab.until("stream_end").await;
        assert!(
            result(&frames).starts_with("completed_normally: false"),
            "{}",
            result(&frames)
        );
        assert!(result(&frames).contains("I could not finish"));
        assert_eq!(frames.last().unwrap()["completed"], true);
    });
}

#[test]
fn a_child_without_tokens_says_how_things_stand() {
    let mut setup = Setup::default();
    setup.runs.tokens = 40;
    with_setup(setup, |house| async move {
        let (session, mut tab) = ask(&house).await;
        // 15 tokens a call: 25 are left for the child, who has none after two.
        house.script([spawn("be thorough")]);
        house.answer("be thorough", [write_call("a.txt", "x")]);
        house.answer("be thorough", [write_call("b.txt", "x")]);
        house.answer("be thorough", says("no tokens left"));
        house.script(says("stopped here"));
        house.say(session, "go").await;
        let frames = tab.until("stream_end").await;
        assert!(
            result(&frames).contains("no tokens left"),
            "{}",
            result(&frames)
        );
        // What the child used is gone for the parent too: it may only close.
        assert_eq!(frames.last().unwrap()["completed"], false);
        assert_eq!(frames.last().unwrap()["content"], "stopped here");
    });
}

#[test]
fn a_child_that_plans_is_told_nothing_of_its_parents_list() {
    let mut profile = profile("plain");
    profile.flags.subagent_planning_enabled = true;
    let setup = Setup {
        profiles: vec![profile],
        ..Setup::default()
    };
    with_setup(setup, |house| async move {
        let (session, mut tab) = ask(&house).await;
        house.script([spawn("compare both maps")]);
        house.answer(ANALYSE, says("Two maps.\nREFLECT: no"));
        house.answer(WRITE, says("1. Look at both - SELF\n2. Compare - SELF"));
        house.answer("compare both maps", says("they differ"));
        house.say(session, "go").await;
        tab.until("stream_end").await;
        let asked = house.asked().into_iter();
        let told: String = asked.map(|it| format!("{:?}", it.messages)).collect();
        assert_eq!(told.matches("Carry out the plan").count(), 1, "{told}");
        assert!(!told.contains("todo list"), "{told}");
    });
}

#[test]
fn what_a_child_used_is_gone_for_the_next_one_of_the_same_reply() {
    let mut setup = Setup::default();
    setup.runs.tokens = 40;
    with_setup(setup, |house| async move {
        let (session, mut tab) = ask(&house).await;
        // 15 tokens a call: 25 are left for the first child, who uses them up. The second begins
        // after it, since a call stands between that changes something.
        house.script([
            spawn("the first half"),
            write_call("between.txt", "x"),
            spawn("the second half"),
        ]);
        house.answer("the first half", [write_call("a.txt", "x")]);
        house.answer("the first half", says("half done"));
        house.answer("the second half", [write_call("b.txt", "x")]);
        house.answer("the second half", says("no tokens left"));
        house.say(session, "go").await;
        let frames = tab.until("stream_end").await;
        let finished = of_type(&frames, "subagent_finished");
        let normally = finished.iter().map(|it| it["completed_normally"] == true);
        assert_eq!(normally.collect::<Vec<_>>(), [true, false]);
    });
}

#[test]
fn a_child_of_another_profile_has_that_profiles_prompt_and_an_unknown_one_is_refused() {
    let setup = Setup {
        profiles: vec![profile("plain"), profile("gardener")],
        ..Setup::default()
    };
    with_setup(setup, |house| async move {
        let (session, mut tab) = ask(&house).await;
        house.script([
            Say::Call(
                "spawn_agent",
                json!({"task": "plant it", "profile_id": "gardener"}),
            ),
            Say::Call(
                "spawn_agent",
                json!({"task": "sail it", "profile_id": "pirate"}),
            ),
        ]);
        house.answer("helper of kind gardener", says("planted"));
        house.script(says("done"));
        house.say(session, "go").await;
        let frames = tab.until("stream_end").await;
        let calls = of_type(&frames, "tool_call");
        assert_eq!(
            (&calls[0]["success"], &calls[1]["success"]),
            (&json!(true), &json!(false))
        );
        assert!(
            calls[1]["result"]
                .as_str()
                .unwrap()
                .contains("gardener, plain"),
            "{}",
            calls[1]
        );
        // The profile of the session is what it was.
        let snapshot = house.engine.snapshot(house.user, session).await.unwrap();
        assert_eq!(snapshot.summary.profile_id, "plain");
    });
}

#[test]
fn the_notes_of_a_child_stand_under_its_own_profiles_sections() {
    let gardener = Profile {
        scratchpad_sections: vec!["beds".into()],
        ..profile("gardener")
    };
    let setup = Setup {
        profiles: vec![profile("plain"), gardener],
        ..Setup::default()
    };
    with_setup(setup, |house| async move {
        let (session, mut tab) = ask(&house).await;
        house.script([Say::Call(
            "spawn_agent",
            json!({"task": "plant it", "profile_id": "gardener"}),
        )]);
        let note = json!({"action": "write", "section": "beds", "text": "roses"});
        house.answer("kind gardener", [Say::Call("scratchpad", note)]);
        house.answer("kind gardener", says("planted"));
        house.script(says("done"));
        house.say(session, "go").await;
        let frames = tab.until("stream_end").await;
        let noted = of_type(&frames, "tool_call")[0];
        assert_eq!(
            (&noted["tool"], &noted["success"]),
            (&json!("scratchpad"), &json!(true)),
            "{noted}"
        );
    });
}

#[test]
fn depth_is_limited_and_a_grandchild_is_nested() {
    with_house(|house| async move {
        let (session, mut tab) = ask(&house).await;
        house.script([spawn("outer task")]);
        house.answer("outer task", [spawn("inner job")]);
        house.answer("inner job", [spawn("too deep")]);
        house.answer("inner job", says("inner done"));
        house.answer("outer task", says("outer done"));
        house.script(says("all done"));
        house.say(session, "go").await;
        let frames = tab.until("stream_end").await;
        let started = of_type(&frames, "subagent_started");
        assert_eq!(started.len(), 2);
        assert_eq!(started[1]["parent_run_id"], started[0]["run_id"]);
        let refused = of_type(&frames, "tool_call")[0];
        assert_eq!(refused["success"], false, "{refused}");
        assert!(
            refused["result"].as_str().unwrap().contains("spawn_agent"),
            "{refused}"
        );
        assert_eq!(frames.last().unwrap()["content"], "all done");
    });
}

#[test]
fn a_tab_that_comes_in_the_middle_sees_the_same_tree() {
    with_house(|house| async move {
        let (session, mut tab) = ask(&house).await;
        house.script([spawn("hold on")]);
        house.answer(
            "hold on",
            [
                Say::Text("half ".into()),
                Say::Hold,
                Say::Text("whole".into()),
            ],
        );
        house.script(says("done"));
        house.say(session, "go").await;
        let mut seen = tab.until("stream_delta").await;
        let mut late = house.tab(session, None).await;
        house.release();
        seen.extend(tab.until("stream_end").await);
        let late = late.until("stream_end").await;
        let tree = |frames: &[Value]| -> Vec<Value> {
            let numbered = frames.iter().filter(|frame| frame["seq"].is_u64());
            numbered.cloned().collect()
        };
        assert_eq!(tree(&seen), tree(&late));
        let child_text = |frames: &[Value]| -> String {
            let deltas = frames
                .iter()
                .filter(|f| f["type"] == "stream_delta" && f["is_subagent"] == true);
            deltas.map(|f| f["delta"].as_str().unwrap()).collect()
        };
        assert_eq!(child_text(&seen), "half whole");
        assert_eq!(child_text(&late), "half whole");
    });
}
