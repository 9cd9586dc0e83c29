//! Links, for whoever has them.

use eventsource_stream::Eventsource as _;
use futures_util::StreamExt as _;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::together::{NOT_FOUND, Together};
use crate::fake_model::Step;
use crate::person::answered;
use crate::server::client;

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// What somebody with this link is told, as they ask for it.
async fn followed(together: &Together, secret: &str, query: &str) -> Response {
    let path = format!("{}/api/shared/events{query}", together.server.url);
    let request = client().get(path).header("x-navi-link", secret);
    let stream = request.send().await.unwrap();
    assert_eq!(stream.status(), StatusCode::OK);
    stream
}

/// The frames of a stream up to one of these types.
async fn told_until(stream: Response, kinds: &[&str]) -> Vec<Value> {
    let mut events = stream.bytes_stream().eventsource();
    let mut frames = Vec::new();
    loop {
        let event = events.next().await.expect("a frame").unwrap();
        let frame: Value = serde_json::from_str(&event.data).unwrap();
        let is_last = kinds.iter().any(|kind| frame["type"] == *kind);
        frames.push(frame);
        if is_last {
            return frames;
        }
    }
}

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
    // A second, and what a busy machine adds.
    assert!(began.elapsed() < std::time::Duration::from_secs(30));
    assert_eq!(together.look(&secret).await.0, StatusCode::NOT_FOUND);
    assert_eq!(
        events(&secret).await.unwrap().status(),
        StatusCode::NOT_FOUND
    );
    // Whoever guesses is slowed, and whoever has one is not.
    let (_, other) = together.link().await;
    let guess = async |n| together.look(&format!("{n}{secret}")).await.0;
    let guesses = futures_util::future::join_all((0..40).map(guess)).await;
    assert!(guesses.contains(&StatusCode::TOO_MANY_REQUESTS));
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

#[tokio::test]
async fn pictures_and_what_a_person_is_asked_by_a_link() {
    let together = Together::apart(&[("NAVI_CONSENT_MODE", "ask")]).await;
    let (_, secret) = together.link().await;
    let live = followed(&together, &secret, "").await;
    let write = json!({"action": "write", "path": "a.txt", "content": "x"});
    let calls = Step::tool_call("filesystem", write);
    for said in [calls, Step::text("Very well."), Step::text("A picture.")] {
        together.model.script([said]);
    }
    let mut tab = together.tab(&together.anna).await;
    let said = |text: &str| json!({"type": "message", "content": text, "images": [PNG]});
    tab.send(&said("look")).await;
    let asked = tab.next_of("approval_requested").await;
    tab.send(&said("and this")).await;
    let waits = tab.next_of("message_accepted").await;
    assert_eq!(
        (&waits["queued"], &waits["images"]),
        (&json!(true), &json!([PNG]))
    );
    let late = followed(&together, &secret, "").await;

    let (status, seen) = together.look(&secret).await;
    assert_eq!(status, StatusCode::OK, "{seen}");
    let session = &seen["session"];
    assert_eq!(session["queue"][0]["content"], "and this");
    assert_eq!(
        session["run"]["waiting"],
        json!({"reason": "approval", "detail": ""})
    );
    assert_eq!(session["approvals"], json!([]));
    assert!(!seen.to_string().contains(PNG), "{seen}");

    let deny = json!({
        "type": "approve", "approval_id": asked["approval_id"], "decision": "deny",
        "note": "not before the plum cake",
    });
    tab.send(&deny).await;
    let ended = tab.next_of("tool_call").await;
    assert!(ended["result"].to_string().contains("plum"), "{ended}");
    tab.next_of("stream_end").await;
    for stream in [live, late] {
        let frames = told_until(stream, &["stream_end"]).await;
        let of =
            |kind: &str| -> Vec<&Value> { frames.iter().filter(|it| it["type"] == kind).collect() };
        assert!(!of("message_accepted").is_empty(), "{frames:#?}");
        assert_eq!(of("approval_requested").len(), 0, "{frames:#?}");
        assert_eq!(of("approval_resolved").len(), 0, "{frames:#?}");
        let waits = of("run_waiting").into_iter();
        let mut waits = waits.filter(|wait| wait["reason"] == "approval");
        assert!(waits.all(|wait| wait["detail"] == ""), "{frames:#?}");
        let said = Value::from(frames.clone()).to_string();
        assert!(!said.contains(PNG) && !said.contains("plum"), "{said}");
        let ended = of("tool_call")[0]["result"].as_str().unwrap();
        assert!(
            ended.starts_with("the user did not allow this: "),
            "{ended}"
        );
        // What was left out has its numbers: no page takes it for lost.
        assert_eq!(of("pong").len(), 2, "{frames:#?}");
        let numbers: Vec<u64> = frames.iter().filter_map(|it| it["seq"].as_u64()).collect();
        assert!(numbers.windows(2).all(|two| two[1] == two[0] + 1));
    }
    let (_, seen) = together.look(&secret).await;
    let messages = seen["session"]["messages"].as_array().unwrap();
    let result = messages.iter().find(|message| message["role"] == "tool");
    let result = result.unwrap()["content"].as_str().unwrap();
    assert!(
        result.starts_with("the user did not allow this: "),
        "{result}"
    );
    assert!(!seen.to_string().contains("plum"), "{seen}");
}

#[tokio::test]
async fn what_was_taken_back_before_by_a_link() {
    let together = Together::apart(&[]).await;
    together.say(&together.anna, "the first words").await;
    let mut tab = together.tab(&together.anna).await;
    let before = together.ask(&together.anna, Method::GET, "", None).await.1;
    let first = &before["messages"][0]["id"];
    let other = json!({"message_id": first, "content": "other words"});
    let (status, said) = together
        .ask(&together.anna, Method::POST, "/branches", Some(other))
        .await;
    assert!(status.is_success(), "{said}");
    tab.next_of("stream_end").await;
    let (_, secret) = together.link().await;
    for query in ["?after=0", "?after=1"] {
        let stream = followed(&together, &secret, query).await;
        let frames = told_until(stream, &["resync", "stream_end"]).await;
        assert_eq!(frames.len(), 1, "{frames:#?}");
        let messages = frames[0]["session"]["messages"].to_string();
        assert!(messages.contains("other words"), "{messages}");
        assert!(!messages.contains("the first words"), "{messages}");
    }
    // From where they stand, what comes is told as it is.
    let seen = together.look(&secret).await.1;
    let query = format!("?after={}", seen["session"]["last_seq"]);
    let stream = followed(&together, &secret, &query).await;
    together.say(&together.anna, "and now").await;
    let frames = told_until(stream, &["resync", "stream_end"]).await;
    assert_eq!(frames.last().unwrap()["type"], "stream_end", "{frames:#?}");
}
