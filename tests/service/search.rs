//! `GET /search`, and that a user sees only their own.

use chrono::Utc;
use navi_actors::protocol::people::{Scopes, UserRole};
use navi_actors::store::{Location, NewToken, SecretHash, Store, StoreConfig};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::fake_model::FakeModel;
use crate::server::{House, Server, client};

async fn say(server: &Server, text: &str) -> String {
    let session = server.new_session().await;
    let path = format!("/sessions/{session}/messages");
    server.post(&path, json!({"content": text})).await;
    session
}

async fn search(server: &Server, token: &str, query: &[(&str, &str)]) -> (StatusCode, Value) {
    let mut url: Url = format!("{}/search", server.url).parse().unwrap();
    url.query_pairs_mut().extend_pairs(query);
    let response = client().get(url).bearer_auth(token).send().await.unwrap();
    (response.status(), response.json().await.unwrap())
}

async fn hits(server: &Server, words: &str) -> Vec<Value> {
    let (status, body) = search(server, crate::server::TOKEN, &[("q", words)]).await;
    assert_eq!(status, StatusCode::OK, "{words:?}: {body}");
    body["hits"].as_array().unwrap().clone()
}

fn of_sessions(hits: &[Value]) -> Vec<&str> {
    let mut all: Vec<&str> = hits
        .iter()
        .map(|hit| hit["session_id"].as_str().unwrap())
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[tokio::test]
async fn any_text_is_a_question_and_what_was_said_is_found() {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    let cats = say(&server, "Про котів: \"скільки їх?\" AND more").await;
    let dogs = say(&server, "about dogs, AND 100% of them").await;
    assert_eq!(of_sessions(&hits(&server, "котів").await), [cats.as_str()]);
    assert_eq!(of_sessions(&hits(&server, "dogs").await), [dogs.as_str()]);
    let both = hits(&server, "and").await;
    assert_eq!(of_sessions(&both).len(), 2);
    for hit in both.iter().filter(|hit| hit.get("message_id").is_some()) {
        let text: Vec<u16> = hit["snippet"]["text"]
            .as_str()
            .unwrap()
            .encode_utf16()
            .collect();
        for mark in hit["snippet"]["marks"].as_array().unwrap() {
            let at = |end: &str| usize::try_from(mark[end].as_u64().unwrap()).unwrap();
            let marked = String::from_utf16(&text[at("start")..at("end")]).unwrap();
            assert_eq!(marked.to_lowercase(), "and", "{hit}");
        }
    }
    let (_, one) = search(
        &server,
        crate::server::TOKEN,
        &[("q", "and"), ("limit", "1")],
    )
    .await;
    assert_eq!(one["hits"].as_array().unwrap().len(), 1);

    let long = "word ".repeat(3_000);
    for words in [
        "",
        " ",
        "\"",
        "'",
        "AND",
        "NOT x",
        "NEAR(a b",
        "*",
        "-",
        "a*",
        "col:x",
        "^x",
        "(",
        ")",
        "{a}",
        "%",
        "_",
        "\\",
        "--",
        ";",
        "\0",
        "\u{202e}x",
        "🌍",
        "x' OR 1=1 --",
        "\u{feff}",
        long.as_str(),
    ] {
        hits(&server, words).await;
    }
    for query in [
        &[][..],
        &[("q", "x"), ("limit", "many")],
        &[("q", "x"), ("limit", "-1")],
    ] {
        let (status, body) = search(&server, crate::server::TOKEN, query).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query:?}: {body}");
        assert_eq!(body["code"], "invalid_field");
    }

    // What is deleted is not found, and what is had back is.
    let path = format!("/sessions/{dogs}");
    server.call(Method::DELETE, &path, None).await;
    assert_eq!(hits(&server, "dogs").await, Vec::<Value>::new());
    server.post(&format!("{path}/restore"), json!({})).await;
    assert_eq!(of_sessions(&hits(&server, "dogs").await), [dogs.as_str()]);
}

/// Makes a second user before the service starts: no door does that yet.
async fn second_user(house: &House, token: &str) {
    let path = house.data_dir().join("navi.db");
    let location = match house.variable("DATABASE_URL") {
        Some(url) => Location::Postgres(url),
        None => Location::Sqlite(path),
    };
    let store = Store::open(&StoreConfig { location }).await.unwrap();
    let user = store.create_user("Olha", UserRole::User).await.unwrap();
    let hash = SecretHash(Sha256::digest(token.as_bytes()).into());
    let token = NewToken {
        user_id: user.id,
        name: "test".to_owned(),
        hash,
        scopes: Scopes::USUAL,
        expires_at: None,
    };
    store.add_token(token, Utc::now()).await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_user_sees_only_their_own() {
    let model = FakeModel::start();
    let house = House::new(&[("OLLAMA_HOST", &model.url())]);
    let hers = "her-own-token-of-the-tests";
    second_user(&house, hers).await;
    let server = house.start();
    let session = say(&server, "my secret garden").await;
    let one = format!("/sessions/{session}");
    // A title that its user gave stays, whenever the model comes with one.
    let title = json!({"title": "Garden"});
    server.call(Method::PATCH, &one, Some(title)).await;
    let snapshot = server.get(&one).await;
    let message = &snapshot["messages"][0];
    let run = message["run_id"].as_str().unwrap();
    assert!(!hits(&server, "secret").await.is_empty());

    let (status, found) = search(&server, hers, &[("q", "secret")]).await;
    assert_eq!((status, &found["hits"]), (StatusCode::OK, &json!([])));
    for (method, path, body) in [
        (Method::GET, one.clone(), None),
        (Method::GET, format!("{one}/context"), None),
        (Method::GET, format!("{one}/runs/{run}/events"), None),
        (Method::POST, format!("{one}/stop"), None),
        (Method::POST, format!("{one}/subagents/{run}/stop"), None),
        (
            Method::POST,
            format!("{one}/messages"),
            Some(json!({"content": "x"})),
        ),
        (
            Method::POST,
            format!("{one}/branches"),
            Some(json!({"message_id": message["id"]})),
        ),
        (
            Method::PUT,
            format!("{one}/branch"),
            Some(json!({"branch_id": 0})),
        ),
        (Method::PATCH, format!("{one}/pin"), None),
        (Method::PATCH, one.clone(), Some(json!({"title": "hers"}))),
        (Method::DELETE, one.clone(), None),
        (Method::POST, format!("{one}/restore"), None),
    ] {
        let mut request = client()
            .request(method.clone(), format!("{}{path}", server.url))
            .bearer_auth(hers);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let status = response.status();
        let body: Value = response.json().await.unwrap();
        assert_eq!(
            (status, &body["code"]),
            (StatusCode::NOT_FOUND, &json!("session_not_found")),
            "{method} {path}: {body}"
        );
    }
    let headers = [("authorization", format!("Bearer {hers}"))];
    let mut tab = server
        .socket_with(&format!("/ws{one}"), &headers)
        .await
        .unwrap();
    assert_eq!(tab.closed().await, 4004);
    assert_eq!(server.get(&one).await, snapshot, "nothing was changed");
}
