//! OpenAI's Responses, item by item. What clients of other hands make of them stands in
//! `tests/doors`.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Step};
use crate::server::{House, Server, TOKEN, client};

fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

async fn respond(server: &Server, body: &Value) -> Value {
    let request = client().post(format!("{}/v1/responses", server.url));
    let request = request.bearer_auth(TOKEN).json(body);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response.json().await.unwrap()
}

/// The messages of the newest model call that answers; titles come whole.
fn sent(model: &FakeModel) -> String {
    let mut calls = model.chats();
    calls.retain(|call| call.body["stream"] != false);
    calls.last().unwrap().body["messages"].to_string()
}

#[tokio::test]
async fn calls_that_were_made_together_have_their_results_in_a_history() {
    let (model, server) = talking();
    model.script(vec![Step::text("Snow here, rain there.")]);
    let call = |id: &str, city: &str| {
        let arguments = json!({"city": city}).to_string();
        json!({"type": "function_call", "call_id": id, "name": "weather", "arguments": arguments})
    };
    let output = |id: &str, text: &str| {
        let kind = "function_call_output";
        json!({"type": kind, "call_id": id, "output": text})
    };
    let body = json!({"model": "navi", "store": false, "input": [
        {"role": "user", "content": "How is the weather?"},
        call("a", "Kyiv"),
        call("b", "Lviv"),
        output("a", "snow in Kyiv"),
        output("b", "rain in Lviv"),
        {"role": "user", "content": "Well?"},
    ]});
    respond(&server, &body).await;
    let sent = sent(&model);
    for result in ["snow in Kyiv", "rain in Lviv"] {
        assert!(sent.contains(result), "{result}: {sent}");
    }
    assert!(!sent.contains("no result of this call"), "{sent}");
    model.assert_clean();
}

#[tokio::test]
async fn what_is_not_stored_leaves_the_session_that_it_goes_on_from_as_it_is() {
    let (model, server) = talking();
    model.script(vec![Step::text("One.")]);
    let first = respond(&server, &json!({"model": "navi", "input": "Count."})).await;
    let session = first["conversation"]["id"].as_str().unwrap();
    let session = format!("/sessions/{}", session.trim_start_matches("conv_"));
    let messages = server.get(&session).await["messages"].clone();
    model.script(vec![Step::text("Two.")]);
    let body = json!({
        "model": "navi", "input": "Go on.", "store": false, "previous_response_id": first["id"],
    });
    let second = respond(&server, &body).await;
    assert_eq!(second["output"][0]["content"][0]["text"], "Two.");
    assert_eq!(second["conversation"], Value::Null);
    let sent = sent(&model);
    for said in ["Count.", "One.", "Go on."] {
        assert!(sent.contains(said), "{said}: {sent}");
    }
    assert_eq!(server.get(&session).await["messages"], messages);
}

#[tokio::test]
async fn tools_that_are_taken_are_given_back() {
    let (model, server) = talking();
    let weather = json!({"type": "function", "name": "weather", "strict": false,
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}});
    let tools = json!([weather, {"type": "web_search"}]);
    let mut body = json!({"model": "navi", "input": "Hello.", "tools": tools});
    model.script(vec![Step::text("Hello.")]);
    assert_eq!(respond(&server, &body).await["tools"], json!([weather]));
    body["stream"] = json!(true);
    model.script(vec![Step::text("Hello.")]);
    let request = client().post(format!("{}/v1/responses", server.url));
    let request = request.bearer_auth(TOKEN).json(&body);
    let told = request.send().await.unwrap().text().await.unwrap();
    let told = told.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut told = told.map(|data| serde_json::from_str::<Value>(data).unwrap());
    let created = told.find(|event| event["type"] == "response.created");
    assert_eq!(created.unwrap()["response"]["tools"], json!([weather]));
}

#[tokio::test]
async fn a_response_ends_with_one_call_where_no_two_are_taken_at_once() {
    let (model, server) = talking();
    let tool = |name: &str| json!({"type": "function", "name": name});
    let mut body = json!({
        "model": "navi", "store": false, "parallel_tool_calls": false,
        "input": [{"role": "user", "content": "How is it out there?"}],
        "tools": [tool("weather"), tool("tides")],
    });
    let call = |name: &str| Step::tool_call(name, json!({}));
    model.script(vec![call("weather"), call("tides")]);
    for name in ["weather", "tides"] {
        let answer = respond(&server, &body).await;
        assert_eq!(answer["parallel_tool_calls"], false);
        let items = answer["output"].as_array().unwrap();
        let names: Vec<&Value> = items.iter().map(|item| &item["name"]).collect();
        assert_eq!(names, [name]);
        let (kind, call_id) = ("function_call_output", &items[0]["call_id"]);
        let result = json!({"type": kind, "call_id": call_id, "output": "calm"});
        let input = body["input"].as_array_mut().unwrap();
        input.extend([items[0].clone(), result]);
    }
    model.script(vec![Step::text("All is calm.")]);
    let answer = respond(&server, &body).await;
    assert_eq!(answer["output"][0]["content"][0]["text"], "All is calm.");
    body["parallel_tool_calls"] = Value::Null;
    body["input"] = json!("Hello.");
    model.script(vec![Step::text("Hello.")]);
    let answer = respond(&server, &body).await;
    assert_eq!(answer["parallel_tool_calls"], true);
}
