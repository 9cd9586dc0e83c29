//! Stop and `kill -9` while Navi plans, compresses, or has subagents at work.

use reqwest::Method;
use serde_json::{Value, json};

use super::view::{View, assert_whole, told};
use super::{stop, talking};
use crate::fake_model::{FakeModel, Recorded, Reply, Step};
use crate::server::{House, Server, Socket};

/// What stands in the question that asks for a summary.
const SUMMARY: &str = "<conversation>";

async fn begin(server: &Server, text: &str) -> (String, Socket) {
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    say(&mut tab, text).await;
    (session, tab)
}

async fn say(tab: &mut Socket, text: &str) {
    tab.send(&json!({"type": "message", "content": text})).await;
}

fn spawn(task: &str) -> Step {
    Step::tool_call("spawn_agent", json!({"task": task}))
}

fn asked_for(chats: &[Recorded], words: &str) -> bool {
    chats
        .iter()
        .any(|chat| chat.last_user_text().contains(words))
}

#[tokio::test]
async fn stop_while_it_plans() {
    let (model, server) = talking();
    model.script(Reply::new([Step::Silence]).streamed(false).temperature(0.3));
    let (session, mut tab) = begin(&server, "plan a garden").await;
    model.wait_for(|chats| !chats.is_empty()).await;
    let frames = stop(&model, &mut tab).await;
    assert!(frames.iter().all(|frame| frame["type"] != "plan_ready"));
    assert!(model.chats()[0].closed_early_ms.is_some());
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["messages"].as_array().unwrap().len(), 1);
    say(&mut tab, "again").await;
    assert_eq!(
        tab.next_of("stream_end").await["content"],
        "You said: again"
    );
}

#[tokio::test]
async fn stop_while_it_compresses() {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url()), ("CONTEXT_KEEP_RECENT", "1")]).start();
    let (session, mut tab) = begin(&server, "one").await;
    tab.next_of("stream_end").await;
    // The next answer fills the window. The summary of the turn before it never comes.
    model.script(
        Reply::new([Step::Silence])
            .streamed(false)
            .last(SUMMARY)
            .always(),
    );
    model.script([
        Step::text("full"),
        Step::Finish {
            reason: "stop".to_owned(),
            prompt_tokens: 60_000,
            completion_tokens: 100,
        },
    ]);
    say(&mut tab, "two").await;
    tab.next_of("stream_end").await;
    let summaries = |chats: &[Recorded]| {
        let asks = |chat: &&Recorded| chat.last_user_text().contains(SUMMARY);
        chats.iter().filter(asks).count()
    };
    model.wait_for(|chats| summaries(chats) == 1).await;
    // A person's message comes first: the run looks at the context itself.
    say(&mut tab, "three").await;
    model.wait_for(|chats| summaries(chats) == 2).await;
    let frames = stop(&model, &mut tab).await;
    assert!(
        frames
            .iter()
            .all(|frame| frame["type"] != "context_compressed")
    );
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["compression"], Value::Null);
    assert_eq!(snapshot["messages"].as_array().unwrap().len(), 5);
    let context = server.get(&format!("/sessions/{session}/context")).await;
    assert!(
        context["messages"].to_string().contains("\"one\""),
        "{context}"
    );
}

#[tokio::test]
async fn a_branch_that_is_shown_while_another_is_compressed_keeps_its_own_context() {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url()), ("CONTEXT_KEEP_RECENT", "1")]).start();
    let (session, mut tab) = begin(&server, "one").await;
    tab.next_of("stream_end").await;
    let path = |rest: &str| format!("/sessions/{session}{rest}");
    let first = server.get(&path("")).await["messages"][0]["id"].clone();
    let edited = json!({"message_id": first, "content": "eins"});
    server.post(&path("/branches"), edited).await;
    tab.next_of("stream_end").await;
    model.script(
        Reply::new([Step::hold("summary"), Step::text("- they counted to zwei")])
            .streamed(false)
            .last(SUMMARY),
    );
    model.script([
        Step::text("full"),
        Step::Finish {
            reason: "stop".to_owned(),
            prompt_tokens: 60_000,
            completion_tokens: 100,
        },
    ]);
    say(&mut tab, "zwei").await;
    tab.next_of("stream_end").await;
    model.wait_for(|chats| asked_for(chats, SUMMARY)).await;
    let body = Some(json!({"branch_id": 0}));
    let (status, _) = server.call(Method::PUT, &path("/branch"), body).await;
    assert!(status.is_success());
    model.release("summary");
    let over = |chat: &Recorded| chat.finished_ms.is_some() || chat.closed_early_ms.is_some();
    model.wait_for(|chats| chats.iter().all(over)).await;
    // Whatever comes of the summary has come before another conversation has its answer.
    let (_, mut other) = begin(&server, "hello").await;
    other.next_of("stream_end").await;
    assert_eq!(server.get(&path("")).await["compression"], Value::Null);
    say(&mut tab, "two").await;
    tab.next_of("stream_end").await;
    let chats = model.chats();
    let sent = chats.iter().rfind(|chat| chat.last_user_text() == "two");
    let sent = sent.unwrap().body["messages"].to_string();
    assert!(
        sent.contains("You said: one") && !sent.contains("counted"),
        "{sent}"
    );
    model.assert_clean();
}

#[tokio::test]
async fn a_full_context_is_compressed_before_the_turn_or_after_it_and_the_log_tells() {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url()), ("CONTEXT_KEEP_RECENT", "1")]).start();
    let (session, mut tab) = begin(&server, "one").await;
    tab.next_of("stream_end").await;
    model.script(
        Reply::new([Step::text("- they counted to one")])
            .streamed(false)
            .last(SUMMARY),
    );
    model.script([
        Step::text("full"),
        Step::Finish {
            reason: "stop".to_owned(),
            prompt_tokens: 60_000,
            completion_tokens: 100,
        },
    ]);
    say(&mut tab, "two").await;
    let frames = tab.until("context_compressed").await;
    assert!(
        frames.iter().any(|frame| frame["type"] == "stream_end"),
        "after the turn"
    );
    let told = frames.last().unwrap();
    assert_eq!(
        (&told["messages_before"], &told["messages_after"]),
        (&json!(4), &json!(3))
    );
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(
        snapshot["messages"].as_array().unwrap().len(),
        4,
        "nothing is dropped"
    );
    assert_eq!(snapshot["context_token_count"], 0);
    let server = server.crash_and_restart();
    let context = server.get(&format!("/sessions/{session}/context")).await;
    let sent = context["messages"].to_string();
    assert!(
        sent.contains("they counted to one") && !sent.contains("You said: one"),
        "{sent}"
    );
    model.assert_clean();
}

#[tokio::test]
async fn stop_while_two_subagents_work() {
    let (model, server) = talking();
    model.script([spawn("the left side"), spawn("the right side")]);
    model.script(Reply::new([Step::text("left"), Step::Silence]).when("the left side"));
    model.script(Reply::new([Step::text("right"), Step::Silence]).when("the right side"));
    let (session, mut tab) = begin(&server, "both sides").await;
    tab.next_of("subagent_started").await;
    tab.next_of("subagent_started").await;
    tab.next_of("stream_delta").await;
    stop(&model, &mut tab).await;
    assert_whole(&told(&server, &session).await);
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    let outcomes = snapshot["messages"].as_array().unwrap().iter();
    let outcomes: Vec<_> = outcomes
        .filter_map(|message| message["outcome"].as_str())
        .collect();
    assert_eq!(outcomes, ["stopped", "stopped"]);
    say(&mut tab, "again").await;
    tab.next_of("stream_end").await;
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn a_message_that_was_to_steer_survives_a_crash() {
    let (model, server) = talking();
    model.script([Step::text("long "), Step::Silence]);
    let (session, mut tab) = begin(&server, "tell me").await;
    tab.next_of("stream_delta").await;
    tab.send(&json!({"type": "message", "content": "be short", "mode": "steer"}))
        .await;
    tab.next_of("message_accepted").await;
    let server = server.crash_and_restart();
    let mut tab = server.tab(&session, Some(0)).await;
    tab.next_of("run_interrupted").await;
    assert_eq!(
        tab.next_of("stream_end").await["content"],
        "You said: be short"
    );
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    let said = snapshot["messages"].as_array().unwrap().iter();
    let said: Vec<_> = said
        .filter(|message| message["role"] == "user")
        .map(|message| &message["content"])
        .collect();
    assert_eq!(said, ["tell me", "be short"]);
    assert_eq!(snapshot["queue"], json!([]));
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn a_tab_that_joins_amid_subagents_sees_the_same_tree() {
    let (model, server) = talking();
    model.script([spawn("the left side"), spawn("the right side")]);
    for side in ["left", "right"] {
        let words = vec![
            Step::Thinking("hm ".into()),
            Step::text(&format!("{side} 🌍 ")),
            Step::hold(side),
            Step::text("done"),
        ];
        model.script(Reply::new(words).when(&format!("the {side} side")));
    }
    model.script([Step::text("both are done")]);
    let (session, mut tab) = begin(&server, "both sides").await;
    let (mut seen, mut late) = (View::default(), View::default());
    seen.apply_all(&tab.until("stream_delta").await);
    let mut joined = server.tab(&session, None).await;
    late.apply_all(&joined.until("stream_delta").await);
    model.release("left");
    model.release("right");
    let frames = tab.until("stream_end").await;
    seen.apply_all(&frames);
    late.apply_all(&joined.until("stream_end").await);
    assert_eq!(seen, late);
    let mut whole = View::default();
    let all = told(&server, &session).await;
    whole.apply_all(&all);
    assert_eq!(seen, whole);
    assert_whole(&all);
    model.assert_clean();
}
