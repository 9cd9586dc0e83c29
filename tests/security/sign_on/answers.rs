//! Answers that are not to be believed.

use chrono::Utc;
use reqwest::header::ORIGIN;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use url::Url;

use super::going::{
    Going, account, beginning, came_in, from_page, recorded, refused, signed_by_secret, somebody,
    with_provider,
};
use crate::person::{PASSWORD, Person, answered, sign_in, with};
use crate::provider::{CLIENT, Provider, Signer, unsigned};
use crate::server::client;

#[tokio::test]
async fn who_comes_by_a_provider_is_the_same_each_time() {
    let provider = Provider::start().await;
    let (_model, server) = with_provider(&provider, &[]);
    let ways = server.get("/api/sign-in").await;
    assert_eq!(ways["provider"], "Home");
    assert_eq!(ways["proxy"], Value::Null);
    let going = Going::begin(&server, None).await;
    for (name, value) in [
        ("client_id", CLIENT),
        ("response_type", "code"),
        ("scope", "openid profile email"),
        ("code_challenge_method", "S256"),
        (
            "redirect_uri",
            "https://home.example/navi/api/sign-on/callback",
        ),
    ] {
        assert_eq!(going.asks(name), value, "{}", going.there);
    }
    let claims = going.claims(&provider, "anna");
    let anna = going.come_in(&server, &provider, &claims).await.unwrap();
    let line = recorded(&server).await;
    assert_eq!(
        (&line["what"], &line["about"]),
        (&json!("signed_in"), &json!("Home"))
    );
    let (_, first) = account(&server, &anna).await;
    assert_eq!(first["name"], "anna");
    assert_eq!(
        (&first["role"], &first["has_password"]),
        (&json!("user"), &json!(false))
    );
    let again = somebody(&server, &provider, "anna").await.unwrap();
    assert_eq!(account(&server, &again).await.1["id"], first["id"]);
    let other = somebody(&server, &provider, "borys").await.unwrap();
    assert_ne!(account(&server, &other).await.1["id"], first["id"]);
    // She leaves there, too.
    let (status, left) = answered(with(&server, Method::POST, "/logout", &anna), None).await;
    assert_eq!(status, StatusCode::OK);
    let out: Url = left["location"].as_str().unwrap().parse().unwrap();
    assert!(
        out.as_str()
            .starts_with(&format!("{}/end?", provider.issuer)),
        "{out}"
    );
    let asked: Vec<_> = out.query_pairs().collect();
    let hint = &asked
        .iter()
        .find(|(name, _)| name == "id_token_hint")
        .unwrap()
        .1;
    assert_eq!(hint.matches('.').count(), 2);
    assert!(asked.contains(&(
        "post_logout_redirect_uri".into(),
        "https://home.example/navi/".into()
    )));
    assert_eq!(account(&server, &anna).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(account(&server, &again).await.0, StatusCode::OK);
    // By her own claims she takes nobody's name.
    let namesake = Going::begin(&server, None).await;
    let mut claims = namesake.claims(&provider, "another");
    claims["preferred_username"] = json!("аnna");
    let namesake = namesake.come_in(&server, &provider, &claims).await.unwrap();
    assert_eq!(account(&server, &namesake).await.1["name"], "аnna 2");
}

#[tokio::test]
async fn a_forged_a_replayed_and_another_browsers_answer() {
    let provider = Provider::start().await;
    let (_model, server) = with_provider(&provider, &[]);
    let (going, other) = (
        Going::begin(&server, None).await,
        Going::begin(&server, None).await,
    );
    let grant = |code: &str| {
        let token = provider.signer.sign(&going.claims(&provider, "anna"));
        provider.grants(code, &going.asks("code_challenge"), token);
    };
    grant("code");
    let good = going.back("code", &provider);
    let changed = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        body
    };
    for body in [
        changed("state", json!("made up")),
        changed("state", json!(other.asks("state"))),
        changed("key", json!(other.key)),
        changed("key", json!("")),
    ] {
        refused(going.finish(&server, body).await, "sign_on_failed");
    }
    // With the cookie of another browser, or none.
    refused(other.finish(&server, good.clone()).await, "sign_on_failed");
    let bare = from_page(&server, "/api/sign-on/finish").json(&good);
    refused(came_in(bare).await, "sign_on_failed");
    assert!(!provider.asked().iter().any(|it| it.contains("/token")));
    let line = recorded(&server).await;
    assert_eq!(line["what"], "sign_in_failed");

    // What others tried has not spent it; it is good once.
    going.finish(&server, good.clone()).await.unwrap();
    grant("code");
    refused(going.finish(&server, good).await, "sign_on_failed");
    // A code that the provider knows no more, or gave to another sign-in.
    let late = Going::begin(&server, None).await;
    refused(
        late.finish(&server, late.back("used", &provider)).await,
        "sign_on_failed",
    );
    let thief = Going::begin(&server, None).await;
    grant("stolen");
    refused(
        thief.finish(&server, thief.back("stolen", &provider)).await,
        "sign_on_failed",
    );
    // One that the provider refused.
    let denied = Going::begin(&server, None).await;
    let body = json!({"key": denied.key, "state": denied.asks("state"), "error": "access_denied"});
    let (status, said) = denied.finish(&server, body).await.unwrap_err();
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(
        said["message"].as_str().unwrap().contains("access_denied"),
        "{said}"
    );
}

#[tokio::test]
async fn id_tokens_that_lie() {
    let provider = Provider::start().await;
    let (_model, server) = with_provider(&provider, &[("NAVI_TRUSTED_PROXIES", "127.0.0.1")]);
    let another = Signer::new("one");
    let now = Utc::now().timestamp();
    let lie = |name: &'static str, value: Value| (name, Some(value));
    let lies = [
        lie("iss", json!("https://evil.example")),
        lie("aud", json!("another-client")),
        lie("aud", json!([CLIENT, "another-client"])),
        lie("nonce", json!("another")),
        ("nonce", None),
        lie("exp", json!(now - 120)),
        lie("iat", json!(now + 600)),
        lie("nbf", json!(now + 600)),
        lie("azp", json!("another-client")),
        lie("at_hash", json!("AAAAAAAAAAAAAAAAAAAAAA")),
        lie("sub", json!("")),
        lie("sub", json!("x".repeat(256))),
        ("sub", None),
    ];
    for (n, (name, value)) in lies.into_iter().enumerate() {
        let going = beginning(&server, n).await;
        let mut claims = going.claims(&provider, "anna");
        let fields = claims.as_object_mut().unwrap();
        match value.clone() {
            Some(value) => fields.insert(name.to_owned(), value),
            None => fields.remove(name),
        };
        let came = going.come_in(&server, &provider, &claims).await;
        let (_, said) = came.expect_err(name);
        assert_eq!(said["code"], "sign_on_failed", "{name}: {value:?}: {said}");
    }
    let none = json!({"alg": "none"});
    let by_secret = json!({"alg": "HS256", "kid": "one"});
    for n in 0..5 {
        let going = beginning(&server, 100 + n).await;
        let claims = going.claims(&provider, "anna");
        let token = match n {
            0 => format!("{}.", unsigned(&none, &claims)),
            1 => unsigned(&none, &claims),
            2 => another.sign(&claims),
            // By what Navi shares with the provider, which whoever has it could sign with.
            3 => signed_by_secret(&by_secret, &claims),
            _ => provider.signer.sign_as(
                &json!({"alg": "ES256", "kid": "one", "typ": "at+jwt"}),
                &claims,
            ),
        };
        provider.grants("code", &going.asks("code_challenge"), token);
        refused(
            going.finish(&server, going.back("code", &provider)).await,
            "sign_on_failed",
        );
    }
    // A clock that is a little off is no lie.
    let going = beginning(&server, 200).await;
    let mut claims = going.claims(&provider, "anna");
    let now = Utc::now().timestamp();
    claims["iat"] = json!(now + 30);
    claims["exp"] = json!(now - 30);
    assert!(going.come_in(&server, &provider, &claims).await.is_ok());
}

#[tokio::test]
async fn an_answer_that_is_another_issuers() {
    let provider = Provider::start().await;
    provider.claims_to_be(json!({"authorization_response_iss_parameter_supported": true}));
    let (_model, server) = with_provider(&provider, &[]);
    for iss in [json!("https://evil.example"), Value::Null] {
        let going = Going::begin(&server, None).await;
        let token = provider.signer.sign(&going.claims(&provider, "anna"));
        provider.grants("code", &going.asks("code_challenge"), token);
        let mut body = going.back("code", &provider);
        body["iss"] = iss;
        refused(going.finish(&server, body).await, "sign_on_failed");
    }
    // The code was shown to nobody.
    assert!(!provider.asked().iter().any(|it| it.contains("/token")));
    assert!(somebody(&server, &provider, "anna").await.is_ok());
}

#[tokio::test]
async fn a_provider_that_is_another_leads_elsewhere_or_tells_of_another_person() {
    let provider = Provider::start().await;
    provider.tells(json!({"sub": "borys", "groups": ["navi-admins"]}));
    let roles = ("NAVI_SIGN_ON_ROLES", "admin=navi-admins");
    let (_model, server) = with_provider(&provider, &[roles]);
    refused(somebody(&server, &provider, "anna").await, "sign_on_failed");

    for metadata in [
        json!({"issuer": "https://evil.example"}),
        json!({"jwks_uri": "http://127.0.0.1:9/keys"}),
        json!({"padding": "x".repeat(2 * 1024 * 1024)}),
    ] {
        let provider = Provider::start().await;
        provider.claims_to_be(metadata);
        let (_model, server) = with_provider(&provider, &[]);
        let request = from_page(&server, "/api/sign-on");
        let (status, said) = answered(request, None).await;
        assert_eq!(
            (status, &said["code"]),
            (
                StatusCode::SERVICE_UNAVAILABLE,
                &json!("sign_on_unavailable")
            )
        );
    }
}

#[tokio::test]
async fn a_cross_site_sign_in() {
    let provider = Provider::start().await;
    let (_model, server) = with_provider(&provider, &[]);
    let evil = |path: &str| {
        let request = client().post(format!("{}{path}", server.url));
        request.header(ORIGIN, "https://evil.example")
    };
    for path in ["/api/sign-on", "/api/sign-on/proxy"] {
        let (status, said) = answered(evil(path), None).await;
        assert_eq!(
            (status, &said["code"]),
            (StatusCode::FORBIDDEN, &json!("forbidden_origin"))
        );
    }
    let going = Going::begin(&server, None).await;
    let token = provider.signer.sign(&going.claims(&provider, "evil"));
    provider.grants("code", &going.asks("code_challenge"), token);
    let body = going.back("code", &provider);
    let request = evil("/api/sign-on/finish").header("cookie", &going.cookie);
    refused(came_in(request.json(&body)).await, "forbidden_origin");
    // The address to which the provider sends a browser signs nobody in: it only hands on.
    let address = format!(
        "{}/api/sign-on/callback?code=code&state={}",
        server.url,
        going.asks("state")
    );
    let request = client().get(address).header("cookie", &going.cookie);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::SEE_OTHER);
    assert!(response.headers().get("set-cookie").is_none());
    let place = response.headers()["location"].to_str().unwrap();
    assert_eq!(
        place,
        format!("../../#sign-on?code=code&state={}", going.asks("state"))
    );
}

/// What an attacker began and had somebody else finish signs that one in as nobody; and a login is
/// fresh, whatever the browser had before.
#[tokio::test]
async fn a_session_that_somebody_else_fixed() {
    let provider = Provider::start().await;
    let (_model, server) = with_provider(&provider, &[]);
    let attackers = Going::begin(&server, None).await;
    let victims = Going::begin(&server, None).await;
    let token = provider.signer.sign(&attackers.claims(&provider, "evil"));
    provider.grants("code", &attackers.asks("code_challenge"), token);
    // The address with the attacker's answer, in the browser of the victim.
    let mut body = victims.back("code", &provider);
    body["state"] = json!(attackers.asks("state"));
    refused(
        victims.finish(&server, body.clone()).await,
        "sign_on_failed",
    );
    // Even with the cookie planted by another service of the same host: the key is not there.
    let mut planted = victims.clone();
    planted.cookie.clone_from(&attackers.cookie);
    refused(planted.finish(&server, body).await, "sign_on_failed");
    let before = somebody(&server, &provider, "anna").await.unwrap();
    let going = Going::begin(&server, None).await;
    let token = provider.signer.sign(&going.claims(&provider, "borys"));
    provider.grants("code", &going.asks("code_challenge"), token);
    let both = format!("{}; {}", going.cookie, before.cookie);
    let request = from_page(&server, "/api/sign-on/finish").header("cookie", both);
    let after = came_in(request.json(&going.back("code", &provider)))
        .await
        .unwrap();
    assert_ne!(after.cookie, before.cookie);
    assert_eq!(account(&server, &after).await.1["name"], "borys");
}

#[tokio::test]
async fn a_provider_that_is_down() {
    let mut provider = Provider::start().await;
    provider.stop();
    let (_model, server) = with_provider(&provider, &[]);
    Person::join(&server, "Anna", "user").await;
    let (status, said) = answered(from_page(&server, "/api/sign-on"), None).await;
    assert_eq!(
        (status, &said["code"]),
        (
            StatusCode::SERVICE_UNAVAILABLE,
            &json!("sign_on_unavailable")
        )
    );
    assert!(sign_in(&server, "Anna", PASSWORD).await.is_ok());
    provider.start_again().await;
    let login = loop {
        // It is asked again after a moment.
        let (status, _) = answered(from_page(&server, "/api/sign-on"), None).await;
        if status == StatusCode::OK {
            break somebody(&server, &provider, "anna").await.unwrap();
        }
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    };
    // She goes on, and leaves, whatever becomes of it.
    provider.stop();
    assert_eq!(account(&server, &login).await.0, StatusCode::OK);
    let going = Going::begin(&server, None).await;
    refused(
        going.finish(&server, going.back("code", &provider)).await,
        "sign_on_unavailable",
    );
    let (status, _) = answered(with(&server, Method::POST, "/logout", &login), None).await;
    assert!(status.is_success());
    assert_eq!(account(&server, &login).await.0, StatusCode::UNAUTHORIZED);
}
