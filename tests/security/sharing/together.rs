//! Two people, and a conversation of the first.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_model::FakeModel;
use crate::person::{Person, answered};
use crate::security::talking;
use crate::server::{Server, Socket, client};

/// The close code of a session that somebody does not reach.
pub(super) const NOT_FOUND: u16 = 4004;
pub(super) const NOBODYS: &str = "0190a0b0-0000-7000-8000-0000000000ff";

/// Two people, and a conversation of the first in which the second takes part.
pub(super) struct Together {
    pub(super) model: FakeModel,
    pub(super) server: Server,
    pub(super) anna: Person,
    pub(super) olha: Person,
    pub(super) session: String,
}

impl Together {
    pub(super) async fn new(variables: &[(&str, &str)]) -> Self {
        let together = Self::apart(variables).await;
        let (status, person) = together.share("Olha").await;
        assert_eq!(status, StatusCode::CREATED, "{person}");
        together
    }

    /// The same, before it is shared.
    pub(super) async fn apart(variables: &[(&str, &str)]) -> Self {
        let all: Vec<_> = [("NAVI_ACCOUNTS", "on")]
            .into_iter()
            .chain(variables.iter().copied())
            .collect();
        let (model, server) = talking(&all);
        let anna = Person::join(&server, "Anna", "user").await;
        let olha = Person::join(&server, "Olha", "user").await;
        let made = anna.call(&server, Method::POST, "/sessions", Some(json!({})));
        let session = made.await.1["session_id"].as_str().unwrap().to_owned();
        Self {
            model,
            server,
            anna,
            olha,
            session,
        }
    }

    pub(super) fn path(&self, rest: &str) -> String {
        format!("/sessions/{}{rest}", self.session)
    }

    pub(super) async fn share(&self, name: &str) -> (StatusCode, Value) {
        let body = Some(json!({"name": name}));
        self.ask(&self.anna, Method::POST, "/people", body).await
    }

    /// A request about the conversation.
    pub(super) async fn ask(
        &self,
        who: &Person,
        method: Method,
        rest: &str,
        body: Option<Value>,
    ) -> (StatusCode, Value) {
        who.call(&self.server, method, &self.path(rest), body).await
    }

    pub(super) async fn say(&self, who: &Person, content: &str) -> (StatusCode, Value) {
        let body = Some(json!({"content": content}));
        self.ask(who, Method::POST, "/messages", body).await
    }

    pub(super) async fn tab(&self, who: &Person) -> Socket {
        self.socket(who, &format!("/ws{}", self.path(""))).await
    }

    pub(super) async fn socket(&self, who: &Person, path: &str) -> Socket {
        let bearer = [("authorization", format!("Bearer {}", who.token))];
        self.server.socket_with(path, &bearer).await.unwrap()
    }

    /// The sessions of somebody's list.
    pub(super) async fn list(&self, who: &Person) -> Vec<Value> {
        let list = who.call(&self.server, Method::GET, "/sessions", None).await;
        list.1.as_array().unwrap().clone()
    }

    pub(super) async fn remove(&self, person: &Person) {
        let path = format!("/people/{}", person.id);
        let (status, said) = self.ask(&self.anna, Method::DELETE, &path, None).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{said}");
    }

    /// Makes a link: its id and its secret.
    pub(super) async fn link(&self) -> (String, String) {
        let (status, made) = self
            .ask(&self.anna, Method::POST, "/links", Some(json!({})))
            .await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        let secret = made["link"].as_str().unwrap().strip_prefix("#/shared/");
        let id = made["id"].as_str().unwrap();
        (id.to_owned(), secret.unwrap().to_owned())
    }

    pub(super) async fn look(&self, secret: &str) -> (StatusCode, Value) {
        let request = client().get(format!("{}/api/shared", self.server.url));
        answered(request.header("x-navi-link", secret), None).await
    }
}

pub(super) fn is_forbidden((status, said): (StatusCode, Value)) -> bool {
    status == StatusCode::FORBIDDEN && said["code"] == "forbidden"
}
