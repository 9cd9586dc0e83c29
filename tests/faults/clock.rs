//! The row "clock back an hour, ahead a month": timers go by another clock, and what comes
//! later stands later.

use serde_json::json;

use crate::fake_model::{FakeModel, Step};
use crate::server::{House, Server, Socket};
use crate::shim::Shim;
use crate::view::View;

const HOUR: i64 = 60 * 60;
const MONTH: i64 = 30 * 24 * HOUR;

fn start(variables: &[(&str, &str)]) -> (FakeModel, Shim, Server) {
    let model = FakeModel::start();
    let house = House::new(&[("OLLAMA_HOST", &model.url())]).with(variables);
    let (shim, house) = Shim::load(house);
    let server = house.start();
    (model, shim, server)
}

async fn send(tab: &mut Socket, content: &str) {
    tab.send(&json!({"type": "message", "content": content}))
        .await;
}

async fn listed(server: &Server) -> Vec<String> {
    let list = server.get("/sessions").await;
    let list = list.as_array().expect("a list").iter();
    list.map(|session| session["id"].as_str().expect("an id").to_owned())
        .collect()
}

#[tokio::test]
async fn order_holds_whatever_the_clock_does() {
    let (model, shim, server) = start(&[]);
    let (one, other) = (server.new_session().await, server.new_session().await);
    let mut said = Vec::new();
    for (step, ahead) in [0, -HOUR, -HOUR, MONTH, MONTH - HOUR]
        .into_iter()
        .enumerate()
    {
        shim.set_clock(ahead);
        for session in [&one, &other] {
            let mut tab = server.tab(session, None).await;
            send(&mut tab, &format!("step {step}")).await;
            tab.next_of("stream_end").await;
            let first = listed(&server).await.remove(0);
            assert_eq!(first, *session, "the latest stands first at {ahead} s");
        }
        said.push(format!("step {step}"));
        said.push(format!("You said: step {step}"));
    }
    let server = server.crash_and_restart();
    assert_eq!(listed(&server).await, [other, one.clone()]);
    let snapshot = server.get(&format!("/sessions/{one}")).await;
    let messages = snapshot["messages"].as_array().expect("messages");
    let told: Vec<_> = messages.iter().map(|message| &message["content"]).collect();
    assert_eq!(told, said.iter().collect::<Vec<_>>());
    let times: Vec<_> = messages
        .iter()
        .map(|message| message["created_at"].as_str().expect("a time"))
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    let mut tab = server.tab(&one, Some(0)).await;
    let mut view = View::default();
    while view.seq < snapshot["last_seq"].as_u64().expect("a number") {
        view.apply_all(&tab.until("stream_end").await);
    }
    model.assert_clean();
}

/// A limit that went by the wall clock would end the one run at once, and the other an hour late.
#[tokio::test]
async fn timers_do_not_go_by_the_clock_on_the_wall() {
    let (model, shim, server) = start(&[("LLM_STREAM_CHUNK_TIMEOUT", "20")]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    model.script([Step::text("one "), Step::hold("jumped"), Step::text("two")]);
    send(&mut tab, "ahead").await;
    tab.next_of("stream_delta").await;
    shim.set_clock(MONTH);
    // Other work goes on meanwhile, so that what is due by the new time would come.
    for _ in 0..5 {
        server.new_session().await;
    }
    model.release("jumped");
    let end = tab.next_of("stream_end").await;
    assert_eq!(end["content"], "one two");

    model.script([Step::text("one "), Step::Silence]);
    send(&mut tab, "back").await;
    tab.next_of("stream_delta").await;
    shim.set_clock(MONTH - HOUR);
    let error = tab.next_of("error").await;
    assert_eq!(error["code"], "chunk_timeout");
    model.assert_clean();
}

#[tokio::test]
async fn a_question_that_waits_still_waits_a_month_later() {
    let (model, shim, server) = start(&[("NAVI_CONSENT_MODE", "ask")]);
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    model.script([Step::tool_call(
        "filesystem",
        json!({"action": "write", "path": "a.txt", "content": "x"}),
    )]);
    send(&mut tab, "write").await;
    let asked = tab.next_of("approval_requested").await;
    shim.set_clock(MONTH);
    let other = server.new_session().await;
    let mut beside = server.tab(&other, None).await;
    send(&mut beside, "beside").await;
    beside.next_of("stream_end").await;
    tab.send(&json!({"type": "approve", "approval_id": asked["approval_id"], "decision": "once"}))
        .await;
    let resolved = tab.next_of("approval_resolved").await;
    assert_eq!(resolved["decision"], "once");
    let call = tab.next_of("tool_call").await;
    assert_eq!(call["success"], true);
    tab.next_of("stream_end").await;
    model.assert_clean();
}
