//! Limits that an admin sets for one person alone: what holds at once, what goes on, and who may
//! set them.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use reqwest::{Method, StatusCode, multipart};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::shares::{busy, session, several, waits_in_line};
use crate::fake_model::{Reply, Step};
use crate::person::{Person, answered};
use crate::server::{Server, client};

/// What an admin sets for somebody.
async fn set(server: &Server, person: &Person, limits: Value) -> (StatusCode, Value) {
    let path = format!("/api/people/{}", person.id);
    let body = json!({ "limits": limits });
    server.call(Method::PATCH, &path, Some(body)).await
}

async fn has(server: &Server, person: &Person, limits: Value) {
    let (status, said) = set(server, person, limits).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{said}");
}

/// How an admin sees it.
async fn seen(server: &Server, person: &Person) -> Value {
    let people = server.get("/api/people").await;
    let mut people = people.as_array().unwrap().iter();
    let found = people.find(|it| it["id"] == person.id.as_str());
    found.unwrap()["limits"].clone()
}

async fn says(server: &Server, person: &Person, session: &str) -> (StatusCode, Value) {
    let path = format!("/sessions/{session}/messages");
    let said = json!({"content": "hello"});
    person.call(server, Method::POST, &path, Some(said)).await
}

fn refused((status, said): (StatusCode, Value)) {
    assert_eq!(
        (status, &said["code"]),
        (StatusCode::TOO_MANY_REQUESTS, &json!("rate_limited")),
        "{said}"
    );
}

#[tokio::test]
async fn runs_of_one_person_alone() {
    let (model, server) = several(&[("LLM_PARALLEL", "8")]);
    let anna = Person::join(&server, "Anna", "user").await;
    let borys = Person::join(&server, "Borys", "user").await;
    let held = Reply::new([Step::text("one "), Step::hold("gate"), Step::text("two")]);
    model.script(held.when("be busy").always());
    let (_, mut first) = busy(&server, &anna).await;
    let (_, mut second) = busy(&server, &anna).await;
    first.next_of("stream_delta").await;
    second.next_of("stream_delta").await;
    // Fewer than go: none is ended, and the next waits for both to end.
    has(&server, &anna, json!({"runs": 1})).await;
    assert_eq!(seen(&server, &anna).await["used"]["runs"], 2);
    let (_, mut third) = busy(&server, &anna).await;
    let told = third.next_of("run_waiting").await;
    assert!(
        told["detail"]
            .as_str()
            .unwrap()
            .starts_with("1 of your runs")
    );
    first.send(&json!({"type": "stop"})).await;
    first.next_of("stream_stopped").await;
    // Others have what all have.
    for _ in 0..3 {
        let (_, mut tab) = busy(&server, &borys).await;
        assert!(!waits_in_line(&mut tab).await);
    }
    // More: what waits begins at once, while the second goes on.
    has(&server, &anna, json!({"runs": 2})).await;
    third.next_of("stream_delta").await;
    let (_, mut fourth) = busy(&server, &anna).await;
    assert!(waits_in_line(&mut fourth).await);
    // Taken back: as all.
    has(&server, &anna, json!({"runs": null})).await;
    fourth.next_of("stream_delta").await;
    model.release("gate");
    for tab in [&mut second, &mut third, &mut fourth] {
        tab.next_of("stream_end").await;
    }
}

#[tokio::test]
async fn conversations_files_tabs_and_tokens_of_one_person_alone() {
    let (_model, server) = several(&[("NAVI_PERSON_TOKENS_A_DAY", "1")]);
    let anna = Person::join(&server, "Anna", "user").await;
    let borys = Person::join(&server, "Borys", "user").await;
    let hers = session(&server, &anna).await;
    let make = |person| Person::call(person, &server, Method::POST, "/sessions", Some(json!({})));
    has(&server, &anna, json!({"sessions": 1})).await;
    refused(make(&anna).await);
    assert_eq!(make(&borys).await.0, StatusCode::CREATED);
    has(&server, &anna, json!({"sessions": 2})).await;
    assert_eq!(make(&anna).await.0, StatusCode::CREATED);

    // None where all have few, and few where all have none.
    assert_eq!(says(&server, &anna, &hers).await.0, StatusCode::OK);
    refused(says(&server, &anna, &hers).await);
    has(&server, &anna, json!({"tokens_a_day": 0})).await;
    assert_eq!(says(&server, &anna, &hers).await.0, StatusCode::OK);
    has(&server, &anna, json!({"tokens_a_day": 2})).await;
    refused(says(&server, &anna, &hers).await);
    has(&server, &anna, json!({"tokens_a_day": null})).await;
    refused(says(&server, &anna, &hers).await);

    let upload = async |bytes: usize| {
        let part = multipart::Part::bytes(vec![b'x'; bytes]).file_name("x.txt");
        let form = multipart::Form::new().part("file", part);
        let path = format!("{}/sessions/{hers}/files", server.url);
        let request = client().post(path).bearer_auth(&anna.token);
        answered(request.multipart(form), None).await
    };
    has(&server, &anna, json!({"files_mb": 1})).await;
    assert_eq!(upload(600 * 1024).await.0, StatusCode::CREATED);
    assert_eq!(upload(600 * 1024).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    has(&server, &anna, json!({"files_mb": 2})).await;
    assert_eq!(upload(600 * 1024).await.0, StatusCode::CREATED);
    // What is there stays, and nothing comes to it.
    has(&server, &anna, json!({"files_mb": 1})).await;
    assert_eq!(upload(1).await.0, StatusCode::PAYLOAD_TOO_LARGE);

    let by = [("authorization", format!("Bearer {}", anna.token))];
    let tab = || server.socket_with("/ws/sessions", &by);
    let (first, second) = (tab().await.unwrap(), tab().await.unwrap());
    has(&server, &anna, json!({"tabs": 1})).await;
    assert!(tab().await.is_err(), "the upgrade is refused");
    // Those that were open are open yet.
    let limits = seen(&server, &anna).await;
    let own = json!({
        "runs": null, "uploads": null, "sessions": 2, "files_mb": 1, "tokens_a_day": null, "tabs": 1,
    });
    assert_eq!(limits["own"], own);
    let in_force = json!({
        "runs": 16, "uploads": 4, "sessions": 2, "files_mb": 1, "tokens_a_day": 1, "tabs": 1,
    });
    assert_eq!(limits["in_force"], in_force);
    let used = &limits["used"];
    assert_eq!(
        (&used["sessions"], &used["file_bytes"], &used["tabs"]),
        (&json!(2), &json!(2 * 600 * 1024), &json!(2))
    );
    assert!(used["tokens_a_day"].as_u64() > Some(1), "{used}");
    // She sees the same, and nobody else's.
    let account = anna
        .call(&server, Method::GET, "/api/account", None)
        .await
        .1;
    assert_eq!(account["limits"], limits);
    let his = borys
        .call(&server, Method::GET, "/api/account", None)
        .await
        .1;
    assert_eq!(his["limits"]["in_force"]["tabs"], 200);
    assert_eq!(his["limits"]["used"]["sessions"], 1);

    // They are there after a restart.
    let house = server.house().clone();
    drop((first, second, server));
    let server = house.start();
    let limits = seen(&server, &anna).await;
    assert_eq!((&limits["own"], &limits["in_force"]), (&own, &in_force));
    let make = anna.call(&server, Method::POST, "/sessions", Some(json!({})));
    refused(make.await);
}

#[tokio::test]
async fn uploads_of_one_person_alone() {
    let (_model, server) = several(&[]);
    let anna = Person::join(&server, "Anna", "user").await;
    let hers = session(&server, &anna).await;
    has(&server, &anna, json!({"uploads": 1})).await;
    let path = format!("{}/sessions/{hers}/files", server.url);
    let (more, parts) = mpsc::channel::<Result<Bytes, std::io::Error>>(1);
    let slow = stream::unfold(parts, |mut parts| async move {
        let part = parts.recv().await?;
        Some((part, parts))
    });
    let slow = reqwest::Body::wrap_stream(slow);
    let part = multipart::Part::stream(slow).file_name("slow.txt");
    let request = client().post(&path).bearer_auth(&anna.token);
    let request = request.multipart(multipart::Form::new().part("file", part));
    let going = tokio::spawn(request.send());
    more.send(Ok(Bytes::from_static(b"one "))).await.unwrap();
    // Until the service has begun to take it.
    let until = Instant::now() + Duration::from_secs(60);
    while seen(&server, &anna).await["used"]["uploads"] != 1 {
        assert!(Instant::now() < until, "it has not begun");
    }
    let upload = async || {
        let part = multipart::Part::bytes(&b"quick"[..]).file_name("quick.txt");
        let request = client().post(&path).bearer_auth(&anna.token);
        answered(
            request.multipart(multipart::Form::new().part("file", part)),
            None,
        )
        .await
    };
    refused(upload().await);
    has(&server, &anna, json!({"uploads": 2})).await;
    assert_eq!(upload().await.0, StatusCode::CREATED);
    has(&server, &anna, json!({"uploads": 1})).await;
    refused(upload().await);
    // The one that goes on comes to its end.
    more.send(Ok(Bytes::from_static(b"two"))).await.unwrap();
    drop(more);
    let ended = going.await.unwrap().unwrap();
    assert_eq!(ended.status(), StatusCode::CREATED);
    assert_eq!(upload().await.0, StatusCode::CREATED);
}

#[tokio::test]
async fn limits_that_nobody_can_have_and_nobody_may_set() {
    let (_model, server) = several(&[]);
    let anna = Person::join(&server, "Anna", "user").await;
    for limits in [
        json!({"runs": 0}),
        json!({"runs": 10_001}),
        json!({"uploads": 0}),
        json!({"uploads": 1_001}),
        json!({"sessions": 0}),
        json!({"sessions": 10_000_001}),
        json!({"files_mb": 0}),
        json!({"files_mb": 100_000_001}),
        json!({"tokens_a_day": -1}),
        json!({"tokens_a_day": 1_000_000_000_001_u64}),
        json!({"tabs": 0}),
        json!({"tabs": 4_001}),
        json!({"tabs": 1.5}),
        json!({"tabs": "1"}),
        json!({"tabs": 1e300}),
        json!({"commands": 1}),
        json!([1]),
        json!(1),
        // The others are not taken, either.
        json!({"runs": 2, "tabs": 4_001}),
    ] {
        let (status, said) = set(&server, &anna, limits.clone()).await;
        assert_eq!(
            (status, &said["code"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_field")),
            "{limits}: {said}"
        );
    }
    let path = format!("/api/people/{}", anna.id);
    // Nothing is changed where a part of it is no good.
    let body = json!({"role": "guest", "powers": ["ssh"], "limits": {"tabs": 0}});
    let (status, said) = server.call(Method::PATCH, &path, Some(body)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let problem = said["message"].as_str().unwrap();
    assert!(
        problem.contains("tabs") && problem.contains("4000"),
        "{problem}"
    );
    let people = server.get("/api/people").await;
    assert_eq!(
        (&people[1]["role"], &people[1]["powers"]),
        (&json!("user"), &json!([]))
    );
    let nobody = "/api/people/0190a0b0-0000-7000-8000-0000000000ff";
    let body = json!({"limits": {"runs": 2}});
    let (status, said) = server.call(Method::PATCH, nobody, Some(body.clone())).await;
    assert_eq!(
        (status, &said["code"]),
        (StatusCode::NOT_FOUND, &json!("person_not_found"))
    );
    // Nor does she give herself more, or see what others have.
    let own = anna.call(&server, Method::PATCH, &path, Some(body.clone()));
    assert_eq!(own.await.0, StatusCode::FORBIDDEN);
    let olha = Person::join(&server, "Olha", "admin").await;
    let token = olha.token_for(&server, &["read", "run", "consent"]).await;
    let request = client().patch(format!("{}{path}", server.url));
    let (status, _) = answered(request.bearer_auth(token), Some(body)).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let usual = seen(&server, &anna).await;
    assert_eq!(usual["in_force"]["runs"], 16);

    // What is changed stands in the record, and with no change there is no line.
    has(&server, &anna, json!({})).await;
    has(&server, &anna, json!({"runs": 2, "tokens_a_day": 0})).await;
    has(&server, &anna, json!({"runs": null})).await;
    let record = server.get("/api/record").await;
    let lines = record.as_array().unwrap().iter();
    let lines: Vec<&str> = lines
        .filter(|line| line["what"] == "limits_changed")
        .map(|line| line["about"].as_str().unwrap())
        .collect();
    assert_eq!(lines, ["Anna: runs as all", "Anna: runs 2, tokens_a_day 0"]);
    // They go with her.
    let (status, _) = server.call(Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let (status, _) = set(&server, &anna, json!({"runs": 3})).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn where_there_is_one_user_there_are_no_limits_of_people() {
    let (_model, server) = super::talking(&[]);
    let account = server.get("/api/account").await;
    assert_eq!(account["limits"], Value::Null);
}
