//! A browser on its way to a provider and back.

use chrono::Utc;
use reqwest::header::ORIGIN;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use url::Url;

use crate::fake_model::FakeModel;
use crate::person::{PASSWORD, answered, with};
use crate::provider::{CLIENT, Provider, SECRET, unsigned};
use crate::security::talking;
use crate::server::{Login, Server, client};

pub(super) fn with_provider(
    provider: &Provider,
    variables: &[(&str, &str)],
) -> (FakeModel, Server) {
    let all: Vec<_> = [
        ("NAVI_ACCOUNTS", "on"),
        ("NAVI_PUBLIC_URL", "https://home.example/navi"),
        ("NAVI_OIDC_ISSUER", provider.issuer.as_str()),
        ("NAVI_OIDC_CLIENT_ID", CLIENT),
        ("NAVI_OIDC_CLIENT_SECRET", SECRET),
        ("NAVI_OIDC_NAME", "Home"),
        ("NAVI_SIGN_ON_JOIN", "user"),
    ]
    .into_iter()
    .chain(variables.iter().copied())
    .collect();
    talking(&all)
}

/// A browser that is at the provider.
#[derive(Clone, Debug)]
pub(super) struct Going {
    /// Where to.
    pub(super) there: Url,
    pub(super) cookie: String,
    pub(super) key: String,
}

impl Going {
    /// Begins as the page does; to link, as somebody who is signed in.
    pub(super) async fn begin(server: &Server, who: Option<&Login>) -> Self {
        let request = match who {
            Some(login) => with(server, Method::POST, "/api/account/sign-ons", login)
                .json(&json!({"current_password": PASSWORD})),
            None => from_page(server, "/api/sign-on"),
        };
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let cookie = response.headers()["set-cookie"].to_str().unwrap();
        for part in [
            "__Host-navi_sign_on_",
            "Secure",
            "HttpOnly",
            "SameSite=Strict",
            "Max-Age=600",
        ] {
            assert!(cookie.contains(part), "{cookie}");
        }
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let body: Value = response.json().await.unwrap();
        Self {
            there: body["location"].as_str().unwrap().parse().unwrap(),
            cookie,
            key: body["key"].as_str().unwrap().to_owned(),
        }
    }

    pub(super) fn asks(&self, name: &str) -> String {
        let mut query = self.there.query_pairs();
        let found = query.find(|(known, _)| known == name);
        found.map_or_else(String::new, |(_, value)| value.into_owned())
    }

    /// What a provider that says the truth says of somebody.
    pub(super) fn claims(&self, provider: &Provider, sub: &str) -> Value {
        let now = Utc::now().timestamp();
        json!({
            "iss": provider.issuer, "sub": sub, "aud": CLIENT, "nonce": self.asks("nonce"),
            "iat": now, "exp": now + 300, "preferred_username": sub,
        })
    }

    /// What the page asks for when it is back.
    pub(super) fn back(&self, code: &str, provider: &Provider) -> Value {
        json!({
            "key": self.key, "state": self.asks("state"), "code": code, "iss": provider.issuer,
        })
    }

    /// Asks for it.
    pub(super) async fn finish(
        &self,
        server: &Server,
        body: Value,
    ) -> Result<Login, (StatusCode, Value)> {
        let request = from_page(server, "/api/sign-on/finish").header("cookie", &self.cookie);
        came_in(request.json(&body)).await
    }

    /// All of it, with these claims.
    pub(super) async fn come_in(
        &self,
        server: &Server,
        provider: &Provider,
        claims: &Value,
    ) -> Result<Login, (StatusCode, Value)> {
        let token = provider.signer.sign(claims);
        provider.grants("code", &self.asks("code_challenge"), token);
        self.finish(server, self.back("code", provider)).await
    }
}

pub(super) fn from_page(server: &Server, path: &str) -> RequestBuilder {
    let request = client().post(format!("{}{path}", server.url));
    request.header(ORIGIN, &server.url)
}

pub(super) async fn came_in(request: RequestBuilder) -> Result<Login, (StatusCode, Value)> {
    let response = request.send().await.unwrap();
    let status = response.status();
    let cookies = response.headers().get_all("set-cookie").into_iter();
    let cookies: Vec<String> = cookies
        .map(|cookie| cookie.to_str().unwrap().to_owned())
        .collect();
    let body: Value = response.json().await.unwrap();
    if status != StatusCode::OK {
        assert!(cookies.is_empty(), "{cookies:?}");
        return Err((status, body));
    }
    let login = cookies.iter().find(|it| !it.contains("sign_on")).unwrap();
    Ok(Login {
        cookie: login.split(';').next().unwrap().to_owned(),
        key: body["key"].as_str().unwrap().to_owned(),
    })
}

/// Somebody whom the provider calls so, in a browser of their own.
pub(in crate::security) async fn somebody(
    server: &Server,
    provider: &Provider,
    sub: &str,
) -> Result<Login, (StatusCode, Value)> {
    let going = Going::begin(server, None).await;
    let claims = going.claims(provider, sub);
    going.come_in(server, provider, &claims).await
}

pub(super) async fn account(server: &Server, login: &Login) -> (StatusCode, Value) {
    answered(with(server, Method::GET, "/api/account", login), None).await
}

#[track_caller]
pub(super) fn refused<T: std::fmt::Debug>(came: Result<T, (StatusCode, Value)>, code: &str) {
    let (status, body) = came.expect_err("it is refused");
    assert_eq!(body["code"], code, "{status} {body}");
}

/// The newest line of the record.
pub(super) async fn recorded(server: &Server) -> Value {
    server.get("/api/record").await[0].clone()
}

/// Tries from one address are bounded: each of these comes from another.
pub(super) async fn beginning(server: &Server, n: usize) -> Going {
    let request = from_page(server, "/api/sign-on");
    let request = request.header("x-forwarded-for", format!("203.0.113.{}", n % 250));
    let response = request.send().await.unwrap();
    let cookie = response.headers()["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let body: Value = response.json().await.unwrap();
    Going {
        there: body["location"].as_str().unwrap().parse().unwrap(),
        cookie,
        key: body["key"].as_str().unwrap().to_owned(),
    }
}

pub(super) fn signed_by_secret(header: &Value, claims: &Value) -> String {
    use base64::Engine as _;
    let signed = unsigned(header, claims);
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature = ring::hmac::sign(&key, signed.as_bytes());
    let signature = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(signature);
    format!("{signed}.{signature}")
}
