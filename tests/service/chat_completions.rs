//! OpenAI's Chat Completions, frame by frame. What clients of other hands make of them stands in
//! `tests/doors`.

mod repeats;
mod sessions;
mod tools;

use eventsource_stream::Eventsource as _;
use futures_util::StreamExt as _;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Recorded, Reply, Step};
use crate::server::{House, Server, TOKEN, client};

fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

async fn ask(server: &Server, body: &Value, headers: &[(&str, &str)]) -> Response {
    let mut request = client()
        .post(format!("{}/v1/chat/completions", server.url))
        .bearer_auth(TOKEN)
        .json(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

fn said(text: &str) -> Value {
    json!({"model": "navi", "messages": [{"role": "user", "content": text}]})
}

fn streamed(mut body: Value) -> Value {
    body["stream"] = json!(true);
    body
}

/// The chunks of a stream up to its proper end.
async fn chunks(response: Response) -> Vec<Value> {
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut events = response.bytes_stream().eventsource();
    let mut chunks = Vec::new();
    while let Some(event) = events.next().await {
        let data = event.unwrap().data;
        if data == "[DONE]" {
            return chunks;
        }
        chunks.push(serde_json::from_str(&data).unwrap());
    }
    panic!("no end after {chunks:#?}");
}

/// All of a field of the deltas.
fn joined(chunks: &[Value], field: &str) -> String {
    let deltas = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]);
    deltas.filter_map(|delta| delta[field].as_str()).collect()
}

fn finish(chunks: &[Value]) -> Vec<&str> {
    let reasons = chunks.iter().map(|it| &it["choices"][0]["finish_reason"]);
    reasons.filter_map(Value::as_str).collect()
}

#[tokio::test]
async fn an_answer_streams_with_its_thinking_and_what_navi_does() {
    let (model, server) = talking();
    model.script(vec![
        Step::Thinking("Hm.".to_owned()),
        Step::text("Let me see."),
        Step::tool_call("todo", json!({"action": "add", "texts": ["look"]})),
    ]);
    model.script(vec![Step::text("Done, "), Step::text("all of it.")]);
    let mut body = streamed(said("Look."));
    body["stream_options"] = json!({"include_usage": true});
    let response = ask(&server, &body, &[]).await;
    let chunks = chunks(response).await;

    assert_eq!(chunks[0]["object"], "chat.completion.chunk");
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(
        joined(&chunks, "content"),
        "Let me see.\n\nDone, all of it."
    );
    assert_eq!(joined(&chunks, "reasoning_content"), "Hm.");
    assert_eq!(finish(&chunks), ["stop"]);
    let ids: Vec<&Value> = chunks.iter().map(|chunk| &chunk["id"]).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let states: Vec<&Value> = chunks
        .iter()
        .filter(|chunk| chunk["event"]["data"]["description"] == "todo")
        .map(|chunk| &chunk["event"]["data"]["done"])
        .collect();
    assert_eq!(states, [&json!(false), &json!(true)]);
    let text = serde_json::to_string(&chunks).unwrap();
    assert!(
        !text.contains("tool_calls"),
        "Navi's own tools are not the client's: {text}"
    );
    let usage = &chunks.last().unwrap()["usage"];
    assert_eq!(chunks.last().unwrap()["choices"], json!([]));
    assert!(usage["prompt_tokens"].as_u64().unwrap() > 0, "{usage}");
}

#[tokio::test]
async fn an_answer_comes_whole_and_leaves_no_session() {
    let (model, server) = talking();
    model.script(vec![Step::text("Paris.")]);
    let body = json!({"model": "navi", "messages": [
        {"role": "system", "content": "Speak like a sailor."},
        {"role": "user", "content": "Capital of Italy?"},
        {"role": "assistant", "content": "Rome."},
        {"role": "user", "content": [{"type": "text", "text": "And of France?"}]},
    ]});
    let response = ask(&server, &body, &[]).await;
    assert_eq!(response.status(), StatusCode::OK);
    let answer: Value = response.json().await.unwrap();
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["choices"][0]["message"]["content"], "Paris.");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    let used = |field: &str| answer["usage"][field].as_u64().unwrap();
    assert_eq!(
        used("total_tokens"),
        used("prompt_tokens") + used("completion_tokens")
    );

    let calls = model.chats();
    assert_eq!(calls.len(), 1, "no title is asked for");
    let sent = calls[0].body["messages"].as_array().unwrap();
    let system = sent[0]["content"].as_str().unwrap();
    assert!(system.contains("Speak like a sailor."));
    let rest: Vec<&str> = sent[1..]
        .iter()
        .filter_map(|it| it["role"].as_str())
        .collect();
    assert_eq!(rest, ["user", "assistant", "user"]);
    assert_eq!(server.get("/sessions").await, json!([]));
    assert_eq!(server.get("/search?q=France").await["hits"], json!([]));
}

#[tokio::test]
async fn a_call_of_the_history_that_has_no_result_breaks_nothing() {
    let (model, server) = talking();
    model.script(vec![Step::text("Never mind.")]);
    let call =
        json!({"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}});
    let body = json!({"model": "navi", "messages": [
        {"role": "user", "content": "How is the weather?"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "user", "content": "Leave it."},
    ]});
    let response = ask(&server, &body, &[]).await;
    assert_eq!(response.status(), StatusCode::OK);
    let answer: Value = response.json().await.unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "Never mind.");
    model.assert_clean();
}

#[tokio::test]
async fn a_question_with_documents_is_no_small_task() {
    let (model, server) = talking();
    model.script(vec![Step::text("By the second source.")]);
    let text = "### Task:\nRespond to the user query using the provided context.\n\nWhy?";
    let answer: Value = ask(&server, &said(text), &[]).await.json().await.unwrap();
    assert_eq!(
        answer["choices"][0]["message"]["content"],
        "By the second source."
    );
    let tools = model.chats()[0].body["tools"].clone();
    assert!(!tools.as_array().unwrap().is_empty());
}

#[tokio::test]
async fn small_tasks_have_neither_tools_nor_a_session() {
    let (model, server) = talking();
    // A template began the reasoning in the prompt, and its server knows nothing of it.
    let titled = Step::text("It is about water.\n</think>\n\nRivers");
    model.script(Reply::new(vec![titled]).streamed(false));
    let by_words = said("### Task:\nGenerate a concise title.");
    let titled: Value = ask(&server, &by_words, &[]).await.json().await.unwrap();
    assert_eq!(titled["choices"][0]["message"]["content"], "Rivers");
    model.script(Reply::new(vec![Step::text("tags")]).streamed(false));
    let by_header = streamed(said("Tags, please."));
    let tagged = ask(&server, &by_header, &[("x-navi-task", "tags_generation")]).await;
    assert_eq!(joined(&chunks(tagged).await, "content"), "tags");
    for call in model.chats() {
        assert!(
            call.body.get("tools").is_none_or(|it| it == &json!([])),
            "{}",
            call.body
        );
    }
    assert_eq!(server.get("/sessions").await, json!([]));
}

#[tokio::test]
async fn an_answer_that_comes_last_is_gone_on_with() {
    let (model, server) = talking();
    let places: [&[(&str, &str)]; 2] = [&[], &[("x-navi-session", "counting")]];
    let sentence = "Go on where your last answer ended.";
    for headers in places {
        model.script(vec![Step::text("One, two,")]);
        let mut body = said("Count.");
        assert_eq!(ask(&server, &body, headers).await.status(), StatusCode::OK);
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": "One, two,"}));
        model.script(Reply::new(vec![Step::text("three.")]).when(sentence));
        let response = ask(&server, &body, headers).await;
        let answer: Value = response.json().await.unwrap();
        assert_eq!(answer["choices"][0]["message"]["content"], "three.");
        let mut calls = model.chats();
        calls.retain(|call| call.body["stream"] != false);
        let sent = calls.last().unwrap().body["messages"].as_array().unwrap();
        let newest = |role: &str| sent.iter().rfind(|message| message["role"] == role);
        for (role, text) in [("user", sentence), ("assistant", "One, two,")] {
            let said = newest(role).unwrap()["content"].as_str().unwrap();
            assert!(said.contains(text), "{sent:#?}");
        }
    }
}

#[tokio::test]
async fn models_are_the_profiles() {
    let server = House::new(&[]).start();
    let models = server.get("/v1/models").await;
    let ids: Vec<&str> = models["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|model| model["id"].as_str())
        .collect();
    assert!(ids.contains(&"navi") && ids.iter().any(|id| id.starts_with("navi/")));
    for id in ids {
        let path = format!("/v1/models/{}", id.replace('/', "%2F"));
        assert_eq!(server.get(&path).await["id"], id);
        assert_eq!(server.get(&format!("/v1/models/{id}")).await["id"], id);
    }
}

#[tokio::test]
async fn what_is_wrong_is_told_in_the_envelope_of_the_door() {
    let (model, server) = talking();
    let user = json!({"role": "user", "content": "hi"});
    for (body, status, code) in [
        (
            json!({"model": "gpt-9", "messages": [user]}),
            404,
            "model_unknown",
        ),
        (
            json!({"model": "navi", "messages": []}),
            400,
            "invalid_field",
        ),
        (json!({"model": "navi"}), 400, "invalid_field"),
        (
            json!({"model": "navi", "messages": [user], "n": 2}),
            400,
            "invalid_field",
        ),
        (
            json!({"model": "navi", "messages": [user, {"role": "assistant", "content": " "}]}),
            400,
            "invalid_field",
        ),
        (
            json!({"model": "navi", "messages": [user, {"role": "assistant", "content": "x", "tool_calls": [
                {"id": "call_x", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
            ]}]}),
            400,
            "invalid_field",
        ),
        (
            json!({"model": "navi", "messages": [{"role": "user", "content": " "}]}),
            400,
            "empty_message",
        ),
        (
            json!({"model": "navi", "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/a.png"}}]}]}),
            400,
            "invalid_field",
        ),
        (
            json!({"model": "navi", "messages": [{"role": "tool", "tool_call_id": "call_x", "content": "x"}]}),
            400,
            "invalid_field",
        ),
    ] {
        let response = ask(&server, &body, &[]).await;
        assert_eq!(response.status(), status, "{body}");
        let error: Value = response.json().await.unwrap();
        assert_eq!(error["error"]["code"], code, "{body}");
        assert!(error["error"]["message"].is_string() && error["error"]["type"].is_string());
        assert!(error["error"].as_object().unwrap().contains_key("param"));
    }
    let unknown = client()
        .get(format!("{}/v1/models", server.url))
        .bearer_auth("wrong");
    let unknown = unknown.send().await.unwrap();
    assert_eq!(unknown.status(), StatusCode::UNAUTHORIZED);
    let error: Value = unknown.json().await.unwrap();
    assert_eq!(error["error"]["type"], "authentication_error");
    let (_, nothing) = server.call(Method::GET, "/v1/embeddings", None).await;
    assert_eq!(nothing["error"]["code"], "not_found");

    // Once it has begun, no client is to begin it again.
    model.script(vec![Step::status(400, r#"{"error":"no"}"#)]);
    let failed = ask(&server, &said("hi"), &[]).await;
    assert_eq!(failed.status(), StatusCode::FAILED_DEPENDENCY);
    assert_eq!(failed.headers()["x-should-retry"], "false");
    model.script(vec![Step::text("Half"), Step::Error("broke".to_owned())]);
    let failed = chunks(ask(&server, &streamed(said("hi again")), &[]).await).await;
    assert!(
        failed.last().unwrap()["error"]["message"].is_string(),
        "{failed:#?}"
    );
}

#[tokio::test]
async fn functions_of_old_are_refused_by_name() {
    let (model, server) = talking();
    for (field, value) in [
        ("functions", json!([{"name": "weather"}])),
        ("function_call", json!({"name": "weather"})),
    ] {
        let mut body = said("How is the weather?");
        body[field] = value;
        let response = ask(&server, &body, &[]).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        let error: Value = response.json().await.unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(
            message.starts_with(field) && message.contains("`tools`"),
            "{message}"
        );
    }
    model.script(vec![Step::text("It snows.")]);
    let mut body = said("How is the weather?");
    body["functions"] = json!([]);
    body["function_call"] = json!("none");
    assert_eq!(ask(&server, &body, &[]).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn what_would_be_asked_about_is_denied_where_nobody_can_answer() {
    let model = FakeModel::start();
    let settings = [("OLLAMA_HOST", &*model.url()), ("NAVI_CONSENT_MODE", "ask")];
    let server = House::new(&settings).start();
    let write = json!({"action": "write", "path": "made.txt", "content": "x"});
    model.script(vec![Step::tool_call("filesystem", write)]);
    model.script(vec![Step::text("I may not.")]);
    let response = ask(&server, &said("Make a file."), &[]).await;
    let answer: Value = response.json().await.unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "I may not.");
    let sent = model.chats().last().unwrap().body["messages"].to_string();
    assert!(sent.contains("nobody can be asked"), "{sent}");
}
