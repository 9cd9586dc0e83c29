//! Tools that a program lends to a run which it follows over its socket, as the bridge of an editor
//! does.

use reqwest::Method;
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Recorded, Step};
use crate::server::{House, Server, Socket};

const BRIDGE: &str = "bridge:1";

fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

/// The socket of a program that lends.
async fn bridge(server: &Server, session: &str) -> Socket {
    let path = format!("/ws/sessions/{session}?after=0&lender={BRIDGE}");
    server.socket(&path).await
}

async fn lend(server: &Server, session: &str, client_id: &str) {
    let tool = json!({
        "name": "weather", "description": "The weather.", "effect": "read",
        "parameters": {"type": "object", "properties": {}},
    });
    let lent = json!({"client_id": client_id, "tools": [tool], "lender": BRIDGE});
    let path = format!("/sessions/{session}/lent");
    let (status, said) = server.call(Method::POST, &path, Some(lent)).await;
    assert!(status.is_success(), "{said}");
}

/// A run that waits for a call of what was lent, with its id.
async fn waiting(model: &FakeModel, server: &Server, socket: &mut Socket, session: &str) -> String {
    model.script(vec![Step::tool_call("weather", json!({}))]);
    lend(server, session, "one").await;
    socket
        .send(&json!({"type": "message", "content": "How is it?", "client_id": "one"}))
        .await;
    let started = socket.next_of("tool_started").await;
    started["run_id"].as_str().unwrap().to_owned()
}

async fn is_waited_for(server: &Server, run: &str) {
    // Told to begin, it waits a moment later.
    loop {
        let waits = server.get(&format!("/runs/{run}/lent")).await;
        if waits["calls"]
            .as_array()
            .is_some_and(|calls| !calls.is_empty())
        {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_call_whose_program_has_gone_ends_and_its_run_goes_on() {
    let (model, server) = talking();
    let session = server.new_session().await;
    let mut page = server.tab(&session, Some(0)).await;
    let mut socket = bridge(&server, &session).await;
    let run = waiting(&model, &server, &mut socket, &session).await;
    is_waited_for(&server, &run).await;
    model.script(vec![Step::text("I cannot see it.")]);
    drop(socket);
    // Long before the ten minutes that a program has for a result.
    let ended = page.next_of("tool_call").await;
    assert_eq!(ended["success"], false);
    let said = ended["result"].as_str().unwrap();
    assert!(
        said.contains("the program that lent this tool has ended"),
        "{said}"
    );
    assert_eq!(
        page.next_of("stream_end").await["content"],
        "I cannot see it."
    );
}

#[tokio::test]
async fn a_program_that_comes_back_finds_its_call_waiting() {
    let (model, server) = talking();
    let session = server.new_session().await;
    let mut socket = bridge(&server, &session).await;
    let run = waiting(&model, &server, &mut socket, &session).await;
    is_waited_for(&server, &run).await;
    drop(socket);
    let mut socket = bridge(&server, &session).await;
    model.script(vec![Step::text("It snows.")]);
    let path = format!("/runs/{run}/lent");
    let call = server.get(&path).await["calls"][0]["id"].clone();
    let returned = json!({"call_id": call, "content": "snow"});
    let (status, _) = server.call(Method::POST, &path, Some(returned)).await;
    assert!(status.is_success());
    assert_eq!(socket.next_of("stream_end").await["content"], "It snows.");
    let heard = |call: &Recorded| call.body["messages"].to_string().contains("snow");
    assert!(model.chats().iter().any(heard));
}

#[tokio::test]
async fn how_a_lender_calls_itself_is_checked() {
    let (_model, server) = talking();
    let session = server.new_session().await;
    let lent = json!({"client_id": "one", "tools": [], "lender": "a\nb"});
    let path = format!("/sessions/{session}/lent");
    let (_, error): (_, Value) = server.call(Method::POST, &path, Some(lent)).await;
    assert_eq!(error["code"], "invalid_field");
    let path = format!("/ws/sessions/{session}?lender=");
    let mut socket = server.socket(&path).await;
    assert_eq!(socket.closed().await, 1008);
}
