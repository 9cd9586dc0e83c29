//! One person who takes all that there is: what is left to the others.

use reqwest::{Method, StatusCode, multipart};
use serde_json::{Value, json};

use super::talking;
use crate::fake_model::{FakeModel, Reply, Step};
use crate::person::{Person, answered};
use crate::server::{Server, Socket, Told, client};

pub(super) fn several(limits: &[(&str, &str)]) -> (FakeModel, Server) {
    let all: Vec<_> = [("NAVI_ACCOUNTS", "on")]
        .into_iter()
        .chain(limits.iter().copied())
        .collect();
    talking(&all)
}

pub(super) async fn session(server: &Server, person: &Person) -> String {
    let made = person.call(server, Method::POST, "/sessions", Some(json!({})));
    made.await.1["session_id"].as_str().unwrap().to_owned()
}

/// A session of somebody's, with a message sent that the model does not answer before it is told.
pub(super) async fn busy(server: &Server, person: &Person) -> (String, Socket) {
    says(server, person, "be busy").await
}

/// A session of somebody's, with this message sent.
pub(super) async fn says(server: &Server, person: &Person, content: &str) -> (String, Socket) {
    let session = session(server, person).await;
    let by = [("authorization", format!("Bearer {}", person.token))];
    let socket = format!("/ws/sessions/{session}");
    let mut tab = server.socket_with(&socket, &by).await.unwrap();
    tab.send(&json!({"type": "message", "content": content}))
        .await;
    (session, tab)
}

/// Whether its run waits for others of the same person, before it says anything.
pub(super) async fn waits_in_line(tab: &mut Socket) -> bool {
    loop {
        match tab.next().await {
            // The model may be waited for, too.
            Told::Frame(frame) if frame["type"] == "run_waiting" => {
                if frame["detail"].as_str().unwrap().contains("of your runs") {
                    return true;
                }
            }
            Told::Frame(frame) if frame["type"] == "stream_delta" => return false,
            Told::Frame(_) => {}
            Told::Closed(code) => panic!("closed with {code}"),
        }
    }
}

#[tokio::test]
async fn more_runs_than_one_person_may_have_at_once() {
    let (model, server) = several(&[("NAVI_PERSON_RUNS", "2"), ("LLM_PARALLEL", "8")]);
    let anna = Person::join(&server, "Anna", "user").await;
    let borys = Person::join(&server, "Borys", "user").await;
    let held = Reply::new([Step::text("one "), Step::hold("gate"), Step::text("two")]);
    model.script(held.when("be busy").always());
    let mut hers = Vec::new();
    for _ in 0..4 {
        hers.push(busy(&server, &anna).await);
    }
    let (waiting, going): (Vec<usize>, Vec<usize>) = {
        let (mut waiting, mut going) = (Vec::new(), Vec::new());
        for (at, (_, tab)) in hers.iter_mut().enumerate() {
            let waits = waits_in_line(tab).await;
            (if waits { &mut waiting } else { &mut going }).push(at);
        }
        (waiting, going)
    };
    assert_eq!((waiting.len(), going.len()), (2, 2));
    // Nobody else waits for her.
    model.script(Reply::new([Step::text("at once")]).when("hello"));
    let said = json!({"content": "hello"});
    let path = format!("/sessions/{}/messages", session(&server, &borys).await);
    let (status, answer) = borys.call(&server, Method::POST, &path, Some(said)).await;
    assert_eq!(
        (status, &answer["content"]),
        (StatusCode::OK, &json!("at once"))
    );
    // One that waits can be stopped, and the other begins when one ends.
    let (_, tab) = &mut hers[waiting[0]];
    tab.send(&json!({"type": "stop"})).await;
    tab.next_of("stream_stopped").await;
    model.release("gate");
    for at in going.into_iter().chain([waiting[1]]) {
        hers[at].1.next_of("stream_end").await;
    }
}

#[tokio::test]
async fn more_conversations_files_and_tabs_than_one_person_may_have() {
    let (_model, server) = several(&[
        ("NAVI_PERSON_SESSIONS", "2"),
        ("NAVI_PERSON_FILES_MB", "1"),
        ("NAVI_PERSON_TABS", "2"),
    ]);
    let anna = Person::join(&server, "Anna", "user").await;
    let borys = Person::join(&server, "Borys", "user").await;
    let first = session(&server, &anna).await;
    let second = session(&server, &anna).await;
    let refused = |status, said: &Value| {
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{said}");
        assert_eq!(said["code"], "rate_limited");
    };
    let made = anna.call(&server, Method::POST, "/sessions", Some(json!({})));
    let (status, said) = made.await;
    refused(status, &said);
    let exported = json!({"messages": [{"role": "user", "content": "hello"}]});
    let imported = anna.call(&server, Method::POST, "/sessions/import", Some(exported));
    let (status, said) = imported.await;
    refused(status, &said);
    session(&server, &borys).await;
    // One that is deleted counts no more.
    let path = format!("/sessions/{second}");
    anna.call(&server, Method::DELETE, &path, None).await;
    let second = session(&server, &anna).await;

    // Two conversations share the room.
    let upload = async |person: &Person, session: &str, bytes: usize| {
        let part = multipart::Part::bytes(vec![b'x'; bytes]).file_name("x.txt");
        let form = multipart::Form::new().part("file", part);
        let path = format!("{}/sessions/{session}/files", server.url);
        let request = client().post(path).bearer_auth(&person.token);
        answered(request.multipart(form), None).await
    };
    let half = 600 * 1024;
    assert_eq!(upload(&anna, &first, half).await.0, StatusCode::CREATED);
    let (status, said) = upload(&anna, &second, half).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{said}");
    let of_borys = session(&server, &borys).await;
    assert_eq!(upload(&borys, &of_borys, half).await.0, StatusCode::CREATED);

    let tab = async |person: &Person| {
        let by = [("authorization", format!("Bearer {}", person.token))];
        server.socket_with("/ws/sessions", &by).await
    };
    let tabs = [tab(&anna).await.unwrap(), tab(&anna).await.unwrap()];
    let third = tab(&anna).await;
    let is_refused = match third {
        Err(_) => true,
        Ok(mut tab) => tab.closed().await != 1000,
    };
    assert!(is_refused);
    drop(tab(&borys).await.unwrap());
    drop(tabs);
}

#[tokio::test]
async fn more_tokens_than_one_person_may_use_in_a_day() {
    let (_model, server) = several(&[("NAVI_PERSON_TOKENS_A_DAY", "1")]);
    let anna = Person::join(&server, "Anna", "user").await;
    let borys = Person::join(&server, "Borys", "user").await;
    let ask = async |person: &Person, session: &str| {
        let path = format!("/sessions/{session}/messages");
        let said = json!({"content": "hello"});
        person.call(&server, Method::POST, &path, Some(said)).await
    };
    let hers = session(&server, &anna).await;
    assert_eq!(ask(&anna, &hers).await.0, StatusCode::OK);
    let (status, said) = ask(&anna, &hers).await;
    assert_eq!(
        (status, &said["code"]),
        (StatusCode::TOO_MANY_REQUESTS, &json!("rate_limited")),
        "{said}"
    );
    let his = session(&server, &borys).await;
    assert_eq!(ask(&borys, &his).await.0, StatusCode::OK);
}
