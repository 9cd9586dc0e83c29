//! A browser and its authenticator, as they ask and answer.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::authenticator::Authenticator;
use crate::fake_model::FakeModel;
use crate::person::{PASSWORD, answered, with};
use crate::security::talking;
use crate::server::{Login, Server, client};

pub(super) const PASSKEYS: &str = "/api/account/passkeys";
pub(super) const BEGIN: &str = "/api/account/passkeys/begin";
pub(super) const FINISH: &str = "/api/account/passkeys/finish";
pub(super) const BEGIN_SIGN_IN: &str = "/api/sign-in/passkey/begin";
pub(super) const FINISH_SIGN_IN: &str = "/api/sign-in/passkey/finish";

pub(super) fn with_accounts() -> (FakeModel, Server) {
    talking(&[("NAVI_ACCOUNTS", "on")])
}

/// Where passkeys work: under the name of the machine, not its address of numbers.
pub(super) fn page(server: &Server) -> String {
    server.url.replace("127.0.0.1", "localhost")
}

pub(super) async fn asks(
    server: &Server,
    login: &Login,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> (StatusCode, Value) {
    answered(with(server, method, path, login), body).await
}

pub(super) async fn begin(server: &Server, login: &Login) -> Value {
    let body = json!({"name": "phone", "current_password": PASSWORD});
    let (status, begun) = asks(server, login, Method::POST, BEGIN, Some(body)).await;
    assert_eq!(status, StatusCode::OK, "{begun}");
    begun["options"].clone()
}

pub(super) async fn finish(
    server: &Server,
    login: &Login,
    credential: Value,
) -> (StatusCode, Value) {
    let body = json!({"credential": credential});
    asks(server, login, Method::POST, FINISH, Some(body)).await
}

/// A passkey of somebody's, on an authenticator of their own, and its id.
pub(super) async fn made(server: &Server, login: &Login) -> (Authenticator, String) {
    let mut authenticator = Authenticator::at(&page(server));
    let options = begin(server, login).await;
    let (status, passkey) = finish(server, login, authenticator.make(&options)).await;
    assert_eq!(status, StatusCode::CREATED, "{passkey}");
    (authenticator, passkey["id"].as_str().unwrap().to_owned())
}

/// A ceremony, as a browser has it.
pub(super) struct Asked {
    pub(super) cookie: String,
    pub(super) ceremony: Value,
    pub(super) options: Value,
}

impl Asked {
    pub(super) async fn begin(server: &Server) -> Self {
        let request = client().post(format!("{}{BEGIN_SIGN_IN}", server.url));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let cookie = response.headers()["set-cookie"].to_str().unwrap();
        for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=300"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let begun: Value = response.json().await.unwrap();
        assert_eq!(begun["options"]["userVerification"], "required");
        assert_eq!(begun["options"]["allowCredentials"], json!([]));
        Self {
            cookie,
            ceremony: begun["ceremony"].clone(),
            options: begun["options"].clone(),
        }
    }

    pub(super) async fn finish(
        &self,
        server: &Server,
        credential: &Value,
    ) -> Result<Login, (StatusCode, Value)> {
        let body = json!({"ceremony": self.ceremony, "credential": credential});
        let request = client().post(format!("{}{FINISH_SIGN_IN}", server.url));
        let request = request.header("cookie", &self.cookie).json(&body);
        let response = request.send().await.unwrap();
        let status = response.status();
        let cookie = response.headers().get("set-cookie").cloned();
        let body: Value = response.json().await.unwrap();
        let (StatusCode::OK, Some(cookie)) = (status, cookie) else {
            return Err((status, body));
        };
        let cookie = cookie.to_str().unwrap().split(';').next().unwrap();
        Ok(Login {
            cookie: cookie.to_owned(),
            key: body["key"].as_str().unwrap().to_owned(),
        })
    }
}

pub(super) async fn come_in(
    server: &Server,
    authenticator: &mut Authenticator,
) -> Result<Login, (StatusCode, Value)> {
    let asked = Asked::begin(server).await;
    let answer = authenticator.answer(&asked.options);
    asked.finish(server, &answer).await
}

#[track_caller]
pub(super) fn refused(came: Result<Login, (StatusCode, Value)>) -> Value {
    let (status, said) = came.expect_err("it is refused");
    assert_eq!(
        (status, &said["code"]),
        (StatusCode::UNAUTHORIZED, &json!("unauthorized")),
        "{said}"
    );
    said
}

pub(super) async fn name_of(server: &Server, login: &Login) -> Value {
    let (_, account) = asks(server, login, Method::GET, "/api/account", None).await;
    account["name"].clone()
}

pub(super) async fn recorded(server: &Server, what: &str) -> Vec<Value> {
    let record = server.get("/api/record").await;
    let lines = record.as_array().unwrap().iter();
    lines.filter(|line| line["what"] == what).cloned().collect()
}
