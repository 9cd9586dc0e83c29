//! Invitations that a provider's people accept.

use reqwest::header::ORIGIN;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::going::{Going, account, from_page, recorded, refused, somebody, with_provider};
use crate::person::{PASSWORD, Person, accept, answered, secret_of};
use crate::provider::Provider;
use crate::server::{Login, Server, client};

async fn invite(server: &Server, role: &str) -> String {
    let made = server
        .post("/api/invitations", json!({ "role": role }))
        .await;
    secret_of(&made)
}

/// Begins by an invitation, as its page does.
async fn begin(server: &Server, secret: &str) -> Result<Going, (StatusCode, Value)> {
    let request = from_page(server, "/api/sign-on").json(&json!({ "invitation": secret }));
    let response = request.send().await.unwrap();
    let status = response.status();
    let cookie = response.headers().get("set-cookie").cloned();
    let body: Value = response.json().await.unwrap();
    let Some(cookie) = cookie.filter(|_| status == StatusCode::OK) else {
        return Err((status, body));
    };
    let cookie = cookie.to_str().unwrap();
    Ok(Going {
        there: body["location"].as_str().unwrap().parse().unwrap(),
        cookie: cookie.split(';').next().unwrap().to_owned(),
        key: body["key"].as_str().unwrap().to_owned(),
    })
}

/// All of it.
async fn join(
    server: &Server,
    provider: &Provider,
    secret: &str,
    sub: &str,
) -> Result<Login, (StatusCode, Value)> {
    let going = begin(server, secret).await?;
    going
        .come_in(server, provider, &going.claims(provider, sub))
        .await
}

async fn waiting(server: &Server) -> usize {
    let all = server.get("/api/invitations").await;
    all.as_array().unwrap().len()
}

async fn people(server: &Server) -> usize {
    let all = server.get("/api/people").await;
    all.as_array().unwrap().len()
}

#[tokio::test]
async fn who_is_invited_joins_where_nobody_else_does() {
    let provider = Provider::start().await;
    let (_model, server) = with_provider(&provider, &[("NAVI_SIGN_ON_JOIN", "no")]);
    let secret = invite(&server, "guest").await;
    let look = json!({ "invitation": secret });
    let offer = server.post("/api/invitation", look).await;
    assert_eq!(
        (&offer["provider"], &offer["role"]),
        (&json!("Home"), &json!("guest"))
    );
    refused(
        somebody(&server, &provider, "anna").await,
        "sign_on_refused",
    );
    let anna = join(&server, &provider, &secret, "anna").await.unwrap();
    let (_, told) = account(&server, &anna).await;
    assert_eq!(
        (&told["name"], &told["role"], &told["has_password"]),
        (&json!("anna"), &json!("guest"), &json!(false))
    );
    let record = server.get("/api/record").await;
    let lines: Vec<_> = record.as_array().unwrap()[..2]
        .iter()
        .map(|it| (it["what"].clone(), it["about"].clone()))
        .collect();
    let joined = (json!("joined"), json!("Home, by an invitation"));
    assert_eq!(lines, [(json!("signed_in"), json!("Home")), joined]);
    // From now on she comes in without one, as she is.
    let again = somebody(&server, &provider, "anna").await.unwrap();
    assert_eq!(account(&server, &again).await.1["id"], told["id"]);
    // It is used up, for whoever has its link.
    assert_eq!(waiting(&server).await, 0);
    refused(begin(&server, &secret).await, "invitation_not_found");
    let taken = accept(&server, &secret, "Borys", PASSWORD).await;
    assert_eq!(taken.unwrap_err().1["code"], "invitation_not_found");
    refused(
        somebody(&server, &provider, "borys").await,
        "sign_on_refused",
    );
}

#[tokio::test]
async fn an_invitation_that_two_browsers_use_at_once() {
    let provider = Provider::start().await;
    let (_model, server) = with_provider(&provider, &[("NAVI_SIGN_ON_JOIN", "no")]);
    let secret = invite(&server, "user").await;
    let mut going = Vec::new();
    for sub in ["anna", "borys", "vira"] {
        let begun = begin(&server, &secret).await.unwrap();
        let token = provider.signer.sign(&begun.claims(&provider, sub));
        provider.grants(sub, &begun.asks("code_challenge"), token);
        going.push((begun.back(sub, &provider), begun));
    }
    let by_password = accept(&server, &secret, "Ivan", PASSWORD);
    let [(a, first), (b, second), (c, third)] = &going[..] else {
        unreachable!()
    };
    let (one, two, three, four) = tokio::join!(
        first.finish(&server, a.clone()),
        second.finish(&server, b.clone()),
        third.finish(&server, c.clone()),
        by_password,
    );
    let came = [one, two, three, four];
    let (in_, out): (Vec<_>, Vec<_>) = came.into_iter().partition(Result::is_ok);
    assert_eq!((in_.len(), out.len()), (1, 3));
    for refusal in out {
        refused(refusal, "invitation_not_found");
    }
    assert_eq!((people(&server).await, waiting(&server).await), (2, 0));
}

#[tokio::test]
async fn an_invitation_that_was_taken_back_meanwhile_or_is_none() {
    let provider = Provider::start().await;
    let (_model, server) = with_provider(&provider, &[("NAVI_SIGN_ON_JOIN", "no")]);
    let made = server
        .post("/api/invitations", json!({"role": "admin"}))
        .await;
    let secret = secret_of(&made);
    let going = begin(&server, &secret).await.unwrap();
    let path = format!("/api/invitations/{}", made["id"].as_str().unwrap());
    let (status, _) = server.call(Method::DELETE, &path, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let claims = going.claims(&provider, "anna");
    let came = going.come_in(&server, &provider, &claims).await;
    refused(came, "invitation_not_found");
    let line = recorded(&server).await;
    assert_eq!(line["what"], "sign_in_failed");
    for guess in ["", "guessed", &secret] {
        refused(begin(&server, guess).await, "invitation_not_found");
    }
    for body in [
        json!({"invitation": 1}),
        json!({"invite": secret}),
        json!([]),
    ] {
        let request = from_page(&server, "/api/sign-on").json(&body);
        assert_eq!(answered(request, None).await.0, StatusCode::BAD_REQUEST);
    }
    assert_eq!(people(&server).await, 1);
}

/// What was asked for at the beginning is what comes of it: nobody puts an invitation to a sign-in
/// that was begun without one, or takes another's.
#[tokio::test]
async fn an_invitation_in_another_browser_or_from_another_page() {
    let provider = Provider::start().await;
    let (_model, server) = with_provider(&provider, &[("NAVI_SIGN_ON_JOIN", "no")]);
    let secret = invite(&server, "admin").await;
    let plain = Going::begin(&server, None).await;
    let token = provider.signer.sign(&plain.claims(&provider, "evil"));
    provider.grants("code", &plain.asks("code_challenge"), token);
    let mut body = plain.back("code", &provider);
    body["invitation"] = json!(secret);
    refused(plain.finish(&server, body).await, "sign_on_refused");
    let hers = begin(&server, &secret).await.unwrap();
    let his = Going::begin(&server, None).await;
    let token = provider.signer.sign(&hers.claims(&provider, "evil"));
    provider.grants("stolen", &hers.asks("code_challenge"), token);
    let mut body = his.back("stolen", &provider);
    body["state"] = json!(hers.asks("state"));
    refused(his.finish(&server, body).await, "sign_on_failed");
    let request = client().post(format!("{}/api/sign-on", server.url));
    let request = request.header(ORIGIN, "https://evil.example");
    let (_, said) = answered(request, Some(json!({ "invitation": secret }))).await;
    assert_eq!(said["code"], "forbidden_origin");
    assert_eq!((people(&server).await, waiting(&server).await), (1, 1));
    // It is hers yet.
    let token = provider.signer.sign(&hers.claims(&provider, "anna"));
    provider.grants("code", &hers.asks("code_challenge"), token);
    let anna = hers.finish(&server, hers.back("code", &provider)).await;
    assert_eq!(account(&server, &anna.unwrap()).await.1["role"], "admin");
}

/// Groups and domains say who comes in, and as what, whoever was invited.
#[tokio::test]
async fn an_invitation_opens_no_door_that_groups_and_domains_close() {
    let provider = Provider::start().await;
    let (_model, server) = with_provider(
        &provider,
        &[
            ("NAVI_SIGN_ON_JOIN", "no"),
            ("NAVI_SIGN_ON_GROUPS", "family; friends"),
            ("NAVI_SIGN_ON_ROLES", "user=family; guest=friends"),
            ("NAVI_OIDC_DOMAINS", "example.org"),
        ],
    );
    let secret = invite(&server, "admin").await;
    let come = async |sub: &str, groups: Value, email: &str| {
        let going = begin(&server, &secret).await.unwrap();
        let mut claims = going.claims(&provider, sub);
        claims["groups"] = groups;
        claims["email"] = json!(email);
        claims["email_verified"] = json!(true);
        going.come_in(&server, &provider, &claims).await
    };
    for (groups, email) in [
        (json!(["others"]), "anna@example.org"),
        (json!(["family"]), "anna@evil.example"),
    ] {
        refused(come("anna", groups, email).await, "sign_on_refused");
    }
    assert_eq!((people(&server).await, waiting(&server).await), (1, 1));
    let anna = come("anna", json!(["family"]), "anna@example.org").await;
    assert_eq!(account(&server, &anna.unwrap()).await.1["role"], "user");
    assert_eq!(waiting(&server).await, 0);
}

#[tokio::test]
async fn who_is_here_already_uses_no_invitation_up() {
    let provider = Provider::start().await;
    let (_model, server) = with_provider(&provider, &[]);
    let anna = somebody(&server, &provider, "anna").await.unwrap();
    let before = account(&server, &anna).await.1;
    let secret = invite(&server, "admin").await;
    let came = join(&server, &provider, &secret, "anna").await.unwrap();
    let after = account(&server, &came).await.1;
    assert_eq!(
        (&after["id"], &after["role"]),
        (&before["id"], &json!("user"))
    );
    assert_eq!(waiting(&server).await, 1);
    // By a link for another password nobody joins.
    let borys = Person::join(&server, "Borys", "user").await;
    let path = format!("/api/people/{}/reset", borys.id);
    let reset = secret_of(&server.post(&path, json!({})).await);
    let look = json!({ "invitation": reset });
    let offer = server.post("/api/invitation", look).await;
    assert_eq!(offer["provider"], Value::Null);
    refused(begin(&server, &reset).await, "invalid_field");
    assert!(accept(&server, &reset, "Borys", PASSWORD).await.is_ok());
}
