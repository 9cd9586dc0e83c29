//! Memory over REST (SPEC section 9): seen, corrected, taken along, forgotten.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::server::{House, Server, TOKEN, client};

async fn put(server: &Server, path: &str, value: &str) -> Value {
    let body = Some(json!({ "value": value }));
    let (status, fact) = server.call(Method::PUT, path, body).await;
    assert_eq!(status, StatusCode::OK, "{path}: {fact}");
    fact
}

#[tokio::test]
async fn the_user_sees_corrects_and_deletes_every_fact() {
    let server = House::new(&[]).start();
    let empty = server.get("/memory").await;
    assert_eq!(
        empty,
        json!({"facts": [], "summary": null, "updated_at": null})
    );

    let home = "/memory/facts/places/home";
    let fact = put(&server, home, " Київ,\nПоділ ").await;
    assert_eq!(fact["value"], "Київ, Поділ");
    assert_eq!(fact["confidence"], 1.0);
    assert!(fact.get("session_id").is_none(), "{fact}");
    put(&server, home, "Львів").await;
    let named = put(&server, "/memory/facts/People/Sister%20name", "Олена").await;
    assert_eq!(named["key"], "sister_name");

    let memory = server.get("/memory").await;
    let keys: Vec<&Value> = memory["facts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fact| &fact["key"])
        .collect();
    assert_eq!(keys, ["sister_name", "home"]);
    let summary = memory["summary"].as_str().unwrap();
    assert!(summary.contains("Львів") && !summary.contains("Київ"));
    let history = server.get(&format!("{home}/history")).await;
    assert_eq!(history[0]["value"], "Київ, Поділ");
    assert_eq!(history.as_array().unwrap().len(), 1);

    let (status, _) = server.call(Method::DELETE, home, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let summary = server.get("/memory").await["summary"].clone();
    assert!(!summary.as_str().unwrap().contains("Львів"));
    for (method, path) in [
        (Method::DELETE, home.to_owned()),
        (Method::GET, format!("{home}/history")),
        (Method::DELETE, "/memory/facts/pets/dog".to_owned()),
    ] {
        let (status, body) = server.call(method, &path, None).await;
        assert_eq!(
            (status, &body["code"]),
            (StatusCode::NOT_FOUND, &json!("fact_not_found")),
            "{path}"
        );
    }

    let (status, _) = server.call(Method::DELETE, "/memory", None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(server.get("/memory").await, empty);
}

#[tokio::test]
async fn the_memory_is_taken_along_as_a_file() {
    let server = House::new(&[]).start();
    put(&server, "/memory/facts/places/home", "Kyiv").await;
    put(&server, "/memory/facts/places/home", "Lviv").await;
    let request = client().get(format!("{}/memory/export", server.url));
    let response = request.bearer_auth(TOKEN).send().await.unwrap();
    let disposition = response.headers()["content-disposition"].to_str().unwrap();
    assert!(
        disposition.starts_with("attachment; filename=\"navi-memory-2"),
        "{disposition}"
    );
    let export: Value = response.json().await.unwrap();
    assert_eq!(export["facts"][0]["value"], "Lviv");
    assert_eq!(export["facts"][0]["history"][0]["value"], "Kyiv");
    assert_eq!(export["summary"], "- places, home: Lviv");
}

#[tokio::test]
async fn bad_facts_have_their_code_and_change_nothing() {
    let server = House::new(&[]).start();
    let long = "x".repeat(501);
    for (path, body) in [
        (
            &*format!("/memory/facts/{}/dog", "x".repeat(61)),
            json!({"value": "Rex"}),
        ),
        ("/memory/facts/people/%3F", json!({"value": "Rex"})),
        ("/memory/facts/people/dog", json!({"value": " \n"})),
        ("/memory/facts/people/dog", json!({"value": long})),
        ("/memory/facts/people/dog", json!({"text": "Rex"})),
    ] {
        let (status, answer) = server.call(Method::PUT, path, Some(body)).await;
        assert_eq!(
            (status, &answer["code"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_field")),
            "{path}"
        );
    }
    assert_eq!(server.get("/memory").await["facts"], json!([]));
    for path in ["/memory", "/memory/export", "/memory/facts/people/dog"] {
        let request = client().get(format!("{}{path}", server.url));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{path}");
    }
}
