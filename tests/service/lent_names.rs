//! Tools of a program that are called as Navi's own: whose a call was is known when its run is over,
//! too.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Step};
use crate::server::{House, Server, TOKEN, client};

/// A response, by a request that says which it is.
async fn respond(server: &Server, key: &str, body: &Value) -> Value {
    let request = client().post(format!("{}/v1/responses", server.url));
    let request = request.header("idempotency-key", key).bearer_auth(TOKEN);
    let response = request.json(body).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response.json().await.unwrap()
}

fn kinds(response: &Value) -> Vec<&str> {
    let items = response["output"].as_array().unwrap().iter();
    items.filter_map(|item| item["type"].as_str()).collect()
}

#[tokio::test]
async fn a_call_of_a_programs_web_search_is_the_programs_when_its_run_is_over() {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    let search = json!({
        "type": "function", "name": "web_search",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
    });
    let asks = json!({"model": "navi", "input": "How is the weather?", "tools": [search]});
    let query = json!({"query": "the weather"});
    model.script(vec![Step::tool_call("web_search", query)]);
    let first = respond(&server, "one", &asks).await;
    assert_eq!(kinds(&first), ["function_call"]);

    model.script(vec![Step::text("Snow.")]);
    let result = json!({
        "type": "function_call_output",
        "call_id": first["output"][0]["call_id"], "output": "It snows.",
    });
    let goes_on = json!({
        "model": "navi", "previous_response_id": first["id"], "input": [result], "tools": [search],
    });
    let second = respond(&server, "two", &goes_on).await;
    assert_eq!(kinds(&second), ["message"]);

    for told in [&first, &second] {
        let id = told["id"].as_str().unwrap();
        let read = server.get(&format!("/v1/responses/{id}")).await;
        assert_eq!(read["output"], told["output"]);
    }
    let again = respond(&server, "one", &asks).await;
    assert_eq!(again["output"], first["output"]);
}
