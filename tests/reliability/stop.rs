//! Stop works within a second, and the backend sees its connection close (promise 6).

use serde_json::json;

use super::{stop, talking};
use crate::fake_model::{FakeModel, Recorded, Step};
use crate::server::{House, Server, Socket, Told};

async fn begin(server: &Server) -> (String, Socket) {
    let session = server.new_session().await;
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "message", "content": "hi"})).await;
    (session, tab)
}

/// Stops, and sees that the session goes on.
async fn stop_and_go_on(model: &FakeModel, tab: &mut Socket) {
    stop(model, tab).await;
    // The next message is answered as ever.
    tab.send(&json!({"type": "message", "content": "again"}))
        .await;
    tab.next_of("stream_end").await;
}

/// Whether it is a run's call, and not a question of Navi's own before it.
fn streams(call: &Recorded) -> bool {
    call.body["stream"] != json!(false)
}

/// The call that the stopped run made.
fn answer(model: &FakeModel) -> Recorded {
    let mut calls = model.chats().into_iter().filter(streams);
    calls.next().unwrap()
}

#[tokio::test]
async fn stop_while_the_backend_has_sent_nothing() {
    let (model, server) = talking();
    model.script(vec![Step::Silence]);
    let (_, mut tab) = begin(&server).await;
    model
        .wait_for(|requests| requests.iter().any(streams))
        .await;
    stop_and_go_on(&model, &mut tab).await;
    assert!(answer(&model).closed_early_ms.is_some());
}

#[tokio::test]
async fn stop_in_the_middle_of_a_text_that_never_ends() {
    let (model, server) = talking();
    model.script(vec![Step::EndlessText {
        piece: "and ".into(),
        every_ms: 2,
    }]);
    let (session, mut tab) = begin(&server).await;
    for _ in 0..5 {
        tab.next_of("stream_delta").await;
    }
    stop_and_go_on(&model, &mut tab).await;
    assert!(answer(&model).closed_early_ms.is_some());
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(snapshot["messages"][1]["state"], "stopped");
    assert!(
        snapshot["messages"][1]["content"]
            .as_str()
            .unwrap()
            .starts_with("and and")
    );
}

#[tokio::test]
async fn stop_between_tools_gives_every_call_its_result() {
    let (model, server) = talking();
    let mut calls = (0..39)
        .map(|n| {
            Step::tool_call(
                "filesystem",
                json!({"action": "write", "path": format!("{n}.txt"), "content": "x".repeat(10_000)}),
            )
        })
        .collect::<Vec<_>>();
    // However fast the others are, Stop comes before all are through.
    let endless = json!({"action": "run", "command": "echo begun; sleep 600"});
    calls.insert(20, Step::tool_call("terminal", endless));
    model.script(calls);
    let (session, mut tab) = begin(&server).await;
    tab.next_of("tool_output").await;
    stop_and_go_on(&model, &mut tab).await;
    let snapshot = server.get(&format!("/sessions/{session}")).await;
    let outcomes: Vec<_> = snapshot["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|m| m["outcome"].as_str())
        .collect();
    assert_eq!(outcomes.len(), 40);
    assert!(outcomes.contains(&"stopped"), "{outcomes:?}");
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn stop_over_rest_is_the_same_stop() {
    let (model, server) = talking();
    model.script(vec![Step::text("half"), Step::Silence]);
    let (session, mut tab) = begin(&server).await;
    tab.next_of("stream_delta").await;
    server
        .post(&format!("/sessions/{session}/stop"), json!({}))
        .await;
    tab.next_of("stream_stopped").await;
}

#[tokio::test]
async fn what_a_stop_held_back_waits_after_a_crash_too() {
    let (model, server) = talking();
    model.script(vec![Step::text("half"), Step::Silence]);
    let (session, mut tab) = begin(&server).await;
    tab.next_of("stream_delta").await;
    tab.send(&json!({"type": "message", "content": "and then this"}))
        .await;
    tab.next_of("message_accepted").await;
    tab.send(&json!({"type": "stop", "hold": true})).await;
    tab.next_of("stream_stopped").await;
    let server = server.crash_and_restart();
    let path = format!("/sessions/{session}");
    let snapshot = server.get(&path).await;
    assert_eq!(snapshot["queue"][0]["content"], "and then this");
    assert_eq!(snapshot["run"], json!(null));

    model.script(vec![Step::text("done")]);
    let mut tab = server.tab(&session, None).await;
    tab.send(&json!({"type": "continue"})).await;
    let answer = tab.next_of("stream_end").await;
    assert_eq!(answer["content"], "done");
    let snapshot = server.get(&path).await;
    assert_eq!(snapshot["queue"], json!([]));
    assert_eq!(snapshot["messages"][2]["content"], "and then this");
}

#[tokio::test]
async fn a_stop_of_a_run_that_ended_leaves_the_one_that_goes_alone() {
    let (model, server) = talking();
    model.script(vec![Step::text("first")]);
    let (_, mut tab) = begin(&server).await;
    let ended = tab.next_of("stream_end").await["run_id"].clone();
    model.script(vec![
        Step::text("half"),
        Step::hold("stopped"),
        Step::text(" and half"),
    ]);
    tab.send(&json!({"type": "message", "content": "and then this"}))
        .await;
    tab.next_of("stream_delta").await;
    tab.send(&json!({"type": "stop", "hold": true, "run_id": ended}))
        .await;
    // Frames are taken in turn: once this one is refused, that one was done.
    tab.send(&json!({"type": "withdraw", "message_id": ended}))
        .await;
    tab.next_of("error").await;
    model.release("stopped");
    let answer = tab.next_of("stream_end").await;
    assert_eq!(answer["content"], "half and half");
}

#[tokio::test]
async fn stop_while_a_run_still_looks_for_a_backend() {
    // It takes the connection and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", silent.local_addr().unwrap());
    let server = House::new(&[("LLM_BACKEND", "openai"), ("OPENAI_BASE_URL", &url)]).start();
    // A run may join a look that is nearly over, and end before it is stopped: the next one looks anew.
    for _ in 0..10 {
        let (session, mut tab) = begin(&server).await;
        tab.next_of("message_accepted").await;
        tab.send(&json!({"type": "stop"})).await;
        let end = loop {
            match tab.next().await {
                Told::Frame(end) if end["type"] == "stream_stopped" => break end,
                Told::Frame(end) if end["type"] == "error" && end["seq"].is_u64() => break end,
                Told::Frame(_) => {}
                Told::Closed(code) => panic!("closed with {code}"),
            }
        };
        if end["type"] == "stream_stopped" {
            let snapshot = server.get(&format!("/sessions/{session}")).await;
            assert_eq!(snapshot["messages"].as_array().unwrap().len(), 1);
            return;
        }
    }
    panic!("each of ten runs had ended before it was stopped");
}
