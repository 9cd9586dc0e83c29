//! Row: among parallel calls; in compression; in planning; while an approval waits; in a
//! subagent. What is found after the kill is the old or the new state, never a mixture.
//!
//! A request that waits through kills, and is then allowed, denied or stopped, is in
//! `tests/security/consent.rs` too.

use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Recorded, Reply, Step};
use crate::script::{Client, Seen, UNTOLD, append, house, lines, list, outcomes, results, spawn};
use crate::server::{House, Server, Socket, Told};
use crate::view::{View, assert_whole, told};

/// What stands in the question that asks for a summary.
const SUMMARY: &str = "<conversation>";

/// Around a commit: before it, when it is durable, when it is told.
const COMMIT: [&str; 3] = ["journal::write:1", "journal::written:1", "session::tell:1"];

async fn begin(server: &Server, text: &str) -> (String, Socket) {
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": text})).await;
    (session, tab)
}

/// Waits until all is committed that the session was handed until now.
async fn settled(server: &Server, session: &str) {
    server.get(&format!("/sessions/{session}")).await;
}

/// How many calls there are but those for titles, which come when they like.
fn without_titles(chats: &[Recorded]) -> usize {
    let is_title = |chat: &&Recorded| chat.last_user_text().ends_with("The title:");
    chats.iter().filter(|chat| !is_title(chat)).count()
}

fn asked_for(chats: &[Recorded], words: &str) -> bool {
    let mut chats = chats.iter();
    chats.any(|chat| chat.last_user_text().contains(words))
}

fn of<'a>(events: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["type"] == kind)
}

#[tokio::test]
async fn among_parallel_calls_that_read() {
    let (model, house) = house(&[]);
    let mut server = house.start();
    for (point, done) in [
        ("tool::call:1", 0),
        ("tool::call:3", 2),
        ("tool::done:2", 1),
    ] {
        let mut client = Client::named(&server).await;
        let mut tab = client.tab(&server).await;
        model.script([list(1), list(2), list(3)]);
        server.arm(&format!("kill {point}")).await;
        client.say(&mut tab, "c", "look").await;
        assert_eq!(client.watch(&mut tab).await, Seen::Closed);
        server = server.crash_and_restart();
        let mut tab = client.come_back(&server).await;
        let found = client.assert_sound(&server).await;
        let outcomes = outcomes(&found);
        // Calls that read begin before the reply that asks for them is committed.
        assert!(matches!(outcomes.len(), 0 | 3), "{point}: {outcomes:?}");
        let known = outcomes.iter().filter(|it| **it == "success").count();
        assert!(known <= done, "{point}: {outcomes:?}");
        assert_eq!(found["can_continue"], true);
        model.script(Reply::new([Step::text("I went on")]).with_tools(true));
        tab.send(&json!({"type": "continue"})).await;
        assert_eq!(client.watch(&mut tab).await, Seen::End);
        model.assert_clean();
    }
}

/// What ended in its turn keeps its result; the rest is told as unknown.
#[tokio::test]
async fn among_parallel_subagents() {
    // Whichever asks first, the other is not behind it.
    let (model, house) = house(&[("LLM_PARALLEL", "2")]);
    let server = house.start();
    let mut client = Client::named(&server).await;
    let mut tab = client.tab(&server).await;
    model.script([spawn("the left side"), spawn("the right side")]);
    model.script(Reply::new([Step::text("left is done")]).when("the left side"));
    model.script(Reply::new([Step::text("right is"), Step::Silence]).when("the right side"));
    client.say(&mut tab, "c", "both sides").await;
    let (mut left_ended, mut words) = (false, String::new());
    while !(left_ended && words.contains("right is")) {
        let Told::Frame(frame) = tab.next().await else {
            panic!("the tab was closed");
        };
        client.take(&frame);
        left_ended |= frame["type"] == "tool_call" && frame["tool"] == "spawn_agent";
        words.push_str(frame["delta"].as_str().unwrap_or_default());
    }
    let server = server.crash_and_restart();
    client.come_back(&server).await;
    let found = client.assert_sound(&server).await;
    assert_eq!(outcomes(&found), ["success", "outcome_unknown"]);
    let left = results(&found)[0]["content"].as_str().unwrap();
    assert!(left.contains("left is done"), "{left}");
    let events = told(&server, &client.session).await;
    let ends: Vec<_> = of(&events, "subagent_finished")
        .map(|end| end["completed_normally"].as_bool().unwrap())
        .collect();
    assert_eq!(ends, [true, false]);
    model.assert_clean();
}

/// A service whose subagents may have subagents of their own.
pub(crate) fn nesting(model: &FakeModel) -> Server {
    let variables = [
        ("OLLAMA_HOST", &*model.url()),
        ("NAVI_DEFAULT_PROFILE", "nest"),
        UNTOLD,
    ];
    let house = House::new(&variables);
    let folder = house.data_dir().join("profiles");
    std::fs::create_dir_all(&folder).unwrap();
    let profile = "id = \"nest\"\nname = \"Nest\"\ndescription = \"x\"\nsystem_prompt = \"Nest.\"\n\
         enabled_tools = [\"filesystem\", \"terminal\", \"spawn_agent\"]\ntemperature = 0.5\nplanning_enabled = false\n";
    std::fs::write(folder.join("nest.toml"), profile).unwrap();
    house.start()
}

#[tokio::test]
async fn kill_while_a_subagent_works_leaves_one_result_and_no_open_frame() {
    let model = FakeModel::start();
    let server = nesting(&model);
    model.script([spawn("the outer task")]);
    model.script(
        Reply::new([Step::text("I ask another. "), spawn("the inner task")]).when("the outer task"),
    );
    let half = [Step::hold("inner"), Step::text("half a sen"), Step::Silence];
    model.script(Reply::new(half).when("the inner task"));
    let (session, mut tab) = begin(&server, "have it done").await;
    let mut view = View::default();
    view.apply_all(&tab.until("subagent_started").await);
    view.apply_all(&tab.until("subagent_started").await);
    model
        .wait_for(|chats| asked_for(chats, "the inner task"))
        .await;
    settled(&server, &session).await;
    // What the innermost says is what is written next: it dies with that in the log.
    server.arm("kill journal::written:1").await;
    model.release("inner");
    while let Told::Frame(frame) = tab.next().await {
        view.apply(&frame);
    }
    let server = server.crash_and_restart();

    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["state"], "interrupted");
    assert_eq!(snapshot["can_continue"], true);
    let messages = snapshot["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(
        roles,
        ["user", "assistant", "tool"],
        "a child's words are no messages"
    );
    assert_eq!(messages[2]["outcome"], "outcome_unknown");
    assert_eq!(
        messages[2]["tool_call_id"],
        messages[1]["tool_calls"][0]["id"]
    );

    let all = told(&server, &session).await;
    assert_whole(&all);
    let finished: Vec<_> = all
        .iter()
        .filter(|frame| frame["type"] == "subagent_finished")
        .collect();
    assert_eq!(finished.len(), 2);
    assert!(
        finished
            .iter()
            .all(|frame| frame["completed_normally"] == false)
    );
    assert_eq!(
        finished[0]["parent_run_id"], finished[1]["run_id"],
        "the inner one first"
    );
    assert_eq!(all.last().unwrap()["type"], "run_interrupted");

    // A tab that was there is told the rest, and the run goes on.
    let mut tab = server.tab(&session, Some(view.seq)).await;
    view.apply_all(&tab.until("run_interrupted").await);
    model.script([Step::text("I went on")]);
    tab.send(&json!({"type": "continue"})).await;
    assert_eq!(tab.next_of("stream_end").await["content"], "I went on");
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn kill_while_it_plans_leaves_a_run_that_goes_on_without_a_plan() {
    let (model, house) = house(&[]);
    let server = house.start();
    model.script(Reply::new([Step::Silence]).streamed(false).temperature(0.3));
    let (session, tab) = begin(&server, "plan a garden").await;
    model.wait_for(|chats| !chats.is_empty()).await;
    drop(tab);
    let server = server.crash_and_restart();
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(
        (&snapshot["state"], &snapshot["can_continue"]),
        (&json!("interrupted"), &json!(true))
    );
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "continue"})).await;
    assert_eq!(
        tab.next_of("stream_end").await["content"],
        "You said: plan a garden"
    );
}

/// The plan stands in the messages, in the events and in the todo list, or in none of them.
#[tokio::test]
async fn in_planning_at_the_plans_commit() {
    let (model, house) = house(&[UNTOLD]);
    let mut server = house.start();
    for (at, point) in COMMIT.iter().enumerate() {
        let whole = |system: &str, steps: Vec<Step>| {
            let reply = Reply::new(steps).streamed(false).system(system);
            reply.when("plan a garden")
        };
        let gate = format!("plan {at}");
        let sorted = Step::text("Much of it.\nREFLECT: no");
        model.script(whole("You sort a user's request", vec![sorted]));
        let plan = Step::text("1. Look at it | SELF\n2. Dig | SELF");
        let plan = vec![Step::hold(&gate), plan];
        model.script(whole("You write the plan", plan));
        let mut client = Client::named(&server).await;
        let mut tab = client.tab(&server).await;
        let asked = without_titles(&model.chats()) + 2;
        client.say(&mut tab, "c", "plan a garden").await;
        model.wait_for(|chats| without_titles(chats) >= asked).await;
        settled(&server, &client.session).await;
        server.arm(&format!("kill {point}")).await;
        model.release(&gate);
        assert_eq!(client.watch(&mut tab).await, Seen::Closed);
        server = server.crash_and_restart();
        let mut tab = client.come_back(&server).await;
        // It compares what stands in each place.
        let found = client.assert_sound(&server).await;
        let planned = found["messages"].as_array().unwrap().len() == 2;
        assert_eq!(planned, *point != "journal::write:1", "{point}");
        tab.send(&json!({"type": "continue"})).await;
        assert_eq!(client.watch(&mut tab).await, Seen::End);
        model.assert_clean();
    }
}

/// Fills a session's window, so that its old turns are due to be summarised.
pub(crate) async fn fill(model: &FakeModel, client: &mut Client, tab: &mut Socket) {
    client.say(tab, "one", "one").await;
    assert_eq!(client.watch(tab).await, Seen::End);
    model.script(
        Reply::new([
            Step::text("full"),
            Step::Finish {
                reason: "stop".to_owned(),
                prompt_tokens: 60_000,
                completion_tokens: 100,
            },
        ])
        .with_tools(true),
    );
    client.say(tab, "two", "two").await;
    assert_eq!(client.watch(tab).await, Seen::End);
}

pub(crate) fn summary(steps: Vec<Step>) -> Reply {
    Reply::new(steps).streamed(false).last(SUMMARY)
}

fn summaries(chats: &[Recorded]) -> usize {
    let asks = |chat: &&Recorded| chat.last_user_text().contains(SUMMARY);
    chats.iter().filter(asks).count()
}

/// The context is as it was, or the summary with what is after it; `messages` keeps all.
async fn assert_compressed_or_not(server: &Server, client: &Client, compressed: bool) {
    let found = client.assert_sound(server).await;
    assert_eq!(!found["compression"].is_null(), compressed, "{found:#?}");
    let path = format!("/sessions/{}/context", client.session);
    let sent = server.get(&path).await["messages"].to_string();
    assert_eq!(sent.contains("they counted"), compressed, "{sent}");
    assert_eq!(sent.contains("You said: one"), !compressed, "{sent}");
    let messages = found["messages"].to_string();
    assert!(messages.contains("You said: one"), "nothing is dropped");
}

#[tokio::test]
async fn in_compression_while_the_summary_is_awaited() {
    let (model, house) = house(&[("CONTEXT_KEEP_RECENT", "1")]);
    let server = house.start();
    let mut client = Client::named(&server).await;
    let mut tab = client.tab(&server).await;
    model.script(summary(vec![Step::Silence]));
    fill(&model, &mut client, &mut tab).await;
    model.wait_for(|chats| summaries(chats) == 1).await;
    let server = server.crash_and_restart();
    let mut tab = client.come_back(&server).await;
    assert_compressed_or_not(&server, &client, false).await;
    // The next turn has it done.
    model.script(summary(vec![Step::text("- they counted to two")]));
    client.say(&mut tab, "three", "three").await;
    assert_eq!(client.watch(&mut tab).await, Seen::End);
    assert_compressed_or_not(&server, &client, true).await;
    model.assert_clean();
}

#[tokio::test]
async fn in_compression_at_its_commit() {
    let (model, house) = house(&[("CONTEXT_KEEP_RECENT", "1")]);
    let mut server = house.start();
    for (at, point) in COMMIT.iter().enumerate() {
        let mut client = Client::named(&server).await;
        let mut tab = client.tab(&server).await;
        let gate = format!("summary {at}");
        let words = Step::text("- they counted to two");
        model.script(summary(vec![Step::hold(&gate), words]));
        let before = summaries(&model.chats());
        fill(&model, &mut client, &mut tab).await;
        model.wait_for(|chats| summaries(chats) > before).await;
        settled(&server, &client.session).await;
        server.arm(&format!("kill {point}")).await;
        model.release(&gate);
        assert_eq!(client.watch(&mut tab).await, Seen::Closed);
        server = server.crash_and_restart();
        let mut tab = client.come_back(&server).await;
        let new = *point != "journal::write:1";
        assert_compressed_or_not(&server, &client, new).await;
        if !new {
            model.script(summary(vec![Step::text("- they counted to two")]));
        }
        client.say(&mut tab, "three", "three").await;
        assert_eq!(client.watch(&mut tab).await, Seen::End);
        assert_compressed_or_not(&server, &client, true).await;
        model.assert_clean();
    }
}

const ASKS: (&str, &str) = ("NAVI_CONSENT_MODE", "ask");

/// Answers what waits with yes, if anything does, and watches the run to its end.
async fn allow_what_waits(server: &Server, client: &mut Client, found: &Value) -> Seen {
    let mut tab = client.come_back(server).await;
    for asked in found["approvals"].as_array().unwrap() {
        let id = &asked["approval_id"];
        tab.send(&json!({"type": "approve", "approval_id": id, "decision": "once"}))
            .await;
    }
    if found["state"] == "interrupted" {
        return Seen::Interrupted;
    }
    client.watch(&mut tab).await
}

/// The commits with which a call comes to wait for a person.
#[tokio::test]
async fn while_an_approval_is_asked_for() {
    let (model, house) = house(&[ASKS, UNTOLD]);
    let mut server = house.start();
    let mut waited = 0;
    for (at, point) in COMMIT.iter().enumerate() {
        let mut client = Client::named(&server).await;
        let mut tab = client.tab(&server).await;
        let gate = format!("call {at}");
        model.script([Step::hold(&gate), append("once")]);
        let asked = without_titles(&model.chats()) + 1;
        client.say(&mut tab, "c", "do it").await;
        model.wait_for(|chats| without_titles(chats) > asked).await;
        settled(&server, &client.session).await;
        server.arm(&format!("kill {point}")).await;
        model.release(&gate);
        let seen = client.watch(&mut tab).await;
        assert_eq!(seen, Seen::Closed, "{point}");
        server = server.crash_and_restart();
        client.come_back(&server).await;
        let found = client.assert_sound(&server).await;
        let waits = found["approvals"].as_array().unwrap().len();
        assert_eq!(found["state"] == "running", waits == 1, "{found:#?}");
        assert_eq!(lines(&server, &client.session, "once"), 0);
        waited += waits;
        let seen = allow_what_waits(&server, &mut client, &found).await;
        assert_eq!(seen == Seen::End, waits == 1, "{point}");
        assert_eq!(lines(&server, &client.session, "once"), waits);
        client.assert_sound(&server).await;
        assert_eq!(model.violations(), Vec::<String>::new());
    }
    assert!(waited > 0, "no kill found a request that waits");
}

/// From the answer on until the call's result: it waits on, or is over; it is done at most once.
#[tokio::test]
async fn while_an_approval_is_answered() {
    let (model, house) = house(&[ASKS]);
    let mut server = house.start();
    let points = ["tool::call:1", "tool::done:1", "journal::written:2"];
    for point in COMMIT.iter().chain(&points) {
        let mut client = Client::named(&server).await;
        let mut tab = client.tab(&server).await;
        model.script([append("once")]);
        client.say(&mut tab, "c", "do it").await;
        let frames = tab.until("approval_requested").await;
        frames.iter().for_each(|frame| client.take(frame));
        for frame in tab.until("run_waiting").await {
            client.take(&frame);
        }
        server.arm(&format!("kill {point}")).await;
        let id = &frames.last().unwrap()["approval_id"];
        tab.send(&json!({"type": "approve", "approval_id": id, "decision": "once"}))
            .await;
        assert_eq!(client.watch(&mut tab).await, Seen::Closed, "{point}");
        server = server.crash_and_restart();
        client.come_back(&server).await;
        let found = client.assert_sound(&server).await;
        let done = lines(&server, &client.session, "once");
        let possible = match *point {
            "tool::done:1" => 1..=1,
            // Its result may be what was written last.
            "journal::written:2" => 0..=1,
            _ => 0..=0,
        };
        assert!(possible.contains(&done), "{point}: {done} times");
        let waits = found["approvals"].as_array().unwrap().len();
        assert!(
            done + waits <= 1,
            "{point}: it is asked about again: {found:#?}"
        );
        if *point == "journal::write:1" {
            assert_eq!(waits, 1, "nothing of the answer is there");
        }
        let seen = allow_what_waits(&server, &mut client, &found).await;
        assert_eq!(seen == Seen::End, found["state"] == "running", "{point}");
        let done_in_the_end = lines(&server, &client.session, "once");
        assert_eq!(done_in_the_end, done + waits, "{point}");
        client.assert_sound(&server).await;
        assert_eq!(model.violations(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn kill_on_a_branch_keeps_both_ways() {
    let (model, house) = house(&[UNTOLD]);
    let server = house.start();
    let mut client = Client::named(&server).await;
    let session = client.session.clone();
    let mut tab = client.tab(&server).await;
    client.say(&mut tab, "c", "one").await;
    assert_eq!(client.watch(&mut tab).await, Seen::End);
    let before = server.get(&format!("/sessions/{session}")).await["messages"].clone();
    model.script(
        Reply::new([Step::hold("gate"), Step::text("ano"), Step::Silence]).with_tools(true),
    );
    let known = model.chats().len();
    let body = json!({"message_id": before[0]["id"]});
    server
        .post(&format!("/sessions/{session}/branches"), body)
        .await;
    model
        .wait_for(|chats| {
            chats[known..]
                .iter()
                .any(|chat| chat.body["tools"].is_array())
        })
        .await;
    settled(&server, &session).await;
    // What it says is what is written next: it dies with that in the log.
    server.arm("kill journal::written:1").await;
    model.release("gate");
    tab.closed().await;
    let server = server.crash_and_restart();
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["state"], "interrupted");
    let messages = snapshot["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0], before[0]);
    assert_eq!(
        (&messages[1]["content"], &messages[1]["state"]),
        (&json!("ano"), &json!("interrupted"))
    );
    let path = format!("/sessions/{session}/branch");
    server
        .call(reqwest::Method::PUT, &path, Some(json!({"branch_id": 0})))
        .await;
    assert_eq!(
        server.get(&format!("/sessions/{session}")).await["messages"],
        before
    );
}
