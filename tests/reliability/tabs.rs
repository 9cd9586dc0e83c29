//! Every tab sees the same, from any moment on (promises 3 and 4).

use serde_json::json;

use super::talking;
use super::view::View;
use crate::fake_model::{Reply, Step};
use crate::server::{Server, Socket, Told};

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
