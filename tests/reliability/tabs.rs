//! Every tab sees the same, from any moment on (promises 3 and 4).

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use crate::fake_model::{Reply, Step};
use crate::server::{Server, Socket, Told};
use crate::talking;
use crate::view::View;

/// Reasoning, a tool call, and an answer with letters of every width, in many pieces.
fn long_answer() -> [Vec<Step>; 2] {
    let pieces = ["Привіт ", "🌍🌍 ", "straße ", "plain ", "\n\n"];
    let mut first = vec![Step::Thinking("let me see. ".into())];
    first.push(Step::tool_call(
        "filesystem",
        json!({"action": "write", "path": "a.txt", "content": "x"}),
    ));
    let mut second = Vec::new();
    for n in 0..60 {
        second.push(Step::text(&format!("{n}{}", pieces[n % pieces.len()])));
        second.push(Step::DelayMs(4));
    }
    [first, second]
}

async fn next_frame(tab: &mut Socket) -> serde_json::Value {
    match tab.next().await {
        Told::Frame(frame) => frame,
        Told::Closed(code) => panic!("closed with {code}"),
    }
}

/// Reads until this many frames more, or the end of the run.
async fn read_some(tab: &mut Socket, view: &mut View, count: usize) -> bool {
    for _ in 0..count {
        let frame = next_frame(tab).await;
        view.apply(&frame);
        if frame["type"] == "stream_end" {
            return true;
        }
    }
    false
}

async fn whole(server: &Server, session: &str) -> View {
    let mut tab = server.tab(session, Some(0)).await;
    let mut view = View::default();
    while !read_some(&mut tab, &mut view, 100).await {}
    view
}

/// The sessions are read from the store for this, many at once: some tabs join late.
#[tokio::test]
async fn a_tab_is_told_what_comes_of_frames_that_it_sent_before_it_had_joined() {
    let (model, server) = talking();
    model.script(Reply::new([Step::Silence]).always());
    let mut sessions = Vec::new();
    for _ in 0..24 {
        sessions.push(server.new_session().await);
    }
    let server = server.crash_and_restart();
    let visits = sessions.iter().map(|session| async {
        let mut tab = server.tab(session, None).await;
        tab.send(&json!({"type": "message", "content": "hi"})).await;
        tab.send(&json!({"type": "stop"})).await;
        let told = tab.until("stream_stopped").await;
        assert_eq!(told[0]["type"], "message_accepted", "{told:#?}");
    });
    futures_util::future::join_all(visits).await;
}

#[tokio::test]
async fn two_tabs_one_that_joins_and_one_that_comes_back_see_the_same() {
    let (model, server) = talking();
    model.script(vec![
        Step::text("Hel"),
        Step::hold("a"),
        Step::text("lo 🌍 "),
        Step::hold("b"),
        Step::text("world"),
    ]);
    let session = server.new_session().await;
    let mut one = server.tab(&session, None).await;
    let mut two = server.tab(&session, None).await;
    let (mut seen_one, mut seen_two) = (View::default(), View::default());
    one.send(&json!({"type": "message", "content": "hi"})).await;
    seen_one.apply_all(&one.until("stream_delta").await);
    seen_two.apply_all(&two.until("stream_delta").await);

    let mut joined = server.tab(&session, None).await;
    let mut seen_joined = View::default();
    seen_joined.apply_all(&joined.until("stream_delta").await);
    drop(two);
    model.release("a");
    seen_one.apply_all(&one.until("stream_delta").await);
    let mut two = server.tab(&session, Some(seen_two.seq)).await;
    model.release("b");
    seen_one.apply_all(&one.until("stream_end").await);
    seen_joined.apply_all(&joined.until("stream_end").await);
    seen_two.apply_all(&two.until("stream_end").await);

    assert_eq!(seen_one.text(".text"), "Hello 🌍 world");
    assert_eq!(seen_one, seen_joined);
    assert_eq!(seen_one, seen_two);
    assert_eq!(seen_one, whole(&server, &session).await);
    model.assert_clean();
}

#[tokio::test]
async fn a_connection_cut_at_a_hundred_random_points_loses_and_repeats_nothing() {
    let seed: u64 = rand::rng().random();
    let mut random = StdRng::seed_from_u64(seed);
    let (model, server) = talking();
    let session = server.new_session().await;
    let mut view = View::default();
    let mut cuts = 0;
    while cuts < 100 {
        for reply in long_answer() {
            model.script(reply);
        }
        let mut tab = server.tab(&session, Some(view.seq)).await;
        tab.send(&json!({"type": "message", "content": "go"})).await;
        loop {
            let count = random.random_range(1..8);
            if read_some(&mut tab, &mut view, count).await {
                break;
            }
            drop(tab);
            cuts += 1;
            tab = server.tab(&session, Some(view.seq)).await;
        }
    }
    assert_eq!(
        view,
        whole_of_all(&server, &session, view.seq).await,
        "seed {seed}"
    );
    model.assert_clean();
}

/// Everything from the start, as one who was never cut off.
async fn whole_of_all(server: &Server, session: &str, upto: u64) -> View {
    let mut tab = server.tab(session, Some(0)).await;
    let mut view = View::default();
    while view.seq < upto {
        view.apply(&next_frame(&mut tab).await);
    }
    view
}
