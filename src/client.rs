//! The service that runs on this data directory, as a program of the same user reaches it: the
//! bridges on standard input and output, and the chat in a terminal.
//!
//! Whoever can read the data directory is the user (`access::links`). Such a program opens a
//! one-time link itself, as a browser would, and logs out at its end; with `NAVI_API_TOKEN` it
//! sends that. Where the service is, it asks again each time: after a restart it may be elsewhere.

mod events;
mod line;
mod trust;
mod watch;

pub(crate) use self::events::Events;
pub(crate) use self::watch::Watch;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use navi_actors::https;
use navi_actors::protocol::error::NaviError;
use navi_actors::protocol::ids::SessionId;
use reqwest::header::{COOKIE, LOCATION, ORIGIN};
use reqwest::{Method, RequestBuilder, Response, redirect};
use rustls::ClientConfig;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::access::links::Links;
use crate::http::IDLE_SECONDS;
use crate::instance::{self, NotRunning, Running};
use crate::settings::{Secret, Settings};

/// How long one answer may take; a body that an answer streams is not held to it.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// How long a connection that nobody uses is kept: less than the service keeps it, which would close
/// it under a request that is on its way.
const IDLE_LIMIT: Duration = Duration::from_secs(IDLE_SECONDS / 2);
/// The other half of a login, as the page sends it.
const KEY: &str = "x-navi-key";

/// Why the service could not be asked, or what it said.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error(transparent)]
    NotRunning(#[from] NotRunning),
    #[error("navi does not answer at {address}: {reason}")]
    Unreachable { address: String, reason: String },
    #[error("a one-time link could not be written to {dir}: {error}")]
    NoLink { dir: String, error: io::Error },
    /// What the service answered.
    #[error(transparent)]
    Refused(#[from] NaviError),
    /// Another version, or no Navi at all.
    #[error("what navi answered cannot be read: {0}")]
    Unreadable(String),
}

/// How this program comes in.
#[derive(Clone, Debug)]
enum WayIn {
    Token(Secret),
    Login { cookie: String, key: String },
}

/// See the module. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    /// For the sockets.
    tls: Arc<ClientConfig>,
    data_dir: PathBuf,
    way_in: WayIn,
}

impl Client {
    /// # Errors
    /// No service runs, or it does not let this program in.
    pub(crate) async fn log_in(settings: &Settings) -> Result<Self, ClientError> {
        let data_dir = settings.data_dir.clone();
        let unusable = |error: rustls::Error| ClientError::Unreadable(error.to_string());
        let tls = trust::config(data_dir.clone()).map_err(unusable)?;
        let http = https::client()
            // `navi/` is what the service's own calls of models say.
            .user_agent(concat!("navi-client/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .pool_idle_timeout(IDLE_LIMIT)
            .tls_backend_preconfigured(tls.clone())
            .build()
            .map_err(|error| ClientError::Unreadable(error.to_string()))?;
        let mut client = Self {
            http,
            tls: Arc::new(tls),
            data_dir,
            way_in: WayIn::Login {
                cookie: String::new(),
                key: String::new(),
            },
        };
        client.way_in = match &settings.api_token {
            Some(token) => WayIn::Token(token.clone()),
            None => client.redeem().await?,
        };
        Ok(client)
    }

    /// Gives the login back. A token stays.
    pub(crate) async fn log_out(self) {
        if matches!(self.way_in, WayIn::Login { .. }) {
            // Who cannot be told forgets it by itself, after a month.
            let _: Result<Value, _> = self.send(Method::POST, "/logout", &()).await;
        }
    }

    /// # Errors
    /// What the service says, or that it says nothing.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        let request = self.request(Method::GET, path)?;
        self.read(request.timeout(TIME_LIMIT)).await
    }

    /// Sends JSON; no body at all where that is `()`.
    ///
    /// # Errors
    /// What the service says, or that it says nothing.
    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_value(body);
        let body = body.map_err(|error| ClientError::Unreadable(error.to_string()))?;
        let mut request = self.request(method, path)?.timeout(TIME_LIMIT);
        if !body.is_null() {
            request = request.json(&body);
        }
        self.read(request).await
    }

    /// A request that is let in, for what is not JSON.
    ///
    /// # Errors
    /// No service runs.
    pub(crate) fn request(
        &self,
        method: Method,
        path: &str,
    ) -> Result<RequestBuilder, ClientError> {
        let running = self.running()?;
        let address = running.url();
        let request = self.http.request(method, format!("{address}{path}"));
        Ok(match &self.way_in {
            WayIn::Token(token) => request.bearer_auth(token.reveal()),
            WayIn::Login { cookie, key } => request
                .header(COOKIE, cookies(&running, cookie))
                .header(KEY, key)
                .header(ORIGIN, address),
        })
    }

    /// Sends a request of [`Self::request`]; what the service refuses is an error.
    ///
    /// # Errors
    /// What the service says, or that it says nothing.
    pub(crate) async fn response(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let response = request
            .send()
            .await
            .map_err(|error| self.unreachable(&error));
        let response = response?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let error: Option<NaviError> = response.json().await.ok();
        Err(error.map_or_else(
            || ClientError::Unreadable(format!("{status}")),
            ClientError::Refused,
        ))
    }

    /// What is told of a session behind this event, or what goes on there.
    pub(crate) fn events(&self, session: SessionId, after: Option<u64>) -> Events {
        Events::new(self.clone(), session, after)
    }

    /// The session list, and how it changes.
    pub(crate) fn watch(&self) -> Watch {
        Watch::new(self.clone())
    }

    async fn read<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        let response = self.response(request).await?;
        let bytes = response.bytes().await;
        let bytes = bytes.map_err(|error| self.unreachable(&error))?;
        let json: &[u8] = if bytes.is_empty() { b"null" } else { &bytes };
        serde_json::from_slice(json).map_err(|error| ClientError::Unreadable(error.to_string()))
    }

    fn running(&self) -> Result<Running, ClientError> {
        Ok(instance::expect_running(&self.data_dir)?)
    }

    /// It may have gone in between.
    pub(crate) fn unreachable(&self, error: &reqwest::Error) -> ClientError {
        match self.running() {
            Ok(running) => ClientError::Unreachable {
                address: running.url(),
                reason: https::innermost(error).to_string(),
            },
            Err(gone) => gone,
        }
    }

    async fn redeem(&self) -> Result<WayIn, ClientError> {
        let running = self.running()?;
        let secret = Links::new(&self.data_dir).issue();
        let secret = secret.map_err(|error| ClientError::NoLink {
            dir: self.data_dir.display().to_string(),
            error,
        })?;
        let link = format!("{}/login/{secret}", running.url());
        let response = self.http.get(link).timeout(TIME_LIMIT).send().await;
        let response = response.map_err(|error| self.unreachable(&error))?;
        let headers = response.headers();
        let location = headers.get(LOCATION).and_then(|it| it.to_str().ok());
        let key = location.and_then(|it| it.split_once("#key="));
        let sent = headers.get_all(reqwest::header::SET_COOKIE).iter();
        let mut sent = sent.filter_map(|it| it.to_str().ok()?.split(';').next()?.split_once('='));
        let names = cookie_names(&running);
        let cookie = sent.find(|(name, _)| names.iter().any(|known| known == name));
        match (cookie, key) {
            (Some((_, cookie)), Some((_, key))) => Ok(WayIn::Login {
                cookie: cookie.to_owned(),
                key: key.to_owned(),
            }),
            _ => Err(ClientError::Unreadable(format!(
                "{} in place of a login",
                response.status()
            ))),
        }
    }
}

/// As `http::gate` names it: the second, where Navi is reached by TLS.
fn cookie_names(running: &Running) -> [String; 2] {
    let name = format!("navi_{}", running.address.port());
    [name.clone(), format!("__Host-{name}")]
}

/// Under both names, as a service that was started again may have the other one.
fn cookies(running: &Running, cookie: &str) -> String {
    cookie_names(running)
        .map(|name| format!("{name}={cookie}"))
        .join("; ")
}
