//! What a program demands of an answer over OpenAI's protocols and Ollama's: calls of its own tools,
//! the form of the text, and parts of messages that are not taken.

use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Recorded, Reply, Step};
use crate::server::{House, Server, TOKEN, client};

fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

async fn post(server: &Server, path: &str, body: &Value) -> Response {
    let request = client().post(format!("{}{path}", server.url));
    let request = request.bearer_auth(TOKEN).json(body);
    request.send().await.unwrap()
}

async fn chat(server: &Server, body: &Value) -> Value {
    let response = post(server, "/v1/chat/completions", body).await;
    assert_eq!(response.status(), StatusCode::OK);
    response.json().await.unwrap()
}

/// A question with two tools of the program's, of which this is chosen.
fn with_tools(choice: &Value) -> Value {
    let tool = |name: &str| {
        let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        json!({"type": "function", "function": {"name": name, "parameters": parameters}})
    };
    json!({
        "model": "navi",
        "messages": [{"role": "user", "content": "How is the weather?"}],
        "tools": [tool("weather"), tool("tides")],
        "tool_choice": choice,
    })
}

fn weather() -> Step {
    Step::tool_call("weather", json!({"city": "Kyiv"}))
}

/// The names of the tools that a model call offered.
fn offered(call: &Recorded) -> Vec<String> {
    let tools = call.body["tools"].as_array();
    let names = tools.into_iter().flatten();
    let names = names.filter_map(|tool| tool["function"]["name"].as_str());
    names.map(str::to_owned).collect()
}

/// What an answer said, and the first call that it ended with.
fn told(answer: &Value) -> (&Value, &Value) {
    let message = &answer["choices"][0]["message"];
    (&message["content"], &message["tool_calls"][0])
}

#[tokio::test]
async fn a_call_that_a_program_demands_is_made_whatever_the_model_would_rather_do() {
    let (model, server) = talking();
    let named = json!({"type": "function", "function": {"name": "weather"}});
    for choice in [json!("required"), named.clone()] {
        let before = model.chats().len();
        model.script(vec![Step::text("It snows, I think.")]);
        model.script(vec![weather()]);
        let answer = chat(&server, &with_tools(&choice)).await;
        let (text, call) = told(&answer);
        assert_eq!(
            (text, &call["function"]["name"]),
            (&json!(""), &json!("weather"))
        );
        assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
        let calls = model.chats().split_off(before);
        // At first her own tools are there, too.
        assert!(offered(&calls[0]).len() > 2, "{:?}", offered(&calls[0]));
        assert_eq!(
            offered(&calls[0]).contains(&"tides".to_owned()),
            choice != named
        );
        let last = offered(&calls[1]);
        assert!(
            last.iter()
                .all(|name| ["weather", "tides"].contains(&&**name)),
            "{last:?}"
        );
    }
}

#[tokio::test]
async fn a_model_that_never_makes_the_call_is_an_error_and_no_answer() {
    let (model, server) = talking();
    model.script(vec![Step::text("It snows.")]);
    model.script(vec![Step::text("It snows, I said.")]);
    let body = with_tools(&json!("required"));
    let response = post(&server, "/v1/chat/completions", &body).await;
    assert_eq!(response.status(), StatusCode::FAILED_DEPENDENCY);
    let error: Value = response.json().await.unwrap();
    let said = error["error"]["message"].as_str().unwrap();
    assert!(said.contains("tool_choice"), "{said}");
}

#[tokio::test]
async fn what_the_request_with_the_results_chooses_counts_from_there_on() {
    let (model, server) = talking();
    model.script(vec![weather()]);
    let first = with_tools(&json!("required"));
    let answer = chat(&server, &first).await;
    let call = told(&answer).1.clone();
    let mut body = first;
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
    messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "snow"}));
    body["tool_choice"] = json!("none");
    body["response_format"] = json!({"type": "json_object"});
    model.script(vec![Step::text(r#"{"weather": "snow"}"#)]);
    let answer = chat(&server, &body).await;
    assert_eq!(told(&answer).0, r#"{"weather": "snow"}"#);
    let calls = model.chats();
    assert_eq!(calls.len(), 2);
    let names = offered(&calls[1]);
    assert!(
        !names.is_empty() && !names.contains(&"weather".to_owned()),
        "{names:?}"
    );
}

#[tokio::test]
async fn calls_come_one_by_one_to_a_program_that_takes_no_two_at_once() {
    let (model, server) = talking();
    let tides = Step::tool_call("tides", json!({"city": "Odesa"}));
    model.script(vec![weather(), tides]);
    let mut body = with_tools(&json!("auto"));
    body["parallel_tool_calls"] = json!(false);
    for name in ["weather", "tides"] {
        let answer = chat(&server, &body).await;
        let calls = &answer["choices"][0]["message"]["tool_calls"];
        let names = calls.as_array().unwrap().iter();
        let names: Vec<&Value> = names.map(|call| &call["function"]["name"]).collect();
        assert_eq!(names, [name]);
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
        messages.push(json!({"role": "tool", "tool_call_id": calls[0]["id"], "content": "calm"}));
    }
    model.script(vec![Step::text("All is calm.")]);
    let answer = chat(&server, &body).await;
    assert_eq!(told(&answer).0, "All is calm.");
    // It was one run: the model made both calls in one reply.
    assert_eq!(model.chats().len(), 2);
}

#[tokio::test]
async fn a_choice_of_tools_that_cannot_be_made_is_refused() {
    let (model, server) = talking();
    let mut without = with_tools(&json!("required"));
    without["tools"] = json!([]);
    let unknown = json!({"type": "function", "function": {"name": "oven"}});
    for (body, said) in [
        (without, "no function in tools"),
        (with_tools(&unknown), "oven"),
        (with_tools(&json!("any")), "any"),
        (with_tools(&json!({"type": "web_search"})), "web_search"),
    ] {
        let response = post(&server, "/v1/chat/completions", &body).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        let error: Value = response.json().await.unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(said), "{message}");
    }
    let body = json!({
        "model": "navi", "input": "Hello.",
        "tools": [{"type": "web_search"}], "tool_choice": "required",
    });
    let response = post(&server, "/v1/responses", &body).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(model.chats().len(), 0);
}

#[tokio::test]
async fn responses_heed_what_is_chosen_and_demanded() {
    let (model, server) = talking();
    let mut body = json!({
        "model": "navi", "input": "How is the weather?", "store": false,
        "tools": [{"type": "function", "name": "weather", "parameters": {"type": "object"}}],
        "tool_choice": {"type": "function", "name": "weather"},
    });
    model.script(vec![Step::text("It snows.")]);
    model.script(vec![weather()]);
    let answer: Value = post(&server, "/v1/responses", &body)
        .await
        .json()
        .await
        .unwrap();
    let items = answer["output"].as_array().unwrap();
    let kinds: Vec<&Value> = items.iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["function_call"], "{answer}");
    assert_eq!(answer["tool_choice"], body["tool_choice"]);

    let format = json!({"type": "json_schema", "name": "city", "schema": city()});
    body["text"] = json!({"format": format});
    body["tool_choice"] = json!("none");
    body["input"] = json!("Which city?");
    model.script(vec![Step::text("Kyiv")]);
    model.script(vec![Step::text(r#"{"city": "Kyiv"}"#)]);
    let answer: Value = post(&server, "/v1/responses", &body)
        .await
        .json()
        .await
        .unwrap();
    let item = answer["output"].as_array().unwrap().last().unwrap();
    assert_eq!(item["content"][0]["text"], r#"{"city": "Kyiv"}"#);
    assert_eq!(answer["text"]["format"], format);
}

fn city() -> Value {
    json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": false,
    })
}

fn question(format: &Value) -> Value {
    json!({
        "model": "navi",
        "messages": [{"role": "user", "content": "Which city?"}],
        "response_format": format,
    })
}

fn of_city() -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "city", "schema": city(), "strict": true}})
}

#[tokio::test]
async fn an_answer_has_the_form_that_is_demanded_and_nothing_else_is_told() {
    let (model, server) = talking();
    model.script(vec![
        Step::text("I look."),
        Step::tool_call("todo", json!({"action": "list"})),
    ]);
    model.script(vec![Step::text("It is Kyiv.")]);
    model.script(vec![Step::text(r#"{"city":"#), Step::text(r#" "Kyiv"}"#)]);
    let request = client().post(format!("{}/v1/chat/completions", server.url));
    let request = request
        .header("x-navi-session", "cities")
        .bearer_auth(TOKEN);
    let request = request.json(&question(&of_city()));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let session = response.headers()["x-navi-session"]
        .to_str()
        .unwrap()
        .to_owned();
    let answer: Value = response.json().await.unwrap();
    assert_eq!(told(&answer).0, r#"{"city": "Kyiv"}"#);
    // With tools a form would forbid their calls: only the last call is held to it.
    let mut calls = model.chats();
    // The session is given a title beside it.
    calls.retain(|call| call.body["stream"] != json!(false));
    let formats: Vec<&Value> = calls.iter().map(|call| &call.body["format"]).collect();
    assert_eq!(formats, [&Value::Null, &Value::Null, &city()]);
    assert!(calls[0].body["messages"][0].to_string().contains("JSON"));
    assert!(
        calls[2].body["messages"]
            .to_string()
            .contains("It is Kyiv.")
    );
    // So it stands in the conversation.
    let shown = server.get(&format!("/sessions/{session}")).await;
    let shown = shown["messages"].to_string();
    assert!(
        shown.contains("Kyiv") && !shown.contains("It is"),
        "{shown}"
    );
}

#[tokio::test]
async fn an_answer_that_has_its_form_is_asked_for_once() {
    let (model, server) = talking();
    model.script(vec![Step::text(r#"{"city": "Kyiv"}"#)]);
    let answer = chat(&server, &question(&json!({"type": "json_object"}))).await;
    assert_eq!(told(&answer).0, r#"{"city": "Kyiv"}"#);
    assert_eq!(model.chats().len(), 1);
    // What demands nothing is answered as ever.
    model.script(vec![Step::text("Kyiv.")]);
    let answer = chat(&server, &question(&json!({"type": "text"}))).await;
    assert_eq!(told(&answer).0, "Kyiv.");
}

#[tokio::test]
async fn an_answer_that_never_has_its_form_is_an_error() {
    let (model, server) = talking();
    model.script(vec![Step::text("Kyiv")]);
    model.script(vec![Step::text(r#"{"town": "Kyiv"}"#)]);
    let response = post(&server, "/v1/chat/completions", &question(&of_city())).await;
    assert_eq!(response.status(), StatusCode::FAILED_DEPENDENCY);
    let error: Value = response.json().await.unwrap();
    let said = error["error"]["message"].as_str().unwrap();
    assert!(said.contains("form that was demanded"), "{said}");
}

#[tokio::test]
async fn a_small_task_has_its_form_too() {
    let (model, server) = talking();
    for said in [r#"{"title": "Rivers"}"#, "Rivers"] {
        model.script(Reply::new(vec![Step::text(said)]).streamed(false));
    }
    let mut body = question(&json!({"type": "json_object"}));
    body["messages"][0]["content"] = json!("### Task:\nA title, as JSON.");
    let answer = chat(&server, &body).await;
    assert_eq!(told(&answer).0, r#"{"title": "Rivers"}"#);
    assert_eq!(model.chats()[0].body["format"], "json");
    let response = post(&server, "/v1/chat/completions", &body).await;
    assert_eq!(response.status(), StatusCode::FAILED_DEPENDENCY);
}

#[tokio::test]
async fn ollamas_format_is_heeded() {
    let (model, server) = talking();
    for (path, format) in [("/api/chat", json!("json")), ("/api/generate", city())] {
        model.script(vec![Step::text("Kyiv")]);
        model.script(vec![Step::text(r#"{"city": "Kyiv"}"#)]);
        let body = json!({
            "model": "navi", "stream": false, "format": format, "prompt": "Which city?",
            "messages": [{"role": "user", "content": "Which city?"}],
        });
        let answer: Value = post(&server, path, &body).await.json().await.unwrap();
        let text = answer["message"]["content"]
            .as_str()
            .or(answer["response"].as_str());
        assert_eq!(text, Some(r#"{"city": "Kyiv"}"#), "{answer}");
        assert_eq!(model.chats().last().unwrap().body["format"], format);
    }
    let body = json!({"model": "navi", "format": "xml", "messages": []});
    let refused = post(&server, "/api/chat", &body).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn parts_that_are_not_taken_are_named() {
    let (model, server) = talking();
    let audio = json!({"data": "AAAA", "format": "wav"});
    let image = "data:image/png;base64,iVBORw0KGgo=";
    for (role, part, said) in [
        (
            "user",
            json!({"type": "input_audio", "input_audio": audio}),
            "input_audio",
        ),
        (
            "user",
            json!({"type": "video_url", "video_url": {"url": "x"}}),
            "video_url",
        ),
        ("user", json!({"type": "text"}), "must have its text"),
        (
            "system",
            json!({"type": "image_url", "image_url": {"url": image}}),
            "text alone",
        ),
    ] {
        let said_before = json!({"role": role, "content": [part]});
        let last = json!({"role": "user", "content": "What is it?"});
        let body = json!({"model": "navi", "messages": [said_before, last]});
        let response = post(&server, "/v1/chat/completions", &body).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{body}");
        let error: Value = response.json().await.unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(
            message.contains(said) && message.contains("messages[0]"),
            "{message}"
        );
    }
    let part = json!({"type": "input_audio", "input_audio": audio});
    let body = json!({"model": "navi", "input": [{"role": "user", "content": [part]}]});
    let response = post(&server, "/v1/responses", &body).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let error: Value = response.json().await.unwrap();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("input_audio") && message.contains("input[0]"),
        "{message}"
    );
    assert_eq!(model.chats().len(), 0);
}
