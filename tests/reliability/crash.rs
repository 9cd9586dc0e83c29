//! After `kill -9` (promise 5).

use serde_json::json;
use tokio::time::{Duration, Instant};

use super::talking;
use super::view::View;
use crate::fake_model::{Recorded, Step};
use crate::server::Server;

/// Text waits at most this long for the log.
const QUARTER_SECOND: Duration = Duration::from_millis(250);

/// What a promised time may be over where the machine has so much to do that a plain request,
/// with its commit, takes its time, too.
async fn leeway(server: &Server) -> Duration {
    let asked = Instant::now();
    server.new_session().await;
    10 * asked.elapsed()
}

#[tokio::test]
async fn kill_in_mid_answer_keeps_all_but_the_last_quarter_second() {
    let (model, server) = talking();
    model.script(vec![Step::tool_call(
        "filesystem",
        json!({"action": "write", "path": "a.txt", "content": "x"}),
    )]);
    let mut words = Vec::new();
    // More than are heard.
    for n in 0..4_000 {
        words.push(Step::text(&format!("{n} ")));
        words.push(Step::DelayMs(5));
    }
    model.script(words);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "hi", "client_id": "c"}))
        .await;
    let mut view = View::default();
    view.apply_all(&tab.until("tool_call").await);
    let mut seen = Vec::new();
    view.apply_all(&tab.until("stream_delta").await);
    let started = Instant::now();
    let mut over = Duration::ZERO;
    while started.elapsed() < Duration::from_millis(1_200) {
        let frame = tab.next_of("stream_delta").await;
        view.apply(&frame);
        seen.push((Instant::now(), view.text(".text").len()));
        if seen.len().is_multiple_of(20) {
            over = over.max(leeway(&server).await);
        }
    }
    let owed_after = QUARTER_SECOND + over.max(leeway(&server).await);
    let killed = Instant::now();
    let server = server.crash_and_restart();

    let told = view.text(".text");
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["state"], "interrupted");
    assert_eq!(snapshot["can_continue"], true);
    let messages = snapshot["messages"].as_array().unwrap();
    let roles: Vec<_> = messages
        .iter()
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    assert_eq!(messages[2]["outcome"], "success");
    assert_eq!(messages[3]["state"], "interrupted");
    let kept = messages[3]["content"].as_str().unwrap();
    let owed = seen
        .iter()
        .rev()
        .find(|(at, _)| killed - *at > owed_after)
        .map_or(0, |(_, length)| *length);
    assert!(
        kept.len() >= owed,
        "kept {} of {}, owed {owed}",
        kept.len(),
        told.len()
    );
    assert!(told.starts_with(kept) || kept.starts_with(&told));

    let mut tab = server.tab(&session, Some(view.seq)).await;
    let interrupted = tab.next_of("run_interrupted").await;
    assert_eq!(interrupted["can_continue"], true);
    tab.send(&json!({"type": "message", "content": "still there?"}))
        .await;
    let frames = tab.until("stream_end").await;
    assert_eq!(frames.last().unwrap()["content"], "You said: still there?");
    model.assert_clean();
}

#[tokio::test]
async fn an_answer_made_anew_that_said_nothing_yet_goes_on_after_a_kill() {
    let (model, server) = talking();
    let session = server.new_session().await;
    let path = format!("/sessions/{session}");
    let said = json!({"content": "hi"});
    server.post(&format!("{path}/messages"), said).await;
    let before = server.get(&path).await;
    model.script([Step::Silence]);
    let mut tab = server.tab(&session, before["last_seq"].as_u64()).await;
    let anew = json!({"message_id": before["messages"][0]["id"]});
    server.post(&format!("{path}/branches"), anew).await;
    tab.next_of("branch_changed").await;
    model
        .wait_for(|chats| {
            let asked = |chat: &&Recorded| chat.last_user_text() == "hi";
            chats.iter().filter(asked).count() == 2
        })
        .await;
    let server = server.crash_and_restart();
    assert_eq!(server.get(&path).await["can_continue"], true);
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "continue"})).await;
    let frames = tab.until("stream_end").await;
    assert_eq!(frames.last().unwrap()["content"], "You said: hi");
    assert_eq!(server.get(&path).await["forks"][0]["shown"], 1);
    model.assert_clean();
}

#[tokio::test]
async fn kill_while_a_tool_runs_gives_its_call_one_result() {
    let (model, server) = talking();
    // Two turns; the second is killed as soon as its tool was told to begin.
    let session = server.new_session().await;
    let mut server = server;
    for round in 0..5 {
        // One call a round: a run that gets on before it is killed must not use up the next.
        model.script(vec![Step::tool_call(
            "filesystem",
            json!({"action": "write", "path": format!("{round}.txt"), "content": "x".repeat(100_000)}),
        )]);
        let mut tab = server.tab(&session, None).await;
        tab.send(&json!({"type": "message", "content": "write"}))
            .await;
        tab.next_of("tool_started").await;
        server = server.crash_and_restart();
        let snapshot = server.get(&format!("/sessions/{session}")).await;
        let messages = snapshot["messages"].as_array().unwrap();
        let calls = messages
            .iter()
            .filter_map(|m| m["tool_calls"].as_array())
            .map(Vec::len)
            .sum::<usize>();
        let results = messages.iter().filter(|m| m["role"] == "tool").count();
        assert_eq!(calls, results);
    }
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "and now"}))
        .await;
    tab.next_of("stream_end").await;
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn a_message_that_was_acknowledged_is_there() {
    let (model, mut server) = talking();
    let session = server.new_session().await;
    for n in 0..5 {
        model.script(vec![Step::Silence]);
        let mut tab = server.tab(&session, None).await;
        let client_id = format!("c{n}");
        let message =
            json!({"type": "message", "content": format!("no {n}"), "client_id": client_id});
        tab.send(&message).await;
        tab.next_of("message_accepted").await;
        server = server.crash_and_restart();
        // Sent again, since the client cannot know: still one message.
        let mut tab = server.tab(&session, None).await;
        tab.send(&message).await;
        let again = tab.next_of("message_accepted").await;
        assert_eq!(again["client_id"], client_id);
    }
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    let said: Vec<_> = snapshot["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|m| m["role"] == "user")
        .map(|m| m["content"].as_str().unwrap())
        .collect();
    assert_eq!(said, ["no 0", "no 1", "no 2", "no 3", "no 4"]);
}
