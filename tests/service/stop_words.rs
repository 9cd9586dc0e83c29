//! Words at which an answer ends, over OpenAI's Chat Completions and Ollama's API.

use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Recorded, Reply, Step};
use crate::server::{House, Server, TOKEN, client};

fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

async fn post(server: &Server, path: &str, body: &Value, header: (&str, &str)) -> Response {
    let request = client().post(format!("{}{path}", server.url));
    let request = request.bearer_auth(TOKEN).json(body);
    request.header(header.0, header.1).send().await.unwrap()
}

async fn chat(server: &Server, body: &Value) -> Response {
    post(server, "/v1/chat/completions", body, ("x-of", "nothing")).await
}

/// What an answer said, and how it ended, whole or as a stream.
async fn told(response: Response) -> (String, String) {
    assert_eq!(response.status(), StatusCode::OK);
    let body = response.text().await.unwrap();
    let frames = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut frames: Vec<&str> = frames.filter(|data| *data != "[DONE]").collect();
    if frames.is_empty() {
        frames.push(&body);
    }
    let frames = frames.into_iter().map(serde_json::from_str::<Value>);
    let (mut text, mut end) = (String::new(), String::new());
    for frame in frames.map(Result::unwrap) {
        let choice = &frame["choices"][0];
        let said = choice["delta"]["content"].as_str();
        text.push_str(said.or(choice["message"]["content"].as_str()).unwrap_or(""));
        end.push_str(choice["finish_reason"].as_str().unwrap_or(""));
    }
    (text, end)
}

fn ended(text: &str) -> (String, String) {
    (text.to_owned(), "stop".to_owned())
}

fn question(stop: &Value) -> Value {
    let message = json!({"role": "user", "content": "What is there?"});
    json!({"model": "navi", "messages": [message], "stop": stop})
}

/// A reply that makes up what its program is to find out, and has no end.
fn endless() -> Vec<Step> {
    vec![
        Step::text("Action: look\nObs"),
        Step::text("ervation: a wall"),
        Step::hold("never"),
    ]
}

fn observation() -> Value {
    json!(["\nEND", "\nObservation:"])
}

#[tokio::test]
async fn an_answer_ends_before_a_stop_word() {
    let (model, server) = talking();
    for (stop, said, wanted) in [
        (json!("wall"), "A wall.", "A "),
        (observation(), "Look.\nObservation: no\nEND", "Look."),
        (json!(["END"]), "No EN", "No EN"),
        (json!([]), "All of it.", "All of it."),
        (Value::Null, "All of it.", "All of it."),
    ] {
        for streamed in [false, true] {
            model.script(vec![Step::text(said)]);
            let mut body = question(&stop);
            body["stream"] = json!(streamed);
            let answer = told(chat(&server, &body).await).await;
            assert_eq!(answer, ended(wanted), "{body}");
        }
    }
    model.script(Reply::new(vec![Step::text("Rivers\nand more")]).streamed(false));
    let mut task = question(&json!("\n"));
    task["messages"][0]["content"] = json!("### Task:\nA title.");
    assert_eq!(told(chat(&server, &task).await).await, ended("Rivers"));
}

#[tokio::test]
async fn a_run_is_stopped_at_a_stop_word_and_the_same_is_told_again() {
    let (model, server) = talking();
    for (n, key) in ["one", "two"].into_iter().enumerate() {
        model.script(endless());
        for streamed in [n == 0, n != 0] {
            let mut body = question(&observation());
            body["stream"] = json!(streamed);
            let key = ("idempotency-key", key);
            let response = post(&server, "/v1/chat/completions", &body, key).await;
            assert_eq!(told(response).await, ended("Action: look"));
        }
        let closed = |it: &Recorded| it.closed_early_ms.is_some();
        let all_closed = |chats: &[Recorded]| chats.iter().all(closed);
        assert_eq!(model.wait_for(all_closed).await.len(), n + 1);
    }
}

#[tokio::test]
async fn the_same_results_again_are_told_what_was_said_before_a_stop_word() {
    let (model, server) = talking();
    let mut body = question(&observation());
    body["tools"] = json!([{"type": "function", "function": {"name": "look"}}]);
    model.script(vec![Step::tool_call("look", json!({}))]);
    let first: Value = chat(&server, &body).await.json().await.unwrap();
    let called = &first["choices"][0]["message"];
    let call = &called["tool_calls"][0]["id"];
    let result = json!({"role": "tool", "tool_call_id": call, "content": "a wall"});
    body["messages"] = json!([body["messages"][0], called, result]);
    model.script(endless());
    for streamed in [false, true] {
        body["stream"] = json!(streamed);
        let answer = told(chat(&server, &body).await).await;
        assert_eq!(answer, ended("Action: look"));
    }
    assert_eq!(model.chats().len(), 2);
    // Other words are another request.
    body["stop"] = json!("ladder");
    model.script(vec![Step::text("A door.")]);
    assert_eq!(told(chat(&server, &body).await).await, ended("A door."));
}

#[tokio::test]
async fn a_session_shows_all_that_was_said_and_goes_on() {
    let (model, server) = talking();
    let named = ("x-navi-session", "a-room");
    let path = "/v1/chat/completions";
    model.script(endless());
    let first = post(&server, path, &question(&observation()), named).await;
    let session = first.headers()["x-navi-session"].to_str().unwrap();
    let session = format!("/sessions/{session}");
    assert_eq!(told(first).await, ended("Action: look"));
    model.script(vec![Step::text("A door.")]);
    let second = post(&server, path, &question(&Value::Null), named).await;
    assert_eq!(told(second).await, ended("A door."));
    let shown = server.get(&session).await;
    let messages = shown["messages"].as_array().unwrap().iter();
    let texts: Vec<&str> = messages.filter_map(|it| it["content"].as_str()).collect();
    let whole = "Action: look\nObservation: a wall";
    assert_eq!(
        texts,
        ["What is there?", whole, "What is there?", "A door."]
    );
}

#[tokio::test]
async fn stop_words_that_are_none_are_refused() {
    let (_model, server) = talking();
    for stop in [
        json!(""),
        json!(5),
        json!(["a", ""]),
        json!([["a"]]),
        json!(["a", "b", "c", "d", "e"]),
        json!("x".repeat(1_025)),
    ] {
        let refused = chat(&server, &question(&stop)).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{stop}");
        let error: Value = refused.json().await.unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("stop "), "{message}");
    }
}

#[tokio::test]
async fn ollamas_stop_is_heeded() {
    let (model, server) = talking();
    let none = ("x-of", "nothing");
    let mut body = question(&Value::Null);
    body["prompt"] = json!("What is there?");
    body["stream"] = json!(false);
    body["options"] = json!({"stop": observation(), "num_ctx": 4096});
    for (path, place) in [
        ("/api/chat", "/message/content"),
        ("/api/generate", "/response"),
    ] {
        model.script(endless());
        let answer = post(&server, path, &body, none).await;
        let answer: Value = answer.json().await.unwrap();
        assert_eq!(answer.pointer(place), Some(&json!("Action: look")));
        assert_eq!(answer["done_reason"], "stop");
    }
    body["options"] = json!({"stop": vec!["a"; 65]});
    let refused = post(&server, "/api/chat", &body, none).await;
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
}
