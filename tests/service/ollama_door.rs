//! Ollama's API, line by line. What clients of other hands make of it stands in `tests/doors`.

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Step};
use crate::server::{House, Server, TOKEN, client};

fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

async fn post(server: &Server, path: &str, body: &Value) -> Response {
    let request = client().post(format!("{}{path}", server.url));
    request.bearer_auth(TOKEN).json(body).send().await.unwrap()
}

/// The lines of an answer, the last of which is its end.
async fn lines(response: Response) -> Vec<Value> {
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let text = response.text().await.unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ends = lines.iter().filter(|line| line["done"] == true).count();
    assert!(ends == 1 && lines.last().unwrap()["done"] == true, "{text}");
    lines
}

fn joined(lines: &[Value], field: &str) -> String {
    let messages = lines.iter().map(|line| &line["message"]);
    messages
        .filter_map(|message| message[field].as_str())
        .collect()
}

#[tokio::test]
async fn models_are_the_profiles_and_editors_find_what_they_ask_for() {
    let server = House::new(&[]).start();
    let tags = server.get("/api/tags").await;
    let models = tags["models"].as_array().unwrap();
    assert_eq!(models[0]["name"], "navi:latest");
    for model in models {
        assert_eq!(model["name"], model["model"]);
        let shown = server
            .post("/api/show", json!({"model": model["name"]}))
            .await;
        let architecture = shown["model_info"]["general.architecture"]
            .as_str()
            .unwrap();
        let length = &shown["model_info"][format!("{architecture}.context_length")];
        assert!(length.is_u64());
        assert!(
            shown["capabilities"]
                .as_array()
                .unwrap()
                .contains(&json!("tools"))
        );
    }
    let version = server.get("/api/version").await;
    let minor: u32 = version["version"]
        .as_str()
        .unwrap()
        .split('.')
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    assert!(minor >= 6, "{version}");
    assert_eq!(server.get("/api/ps").await, json!({"models": []}));
    // As Ollama's own client sends it: both fields, and one of them empty.
    for (model, name) in [("navi", ""), ("", "navi")] {
        let both = json!({"model": model, "system": "", "template": "", "verbose": false, "options": null, "name": name});
        let shown = post(&server, "/api/show", &both).await;
        assert_eq!(shown.status(), StatusCode::OK, "{both}");
    }
    let unnamed = post(&server, "/api/show", &json!({})).await;
    assert_eq!(unnamed.status(), StatusCode::BAD_REQUEST);
    let unknown = post(&server, "/api/show", &json!({"model": "llama3"})).await;
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
    let unknown: Value = unknown.json().await.unwrap();
    assert!(unknown["error"].is_string());
    let nobody = client()
        .get(format!("{}/api/tags", server.url))
        .send()
        .await
        .unwrap();
    assert_eq!(nobody.status(), StatusCode::UNAUTHORIZED);
    assert!(nobody.json::<Value>().await.unwrap()["error"].is_string());
}

#[tokio::test]
async fn an_answer_streams_by_itself_and_comes_whole_where_that_is_asked() {
    let (model, server) = talking();
    let mut body = json!({"model": "navi", "messages": [
        {"role": "system", "content": "Speak like a sailor."},
        {"role": "user", "content": "Hello."},
    ]});
    for streamed in [true, false] {
        model.script(vec![Step::Thinking("Hm.".to_owned()), Step::text("Ahoy.")]);
        let response = if streamed {
            post(&server, "/api/chat", &body).await
        } else {
            body["stream"] = json!(false);
            post(&server, "/api/chat", &body).await
        };
        let answer = if streamed {
            lines(response).await
        } else {
            vec![response.json::<Value>().await.unwrap()]
        };
        assert_eq!(joined(&answer, "content"), "Ahoy.");
        assert_eq!(joined(&answer, "thinking"), "Hm.");
        let last = answer.last().unwrap();
        assert_eq!(
            (&last["done"], &last["done_reason"]),
            (&json!(true), &json!("stop"))
        );
        assert!(last["prompt_eval_count"].as_u64().unwrap() > 0 && last["total_duration"].is_u64());
    }
    model.script(vec![Step::text("Land!")]);
    let body = json!({"model": "navi:latest", "prompt": "What do you see?", "stream": false});
    let answer: Value = post(&server, "/api/generate", &body)
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(answer["response"], "Land!");
    for (keep_alive, reason) in [
        (Value::Null, "load"),
        (json!("5m"), "load"),
        (json!(0), "unload"),
        (json!("0"), "unload"),
        (json!("0s"), "unload"),
    ] {
        for (path, mut body) in [
            ("/api/generate", json!({"model": "navi", "prompt": ""})),
            ("/api/chat", json!({"model": "navi", "messages": []})),
        ] {
            body["keep_alive"] = keep_alive.clone();
            let done: Value = post(&server, path, &body).await.json().await.unwrap();
            assert_eq!(done["done_reason"], reason, "{body}");
        }
    }
    assert_eq!(server.get("/sessions").await, json!([]));
}

#[tokio::test]
async fn what_is_generated_has_no_calls_of_the_clients() {
    let (model, server) = talking();
    let tool = json!({"type": "function", "function": {"name": "weather"}});
    let mut body = json!({"model": "navi", "prompt": "How is the weather?", "tools": [tool]});
    for streamed in [true, false] {
        model.script(vec![Step::tool_call("weather", json!({}))]);
        model.script(vec![Step::text("I cannot see it.")]);
        body["stream"] = json!(streamed);
        let response = post(&server, "/api/generate", &body).await;
        let answer = if streamed {
            lines(response).await
        } else {
            vec![response.json::<Value>().await.unwrap()]
        };
        let said = answer.iter().filter_map(|line| line["response"].as_str());
        assert_eq!(said.collect::<String>(), "I cannot see it.");
        assert_eq!(answer.last().unwrap()["done"], true);
    }
    for call in model.chats() {
        let offered = call.body["tools"].to_string();
        assert!(!offered.contains("\"weather\""), "{offered}");
    }
}

#[tokio::test]
async fn results_without_ids_go_to_the_calls_of_their_conversation() {
    let (model, server) = talking();
    let tool = json!({"type": "function", "function": {"name": "now", "description": "The time.",
        "parameters": {"type": "object", "properties": {}}}});
    let mut talks = Vec::new();
    for place in ["Kyiv", "Lviv"] {
        model.script(vec![Step::tool_call("now", json!({}))]);
        let messages = vec![json!({"role": "user", "content": format!("The time in {place}?")})];
        let body = json!({"model": "navi", "messages": messages, "tools": [tool]});
        let first = lines(post(&server, "/api/chat", &body).await).await;
        let calls = first
            .iter()
            .find_map(|line| line["message"]["tool_calls"].as_array());
        let call = json!({"function": calls.unwrap()[0]["function"]});
        talks.push((place, messages, call));
    }
    // As Home Assistant sends it: no ids, and what was null left out.
    for (place, mut messages, call) in talks {
        model.script(vec![Step::text(&format!("In {place} it is late."))]);
        messages.push(json!({"role": "assistant", "content": "", "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "content": format!("{place}: 23:00")}));
        let body = json!({"model": "navi", "messages": messages, "tools": [tool]});
        let last = lines(post(&server, "/api/chat", &body).await).await;
        assert_eq!(
            joined(&last, "content").trim(),
            format!("In {place} it is late.")
        );
        let sent = model.chats().last().unwrap().body["messages"].to_string();
        assert!(sent.contains(&format!("{place}: 23:00")), "{sent}");
    }
    assert_eq!(model.chats().len(), 4);
}

#[tokio::test]
async fn calls_are_known_by_what_came_before_them_whatever_a_client_made_of_their_ids() {
    let (model, server) = talking();
    let tool = json!({"type": "function", "function": {"name": "now", "description": "The time.",
        "parameters": {"type": "object", "properties": {}}}});
    // As Continue sends it, with what was thought, and LangChain.js, with an id of its own.
    let own = json!("5b0c4f5e-5a3c-4a52-9c3f-0f4a1f6d7a11");
    let cases = [
        (
            "Kyiv",
            Some(json!({"role": "thinking", "content": "Hm."})),
            Value::Null,
            Value::Null,
        ),
        ("Lviv", None, own.clone(), Value::Null),
        ("Odesa", None, own.clone(), own),
    ];
    for (place, thought, id, result_id) in cases {
        model.script(vec![Step::tool_call("now", json!({}))]);
        let mut messages =
            vec![json!({"role": "user", "content": format!("The time in {place}?")})];
        let body = json!({"model": "navi", "messages": messages, "tools": [tool]});
        let first = lines(post(&server, "/api/chat", &body).await).await;
        let calls = first
            .iter()
            .find_map(|line| line["message"]["tool_calls"].as_array());
        let call = json!({"id": id, "function": calls.unwrap()[0]["function"]});
        model.script(vec![Step::text("It is late.")]);
        messages.extend(thought);
        messages.push(json!({"role": "assistant", "content": "", "tool_calls": [call]}));
        let result = format!("{place}: 23:00");
        messages.push(json!({"role": "tool", "content": result, "tool_call_id": result_id}));
        let body = json!({"model": "navi", "messages": messages, "tools": [tool]});
        let last = lines(post(&server, "/api/chat", &body).await).await;
        assert_eq!(joined(&last, "content").trim(), "It is late.");
        let sent = model.chats().last().unwrap().body["messages"].to_string();
        assert!(sent.contains(&result), "{sent}");
        assert!(
            !sent.contains("The results of your calls are above"),
            "{sent}"
        );
    }
    assert_eq!(model.chats().len(), 6);
}

#[tokio::test]
async fn messages_of_roles_that_ollama_does_not_know_are_passed_over() {
    let (model, server) = talking();
    model.script(vec![Step::text("Good night.")]);
    let body = json!({"model": "navi", "messages": [
        {"role": "User", "content": "Hello."},
        {"role": "thinking", "content": "A greeting."},
        {"role": "assistant", "content": "Ahoy."},
        {"role": "user", "content": "Thanks."},
    ]});
    let answer = lines(post(&server, "/api/chat", &body).await).await;
    assert_eq!(joined(&answer, "content"), "Good night.");
    let sent = model.chats().last().unwrap().body["messages"].to_string();
    assert!(sent.contains("Hello.") && sent.contains("Ahoy."), "{sent}");
    assert!(!sent.contains("A greeting."), "{sent}");
}

#[tokio::test]
async fn a_history_that_was_cut_may_begin_with_a_result() {
    let (model, server) = talking();
    model.script(vec![Step::text("Good night.")]);
    let body = json!({"model": "navi", "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "tool", "content": "the light is off"},
        {"role": "assistant", "content": "It is off."},
        {"role": "user", "content": "Thanks."},
    ]});
    let answer = lines(post(&server, "/api/chat", &body).await).await;
    assert_eq!(joined(&answer, "content"), "Good night.");
}

#[tokio::test]
async fn what_fails_is_a_text_and_navi_does_not_talk_to_herself() {
    let (model, server) = talking();
    let hello = json!({"model": "navi", "messages": [{"role": "user", "content": "Hello."}]});
    model.script(vec![Step::text("Half"), Step::Error("broke".to_owned())]);
    let text = post(&server, "/api/chat", &hello)
        .await
        .text()
        .await
        .unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert!(last["error"].is_string(), "{text}");
    for path in ["/api/chat", "/v1/chat/completions"] {
        let own = client()
            .post(format!("{}{path}", server.url))
            .bearer_auth(TOKEN);
        let own = own
            .header("user-agent", "navi/0.1.0")
            .json(&hello)
            .send()
            .await
            .unwrap();
        assert_eq!(own.status(), StatusCode::BAD_REQUEST);
        assert!(own.text().await.unwrap().contains("OLLAMA_HOST"));
    }
    let (status, wrong) = server
        .call(
            Method::POST,
            "/api/chat",
            Some(json!({"model": "navi", "messages": [{"role": "user", "content": 7}]})),
        )
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(
        wrong["error"].as_str().unwrap().starts_with("messages[0]"),
        "{wrong}"
    );
}
