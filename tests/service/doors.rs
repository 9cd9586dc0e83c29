//! REST from outside: shapes, statuses, refusals.

use std::io::Read as _;

use flate2::read::GzDecoder;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::FakeModel;
use crate::server::{House, TOKEN, client};

#[tokio::test]
async fn health_needs_nobody_and_every_answer_is_guarded() {
    let server = House::new(&[]).start();
    let response = client()
        .get(format!("{}/health", server.url))
        .send()
        .await
        .unwrap();
    let headers = response.headers().clone();
    assert_eq!(response.text().await.unwrap(), r#"{"status":"ok"}"#);
    assert_eq!(headers["x-content-type-options"], "nosniff");
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"));

    for path in [
        "/",
        "/api/docs",
        "/api/openapi.json",
        "/api/events.schema.json",
    ] {
        let response = client()
            .get(format!("{}{path}", server.url))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert!(response.headers().contains_key("content-security-policy"));
    }
    for path in [
        "/sessions",
        "/agents/profiles",
        "/api/status",
        "/api/tokens",
        "/ws/sessions",
    ] {
        let response = client()
            .get(format!("{}{path}", server.url))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{path}");
        assert!(response.headers().contains_key("content-security-policy"));
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["code"], "unauthorized");
    }
}

#[tokio::test]
async fn the_page_is_served_and_asked_for_again_cheaply() {
    let server = House::new(&[]).start();
    let page = client()
        .get(format!("{}/", server.url))
        .send()
        .await
        .unwrap();
    assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
    let tag = page.headers()["etag"].clone();
    let again = client()
        .get(format!("{}/", server.url))
        .header("if-none-match", tag);
    assert_eq!(
        again.send().await.unwrap().status(),
        StatusCode::NOT_MODIFIED
    );
    for path in [
        "/web/tests/none.js",
        "/web/package.json",
        "/web/../Cargo.toml",
        "/web/",
    ] {
        let response = client()
            .get(format!("{}{path}", server.url))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn diagrams_are_drawn_in_a_frame_without_origin_and_network() {
    let server = House::new(&[]).start();
    let get = |path: String| client().get(format!("{}/{path}", server.url)).send();
    let page = get(String::new()).await.unwrap();
    let policy = page.headers()["content-security-policy"].clone();
    assert!(policy.to_str().unwrap().contains("frame-src 'self'"));
    assert_eq!(page.headers()["x-frame-options"], "DENY");
    let page = page.text().await.unwrap();
    let script = page
        .split('"')
        .find(|part| part.starts_with("web/") && part.ends_with("/main.js"))
        .expect("a script");

    let frame = get(script.replace("/main.js", "/diagram.html"))
        .await
        .unwrap();
    let policy = frame.headers()["content-security-policy"].to_str().unwrap();
    let directives: Vec<&str> = policy.split("; ").collect();
    for directive in [
        "default-src 'none'",
        "script-src 'self'",
        "sandbox allow-scripts",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",
    ] {
        assert!(directives.contains(&directive), "{directive}");
    }
    assert_eq!(frame.headers()["x-frame-options"], "SAMEORIGIN");

    // Its script is read by a frame that is nobody's; the page's own files are no other site's.
    for (name, read_by) in [("/diagram.js", "cross-origin"), ("/main.js", "same-origin")] {
        let file = get(script.replace("/main.js", name)).await.unwrap();
        assert_eq!(file.status(), StatusCode::OK, "{name}");
        let said = &file.headers()["cross-origin-resource-policy"];
        assert_eq!(said, read_by, "{name}");
    }
}

#[tokio::test]
async fn the_pages_files_come_compressed_and_are_kept_for_good() {
    let server = House::new(&[]).start();
    let get = |path: &str, encodings: &'static str| {
        client()
            .get(format!("{}/{path}", server.url))
            .header("accept-encoding", encodings)
            .send()
    };
    let page = get("", "identity").await.unwrap().text().await.unwrap();
    let script = page
        .split('"')
        .find(|part| part.starts_with("web/") && part.ends_with("/main.js"))
        .expect("a script");

    let plain = get(script, "gzip;q=0, identity").await.unwrap();
    assert!(!plain.headers().contains_key("content-encoding"));
    let plain = plain.bytes().await.unwrap();
    let compressed = get(script, "br, gzip").await.unwrap();
    for (name, value) in [
        ("content-encoding", "gzip"),
        ("vary", "accept-encoding"),
        ("cache-control", "public, max-age=31536000, immutable"),
        ("content-type", "text/javascript; charset=utf-8"),
    ] {
        assert_eq!(compressed.headers()[name], value);
    }
    let compressed = compressed.bytes().await.unwrap();
    let mut read = Vec::new();
    GzDecoder::new(&compressed[..])
        .read_to_end(&mut read)
        .unwrap();
    assert_eq!(read, plain);
    assert!(compressed.len() * 2 < plain.len());

    // Of another version, compressed by name, or by the icon's old name.
    let other = script.replace("/main.js", "0/main.js");
    for path in [other.as_str(), &format!("{script}.gz"), "web/index.html"] {
        let missing = get(path, "gzip").await.unwrap();
        assert_eq!(missing.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let icon = get("favicon.ico", "gzip").await.unwrap();
    assert_eq!(icon.headers()["content-type"], "image/svg+xml");
    // May answer for all that lies beside it, so it stands at the root.
    let worker = get("sw.js", "gzip").await.unwrap();
    let kind = "text/javascript; charset=utf-8";
    assert_eq!(worker.headers()["content-type"], kind);
    assert_eq!(worker.headers()["cache-control"], "max-age=86400");
}

#[tokio::test]
async fn unknown_paths_and_methods_are_json() {
    let server = House::new(&[]).start();
    let (status, body) = server.call(Method::GET, "/nothing/here", None).await;
    assert_eq!(
        (status, &body["code"]),
        (StatusCode::NOT_FOUND, &json!("not_found"))
    );
    let nobody = client().get(format!("{}/nothing/here", server.url));
    assert_eq!(nobody.send().await.unwrap().status(), StatusCode::NOT_FOUND);
    let request = client()
        .put(format!("{}/sessions", server.url))
        .bearer_auth(TOKEN);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(response.headers()["allow"], "GET, POST");
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["code"], "method_not_allowed");
}

#[tokio::test]
async fn a_session_lives_its_life_over_rest() {
    let server = House::new(&[]).start();
    let created = server
        .post("/sessions", json!({"profile_id": "smart_home"}))
        .await;
    let mut fields: Vec<&String> = created.as_object().unwrap().keys().collect();
    fields.sort();
    assert_eq!(fields, ["created_at", "profile_id", "session_id"]);
    assert_eq!(created["profile_id"], "smart_home");
    let id = created["session_id"].as_str().unwrap();
    let one = format!("/sessions/{id}");
    assert_eq!(server.get("/sessions").await[0]["id"], id);
    assert_eq!(server.get(&one).await["messages"], json!([]));
    assert!(server.get(&format!("{one}/context")).await["messages"].is_array());
    let parts = server.get(&format!("{one}/context/parts")).await;
    assert!(parts["system"].as_u64() > Some(0) && parts["window"].as_u64() > Some(0));
    assert_eq!((&parts["turns"], &parts["counted"]), (&json!(0), &json!(0)));

    let (status, changed) = server
        .call(Method::PATCH, &one, Some(json!({"title": "Lamps"})))
        .await;
    assert_eq!(
        (status, &changed["title"]),
        (StatusCode::OK, &json!("Lamps"))
    );
    for (body, pinned) in [
        (None, true),
        (None, false),
        (Some(json!({"pinned": true})), true),
    ] {
        let (status, changed) = server
            .call(Method::PATCH, &format!("{one}/pin"), body)
            .await;
        assert_eq!(
            (status, &changed["pinned"]),
            (StatusCode::OK, &json!(pinned))
        );
    }
    let (status, stopped) = server
        .call(Method::POST, &format!("{one}/stop"), None)
        .await;
    assert_eq!(
        (status, stopped),
        (StatusCode::OK, json!({"stopped": false}))
    );

    let (status, _) = server.call(Method::DELETE, &one, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let (status, body) = server.call(Method::GET, &one, None).await;
    assert_eq!(
        (status, &body["code"]),
        (StatusCode::NOT_FOUND, &json!("session_not_found"))
    );
    let (status, _) = server
        .call(Method::POST, &format!("{one}/restore"), None)
        .await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(server.get(&one).await["title"], "Lamps");
}

#[tokio::test]
async fn a_session_that_is_put_away_comes_back_with_the_next_message() {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    let session = server.new_session().await;
    let one = format!("/sessions/{session}");
    let list = async |query: &str| server.get(&format!("/sessions{query}")).await;
    let archive = async |archived: bool| {
        let body = json!({"archived": archived});
        server.call(Method::PATCH, &one, Some(body)).await
    };
    let mut page = server.socket("/ws/sessions").await;
    page.next_of("sessions").await;
    server
        .call(Method::PATCH, &format!("{one}/pin"), None)
        .await;
    page.next_of("session_changed").await;
    let (status, row) = archive(true).await;
    assert_eq!(
        (status, &row["archived"], &row["pinned"]),
        (StatusCode::OK, &json!(true), &json!(false))
    );
    let told = page.next_of("session_changed").await;
    assert_eq!(told["session"], row);
    assert_eq!(list("").await, json!([]));
    assert_eq!(list("?archived=false").await, json!([]));
    assert_eq!(list("?archived=true").await, json!([row]));
    assert_eq!(server.get(&one).await["archived"], true);

    server.call(Method::DELETE, &one, None).await;
    assert_eq!(list("?archived=true").await, json!([]));
    let back = server.post(&format!("{one}/restore"), json!({})).await;
    assert_eq!(back["archived"], true);

    let path = format!("{one}/messages");
    server.post(&path, json!({"content": "hello again"})).await;
    assert_eq!(list("?archived=true").await, json!([]));
    assert_eq!(list("").await[0]["id"], session.as_str());

    let both = json!({"title": "Lamps", "archived": true});
    let (_, row) = server.call(Method::PATCH, &one, Some(both)).await;
    assert_eq!(
        (&row["title"], &row["archived"]),
        (&json!("Lamps"), &json!(true))
    );
    archive(false).await;
    assert_eq!(list("").await[0]["title"], "Lamps");
    let (status, wrong) = server
        .call(Method::GET, "/sessions?archived=maybe", None)
        .await;
    assert_eq!(
        (status, &wrong["code"]),
        (StatusCode::BAD_REQUEST, &json!("invalid_field"))
    );
}

#[tokio::test]
async fn sessions_are_filed_under_tags_and_found_by_them() {
    let server = House::new(&[]).start();
    let session = server.new_session().await;
    server.new_session().await;
    let one = format!("/sessions/{session}");
    let file = async |tags: Value| {
        let body = json!({"tags": tags});
        server.call(Method::PATCH, &one, Some(body)).await
    };
    let (status, row) = file(json!([" Work ", "дім", "work"])).await;
    assert_eq!(
        (status, &row["tags"]),
        (StatusCode::OK, &json!(["Work", "дім"]))
    );
    assert_eq!(server.get(&one).await["tags"], row["tags"]);
    assert_eq!(server.get("/sessions?tag=work").await, json!([row]));
    assert_eq!(server.get("/sessions?tag=wor").await, json!([]));
    assert_eq!(
        server.get("/sessions?tag=work&archived=true").await,
        json!([])
    );
    for wrong in [
        json!([""]),
        json!(["a\u{200b}"]),
        json!(vec!["x".repeat(41)]),
        json!("x"),
    ] {
        let (status, body) = file(wrong).await;
        assert_eq!(
            (status, &body["code"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_field"))
        );
    }
    let (_, none) = file(json!([])).await;
    assert!(none.get("tags").is_none(), "{none}");
    let (status, _) = server.call(Method::PATCH, &one, Some(json!({}))).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_plain_run_answers_when_it_is_done() {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    let session = server.new_session().await;
    let path = format!("/sessions/{session}/messages");
    let answer = server.post(&path, json!({"content": "hello"})).await;
    assert!(
        answer["content"]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
        "{answer}"
    );
    assert_eq!(answer["completed"], true);
    let messages = server.get(&format!("/sessions/{session}")).await["messages"].clone();
    assert_eq!(messages[0]["content"], "hello");
    assert_eq!(messages[1]["content"], answer["content"]);
}

#[tokio::test]
async fn bad_input_has_its_code_and_changes_nothing() {
    let server = House::new(&[]).start();
    let session = server.new_session().await;
    let messages = format!("/sessions/{session}/messages");
    let long = "x".repeat(300 * 1024);
    for (path, body, status, code) in [
        (
            messages.as_str(),
            json!({"content": ""}),
            400,
            "empty_message",
        ),
        (&messages, json!({"content": " \n"}), 400, "empty_message"),
        (
            &messages,
            json!({"content": long}),
            413,
            "message_too_large",
        ),
        (&messages, json!({}), 400, "invalid_field"),
        (&messages, json!({"content": 3}), 400, "invalid_field"),
        (&messages, json!([]), 400, "invalid_field"),
        (
            &messages,
            json!({"content": "x", "images": ["%%"]}),
            400,
            "invalid_image",
        ),
        (
            &messages,
            json!({"content": "x", "images": vec!["aGk="; 9]}),
            400,
            "too_many_images",
        ),
        (
            &messages,
            json!({"content": "x", "files": [{"name": "a", "path": "b"}]}),
            404,
            "file_not_found",
        ),
        (
            "/sessions",
            json!({"profile_id": "butler"}),
            400,
            "unknown_profile",
        ),
        (
            "/sessions",
            json!({"profile": "smart_home"}),
            400,
            "invalid_field",
        ),
        (
            "/sessions/nonsense/messages",
            json!({"content": "x"}),
            400,
            "invalid_id",
        ),
        (
            "/sessions/00000000-0000-7000-8000-000000000000/messages",
            json!({"content": "x"}),
            404,
            "session_not_found",
        ),
        (
            "/api/models/fetch",
            json!({"name": "none"}),
            404,
            "model_unknown",
        ),
    ] {
        let (found, answer) = server.call(Method::POST, path, Some(body)).await;
        assert_eq!(
            (found.as_u16(), answer["code"].as_str()),
            (status, Some(code)),
            "{path} {answer}"
        );
        assert!(answer["message"].is_string());
    }
    let title = json!({"title": ""});
    let (status, _) = server
        .call(Method::PATCH, &format!("/sessions/{session}"), Some(title))
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(server.get("/sessions").await.as_array().unwrap().len(), 1);
    assert_eq!(
        server.get(&format!("/sessions/{session}")).await["messages"],
        json!([])
    );
}

#[tokio::test]
async fn bodies_must_be_json_and_say_so() {
    let server = House::new(&[]).start();
    let session = server.new_session().await;
    let deep = format!("{{\"content\":{}", "[".repeat(100_000));
    let many = format!("{{\"content\":[0{}", ",0".repeat(2_000_000));
    for (kind, body, status, code) in [
        (
            "text/plain",
            r#"{"content":"x"}"#,
            415,
            "unsupported_media_type",
        ),
        (
            "application/x-www-form-urlencoded",
            "content=x",
            415,
            "unsupported_media_type",
        ),
        ("application/json", "{", 400, "invalid_json"),
        ("application/json", "", 400, "invalid_json"),
        ("application/json", "{} x", 400, "invalid_json"),
        ("application/json", &deep, 400, "invalid_json"),
        ("application/json", &many, 413, "body_too_large"),
    ] {
        let url = format!("{}/sessions/{session}/messages", server.url);
        let request = client()
            .post(url)
            .bearer_auth(TOKEN)
            .header("content-type", kind);
        let response = request.body(body.to_owned()).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{kind}");
        let answer: Value = response.json().await.unwrap();
        assert_eq!(answer["code"], code);
    }
    let big = json!({"profile_id": "x".repeat(200 * 1024)});
    let (status, answer) = server.call(Method::POST, "/sessions", Some(big)).await;
    assert_eq!(
        (status.as_u16(), &answer["code"]),
        (413, &json!("body_too_large"))
    );
}

#[tokio::test]
async fn what_there_is_can_be_asked() {
    let server = House::new(&[]).start();
    let profiles = server.get("/agents/profiles").await;
    let ids: Vec<&str> = profiles
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|p| p["id"].as_str())
        .collect();
    assert_eq!(ids, ["secretary", "server_admin", "smart_home"]);
    let tools = server.get("/agents/tools").await;
    assert!(
        tools
            .as_array()
            .unwrap()
            .iter()
            .any(|tool| tool["name"] == "filesystem" && tool["source"] == "builtin")
    );
    let status = server.get("/api/status").await;
    assert_eq!(status["active"], Value::Null);
    assert_eq!(status["backends"][0]["kind"], "ollama");
}
