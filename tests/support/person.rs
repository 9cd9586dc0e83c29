//! People with accounts, as the tests have them.

use reqwest::header::ORIGIN;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use crate::server::{Login, Server, client};

/// What everybody here signs in by.
pub(crate) const PASSWORD: &str = "a long password";

/// Somebody who is signed in, with a token that is good for all.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) login: Login,
    pub(crate) token: String,
}

impl Person {
    /// Somebody new, by an invitation of the machine's user.
    pub(crate) async fn join(server: &Server, name: &str, role: &str) -> Self {
        let invited = server.post("/api/invitations", json!({"role": role})).await;
        let secret = secret_of(&invited);
        let login = accept(server, &secret, name, PASSWORD).await.unwrap();
        let scopes = ["read", "run", "consent", "files", "memory", "admin"];
        let body = json!({"name": "all", "scopes": scopes, "current_password": PASSWORD});
        let request = with(server, Method::POST, "/api/tokens", &login).json(&body);
        let made: Value = request.send().await.unwrap().json().await.unwrap();
        let account = with(server, Method::GET, "/api/account", &login);
        let account: Value = account.send().await.unwrap().json().await.unwrap();
        Self {
            id: account["id"].as_str().unwrap().to_owned(),
            name: name.to_owned(),
            token: made["token"].as_str().expect("a token").to_owned(),
            login,
        }
    }

    /// A token of theirs with these scopes alone.
    pub(crate) async fn token_for(&self, server: &Server, scopes: &[&str]) -> String {
        let body = json!({"name": "some", "scopes": scopes});
        let (status, made) = self
            .call(server, Method::POST, "/api/tokens", Some(body))
            .await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        made["token"].as_str().unwrap().to_owned()
    }

    /// A request with their token, and its answer.
    pub(crate) async fn call(
        &self,
        server: &Server,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        let request = client().request(method, format!("{}{path}", server.url));
        answered(request.bearer_auth(&self.token), body).await
    }
}

/// The secret of an invitation's link.
pub(crate) fn secret_of(made: &Value) -> String {
    let link = made["link"].as_str().expect("a link");
    link.rsplit_once("#invitation=")
        .expect("a secret")
        .1
        .to_owned()
}

/// A request as our page makes it.
pub(crate) fn with(server: &Server, method: Method, path: &str, login: &Login) -> RequestBuilder {
    let mut request = client().request(method, format!("{}{path}", server.url));
    for (name, value) in login.headers() {
        request = request.header(name, value);
    }
    request.header(ORIGIN, &server.url)
}

pub(crate) async fn answered(request: RequestBuilder, body: Option<Value>) -> (StatusCode, Value) {
    let request = match body {
        Some(body) => request.json(&body),
        None => request,
    };
    let response = request.send().await.expect("an answer");
    let status = response.status();
    let text = response.text().await.expect("a body");
    (status, serde_json::from_str(&text).unwrap_or(Value::Null))
}

/// Uses an invitation up. Where it is refused: how.
pub(crate) async fn accept(
    server: &Server,
    secret: &str,
    name: &str,
    password: &str,
) -> Result<Login, (StatusCode, Value)> {
    let body = json!({"invitation": secret, "name": name, "password": password});
    came_in(server, "/api/invitation/accept", body).await
}

/// Signs in. Where it is refused: how.
pub(crate) async fn sign_in(
    server: &Server,
    name: &str,
    password: &str,
) -> Result<Login, (StatusCode, Value)> {
    let body = json!({"name": name, "password": password});
    came_in(server, "/api/sign-in", body).await
}

pub(crate) async fn came_in(
    server: &Server,
    path: &str,
    body: Value,
) -> Result<Login, (StatusCode, Value)> {
    let request = client().post(format!("{}{path}", server.url)).json(&body);
    let response = request.send().await.expect("an answer");
    let status = response.status();
    let cookie = response.headers().get("set-cookie");
    let cookie = cookie.and_then(|cookie| Some(cookie.to_str().ok()?.to_owned()));
    let body: Value = response.json().await.expect("JSON");
    match (status, cookie) {
        (StatusCode::OK, Some(cookie)) => Ok(Login {
            cookie: cookie.split(';').next().unwrap_or_default().to_owned(),
            key: body["key"].as_str().expect("a key").to_owned(),
        }),
        _ => Err((status, body)),
    }
}
