//! A cursor ahead, of another epoch, or older than anything: a typed answer and a snapshot, or
//! all that there is. That of one from before the log's beginning, which days make
//! (`NAVI_LOG_DAYS`), is tested in the engine.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Step};
use crate::server::{House, PATIENCE, Server, Socket, Told};
use crate::view::View;

/// The code of a service that cannot just now.
const AGAIN: u16 = 1013;

fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

async fn snapshot(server: &Server, session: &str) -> Value {
    untitled(&server.get(&format!("/sessions/{session}")).await)
}

/// Without its title, which comes when it comes.
fn untitled(session: &Value) -> Value {
    let mut session = session.clone();
    session.as_object_mut().unwrap().remove("title");
    session
}

/// A session with so many turns.
async fn talked(server: &Server, turns: usize) -> String {
    let session = server.new_session().await;
    talk(server, &session, turns).await;
    session
}

async fn talk(server: &Server, session: &str, turns: usize) {
    let mut tab = server.tab(session, None).await;
    for turn in 0..turns {
        let message = json!({"type": "message", "content": format!("turn {turn}")});
        tab.send(&message).await;
        tab.next_of("stream_end").await;
    }
}

async fn comes_back(server: &Server, session: &str, after: u64, epoch: Option<i64>) -> Socket {
    let epoch = epoch.map_or_else(String::new, |epoch| format!("&epoch={epoch}"));
    let path = format!("/ws/sessions/{session}?after={after}{epoch}");
    server.socket(&path).await
}

/// Comes back and hears the first thing that is told. As a page does: where the service says to
/// try again later, it does.
async fn joins(server: &Server, session: &str, after: u64, epoch: Option<i64>) -> (Socket, Value) {
    let until = Instant::now() + PATIENCE;
    loop {
        let mut tab = comes_back(server, session, after, epoch).await;
        match tab.next().await {
            Told::Frame(frame) => return (tab, frame),
            Told::Closed(AGAIN) if Instant::now() < until => {}
            Told::Closed(code) => panic!("closed with {code}"),
        }
    }
}

/// Sends a message, and sees it answered after what the tab was shown, without a gap.
async fn goes_on(tab: &mut Socket, seq: u64) {
    let mut view = View::after(seq);
    tab.send(&json!({"type": "message", "content": "and now"}))
        .await;
    let frames = tab.until("stream_end").await;
    view.apply_all(&frames);
    assert_eq!(view.text(".text"), "You said: and now");
}

#[tokio::test]
async fn a_cursor_ahead_gets_a_resync_with_a_snapshot_and_what_comes() {
    let (model, server) = talking();
    let session = talked(&server, 2).await;
    for ahead in [1, 1000, i64::MAX as u64, u64::MAX / 2] {
        let now = snapshot(&server, &session).await;
        let last = now["last_seq"].as_u64().unwrap();
        let epoch = now["epoch"].as_i64();
        for epoch in [None, epoch] {
            let (_, told) = joins(&server, &session, last + ahead, epoch).await;
            assert_eq!(
                (&told["type"], &told["reason"]),
                (&json!("resync"), &json!("cursor_ahead"))
            );
            assert_eq!(untitled(&told["session"]), now);
            assert_eq!(told["seq"], now["last_seq"]);
        }
        let (mut tab, told) = joins(&server, &session, u64::MAX, None).await;
        assert_eq!(told["reason"], "cursor_ahead");
        goes_on(&mut tab, last).await;
    }
    model.assert_clean();
}

#[tokio::test]
async fn a_cursor_ahead_of_a_run_gets_its_open_part_from_the_beginning() {
    let (model, server) = talking();
    let session = talked(&server, 1).await;
    model.script([
        Step::Thinking("hm, ".to_owned()),
        Step::text("Hel"),
        Step::hold("gate"),
        Step::text("lo 🌍"),
    ]);
    let mut stays = server.tab(&session, None).await;
    stays
        .send(&json!({"type": "message", "content": "hi"}))
        .await;
    stays.next_of("stream_delta").await;
    let now = snapshot(&server, &session).await;
    let (mut tab, told) = joins(&server, &session, u64::MAX, None).await;
    assert_eq!(told["reason"], "cursor_ahead");
    assert_eq!(untitled(&told["session"]), now);
    assert_eq!(told["run_id"], now["run"]["run_id"]);
    let mut view = View::after(told["seq"].as_u64().unwrap());
    model.release("gate");
    view.apply_all(&tab.until("stream_end").await);
    assert_eq!(view.text(".text"), "Hello 🌍");
    assert_eq!(view.text(".thinking"), "hm, ");
    model.assert_clean();
}

#[tokio::test]
async fn a_cursor_of_another_epoch_gets_a_resync_with_a_snapshot_and_what_comes() {
    let (model, server) = talking();
    let session = talked(&server, 1).await;
    let before = snapshot(&server, &session).await;
    let (last, epoch) = (
        before["last_seq"].as_u64().unwrap(),
        before["epoch"].as_i64().unwrap(),
    );
    for (after, other) in [
        (last, epoch + 1),
        (last, -1),
        (0, i64::MAX),
        (u64::MAX, i64::MIN),
    ] {
        let (_, told) = joins(&server, &session, after, Some(other)).await;
        assert_eq!(
            (&told["type"], &told["reason"]),
            (&json!("resync"), &json!("epoch_changed"))
        );
        assert_eq!(untitled(&told["session"]), before);
    }

    // The epoch of a service that was killed in mid-answer.
    model.script([Step::text("half of it"), Step::Silence]);
    let mut tab = comes_back(&server, &session, last, Some(epoch)).await;
    tab.send(&json!({"type": "message", "content": "hi"})).await;
    let mut seen = View::after(last);
    seen.apply_all(&tab.until("stream_delta").await);
    let server = server.crash_and_restart();
    let (mut tab, told) = joins(&server, &session, seen.seq, Some(epoch)).await;
    assert_eq!(told["reason"], "epoch_changed");
    let now = snapshot(&server, &session).await;
    assert_eq!(untitled(&told["session"]), now);
    assert_eq!(
        (&now["state"], &now["run"]),
        (&json!("interrupted"), &Value::Null)
    );
    assert_ne!(now["epoch"], before["epoch"]);
    goes_on(&mut tab, now["last_seq"].as_u64().unwrap()).await;
    model.assert_clean();
}

/// A database that was put back knows less than the tab, and may count the same epoch again.
#[tokio::test]
async fn a_cursor_of_a_database_that_was_put_back_gets_a_resync() {
    let (model, server) = talking();
    if server.house().variable("DATABASE_URL").is_some() {
        // What is put back is SQLite's file.
        return;
    }
    let house = server.house().clone();
    let session = talked(&server, 1).await;
    drop(server);
    let files = ["navi.db", "navi.db-wal", "navi.db-shm"].map(|name| house.data_dir().join(name));
    let kept = files.clone().map(|file| fs::read(file).ok());
    let server = house.start();
    talk(&server, &session, 2).await;
    let seen = snapshot(&server, &session).await;
    drop(server);
    for (file, bytes) in files.iter().zip(kept) {
        match bytes {
            Some(bytes) => fs::write(file, bytes).unwrap(),
            None => drop(fs::remove_file(file)),
        }
    }
    let server = house.start();
    let after = seen["last_seq"].as_u64().unwrap();
    let (mut tab, told) = joins(&server, &session, after, seen["epoch"].as_i64()).await;
    assert_eq!(told["type"], "resync", "{told}");
    assert_eq!(
        untitled(&told["session"]),
        snapshot(&server, &session).await
    );
    assert_eq!(told["session"]["messages"].as_array().unwrap().len(), 2);
    goes_on(&mut tab, told["seq"].as_u64().unwrap()).await;
    model.assert_clean();
}

#[tokio::test]
async fn a_cursor_of_the_first_day_gets_everything() {
    let model = FakeModel::start();
    // Summaries leave the log as it is.
    let house = House::new(&[("OLLAMA_HOST", &model.url()), ("CONTEXT_KEEP_RECENT", "1")]);
    let mut server = house.start();
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    let mut seen = View::default();
    for turn in 0..6 {
        model.script([
            Step::text(&format!("answer {turn}")),
            Step::Finish {
                reason: "stop".to_owned(),
                prompt_tokens: 64_000,
                completion_tokens: 10,
            },
        ]);
        let message = json!({"type": "message", "content": format!("turn {turn}")});
        tab.send(&message).await;
        seen.apply_all(&tab.until("stream_end").await);
        if turn % 2 == 1 {
            server = server.crash_and_restart();
            tab = comes_back(&server, &session, seen.seq, None).await;
        }
    }
    let mut tab = server.tab(&session, Some(0)).await;
    let mut view = View::default();
    while view.seq < seen.seq {
        let Told::Frame(frame) = tab.next().await else {
            panic!("closed at {}", view.seq);
        };
        view.apply(&frame);
    }
    assert_eq!(view, seen);
    model.assert_clean();
}
