//! Links, for whoever has them.

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::together::{NOT_FOUND, Together};
use crate::person::answered;
use crate::server::client;

#[tokio::test]
async fn links_guessed_and_revoked_with_an_open_stream() {
    let together = Together::apart(&[]).await;
    together.say(&together.anna, "the secret garden").await;
    let (id, secret) = together.link().await;
    let (status, seen) = together.look(&secret).await;
    assert_eq!(status, StatusCode::OK, "{seen}");
    assert_eq!(
        seen["session"]["messages"][0]["content"],
        "the secret garden"
    );
    assert!(seen["session"].get("shared").is_none());
    // What it is kept as opens nothing.
    let stored = together
        .ask(&together.anna, Method::GET, "/links", None)
        .await;
    assert_eq!(stored.1.as_array().unwrap().len(), 1);
    assert!(!stored.1.to_string().contains(&secret));
    for days in [0, 91] {
        let body = Some(json!({"days": days}));
        let (status, _) = together
            .ask(&together.anna, Method::POST, "/links", body)
            .await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
    }
    let events = |secret: &str| {
        let request = client().get(format!("{}/api/shared/events", together.server.url));
        request.header("x-navi-link", secret).send()
    };
    let mut stream = events(&secret).await.unwrap();
    assert_eq!(stream.status(), StatusCode::OK);
    stream.chunk().await.unwrap().unwrap();
    together.say(&together.anna, "live now").await;
    let mut heard = String::new();
    while !heard.contains("stream_end") {
        let piece = stream.chunk().await.unwrap().unwrap();
        heard.push_str(&String::from_utf8_lossy(&piece));
    }
    assert!(heard.contains("live now"));
    let revoked = together
        .ask(
            &together.anna,
            Method::DELETE,
            &format!("/links/{id}"),
            None,
        )
        .await;
    assert_eq!(revoked.0, StatusCode::NO_CONTENT);
    let began = std::time::Instant::now();
    while stream.chunk().await.unwrap().is_some() {}
    assert!(began.elapsed() < std::time::Duration::from_secs(1));
    assert_eq!(together.look(&secret).await.0, StatusCode::NOT_FOUND);
    assert_eq!(
        events(&secret).await.unwrap().status(),
        StatusCode::NOT_FOUND
    );
    // Whoever guesses is slowed, and whoever has one is not.
    let (_, other) = together.link().await;
    let mut last = StatusCode::OK;
    for n in 0..40 {
        last = together.look(&format!("{n}{secret}")).await.0;
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(together.look(&other).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_link_used_for_another_conversation_and_for_files() {
    let together = Together::apart(&[]).await;
    together.say(&together.anna, "for all to see").await;
    let made = together
        .anna
        .call(&together.server, Method::POST, "/sessions", Some(json!({})));
    let private = made.await.1["session_id"].as_str().unwrap().to_owned();
    let (_, secret) = together.link().await;
    for path in [
        format!("/api/shared?session_id={private}"),
        format!("/api/shared/events?session_id={private}&after=0"),
    ] {
        let request = client().get(format!("{}{path}", together.server.url));
        let mut response = request.header("x-navi-link", &secret).send().await.unwrap();
        let first = response.chunk().await.unwrap().unwrap_or_default();
        assert!(!String::from_utf8_lossy(&first).contains(&private));
    }
    for (method, path) in [
        (Method::GET, together.path("")),
        (Method::GET, together.path("/files")),
        (Method::GET, together.path("/workspace")),
        (Method::GET, together.path("/approvals")),
        (Method::POST, together.path("/messages")),
        (Method::GET, format!("/sessions/{private}")),
        (Method::GET, "/sessions".to_owned()),
        (Method::GET, "/memory".to_owned()),
    ] {
        let url = format!("{}{path}", together.server.url);
        let by_header = client().request(method.clone(), &url);
        let by_header = by_header.header("x-navi-link", &secret);
        let by_token = client().request(method, &url).bearer_auth(&secret);
        for request in [by_header, by_token] {
            let status = answered(request, Some(json!({"content": "x"}))).await.0;
            let refused = [StatusCode::UNAUTHORIZED, StatusCode::TOO_MANY_REQUESTS];
            assert!(refused.contains(&status), "{path}: {status}");
        }
    }
}
