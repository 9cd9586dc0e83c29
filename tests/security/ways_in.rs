//! Ways into an account, by who has a lesser one, or none any more.

use futures_util::StreamExt as _;
use reqwest::header::AUTHORIZATION;
use reqwest::multipart::{Form, Part};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::talking;
use crate::fake_model::Step;
use crate::person::{PASSWORD, Person, accept, answered, came_in, secret_of, sign_in, with};
use crate::server::{Server, client};

const ACCOUNTS: (&str, &str) = ("NAVI_ACCOUNTS", "on");
const CODES: &str = "/api/account/recovery-codes";
const USUAL: [&str; 5] = ["read", "run", "files", "memory", "admin"];

/// As a program asks that has this token.
async fn by(server: &Server, token: &str, path: &str, body: Value) -> (StatusCode, Value) {
    let request = client().post(format!("{}{path}", server.url));
    answered(request.bearer_auth(token), Some(body)).await
}

#[tokio::test]
async fn a_token_without_consent_that_answers_a_request_by_responses() {
    let (model, server) = talking(&[ACCOUNTS, ("NAVI_CONSENT_MODE", "ask")]);
    let anna = Person::join(&server, "Anna", "user").await;
    let token = anna.token_for(&server, &["read", "run"]).await;
    let write = json!({"action": "write", "path": "a.txt", "content": "x"});
    model.script([Step::tool_call("filesystem", write)]);
    let body = json!({"model": "navi", "input": "write"});
    let (status, asked) = by(&server, &token, "/v1/responses", body).await;
    assert_eq!(status, StatusCode::OK, "{asked}");
    let output = asked["output"].as_array().unwrap();
    let request = output
        .iter()
        .find(|it| it["type"] == "mcp_approval_request");
    let request = request.unwrap_or_else(|| panic!("{asked}"))["id"].clone();
    let answer = |approve: bool| {
        json!({"model": "navi", "input": [
            {"type": "mcp_approval_response", "approval_request_id": request, "approve": approve},
        ]})
    };
    for approve in [true, false] {
        let (status, said) = by(&server, &token, "/v1/responses", answer(approve)).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{said}");
    }
    // It waits as before, for who may answer it.
    let (status, said) = by(&server, &anna.token, "/v1/responses", answer(true)).await;
    assert_eq!(status, StatusCode::OK, "{said}");
    assert_eq!(said["status"], "completed", "{said}");
}

#[tokio::test]
async fn a_token_that_makes_itself_a_login() {
    let (_model, server) = talking(&[ACCOUNTS]);
    let olha = Person::join(&server, "Olha", "admin").await;
    let usual = olha.token_for(&server, &USUAL).await;
    let proof = json!({"current_password": PASSWORD});
    for token in [&usual, &olha.token] {
        let (status, said) = by(&server, token, CODES, proof.clone()).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{said}");
    }
    let reset = format!("/api/people/{}/reset", olha.id);
    let invitation = json!({"role": "user"});
    for (path, body) in [
        (reset.as_str(), json!({})),
        ("/api/invitations", invitation),
    ] {
        let (status, said) = by(&server, &usual, path, body.clone()).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{said}");
        let (status, said) = by(&server, &olha.token, path, body).await;
        assert_eq!(status, StatusCode::CREATED, "{said}");
    }
}

#[tokio::test]
async fn a_browser_left_open_and_codes_that_outlive_a_reset() {
    let (_model, server) = talking(&[ACCOUNTS]);
    let anna = Person::join(&server, "Anna", "user").await;
    let asks = |body| answered(with(&server, Method::POST, CODES, &anna.login), body);
    for wrong in [None, Some(json!({"current_password": "a guess"}))] {
        let (status, said) = asks(wrong).await;
        assert_eq!(
            (status, &said["code"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_field"))
        );
    }
    let (status, made) = asks(Some(json!({"current_password": PASSWORD}))).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let path = format!("/api/people/{}/reset", anna.id);
    let secret = secret_of(&server.post(&path, json!({})).await);
    accept(&server, &secret, "Anna", "another password")
        .await
        .unwrap();
    let code = json!({"name": "Anna", "recovery_code": made["codes"][0]});
    assert!(came_in(&server, "/api/sign-in", code).await.is_err());
}

/// Nor does such a browser make an admin, of somebody new or of somebody here, or a link by which
/// somebody's account is taken over.
#[tokio::test]
async fn a_browser_left_open_and_admins_or_links_of_its_making() {
    let (_model, server) = talking(&[ACCOUNTS]);
    let olha = Person::join(&server, "Olha", "admin").await;
    let anna = Person::join(&server, "Anna", "user").await;
    let asks = |method: &Method, path: &str, body: &Value| {
        let request = with(&server, method.clone(), path, &olha.login);
        answered(request, Some(body.clone()))
    };
    let reset = |person: &Person| format!("/api/people/{}/reset", person.id);
    let invitations = "/api/invitations".to_owned();
    let hers = format!("/api/people/{}", anna.id);
    // Somebody new who is no admin is invited as ever.
    let (status, said) = asks(&Method::POST, &invitations, &json!({"role": "user"})).await;
    assert_eq!(status, StatusCode::CREATED, "{said}");
    for (method, path, mut body) in [
        (Method::POST, invitations, json!({"role": "admin"})),
        (Method::POST, reset(&olha), json!({})),
        (Method::POST, reset(&anna), json!({})),
        (Method::PATCH, hers, json!({"role": "admin"})),
    ] {
        let (status, said) = asks(&method, &path, &body).await;
        assert_eq!(
            (status, &said["code"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_field")),
            "{path}: {said}"
        );
        body["current_password"] = json!(PASSWORD);
        let (status, said) = asks(&method, &path, &body).await;
        assert!(status.is_success(), "{path}: {said}");
    }
}

#[tokio::test]
async fn a_token_and_a_link_that_outlive_a_reset() {
    let (_model, server) = talking(&[ACCOUNTS]);
    let anna = Person::join(&server, "Anna", "user").await;
    let path = format!("/api/people/{}/reset", anna.id);
    let link = async || secret_of(&server.post(&path, json!({})).await);
    let (older, newer) = (link().await, link().await);
    let bearer = [(AUTHORIZATION.as_str(), format!("Bearer {}", anna.token))];
    let mut socket = server.socket_with("/ws/sessions", &bearer).await.unwrap();
    let chosen = accept(&server, &newer, "Anna", "another password").await;
    let login = chosen.unwrap();
    assert_eq!(socket.closed().await, 4001);
    let (status, _) = anna.call(&server, Method::GET, "/api/account", None).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let refused = async |secret: &str| {
        let (status, said) = accept(&server, secret, "Anna", PASSWORD).await.unwrap_err();
        assert_eq!(
            (status, &said["code"]),
            (StatusCode::NOT_FOUND, &json!("invitation_not_found"))
        );
    };
    refused(&older).await;

    // Nor does one outlive another password that she chooses herself.
    let older = link().await;
    let body = json!({"password": "a third password", "current_password": "another password"});
    let change = with(&server, Method::PATCH, "/api/account", &login);
    let (status, said) = answered(change, Some(body)).await;
    assert_eq!(status, StatusCode::OK, "{said}");
    refused(&older).await;
}

#[tokio::test]
async fn the_machines_own_user_removed_and_what_they_came_in_with() {
    let (_model, server) = talking(&[ACCOUNTS]);
    let olha = Person::join(&server, "Olha", "admin").await;
    let local = server.get("/api/account").await["id"].clone();
    let local = format!("/api/people/{}", local.as_str().unwrap());
    let less = Some(json!({"role": "user"}));
    let (status, _) = olha.call(&server, Method::PATCH, &local, less).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    // The setting's token is theirs, and no admin's any more.
    let (status, _) = server.call(Method::GET, "/api/people", None).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let (status, _) = olha.call(&server, Method::DELETE, &local, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let (status, _) = server.call(Method::GET, "/api/account", None).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    // It starts without them, and they are not back.
    let server = server.crash_and_restart();
    assert!(sign_in(&server, "Olha", PASSWORD).await.is_ok());
    let (_, people) = olha.call(&server, Method::GET, "/api/people", None).await;
    assert_eq!(people.as_array().unwrap().len(), 1, "{people}");
    let (status, _) = server.call(Method::GET, "/api/account", None).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    // And nobody else goes while she is the last.
    let own = format!("/api/people/{}", olha.id);
    let (status, _) = olha.call(&server, Method::DELETE, &own, None).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn an_invitation_of_who_is_no_admin_any_more() {
    let (_model, server) = talking(&[ACCOUNTS]);
    for (n, leaves) in [false, true].into_iter().enumerate() {
        let olha = Person::join(&server, &format!("Olha {n}"), "admin").await;
        let anna = Person::join(&server, &format!("Anna {n}"), "admin").await;
        let body = json!({"role": "admin", "days": 30});
        let (_, invited) = by(&server, &olha.token, "/api/invitations", body).await;
        let reset = format!("/api/people/{}/reset", anna.id);
        let (_, reset) = by(&server, &olha.token, &reset, json!({})).await;
        let one = format!("/api/people/{}", olha.id);
        let (method, body) = match leaves {
            false => (Method::PATCH, Some(json!({"role": "user"}))),
            true => (Method::DELETE, None),
        };
        let (status, said) = server.call(method, &one, body).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{said}");
        for made in [invited, reset] {
            let accepted = accept(&server, &secret_of(&made), "Mallory", PASSWORD).await;
            assert!(accepted.is_err(), "leaves: {leaves}");
        }
    }
}

/// More than waits on its way to whoever reads none of it.
const ARCHIVED_BYTES: usize = 48 << 20;

#[tokio::test]
async fn an_archive_and_a_record_that_outlive_their_token() {
    let (_model, server) = talking(&[ACCOUNTS]);
    let anna = Person::join(&server, "Anna", "user").await;
    let (_, made) = by(&server, &anna.token, "/sessions", json!({})).await;
    let session = made["session_id"].as_str().unwrap();
    let part = Part::bytes(vec![b'x'; ARCHIVED_BYTES]).file_name("large.bin");
    let upload = client()
        .post(format!("{}/sessions/{session}/files", server.url))
        .multipart(Form::new().part("file", part));
    let (status, said) = answered(upload.bearer_auth(&anna.token), None).await;
    assert!(status.is_success(), "{said}");
    let token = anna.token_for(&server, &["read", "files"]).await;
    let archive = client().get(format!("{}/api/account/archive", server.url));
    let archive = archive.bearer_auth(&token).send().await.unwrap();
    let mut pieces = archive.bytes_stream();
    pieces.next().await.unwrap().unwrap();
    let bearer = (AUTHORIZATION.as_str(), format!("Bearer {token}"));
    let mut socket = server.socket_with("/ws/sessions", &[bearer]).await.unwrap();
    let (_, tokens) = anna.call(&server, Method::GET, "/api/tokens", None).await;
    let newest = tokens.as_array().unwrap().last().unwrap()["id"].clone();
    let path = format!("/api/tokens/{}", newest.as_str().unwrap());
    anna.call(&server, Method::DELETE, &path, None).await;
    // What else is open by it closes, and so does this.
    assert_eq!(socket.closed().await, 4001);
    let mut came = 0;
    let broke_off = loop {
        match pieces.next().await {
            Some(Ok(piece)) => came += piece.len(),
            Some(Err(_)) => break true,
            None => break false,
        }
    };
    assert!(broke_off && came < ARCHIVED_BYTES, "{came} bytes more");
}

#[tokio::test]
async fn tokens_made_without_end() {
    let (_model, server) = talking(&[ACCOUNTS]);
    let hanna = Person::join(&server, "Hanna", "guest").await;
    let body = json!({"name": "one more", "scopes": ["read"]});
    for n in 0..100 {
        let (status, said) = by(&server, &hanna.token, "/api/tokens", body.clone()).await;
        if status == StatusCode::TOO_MANY_REQUESTS {
            // Others make theirs.
            let anna = Person::join(&server, "Anna", "user").await;
            anna.token_for(&server, &["read"]).await;
            return;
        }
        assert_eq!(status, StatusCode::CREATED, "{n}: {said}");
    }
    panic!("she makes as many as she likes");
}
