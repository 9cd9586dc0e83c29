//! What a page that is loaded again is told of a run: why it failed, what it had to say, what it
//! waits for.

use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Reply, Step};
use crate::server::{House, Server, Socket};

fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

async fn begin(server: &Server, text: &str) -> (String, Socket) {
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": text})).await;
    (session, tab)
}

async fn snapshot(server: &Server, session: &str) -> Value {
    server.get(&format!("/sessions/{session}")).await
}

#[tokio::test]
async fn why_a_run_failed() {
    let (model, server) = talking();
    for _ in 0..2 {
        model.script(Reply::new([]).with_tools(true));
    }
    let (session, mut tab) = begin(&server, "hello").await;
    let error = tab.next_of("error").await;
    assert_eq!(error["code"], "empty_reply");
    let found = snapshot(&server, &session).await;
    assert_eq!(
        (&found["state"], &found["reason"]),
        (&json!("failed"), &error["message"])
    );
    let server = server.crash_and_restart();
    assert_eq!(
        snapshot(&server, &session).await["reason"],
        error["message"]
    );
    model.assert_clean();
}

/// A notice, as it was told and as it is kept.
fn line(notice: &Value) -> Value {
    json!([notice["seq"], notice["code"], notice["message"]])
}

#[tokio::test]
async fn what_a_run_had_to_say() {
    let (model, server) = talking();
    // Its profile's model is not there.
    let (session, mut tab) = begin(&server, "hello").await;
    let frames = tab.until("stream_end").await;
    let told = frames.iter().filter(|frame| frame["type"] == "notice");
    let told: Vec<_> = told.map(line).collect();
    assert_eq!(told.len(), 1, "{frames:#?}");
    let found = snapshot(&server, &session).await["notices"].clone();
    let kept: Vec<_> = found.as_array().into_iter().flatten().map(line).collect();
    assert_eq!(kept, told);
    let server = server.crash_and_restart();
    assert_eq!(snapshot(&server, &session).await["notices"], found);
    model.assert_clean();
}

#[tokio::test]
async fn what_a_run_waits_for() {
    let (model, server) = talking();
    model.script(Reply::new([Step::text("one"), Step::hold("gate")]).with_tools(true));
    let (_, mut first) = begin(&server, "long").await;
    first.next_of("stream_delta").await;
    let (session, mut second) = begin(&server, "short").await;
    let told = second.next_of("run_waiting").await;
    let waiting = snapshot(&server, &session).await["run"]["waiting"].clone();
    assert_eq!(waiting["reason"], "lane", "{waiting}");
    assert_eq!(waiting["detail"], told["detail"]);
    model.release("gate");
    second.next_of("stream_end").await;
    assert_eq!(snapshot(&server, &session).await["run"], Value::Null);
    model.assert_clean();
}
