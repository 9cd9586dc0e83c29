//! Rows: SIGTERM in a run, twice; SIGTERM with 100 tabs.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fake_model::{Reply, Step};
use crate::script::{Client, Seen, append, house, lines, outcomes};
use crate::server::{Server, Socket, Told};
use crate::view::View;

/// All of it, from the signal to the end of the process: nine seconds, and what a busy machine
/// adds.
const DEADLINE: Duration = Duration::from_secs(30);

/// A service manager restarts at once: so do tabs come back.
const SERVICE_RESTART: u16 = 1012;

async fn ends_in_order(server: &mut Server, asked: Instant) {
    let ended = server.ended().await;
    assert_eq!(ended.code(), Some(0), "{}", server.said());
    let took = asked.elapsed();
    assert!(took < DEADLINE, "{took:?}: {}", server.said());
}

/// Everything up to the tab's end, which is a goodbye.
async fn rest(client: &mut Client, tab: &mut Socket) -> Vec<Value> {
    let mut frames = Vec::new();
    loop {
        match tab.next().await {
            Told::Frame(frame) => {
                client.take(&frame);
                frames.push(frame);
            }
            Told::Closed(code) => {
                assert_eq!(code, SERVICE_RESTART, "{frames:#?}");
                return frames;
            }
        }
    }
}

/// The answer that is being written, and the call in it, are what the run still does.
#[tokio::test]
async fn sigterm_in_a_run_lets_it_reach_a_safe_point() {
    let (model, house) = house(&[]);
    let mut server = house.start();
    let mut client = Client::new(&server).await;
    let mut tab = client.tab(&server).await;
    model.script([Step::text("I do it "), Step::hold("call"), append("once")]);
    client.say(&mut tab, "c", "do it").await;
    for frame in tab.until("stream_delta").await {
        client.take(&frame);
    }
    let asked = Instant::now();
    server.ask_to_end();
    server.says("shutting down").await;
    model.release("call");
    let frames = rest(&mut client, &mut tab).await;
    assert_eq!(frames.last().unwrap()["type"], "run_interrupted");
    ends_in_order(&mut server, asked).await;
    drop(server);

    let server = house.start();
    let mut tab = client.come_back(&server).await;
    let found = client.assert_sound(&server).await;
    assert_eq!(found["state"], "interrupted");
    // It was cut between two steps: what was done is known.
    let done = lines(&server, &client.session, "once");
    let outcome = if done == 1 { "success" } else { "failed" };
    assert_eq!(outcomes(&found), [outcome]);
    assert_eq!(found["messages"][1]["content"], "I do it ");
    model.script(Reply::new([Step::text("I went on")]).with_tools(true));
    tab.send(&json!({"type": "continue"})).await;
    assert_eq!(client.watch(&mut tab).await, Seen::End);
    assert_eq!(lines(&server, &client.session, "once"), done);
    model.assert_clean();
}

/// A text without an end reaches no safe point: it is cut within the deadline, and kept.
#[tokio::test]
async fn sigterm_in_a_run_that_never_ends() {
    let (model, house) = house(&[]);
    let mut server = house.start();
    let mut client = Client::new(&server).await;
    let mut tab = client.tab(&server).await;
    model.script([Step::EndlessText {
        piece: "and ".into(),
        every_ms: 20,
    }]);
    client.say(&mut tab, "c", "go on and on").await;
    for frame in tab.until("stream_delta").await {
        client.take(&frame);
    }
    let asked = Instant::now();
    server.ask_to_end();
    let frames = rest(&mut client, &mut tab).await;
    assert_eq!(frames.last().unwrap()["type"], "run_interrupted");
    ends_in_order(&mut server, asked).await;
    drop(server);

    // Not one letter is lost: this was no crash.
    let server = house.start();
    client.come_back(&server).await;
    let found = client.assert_sound(&server).await;
    assert_eq!(found["messages"][1]["state"], "interrupted");
    let kept = found["messages"][1]["content"].as_str().unwrap();
    assert_eq!(kept, client.view.text(".text"));
    model.assert_clean();
}

#[tokio::test]
async fn sigterm_while_an_approval_waits_leaves_it_waiting() {
    let (model, house) = house(&[("NAVI_CONSENT_MODE", "ask")]);
    let mut server = house.start();
    let mut client = Client::new(&server).await;
    let mut tab = client.tab(&server).await;
    model.script([append("once")]);
    client.say(&mut tab, "c", "do it").await;
    // For the model it may have waited before.
    for kind in ["approval_requested", "run_waiting"] {
        let frames = tab.until(kind).await;
        frames.iter().for_each(|frame| client.take(frame));
    }
    // A request with its commit takes its time, too, where the machine has much to do.
    let begun = Instant::now();
    server.new_session().await;
    let busy = 10 * begun.elapsed();
    let asked = Instant::now();
    server.ask_to_end();
    assert_eq!(rest(&mut client, &mut tab).await, Vec::<Value>::new());
    // A tab that keeps its connection open after the goodbye is given two seconds.
    drop(tab);
    ends_in_order(&mut server, asked).await;
    let took = asked.elapsed();
    assert!(
        took < Duration::from_secs(8) + busy,
        "as if the run went: {took:?}"
    );
    drop(server);

    let server = house.start();
    let mut tab = client.come_back(&server).await;
    let found = client.assert_sound(&server).await;
    assert_eq!(found["state"], "running");
    let id = &found["approvals"][0]["approval_id"];
    tab.send(&json!({"type": "approve", "approval_id": id, "decision": "once"}))
        .await;
    assert_eq!(client.watch(&mut tab).await, Seen::End);
    assert_eq!(lines(&server, &client.session, "once"), 1);
    model.assert_clean();
}

/// Nobody opens the session again.
#[tokio::test]
async fn sigterm_while_a_message_waits_has_it_answered_after_the_next_start() {
    let (model, house) = house(&[]);
    let mut server = house.start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    model.script([Step::text("one "), Step::hold("end")]);
    tab.send(&json!({"type": "message", "content": "first"}))
        .await;
    tab.next_of("stream_delta").await;
    tab.send(&json!({"type": "message", "content": "second"}))
        .await;
    assert_eq!(tab.next_of("message_accepted").await["queued"], true);
    let asked = Instant::now();
    server.ask_to_end();
    server.says("shutting down").await;
    model.release("end");
    assert_eq!(tab.closed().await, SERVICE_RESTART);
    drop(tab);
    ends_in_order(&mut server, asked).await;
    drop(server);

    let _server = house.start();
    model
        .wait_for(|chats| {
            let mut chats = chats.iter();
            chats.any(|chat| chat.last_user_text().contains("second"))
        })
        .await;
    model.assert_clean();
}

/// The second signal ends it where it is, as a person means who sends it.
#[tokio::test]
async fn sigterm_twice() {
    let (model, house) = house(&[]);
    let mut server = house.start();
    let mut client = Client::new(&server).await;
    let mut tab = client.tab(&server).await;
    model.script([Step::text("never "), Step::Silence]);
    client.say(&mut tab, "c", "hello").await;
    for frame in tab.until("stream_delta").await {
        client.take(&frame);
    }
    server.ask_to_end();
    server.says("shutting down").await;
    server.ask_to_end();
    assert_eq!(server.ended().await.code(), Some(130), "{}", server.said());
    drop(server);

    let server = house.start();
    let mut tab = client.come_back(&server).await;
    let found = client.assert_sound(&server).await;
    assert_eq!(found["state"], "interrupted");
    client.say(&mut tab, "again", "again").await;
    assert_eq!(client.watch(&mut tab).await, Seen::End);
    model.assert_clean();
}

/// A run that streams, and tabs on it: every one is told all of it, and goodbye.
#[tokio::test]
async fn sigterm_with_100_tabs() {
    let (model, house) = house(&[]);
    let mut server = house.start();
    let mut clients = Vec::new();
    // One in the middle of an answer, three at rest: a local model answers one at a time.
    for at in 0..4 {
        let mut client = Client::named(&server).await;
        let mut tab = client.tab(&server).await;
        if at == 3 {
            model.script(
                Reply::new([Step::text("half "), Step::hold("rest"), Step::text("whole")])
                    .with_tools(true),
            );
            client.say(&mut tab, "c", "tell me").await;
            for frame in tab.until("stream_delta").await {
                client.take(&frame);
            }
        } else {
            client.say(&mut tab, "c", "half whole").await;
            assert_eq!(client.watch(&mut tab).await, Seen::End);
        }
        clients.push((client, tab));
    }
    let mut others = Vec::new();
    for at in 0..100 {
        let session = &clients[at % clients.len()].0.session;
        let mut tab = server.tab(session, Some(0)).await;
        let mut view = View::default();
        view.apply_all(&tab.until("stream_delta").await);
        others.push((at % clients.len(), tab, view));
    }
    // These never read.
    let mut deaf = Vec::new();
    for (client, _) in &clients {
        deaf.push(server.tab(&client.session, Some(0)).await);
    }
    let asked = Instant::now();
    server.ask_to_end();
    server.says("shutting down").await;
    model.release("rest");
    let mut seen = Vec::new();
    for (client, tab) in &mut clients {
        rest(client, tab).await;
        seen.push(client.view.clone());
    }
    for (at, mut tab, mut view) in others {
        loop {
            match tab.next().await {
                Told::Frame(frame) => view.apply(&frame),
                Told::Closed(code) => {
                    assert_eq!(code, SERVICE_RESTART);
                    break;
                }
            }
        }
        assert_eq!(view, seen[at]);
    }
    ends_in_order(&mut server, asked).await;
    drop(server);

    let server = house.start();
    for (client, _) in &mut clients {
        client.come_back(&server).await;
        let found = client.assert_sound(&server).await;
        let answer = found["messages"][1]["content"].as_str().unwrap();
        assert!(answer.ends_with("half whole"), "{answer}");
    }
    model.assert_clean();
}
