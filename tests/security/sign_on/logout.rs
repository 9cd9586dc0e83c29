//! A provider that says that it signed somebody out, and who else says so.

use chrono::Utc;
use reqwest::StatusCode;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::NOT_LOGGED_IN;
use super::going::{Going, account, recorded, signed_by_secret, somebody, with_provider};
use crate::person::answered;
use crate::provider::{CLIENT, Provider, Signer, unsigned};
use crate::server::client;

const EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

#[tokio::test]
async fn logout_tokens_that_are_forged_and_replayed() {
    let provider = Provider::start().await;
    let (_model, server) = with_provider(&provider, &[]);
    let going = Going::begin(&server, None).await;
    let mut claims = going.claims(&provider, "anna");
    claims["sid"] = json!("session one");
    let one = going.come_in(&server, &provider, &claims).await.unwrap();
    let going = Going::begin(&server, None).await;
    claims["nonce"] = json!(going.asks("nonce"));
    claims["sid"] = json!("session two");
    let two = going.come_in(&server, &provider, &claims).await.unwrap();
    let borys = somebody(&server, &provider, "borys").await.unwrap();
    let mut all = one.headers().to_vec();
    all.push(("origin", server.url.clone()));
    let mut tab = server.socket_with("/ws/sessions", &all).await.unwrap();

    let now = Utc::now().timestamp();
    let token = |jti: &str| {
        json!({
            "iss": provider.issuer, "aud": CLIENT, "iat": now, "exp": now + 120, "jti": jti,
            "sub": "anna", "sid": "session one", "events": {EVENT: {}},
        })
    };
    let send = async |token: String| {
        let request = client().post(format!("{}/api/sign-on/logout", server.url));
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("logout_token", &token)
            .finish();
        let form_type = "application/x-www-form-urlencoded";
        let request = request.header("content-type", form_type).body(form);
        answered(request, None).await.0
    };
    let changed = |name: &str, value: Value| {
        let mut claims = token("a");
        claims[name] = value;
        claims
    };
    for lie in [
        changed("iss", json!("https://evil.example")),
        changed("aud", json!("another-client")),
        changed("nonce", json!("n")),
        changed("events", json!({})),
        changed("events", Value::Null),
        changed("iat", json!(now - 3_600)),
        changed("iat", json!(now + 3_600)),
        changed("exp", json!(now - 120)),
        changed("exp", Value::Null),
        changed("jti", Value::Null),
    ] {
        let status = send(provider.signer.sign(&lie)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{lie}");
    }
    let mut nobody = token("a");
    nobody["sub"] = Value::Null;
    nobody["sid"] = Value::Null;
    let none = json!({"alg": "none"});
    let by_secret = json!({"alg": "HS256", "kid": "one"});
    for forged in [
        provider.signer.sign(&nobody),
        // An ID token, as it stands in somebody's browser.
        provider.signer.sign(&claims),
        provider.signer.sign_as(
            &json!({"alg": "ES256", "kid": "one", "typ": "at+jwt"}),
            &token("a"),
        ),
        Signer::new("one").sign(&token("a")),
        signed_by_secret(&by_secret, &token("a")),
        format!("{}.", unsigned(&none, &token("a"))),
        "made.up".to_owned(),
        String::new(),
    ] {
        assert_eq!(send(forged).await, StatusCode::BAD_REQUEST);
    }
    assert_eq!(account(&server, &one).await.0, StatusCode::OK);

    let good = provider.signer.sign_as(
        &json!({"alg": "ES256", "kid": "one", "typ": "logout+jwt"}),
        &token("once"),
    );
    assert_eq!(send(good.clone()).await, StatusCode::OK);
    assert_eq!(tab.closed().await, NOT_LOGGED_IN);
    assert_eq!(account(&server, &one).await.0, StatusCode::UNAUTHORIZED);
    let line = recorded(&server).await;
    assert_eq!(line["what"], "signed_out_by_provider");
    assert_eq!(line["name"], "anna");
    assert_eq!(account(&server, &two).await.0, StatusCode::OK);
    // By the same token she is signed out once.
    assert_eq!(send(good).await, StatusCode::BAD_REQUEST);
    let mut of_all = token("of all");
    of_all["sid"] = Value::Null;
    assert_eq!(send(provider.signer.sign(&of_all)).await, StatusCode::OK);
    assert_eq!(account(&server, &two).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(account(&server, &borys).await.0, StatusCode::OK);
}
