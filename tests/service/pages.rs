//! A long conversation is read a page at a time.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::FakeModel;
use crate::server::{House, Server, TOKEN, client};

/// A picture of one point.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

async fn say(server: &Server, session: &str, input: Value) {
    let path = format!("/sessions/{session}/messages");
    server.post(&path, input).await;
}

fn ids(page: &Value) -> Vec<String> {
    let messages = page["messages"].as_array().unwrap().iter();
    messages
        .map(|message| message["id"].as_str().unwrap().to_owned())
        .collect()
}

async fn before(server: &Server, session: &str, message: &str, limit: u32) -> Value {
    let path = format!("/sessions/{session}/messages?before={message}&limit={limit}");
    server.get(&path).await
}

#[tokio::test]
async fn the_pages_of_a_conversation_are_the_whole_of_it() {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    let session = server.new_session().await;
    for turn in ["one", "two", "three", "four", "five"] {
        say(&server, &session, json!({ "content": turn })).await;
    }
    let whole = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(whole["earlier"], Value::Null, "nothing stands before it");
    let second = ids(&whole)[2].clone();
    let path = format!("/sessions/{session}/branches");
    let edited = json!({"message_id": second, "content": "zwei"});
    let mut tab = server.tab(&session, whole["last_seq"].as_u64()).await;
    server.call(Method::POST, &path, Some(edited)).await;
    tab.next_of("stream_end").await;
    say(&server, &session, json!({"content": "drei"})).await;
    say(&server, &session, json!({"content": "vier"})).await;

    let whole = server.get(&format!("/sessions/{session}")).await;
    let newest = server.get(&format!("/sessions/{session}?messages=3")).await;
    assert_eq!(newest["earlier"], 4);
    assert_eq!(newest["forks"], json!([]), "it forks before this page");
    assert_eq!(newest["last_seq"], whole["last_seq"]);
    let mut pages = vec![newest];
    while pages[0]["earlier"] != 0 {
        let first = ids(&pages[0])[0].clone();
        let page = before(&server, &session, &first, 2).await;
        pages.insert(0, page);
    }
    let joined = |field: &str| -> Vec<Value> {
        let pages = pages.iter().map(|page| page[field].as_array().unwrap());
        pages.flatten().cloned().collect()
    };
    assert_eq!(Value::from(joined("messages")), whole["messages"]);
    assert_eq!(Value::from(joined("forks")), whole["forks"]);
    assert_eq!(joined("forks").len(), 1);
    for page in &pages {
        assert_eq!(
            page["messages"][0]["role"], "user",
            "a page begins with a turn"
        );
    }

    // A tab that starts over is given as much as it asks for.
    let address = format!("/ws/sessions/{session}?after=0&epoch=7&messages=3");
    let mut tab = server.socket(&address).await;
    let resync = tab.next_of("resync").await;
    assert_eq!(ids(&resync["session"]), ids(&pages[pages.len() - 1]));
    assert_eq!(resync["session"]["earlier"], 4);
    model.assert_clean();
}

#[tokio::test]
async fn images_of_a_page_are_had_by_their_address() {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    let session = server.new_session().await;
    say(
        &server,
        &session,
        json!({"content": "look", "images": [PNG]}),
    )
    .await;
    let whole = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(whole["messages"][0]["images"], json!([PNG]));
    assert_eq!(whole["messages"][0]["image_urls"], Value::Null);
    let page = server.get(&format!("/sessions/{session}?messages=1")).await;
    let shown = &page["messages"][0];
    assert_eq!(shown["images"], Value::Null, "{shown}");
    let address = format!("/{}", shown["image_urls"][0].as_str().unwrap());
    let url = format!("http://{}{address}", server.authority());
    let answer = client().get(url).bearer_auth(TOKEN).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-type"], "image/png");
    assert!(answer.bytes().await.unwrap().starts_with(b"\x89PNG"));

    let other = server.new_session().await;
    let elsewhere = address.replace(&session, &other);
    let beyond = address.replace("/images/0", "/images/1");
    for (path, code) in [
        (elsewhere.as_str(), "message_not_found"),
        (beyond.as_str(), "message_not_found"),
        (&address.replace("/images/0", "/images/x"), "invalid_id"),
    ] {
        let (status, error) = server.call(Method::GET, path, None).await;
        assert!(status.is_client_error(), "{path}: {status}");
        assert_eq!(error["code"], code, "{path}: {error}");
    }
}

#[tokio::test]
async fn a_page_that_cannot_be_is_refused() {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    let session = server.new_session().await;
    say(&server, &session, json!({"content": "hello"})).await;
    let message = ids(&server.get(&format!("/sessions/{session}")).await)[1].clone();
    let other = server.new_session().await;
    for (path, code) in [
        (format!("/sessions/{session}?messages=0"), "invalid_field"),
        (
            format!("/sessions/{session}?messages=1001"),
            "invalid_field",
        ),
        (format!("/sessions/{session}?messages=-1"), "invalid_field"),
        (format!("/sessions/{session}/messages"), "invalid_field"),
        (
            format!("/sessions/{session}/messages?before=x"),
            "invalid_field",
        ),
        (
            format!("/sessions/{session}/messages?before={message}&limit=0"),
            "invalid_field",
        ),
        (
            format!("/sessions/{other}/messages?before={message}"),
            "message_not_found",
        ),
    ] {
        let (status, error) = server.call(Method::GET, &path, None).await;
        assert!(status.is_client_error(), "{path}: {status}");
        assert_eq!(error["code"], code, "{path}: {error}");
    }
}
