//! Who takes part, who did, and who never may.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::together::{NOBODYS, NOT_FOUND, Together, is_forbidden};
use crate::fake_model::Step;
use crate::person::{Person, answered};
use crate::server::client;

#[tokio::test]
async fn two_in_one_conversation_see_the_same_and_are_named() {
    let mut together = Together::new(&[]).await;
    let (mut annas, mut olhas) = (
        together.tab(&together.anna).await,
        together.tab(&together.olha).await,
    );
    olhas
        .send(&json!({"type": "message", "content": "hello from me"}))
        .await;
    let author = json!({"id": together.olha.id, "name": "Olha"});
    let (seen, own) = (
        annas.until("stream_end").await,
        olhas.until("stream_end").await,
    );
    let numbered = |frames: &[Value]| -> Vec<Value> {
        let numbered = frames.iter().filter(|frame| frame["seq"].is_u64());
        numbered.cloned().collect()
    };
    assert_eq!(numbered(&seen), numbered(&own));
    let accepted = seen.iter().find(|it| it["type"] == "message_accepted");
    assert_eq!(accepted.unwrap()["author"], author);
    together.say(&together.anna, "and from me").await;

    // The model knows who speaks, by a line that no text can make.
    let mut chats = together.model.chats();
    // A title is asked for whenever.
    chats.retain(|chat| chat.body["stream"] != false);
    let last = &chats.last().unwrap().body["messages"];
    let texts: Vec<&str> = last
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["content"].as_str())
        .collect();
    for (name, said) in [("Olha", "hello from me"), ("Anna", "and from me")] {
        let told = texts.iter().find(|text| text.contains(said)).unwrap();
        assert!(told.starts_with("[navi-author-"), "{told}");
        assert!(
            told.contains(&format!("the one named \"{name}\" wrote this message")),
            "{told}"
        );
    }

    for (who, shares) in [(&together.anna, 1), (&together.olha, 1)] {
        let list = together.list(who).await;
        assert_eq!(list.len(), shares);
        assert_eq!(list[0]["shared"]["owner"]["name"], "Anna");
        assert_eq!(list[0]["shared"]["people"], json!([author]));
    }
    together.server = together.server.crash_and_restart();
    let (status, snapshot) = together.ask(&together.olha, Method::GET, "", None).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(snapshot["messages"][0]["author"], author);
    assert_eq!(snapshot["messages"][2]["author"]["name"], "Anna");
    together.model.assert_clean();
}

/// By every route and every frame.
#[tokio::test]
async fn a_participant_who_tries_what_is_its_owners() {
    let together = Together::new(&[("NAVI_CONSENT_MODE", "ask")]).await;
    let olha = &together.olha;
    together.say(&together.anna, "first").await;
    let before = together.ask(&together.anna, Method::GET, "", None).await.1;
    let run = before["messages"][0]["run_id"].as_str().unwrap();
    let form = reqwest::multipart::Form::new().part(
        "file",
        reqwest::multipart::Part::bytes(b"text".to_vec()).file_name("a.txt"),
    );
    let upload = client().post(format!(
        "{}{}",
        together.server.url,
        together.path("/files")
    ));
    let upload = upload.multipart(form).bearer_auth(&olha.token);
    let (status, files) = answered(upload, None).await;
    assert_eq!(status, StatusCode::CREATED, "{files}");
    let file = files["files"][0]["file_id"].as_str().unwrap();
    let tool = json!({"name": "mine", "description": "x", "effect": "read", "parameters": {"type": "object"}});
    for (method, rest, body) in [
        (Method::DELETE, "", None),
        (Method::PATCH, "", Some(json!({"title": "mine"}))),
        (Method::PATCH, "", Some(json!({"archived": true}))),
        (Method::PATCH, "", Some(json!({"tags": ["mine"]}))),
        (Method::PATCH, "", Some(json!({"model": "fake:latest"}))),
        (Method::PATCH, "", Some(json!({"profile_id": "secretary"}))),
        (Method::PATCH, "/mode", Some(json!({"mode": "auto"}))),
        (Method::PATCH, "/pin", Some(json!({"pinned": true}))),
        (Method::POST, "/people", Some(json!({"name": "Anna"}))),
        (
            Method::DELETE,
            &format!("/people/{}", together.olha.id),
            None,
        ),
        (Method::GET, "/links", None),
        (Method::POST, "/links", Some(json!({}))),
        (Method::DELETE, &format!("/links/{NOBODYS}"), None),
        (Method::DELETE, &format!("/files/{file}"), None),
        (
            Method::POST,
            "/messages",
            Some(json!({"content": "x", "consent": "allow"})),
        ),
        (
            Method::POST,
            "/lent",
            Some(json!({"client_id": "c", "tools": [tool]})),
        ),
        (
            Method::POST,
            &format!("/approvals/{NOBODYS}"),
            Some(json!({"decision": "always"})),
        ),
        (
            Method::POST,
            &format!("/approvals/{NOBODYS}"),
            Some(json!({"decision": "never"})),
        ),
    ] {
        let refused = together.ask(olha, method.clone(), rest, body).await;
        assert!(
            is_forbidden(refused.clone()),
            "{method} {rest}: {refused:?}"
        );
    }
    for path in [format!("/runs/{run}/calls/1"), format!("/runs/{run}/lent")] {
        let refused = olha.call(&together.server, Method::GET, &path, None).await;
        assert!(is_forbidden(refused.clone()), "{path}: {refused:?}");
    }
    let restore = together.ask(olha, Method::POST, "/restore", None).await;
    assert_eq!(restore.0, StatusCode::NOT_FOUND);
    let mut tab = together.tab(olha).await;
    for decision in ["always", "never"] {
        let approve = json!({"type": "approve", "approval_id": NOBODYS, "decision": decision});
        tab.send(&approve).await;
        assert_eq!(tab.next_of("error").await["code"], "forbidden");
    }
    // Nothing of it was done, and nothing of the rest is kept from her.
    let after = together.ask(&together.anna, Method::GET, "", None).await.1;
    assert_eq!(after["messages"], before["messages"]);
    assert_eq!(after["mode"], before["mode"]);
    // The model may give it a title at any moment.
    assert!(after["title"] != "mine", "{after}");
    for rest in [
        "/people",
        "/context",
        "/runs",
        "/workspace",
        "/files",
        "/changes",
    ] {
        let (status, said) = together.ask(olha, Method::GET, rest, None).await;
        assert_eq!(status, StatusCode::OK, "{rest}: {said}");
    }
    let (status, run) = olha
        .call(&together.server, Method::GET, &format!("/runs/{run}"), None)
        .await;
    assert_eq!((status, &run["spent"]), (StatusCode::OK, &Value::Null));
    // A guest looks, whoever's it is.
    let vira = Person::join(&together.server, "Vira", "guest").await;
    assert_eq!(together.share("Vira").await.0, StatusCode::CREATED);
    assert_eq!(
        together.ask(&vira, Method::GET, "", None).await.0,
        StatusCode::OK
    );
    assert!(is_forbidden(together.say(&vira, "hello").await));
    together.model.assert_clean();
}

#[tokio::test]
async fn a_removed_participant_with_open_tabs_and_a_request_in_flight() {
    let together = Together::new(&[]).await;
    let olha = &together.olha;
    together.say(&together.anna, "the secret garden").await;
    let hits = async |who: &Person| {
        let path = "/search?q=garden";
        let found = who.call(&together.server, Method::GET, path, None).await.1;
        found.to_string().matches("secret").count()
    };
    assert!(hits(olha).await > 0);
    let mut tab = together.tab(olha).await;
    let mut list = together.socket(olha, "/ws/sessions").await;
    assert_eq!(
        list.next_of("sessions").await["sessions"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    together
        .model
        .script(vec![Step::hold("gate"), Step::text("said too late")]);
    let asking = together.say(olha, "wait for it");
    let removing = async {
        together
            .model
            .wait_for(|chats| {
                chats
                    .iter()
                    .any(|it| it.last_user_text().contains("wait for it"))
            })
            .await;
        together.remove(olha).await;
        let began = std::time::Instant::now();
        assert_eq!(
            list.next_of("session_removed").await["session_id"],
            json!(together.session)
        );
        tab.closed().await;
        // A second, and what a busy machine adds.
        assert!(began.elapsed() < std::time::Duration::from_secs(30));
        together.model.release("gate");
    };
    let ((status, said), ()) = tokio::join!(asking, removing);
    assert_eq!(status, StatusCode::NOT_FOUND, "{said}");
    assert_eq!(together.tab(olha).await.closed().await, NOT_FOUND);
    assert!(together.list(olha).await.is_empty());
    assert_eq!(hits(olha).await, 0);
    for (method, rest) in [
        (Method::GET, ""),
        (Method::GET, "/people"),
        (Method::GET, "/events"),
        (Method::GET, "/files"),
        (Method::GET, "/workspace"),
        (Method::POST, "/stop"),
        (Method::POST, "/leave"),
    ] {
        let (status, said) = together.ask(olha, method, rest, None).await;
        assert_eq!(
            (status, &said["code"]),
            (StatusCode::NOT_FOUND, &json!("session_not_found")),
            "{rest}"
        );
    }
    // And whoever leaves by themselves is out as well.
    assert_eq!(together.share("Olha").await.0, StatusCode::CREATED);
    let mut tab = together.tab(olha).await;
    let left = together.ask(olha, Method::POST, "/leave", None).await;
    assert_eq!(left.0, StatusCode::NO_CONTENT);
    tab.closed().await;
    let record = together.server.get("/api/record").await;
    let lines = record.as_array().unwrap().iter();
    let ended = lines.filter(|line| line["what"] == "share_ended");
    assert_eq!(ended.count(), 2);
    assert!(record.to_string().contains(&together.session));
    assert!(!record.to_string().contains("garden"));
}

#[tokio::test]
async fn two_who_answer_one_approval() {
    let together = Together::new(&[("NAVI_CONSENT_MODE", "ask")]).await;
    let write = json!({"action": "write", "path": "a.txt", "content": "x"});
    together
        .model
        .script(vec![Step::tool_call("filesystem", write)]);
    let (mut annas, mut olhas) = (
        together.tab(&together.anna).await,
        together.tab(&together.olha).await,
    );
    olhas
        .send(&json!({"type": "message", "content": "write"}))
        .await;
    let request = annas.next_of("approval_requested").await;
    let approve = |decision: &str| json!({"type": "approve", "approval_id": request["approval_id"], "decision": decision});
    olhas.send(&approve("always")).await;
    assert_eq!(olhas.next_of("error").await["code"], "forbidden");
    olhas.send(&approve("deny")).await;
    let resolved = annas.next_of("approval_resolved").await;
    assert_eq!(resolved["author"]["name"], "Olha");
    annas.send(&approve("always")).await;
    assert_eq!(annas.next_of("error").await["code"], "approval_resolved");
    let log = async |who: &Person| {
        let log = who
            .call(&together.server, Method::GET, "/consent/log", None)
            .await;
        log.1["entries"].as_array().unwrap().clone()
    };
    let entries = log(&together.anna).await;
    assert_eq!(
        (entries.len(), &entries[0]["author"]["name"]),
        (1, &json!("Olha"))
    );
    assert!(log(&together.olha).await.is_empty());
    let rules = together
        .anna
        .call(&together.server, Method::GET, "/consent/rules", None);
    assert!(!rules.await.1.to_string().contains("filesystem"));
}

/// By the page's route, and on the machine itself.
#[tokio::test]
async fn an_owners_account_that_is_removed() {
    for by_hand in [false, true] {
        let together = Together::new(&[]).await;
        let (_, secret) = together.link().await;
        let mut tab = together.tab(&together.olha).await;
        if by_hand {
            let removed = together
                .server
                .house()
                .run(&["user", "remove", "Anna", "--yes"]);
            assert!(removed.status.success(), "{removed:?}");
        } else {
            let path = format!("/api/people/{}", together.anna.id);
            let (status, _) = together.server.call(Method::DELETE, &path, None).await;
            assert_eq!(status, StatusCode::NO_CONTENT);
        }
        tab.closed().await;
        assert_eq!(
            together.ask(&together.olha, Method::GET, "", None).await.0,
            StatusCode::NOT_FOUND
        );
        assert!(together.list(&together.olha).await.is_empty());
        assert_eq!(together.look(&secret).await.0, StatusCode::NOT_FOUND);
    }
}
