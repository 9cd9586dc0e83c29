//! DESIGN section 5: what is sent grows only at its end, byte for byte, so that a backend's
//! prefix cache goes on working: within a run, from turn to turn, and over a restart.

use std::time::Duration;

use navi_actors::domain::context::Notes;
use navi_actors::protocol::chat::{ChatMessage, ChatRequest};
use navi_actors::protocol::command::{SendMode, UserInput};
use navi_actors::protocol::ids::SessionId;
use navi_actors::protocol::profile::Profile;
use serde_json::json;

use crate::house::{House, Say, Setup, Tab, in_system, input, profile, with_setup, write_call};
use crate::planning::{ANALYSE, WRITE};

fn says(text: &str) -> [Say; 1] {
    [Say::Text(text.into())]
}

fn busy(id: &str) -> Profile {
    let mut profile = profile(id);
    profile.max_iterations = 10;
    profile.flags.planning_enabled = true;
    // Notes that come and go.
    profile.flags.goal_anchoring_interval = 2;
    profile.flags.anti_stall_threshold = 2;
    profile.flags.adaptive_replan_enabled = true;
    profile
}

fn setup() -> Setup {
    Setup {
        profiles: vec![busy("plain"), busy("gardener")],
        ..Setup::default()
    }
}

/// A request's messages as bytes, one after the other, without the notes at its end.
fn lasting(request: &ChatRequest) -> String {
    let mut messages = request.messages.clone();
    Notes::take(&mut messages);
    let bytes = messages
        .iter()
        .map(|message| serde_json::to_string(message).unwrap() + "\n");
    bytes.collect()
}

fn notes(request: &ChatRequest) -> Option<Notes> {
    Notes::take(&mut request.messages.clone())
}

fn tools(request: &ChatRequest) -> String {
    serde_json::to_string(&request.tools).unwrap()
}

/// Whether the second goes on from the first.
fn goes_on(before: &ChatRequest, after: &ChatRequest) -> bool {
    lasting(after).starts_with(&lasting(before))
        && tools(before) == tools(after)
        && (&before.model, before.context_window) == (&after.model, after.context_window)
}

fn assert_all_go_on(requests: &[ChatRequest]) {
    for (at, pair) in requests.windows(2).enumerate() {
        assert!(
            goes_on(&pair[0], &pair[1]),
            "request {} does not go on from the one before it:\n{}\n---\n{}",
            at + 1,
            lasting(&pair[0]),
            lasting(&pair[1])
        );
    }
}

/// What the session's own runs sent; the rest is its children's.
fn of_session(house: &House) -> Vec<ChatRequest> {
    let mut asked = house.asked();
    asked.retain(|request| !is_of(request, "helper"));
    asked
}

fn is_of(request: &ChatRequest, prompt: &str) -> bool {
    matches!(&*request.messages[0], ChatMessage::System { content } if content.contains(prompt))
}

async fn turn(house: &House, tab: &mut Tab, session: SessionId, text: &str) {
    house.say(session, text).await;
    tab.until("stream_end").await;
}

/// A turn in which everything happens that a run can do to its own context.
async fn full_turn(house: &House, tab: &mut Tab, session: SessionId) {
    house.answer(ANALYSE, says("Several files.\nREFLECT: no"));
    house.answer(WRITE, says("1. Read - TOOL: filesystem\n2. Sum up - SELF"));
    house.script([
        Say::Thinking("first the file".into()),
        Say::Text("Let me write. ".into()),
        write_call("a.txt", "x"),
        Say::Call(
            "todo",
            json!({"action": "mark", "ids": [1], "status": "failed"}),
        ),
    ]);
    house.script([
        Say::Call(
            "scratchpad",
            json!({"action": "write", "section": "notes", "text": "found"}),
        ),
        Say::Call("no_such_tool", json!({})),
        Say::Call("filesystem", json!("not an object")),
    ]);
    house.script([
        Say::Call(
            "memory_save",
            json!({"category": "people", "key": "sister", "value": "Olena"}),
        ),
        Say::Call("spawn_agent", json!({"task": "count the stars"})),
    ]);
    for n in 0..2 {
        house.answer("count the stars", [write_call(&format!("{n}.txt"), "x")]);
    }
    house.answer("count the stars", says("seven"));
    house.script([
        Say::Text("half ".into()),
        Say::Hold,
        write_call("b.txt", "y"),
    ]);
    house.script(says("all done"));
    house.say(session, "compare all notes").await;
    tab.until("subagent_finished").await;
    while tab.until("stream_delta").await.last().unwrap()["is_subagent"] == true {}
    let steer = UserInput {
        mode: SendMode::Steer,
        ..input("and be quick")
    };
    house.engine.send(house.user, session, steer).await.unwrap();
    house.release();
    tab.until("stream_end").await;
}

#[test]
fn consecutive_requests_of_a_run_share_their_prefix() {
    with_setup(setup(), |house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        full_turn(&house, &mut tab, session).await;
        let own = of_session(&house);
        assert_eq!(own.len(), 5);
        assert_all_go_on(&own);
        // They do grow, and what differs from call to call stands behind what grows.
        assert!(
            own.windows(2)
                .all(|pair| lasting(&pair[0]) != lasting(&pair[1]))
        );
        assert!(lasting(&own[0]).contains("1. Read"), "the plan is sent");
        assert!(lasting(&own[4]).contains("and be quick"), "steered");
        assert!(
            own.windows(2)
                .all(|pair| notes(&pair[0]) != notes(&pair[1]))
        );
        let several = |request| notes(request).is_some_and(|it| it.text().contains("\n\n["));
        assert!(own.iter().any(several));
        // What was thought is not sent back.
        assert!(!lasting(&own[4]).contains("first the file"));

        let mut child = house.asked();
        child.retain(|request| is_of(request, "helper"));
        assert_eq!(child.len(), 3);
        assert_all_go_on(&child);
    });
}

#[test]
fn consecutive_turns_share_their_prefix_over_a_restart_and_a_stop() {
    in_system(|runtime, dir| async move {
        let house = House::open_with(&dir, runtime.clone(), setup()).await;
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        full_turn(&house, &mut tab, session).await;
        house.answer(ANALYSE, says("DIRECT"));
        house.script([Say::Text("half a sen".into()), Say::Silence]);
        house.say(session, "and now?").await;
        tab.until("stream_delta").await;
        house.engine.stop(house.user, session).await.unwrap();
        tab.until("stream_stopped").await;
        house.answer(ANALYSE, says("DIRECT"));
        turn(&house, &mut tab, session, "go on").await;
        let mut all = of_session(&house);
        // What was remembered meanwhile waits for the next change of the prefix.
        let remembered = house.engine.memory().facts(house.user).await.unwrap();
        assert_eq!(remembered.len(), 1);
        assert!(!lasting(all.last().unwrap()).contains("What I remember"));
        house.engine.shutdown(Duration::from_secs(5)).await;

        let house = House::open_with(&dir, runtime, setup()).await;
        let mut tab = house.tab(session, None).await;
        for text in ["back again", "and again"] {
            house.answer(ANALYSE, says("DIRECT"));
            house.script([write_call(text, "x")]);
            turn(&house, &mut tab, session, text).await;
        }
        all.extend(of_session(&house));
        assert_eq!(all.len(), 11);
        assert_all_go_on(&all);
    });
}

#[test]
fn a_compression_changes_the_prefix_once() {
    let mut setup = setup();
    setup
        .profiles
        .iter_mut()
        .for_each(|profile| profile.flags.planning_enabled = false);
    setup.compression.keep_recent = 2;
    // The scripted model counts 15 tokens a call.
    setup.compression.threshold = 10.0 / 4096.0;
    with_setup(setup, |house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        // No summary is scripted yet: each attempt fails and leaves the context as it was.
        for text in ["one", "two", "three"] {
            house.script([write_call(text, "x")]);
            turn(&house, &mut tab, session, text).await;
        }
        let before = of_session(&house);
        assert_eq!(before.len(), 6);
        assert_all_go_on(&before);

        // One attempt before the third turn and one after it, which must not get the next summary.
        house.requests_reach(before.len() + 2).await;
        house.whole(says("- they count"));
        turn(&house, &mut tab, session, "four").await;
        let first = of_session(&house).pop().unwrap();
        assert!(!goes_on(before.last().unwrap(), &first));
        let sent = lasting(&first);
        assert!(
            sent.contains("they count") && !sent.contains("\"one\""),
            "{sent}"
        );
        for text in ["five", "six"] {
            house.script([write_call(text, "x")]);
            turn(&house, &mut tab, session, text).await;
        }
        let after = of_session(&house).split_off(before.len());
        assert_eq!(after.len(), 5);
        assert_all_go_on(&after);
    });
}

#[test]
fn a_switch_of_profile_changes_the_prefix_once() {
    with_setup(setup(), |house| async move {
        let session = house.session().await;
        let mut tab = house.tab(session, None).await;
        house.answer(ANALYSE, says("DIRECT"));
        house.script([write_call("a.txt", "x")]);
        house.script([Say::Call(
            "switch_profile",
            json!({"profile_id": "gardener"}),
        )]);
        house.script([write_call("b.txt", "x")]);
        turn(&house, &mut tab, session, "help me in the garden").await;
        house.answer(ANALYSE, says("DIRECT"));
        turn(&house, &mut tab, session, "thanks").await;
        let all = of_session(&house);
        let (before, after) = all.split_at(2);
        assert!(before.iter().all(|request| is_of(request, "You are plain")));
        assert!(
            after
                .iter()
                .all(|request| is_of(request, "You are gardener"))
        );
        assert!(!goes_on(&before[1], &after[0]));
        assert_all_go_on(before);
        assert_eq!(after.len(), 3);
        assert_all_go_on(after);
    });
}
