//! The tools that a client lends, and what comes of their calls.

use serde_json::{Value, json};

use super::{ask, chunks, finish, joined, said, streamed, talking};
use crate::fake_model::{Reply, Step};
use crate::server::client;

/// A question with a tool of the client's, which wants a city.
fn with_weather(text: &str) -> Value {
    let mut body = streamed(said(text));
    body["tools"] = json!([{"type": "function", "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }}]);
    body
}

fn weather(arguments: Value) -> Step {
    Step::tool_call("weather", arguments)
}

/// The calls that an answer ended with.
fn calls(chunks: &[Value]) -> Vec<Value> {
    let deltas = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"]);
    deltas
        .filter_map(Value::as_array)
        .flatten()
        .cloned()
        .collect()
}

/// The body that comes with the results of these calls.
fn answered(mut body: Value, calls: &[Value], results: &[&str]) -> Value {
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
    for (call, result) in calls.iter().zip(results) {
        messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": result}));
    }
    body
}

#[tokio::test]
async fn calls_of_the_clients_own_tools_are_its_to_make() {
    let (model, server) = talking();
    model.script(vec![Step::text("I ask."), weather(json!({"city": "Kyiv"}))]);
    let body = with_weather("How is the weather?");
    let response = ask(&server, &body, &[]).await;
    let run = response.headers()["x-navi-run"].clone();
    assert!(!response.headers().contains_key("x-navi-session"));
    let first = chunks(response).await;
    assert_eq!(finish(&first), ["tool_calls"]);
    let called = calls(&first);
    assert_eq!(called[0]["index"], 0);
    assert_eq!(called[0]["function"]["name"], "weather");
    let arguments = called[0]["function"]["arguments"].as_str().unwrap();
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    assert_eq!(arguments, json!({"city": "Kyiv"}));

    model.script(vec![Step::text("It snows.")]);
    let body = answered(body, &called, &["snow, -3"]);
    // The second time the connection was cut, for all that the client knows.
    for tries in ["0", "1"] {
        let response = ask(&server, &body, &[("x-stainless-retry-count", tries)]).await;
        assert_eq!(response.headers()["x-navi-run"], run);
        let second = chunks(response).await;
        assert_eq!(joined(&second, "content").trim(), "It snows.");
        assert_eq!(finish(&second), ["stop"]);
    }
    let sent = model.chats();
    assert_eq!(sent.len(), 2);
    let sent = sent[1].body["messages"].to_string();
    assert!(sent.contains("snow, -3"), "{sent}");
}

#[tokio::test]
async fn a_call_that_cannot_be_made_is_not_the_clients_and_no_call_is_lost() {
    let (model, server) = talking();
    model.script(vec![weather(json!({"town": "Kyiv"}))]);
    model.script(vec![
        weather(json!({"city": "Kyiv"})),
        weather(json!({"city": "Lviv"})),
    ]);
    let body = with_weather("Compare.");
    let first = chunks(ask(&server, &body, &[]).await).await;
    let mut called = calls(&first);
    assert!((1..=2).contains(&called.len()), "{called:?}");
    let half = answered(body.clone(), &called[..1], &["snow"]);
    let again = calls(&chunks(ask(&server, &half, &[]).await).await);
    assert_eq!(again.len(), 1);
    // Where it began long after the first, it is handed over by itself, and now.
    assert!(called.get(1).is_none_or(|it| it["id"] == again[0]["id"]));
    called.truncate(1);
    called.extend(again);
    model.script(vec![Step::text("Both cold.")]);
    let whole = answered(body, &called, &["snow", "frost"]);
    let last = chunks(ask(&server, &whole, &[]).await).await;
    assert_eq!(joined(&last, "content").trim(), "Both cold.");
}

#[tokio::test]
async fn results_of_a_run_that_failed_begin_another_one() {
    let (model, server) = talking();
    model.script(vec![weather(json!({"city": "Kyiv"}))]);
    let body = with_weather("How is the weather?");
    let called = calls(&chunks(ask(&server, &body, &[]).await).await);
    let body = answered(body, &called, &["snow, -3"]);
    model.script(vec![Step::status(400, r#"{"error":"no"}"#)]);
    let failed = chunks(ask(&server, &body, &[]).await).await;
    assert!(failed.last().unwrap()["error"].is_object());
    model.script(vec![Step::text("It snows.")]);
    let again = chunks(ask(&server, &body, &[]).await).await;
    assert_eq!(joined(&again, "content"), "It snows.");
}

#[tokio::test]
async fn a_person_may_go_on_in_place_of_a_call() {
    for headers in [&[][..], &[("x-navi-session", "goes-on")]] {
        let (model, server) = talking();
        model.script(vec![weather(json!({"city": "Kyiv"}))]);
        let body = with_weather("How is the weather?");
        let called = calls(&chunks(ask(&server, &body, headers).await).await);
        let mut body = answered(body, &called, &["rejected by the user"]);
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "user", "content": "Never mind the weather."}));
        model.script(Reply::new(vec![Step::text("As you like.")]).when("Never mind"));
        let last = chunks(ask(&server, &body, headers).await).await;
        assert_eq!(joined(&last, "content"), "As you like.");
    }
}
