//! Ollama by its own API (`docs/api.md` of the Ollama project): it alone takes `num_ctx`.

mod models;
pub mod pull;
pub(super) mod request;
mod stream;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::HeaderMap;
use reqwest::{Client, Response, Url};
use serde_json::Value;

use crate::domain::slots::Capacity;
use crate::protocol::chat::ChatRequest;
use crate::protocol::phrase::{Phrase, PhraseCode, Trouble};
use crate::protocol::status::{BackendKind, BackendState};

use self::models::ModelCatalog;
use self::request::Think;
use self::stream::OllamaDecoder;
use super::decode::decoded;
use super::frames::{self, ByteStream};
use super::http::{self, Ask};
use super::reply::MAX_REPLY_BYTES;
use super::roles::RoleMemory;
use super::{Backend, ChatStream, LlmError, Probe};

const VERSION_TIMEOUT: Duration = Duration::from_secs(2);

/// Where an Ollama server is and how it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OllamaConfig {
    /// As Ollama's own tools read `OLLAMA_HOST`: a URL, or a host with or without a port.
    pub host: String,
    /// `OLLAMA_DEFAULT_MODEL`.
    pub default_model: String,
    /// How long Ollama keeps a model in memory after a call, in its own notation (`10m`).
    pub keep_alive: String,
}

impl OllamaConfig {
    /// The usual settings for a server.
    pub fn new(host: impl Into<String>, default_model: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            default_model: default_model.into(),
            keep_alive: "10m".to_owned(),
        }
    }
}

/// An Ollama server.
pub struct OllamaBackend {
    config: OllamaConfig,
    base: Url,
    client: Client,
    catalog: ModelCatalog,
    roles: RoleMemory,
}

impl OllamaBackend {
    /// Sends nothing yet.
    ///
    /// # Errors
    /// [`LlmError::NotReady`] where `host` is no address.
    pub fn new(config: OllamaConfig) -> Result<Self, LlmError> {
        let base = base_url(&config.host).ok_or_else(|| {
            LlmError::NotReady(Trouble::new(
                PhraseCode::NoOllamaAddress,
                PhraseCode::SetOllamaHost,
            ))
        })?;
        let client = http::client(&base, HeaderMap::new())?;
        Ok(Self {
            config,
            base,
            client,
            catalog: ModelCatalog::default(),
            roles: RoleMemory::default(),
        })
    }

    async fn ask(&self, request: &ChatRequest, think: Think) -> Result<Response, LlmError> {
        let url = http::under(&self.base, "api/chat");
        let body = request::body(request, think, &self.config.keep_alive);
        let ask = Ask {
            request: self.client.post(url.clone()).json(&body),
            url: &url,
            model: &request.model,
        };
        ask.send().await
    }

    /// Asks with reasoning where that is wanted and the model can.
    async fn ask_thinking(&self, request: &ChatRequest) -> Result<Response, LlmError> {
        let think = if request.think && self.catalog.thinking(&request.model) != Some(false) {
            Think::On
        } else {
            Think::Off
        };
        match self.ask(request, think).await {
            Err(LlmError::Rejected { message, .. }) if refuses_thinking(&message) => {
                tracing::debug!(
                    model = request.model,
                    "the model cannot think; asking it without"
                );
                self.catalog.deny_thinking(&request.model);
                self.ask(request, Think::Unsaid).await
            }
            outcome => outcome,
        }
    }

    async fn get(&self, path: &str, limit: Duration) -> Result<Value, LlmError> {
        let url = http::under(&self.base, path);
        let ask = Ask {
            request: self.client.get(url.clone()),
            url: &url,
            model: "",
        };
        ask.json(limit).await
    }

    fn down(&self, error: &LlmError) -> Probe {
        let remedy = match error {
            LlmError::Unreachable { .. } => PhraseCode::StartOllama,
            _ => PhraseCode::CheckOllama,
        };
        Probe {
            state: BackendState::down(Trouble::new(error.phrase(), remedy)),
            version: None,
            models: Vec::new(),
            default_model: None,
            capacity: None,
        }
    }
}

#[async_trait]
impl Backend for OllamaBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Ollama
    }

    fn address(&self) -> String {
        http::shown(&self.base)
    }

    async fn probe(&self) -> Probe {
        let version = match self.get("api/version", VERSION_TIMEOUT).await {
            Ok(answer) => answer
                .get("version")
                .and_then(Value::as_str)
                .map(str::to_owned),
            Err(error) => return self.down(&error),
        };
        if let Err(error) = self.catalog.refresh(&self.client, &self.base).await {
            return self.down(&error);
        }
        let mut models = self.catalog.models();
        let default_model = models::default_model(&mut models, &self.config.default_model);
        let state = if models.is_empty() {
            let model = [("model", self.config.default_model.clone())];
            BackendState::down(Trouble::new(
                PhraseCode::NoChatModel,
                Phrase::new(PhraseCode::PullModel, model),
            ))
        } else {
            BackendState::Ready
        };
        Probe {
            state,
            version,
            models,
            default_model,
            // OLLAMA_NUM_PARALLEL is told to nobody.
            capacity: Some(Capacity::Unknown),
        }
    }

    async fn chat(&self, request: Arc<ChatRequest>) -> Result<ChatStream, LlmError> {
        let mut roles = self.roles.of(&request.model);
        let response = loop {
            let outcome = self.ask_thinking(&roles.arranged(&request)).await;
            match roles.after(&request, &outcome) {
                Some(next) => roles = next,
                None => break outcome?,
            }
        };
        self.roles.learn(&request.model, roles);
        Ok(read(http::body(response)))
    }
}

impl fmt::Debug for OllamaBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OllamaBackend")
            .field("address", &self.address())
            .finish_non_exhaustive()
    }
}

/// The body of an answer as the deltas that it means.
pub(super) fn read(body: ByteStream) -> ChatStream {
    decoded(frames::answer(body, MAX_REPLY_BYTES), OllamaDecoder)
}

fn refuses_thinking(message: &str) -> bool {
    message.contains("does not support thinking") || message.contains("think value")
}

/// Reads `OLLAMA_HOST` as Ollama does, and turns an address to listen on (`0.0.0.0`) into
/// one to connect to.
fn base_url(host: &str) -> Option<Url> {
    let host = host.trim().trim_end_matches('/');
    let with_scheme = if host.contains("://") {
        host.to_owned()
    } else if host.starts_with(':') {
        format!("http://localhost{host}")
    } else {
        format!("http://{host}")
    };
    let mut url = Url::parse(&with_scheme).ok()?;
    if !matches!(url.scheme(), "http" | "https") || host.is_empty() {
        return None;
    }
    match url.host_str()? {
        "0.0.0.0" => url.set_host(Some("127.0.0.1")).ok()?,
        "[::]" => url.set_host(Some("[::1]")).ok()?,
        _ => {}
    }
    // Without a scheme the port is Ollama's own, unless it was spelt out (80 too, which
    // `Url` takes for the default and forgets).
    if !host.contains("://") && url.port().is_none() && !host.ends_with(":80") {
        url.set_port(Some(11434)).ok()?;
    }
    url.set_query(None);
    url.set_fragment(None);
    Some(url)
}

#[cfg(test)]
#[path = "tests.rs"]
pub(super) mod tests;
