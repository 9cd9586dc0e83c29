//! Programs that the page would have run as Navi herself, by who only found a key to it.

use std::fs;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::person::{PASSWORD, Person, answered, with};
use crate::server::{House, Login, Server};

fn with_accounts() -> Server {
    House::new(&[("NAVI_ACCOUNTS", "on")]).start()
}

fn written(server: &Server) -> Value {
    let file = server.house().data_dir().join("mcp.json");
    let text = fs::read_to_string(file).unwrap_or_else(|_| "{}".to_owned());
    serde_json::from_str(&text).unwrap()
}

async fn put(server: &Server, login: &Login, name: &str, draft: Value) -> (StatusCode, Value) {
    let path = format!("/mcp/{name}");
    answered(with(server, Method::PUT, &path, login), Some(draft)).await
}

#[tokio::test]
async fn a_program_added_in_a_browser_that_was_left_open() {
    let server = with_accounts();
    let olha = Person::join(&server, "Olha", "admin").await;
    let program = json!({"command": "nothing", "disabled": true});
    let sends =
        json!({"url": "http://127.0.0.1:9/mcp", "headers": {"X": "${HOME}"}, "disabled": true});
    for draft in [program.clone(), sends] {
        for (method, path) in [(Method::PUT, "/mcp/a"), (Method::POST, "/mcp/a/try")] {
            for password in [Value::Null, json!("not her password")] {
                let mut body = draft.clone();
                body["current_password"] = password;
                let request = with(&server, method.clone(), path, &olha.login);
                let (status, said) = answered(request, Some(body)).await;
                assert_eq!(
                    (status, &said["code"]),
                    (StatusCode::BAD_REQUEST, &json!("invalid_field")),
                    "{path} {said}"
                );
                assert!(
                    said["message"]
                        .as_str()
                        .unwrap()
                        .contains("current_password")
                );
            }
        }
    }
    assert_eq!(written(&server), json!({}));
    // An address that nothing of hers goes to is not asked for it.
    let plain = json!({"url": "http://127.0.0.1:9/mcp", "disabled": true});
    let (status, said) = put(&server, &olha.login, "plain", plain).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{said}");
    // She herself tries and saves as often as she likes.
    for n in 0..12 {
        let mut body = program.clone();
        body["current_password"] = json!(PASSWORD);
        let (status, said) = put(&server, &olha.login, &format!("p{n}"), body).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{n}: {said}");
    }
    assert!(!written(&server).to_string().contains("password"));
}

/// Nor by a token that such a browser makes: with all scopes it would be asked for no password.
#[tokio::test]
async fn a_program_added_by_a_token_of_a_browser_that_was_left_open() {
    let server = with_accounts();
    let olha = Person::join(&server, "Olha", "admin").await;
    let usual: &[&str] = &["read", "run", "files", "memory", "admin"];
    let all: &[&str] = &["read", "run", "consent", "files", "memory", "admin"];
    let make = |scopes: &[&str], password: Value| {
        let body = json!({"name": "mine", "scopes": scopes, "current_password": password});
        let request = with(&server, Method::POST, "/api/tokens", &olha.login);
        answered(request, Some(body))
    };
    for password in [Value::Null, json!("not her password")] {
        let (status, said) = make(all, password).await;
        assert_eq!(
            (status, &said["code"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_field")),
            "{said}"
        );
        let told = said["message"].as_str().unwrap();
        assert!(told.contains("current_password"), "{told}");
    }
    // One that runs no program is made at once, and any by herself.
    for (scopes, password) in [(usual, Value::Null), (all, json!(PASSWORD))] {
        let (status, said) = make(scopes, password).await;
        assert_eq!(status, StatusCode::CREATED, "{said}");
    }
}

/// Where there are no accounts a browser comes in by the machine's own link.
#[tokio::test]
async fn a_program_added_on_ones_own_machine() {
    let server = House::new(&[]).start();
    let login = Login::by(&server.link()).await;
    let program = json!({"command": "nothing", "disabled": true});
    let (status, said) = put(&server, &login, "a", program).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{said}");
}

#[tokio::test]
async fn a_program_tried_by_a_token_that_has_not_all_scopes() {
    let server = with_accounts();
    let olha = Person::join(&server, "Olha", "admin").await;
    let mark = server.house().data_dir().join("mark");
    let draft = json!({"command": "touch", "args": [mark]});
    for scopes in [&["admin"][..], &["read", "run", "files", "memory", "admin"]] {
        let narrow = Person {
            token: olha.token_for(&server, scopes).await,
            ..olha.clone()
        };
        for (method, path) in [(Method::POST, "/mcp/a/try"), (Method::PUT, "/mcp/a")] {
            let (status, said) = narrow
                .call(&server, method, path, Some(draft.clone()))
                .await;
            assert_eq!(
                (status, &said["code"]),
                (StatusCode::FORBIDDEN, &json!("forbidden")),
                "{path}"
            );
        }
    }
    assert!(!mark.exists());
    assert_eq!(written(&server), json!({}));
    let (status, said) = olha
        .call(&server, Method::POST, "/mcp/a/try", Some(draft))
        .await;
    assert_eq!(status, StatusCode::OK, "{said}");
    assert!(mark.exists());
    // What ran has its line, though nothing is kept of it.
    let record = server.get("/api/record").await.to_string();
    assert!(
        record.contains("mcp_server_tried") && record.contains("a (stdio)"),
        "{record}"
    );
}

#[tokio::test]
async fn a_program_put_back_by_a_token_that_has_not_all_scopes() {
    let server = with_accounts();
    let olha = Person::join(&server, "Olha", "admin").await;
    let program = json!({"command": "nothing", "disabled": true});
    let (status, said) = olha
        .call(&server, Method::PUT, "/mcp/a", Some(program))
        .await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{said}");
    let (_, entry) = olha.call(&server, Method::GET, "/mcp/a", None).await;
    let removal = format!("/mcp/a?version={}", entry["version"].as_str().unwrap());
    let (status, said) = olha.call(&server, Method::DELETE, &removal, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{said}");
    let without = written(&server);
    let restore = "/mcp/a/restore";
    let narrow = Person {
        token: olha.token_for(&server, &["admin"]).await,
        ..olha.clone()
    };
    let (status, said) = narrow.call(&server, Method::POST, restore, None).await;
    assert_eq!(
        (status, &said["code"]),
        (StatusCode::FORBIDDEN, &json!("forbidden"))
    );
    assert_eq!(written(&server), without);
    // What the page undoes, it undoes at once.
    let undo = with(&server, Method::POST, restore, &olha.login);
    let (status, said) = answered(undo, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{said}");
    assert_ne!(written(&server), without);
}

#[tokio::test]
async fn a_server_written_by_who_goes_away_before_the_answer() {
    let server = with_accounts();
    let olha = Person::join(&server, "Olha", "admin").await;
    let host = server.url.trim_start_matches("http://");
    let body = json!({"command": "nothing", "disabled": true});
    // Some of them are caught in the middle.
    for n in 0..20 {
        let text = body.to_string();
        let request = format!(
            "PUT /mcp/gone{n} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
            olha.token,
            text.len(),
        );
        let mut socket = TcpStream::connect(host).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        socket.shutdown().await.unwrap();
    }
    let (status, said) = olha
        .call(&server, Method::PUT, "/mcp/last", Some(body))
        .await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{said}");
    let until = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        let servers = written(&server)["mcpServers"].clone();
        let record = server.get("/api/record").await.to_string();
        let mut names = servers.as_object().unwrap().keys();
        let lacking = names.find(|name| !record.contains(&format!("\"{name}\"")));
        let Some(lacking) = lacking else {
            break;
        };
        assert!(tokio::time::Instant::now() < until, "{lacking}: {record}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
