//! What is told beside what somebody may ask for, and done beside what they may do.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::shares::{session, several};
use crate::person::{Person, answered};
use crate::server::{Server, client};

/// A request with a token that is good for less, and its answer.
async fn with(
    server: &Server,
    token: &str,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> (StatusCode, Value) {
    let request = client().request(method, format!("{}{path}", server.url));
    answered(request.bearer_auth(token), body).await
}

#[tokio::test]
async fn what_is_wrong_with_the_installation_asked_for_by_who_is_no_admin() {
    let (_model, server) = several(&[("FS_ALLOWED_PATHS", "*")]);
    let olha = Person::join(&server, "Olha", "user").await;
    let petro = Person::join(&server, "Petro", "guest").await;
    let mut theirs = Vec::new();
    for person in [&olha, &petro] {
        let by = [("authorization", format!("Bearer {}", person.token))];
        theirs.push(server.socket_with("/ws/sessions", &by).await.unwrap());
    }
    for page in &mut theirs {
        let first = page.next_of("sessions").await;
        assert_eq!(first["status"]["warnings"], json!([]));
    }
    let mut admins = server.socket("/ws/sessions").await;
    let first = admins.next_of("sessions").await;
    let told = first["status"]["warnings"].to_string();
    assert!(told.contains("FS_ALLOWED_PATHS is *"), "{told}");
    let skill = server.house().data_dir().join("skills/plums");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "no front matter").unwrap();
    loop {
        let told = admins.next_of("status").await;
        if told["status"]["warnings"].to_string().contains("plums") {
            break;
        }
    }
    for page in &mut theirs {
        let told = page.next_of("status").await;
        assert_eq!(told["status"]["warnings"], json!([]));
    }
    let whole = server.get("/api/status").await;
    assert!(whole["warnings"].to_string().contains("plums"), "{whole}");
    for person in [&olha, &petro] {
        let (status, told) = person.call(&server, Method::GET, "/api/status", None).await;
        assert_eq!(status, StatusCode::OK, "{told}");
        assert_eq!(told["warnings"], json!([]));
        // That a fence is open they see, and not what the machine lacks.
        assert_eq!(told["fence"]["files_open"], true);
        let why = [&whole, &told].map(|status| status["fence"]["sandbox"].as_str());
        assert_eq!(why[0].is_some(), why[1].is_some());
        assert!(why[0].is_none() || why[0] != why[1], "{told}");
    }
}

#[tokio::test]
async fn what_is_remembered_asked_for_by_a_token_that_reads_conversations() {
    let (model, server) = several(&[]);
    let anna = Person::join(&server, "Anna", "user").await;
    let fact = Some(json!({"value": "Kyiv"}));
    let path = "/memory/facts/places/home";
    let (status, said) = anna.call(&server, Method::PUT, path, fact).await;
    assert!(status.is_success(), "{said}");
    let fresh = session(&server, &anna).await;
    let used = session(&server, &anna).await;
    let path = format!("/sessions/{used}/messages");
    let hello = Some(json!({"content": "hello"}));
    let (status, said) = anna.call(&server, Method::POST, &path, hello).await;
    assert_eq!(status, StatusCode::OK, "{said}");
    let chats = model.chats();
    assert!(chats.iter().any(|it| it.body.to_string().contains("Kyiv")));

    let read = anna.token_for(&server, &["read"]).await;
    let memory = with(&server, &read, Method::GET, "/memory", None).await;
    assert_eq!(memory.0, StatusCode::FORBIDDEN);
    let path = format!("/sessions/{used}/runs");
    let runs = anna.call(&server, Method::GET, &path, None).await.1;
    let run = runs["runs"][0]["run_id"].as_str().unwrap();
    let path = format!("/runs/{run}");
    let details = anna.call(&server, Method::GET, &path, None).await.1;
    let mut calls = details["calls"].as_array().unwrap().iter();
    let turn = calls.find(|call| call["kind"] == "turn").unwrap();
    let call = format!("/runs/{run}/calls/{}", turn["n"]);
    for path in [
        format!("/sessions/{fresh}/context"),
        format!("/sessions/{used}/context"),
        call.clone(),
    ] {
        let whole = anna.call(&server, Method::GET, &path, None).await.1;
        assert!(whole.to_string().contains("Kyiv"), "{path}: {whole}");
        let (status, less) = with(&server, &read, Method::GET, &path, None).await;
        assert_eq!(status, StatusCode::OK, "{path}: {less}");
        assert!(!less.to_string().contains("Kyiv"), "{path}: {less}");
    }
    let exact = with(&server, &read, Method::GET, &call, None).await.1;
    assert_eq!(exact["exact"], false);
    for of in [&fresh, &used] {
        let path = format!("/sessions/{of}/context/parts");
        let parts = with(&server, &read, Method::GET, &path, None).await.1;
        assert_eq!(parts["memory"], 0, "{parts}");
    }
}

#[tokio::test]
async fn a_message_of_any_size_over_the_socket_of_a_token_that_sends_none() {
    let (_model, server) = several(&[]);
    let anna = Person::join(&server, "Anna", "user").await;
    let path = format!("/ws/sessions/{}", session(&server, &anna).await);
    let read = anna.token_for(&server, &["read"]).await;
    let by = [("authorization", format!("Bearer {read}"))];
    let mut tab = server.socket_with(&path, &by).await.unwrap();
    for bytes in [1, 70_000] {
        let content = "x".repeat(bytes);
        tab.send(&json!({"type": "message", "content": content, "client_id": "c"}))
            .await;
        let told = tab.next_of("error").await;
        assert_eq!(told["code"], "forbidden");
        assert_eq!(told["client_id"], "c", "{bytes}");
    }
}

#[tokio::test]
async fn files_beside_a_question_of_a_token_that_sends_none() {
    let (_model, server) = several(&[]);
    let anna = Person::join(&server, "Anna", "user").await;
    let run = anna.token_for(&server, &["read", "run"]).await;
    let usual = ["read", "run", "files", "memory", "admin"];
    let usual = anna.token_for(&server, &usual).await;
    let data = STANDARD.encode("the code word is quince");
    let data = format!("data:text/plain;base64,{data}");
    let file = json!({"filename": "word.txt", "file_data": data});
    let chat = json!([{"type": "text", "text": "Read it."}, {"type": "file", "file": file}]);
    let input = json!([
        {"type": "input_text", "text": "Read it."},
        {"type": "input_file", "filename": "word.txt", "file_data": data},
    ]);
    let asked = |field: &str, content: &Value| json!({"model": "navi", field: [{"role": "user", "content": content}]});
    for (path, body) in [
        ("/v1/chat/completions", asked("messages", &chat)),
        ("/v1/responses", asked("input", &input)),
    ] {
        let body = Some(body);
        let (status, said) = with(&server, &run, Method::POST, path, body.clone()).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}: {said}");
        assert!(said.to_string().contains("files"), "{path}: {said}");
        let (status, said) = with(&server, &usual, Method::POST, path, body).await;
        assert_eq!(status, StatusCode::OK, "{path}: {said}");
    }
    // A question alone is asked as before.
    let body = Some(asked("messages", &json!("hello")));
    let (status, said) = with(&server, &run, Method::POST, "/v1/chat/completions", body).await;
    assert_eq!(status, StatusCode::OK, "{said}");
}
