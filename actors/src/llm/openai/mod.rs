//! Any server that speaks OpenAI's chat completions: hosted ones, llama.cpp, vLLM, LM Studio, …

mod address;
mod calls;
mod found;
mod look;
mod models;
mod request;
mod stream;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use parking_lot::Mutex;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, RequestBuilder, Url};
use serde_json::Value;

use crate::domain::context::hide_images;
use crate::domain::redact::{names_key, redacted};
use crate::domain::slots::Capacity;
use crate::protocol::chat::ChatRequest;
use crate::protocol::phrase::{Phrase, PhraseCode, Trouble};
use crate::protocol::status::{BackendKind, BackendState};

use self::models::Flavour;
use self::stream::OpenAiDecoder;
use super::decode::decoded;
use super::frames::{self, ByteStream};
use super::http::{self, Ask};
use super::reply::MAX_REPLY_BYTES;
use super::roles::RoleMemory;
use super::wire::Body;
use super::{Backend, ChatStream, LlmError, Probe};

pub use self::found::FoundOpenAi;
pub use self::look::{ServerThere, look};

const MODELS_TIMEOUT: Duration = Duration::from_secs(4);

/// The most refusals of fields that are kept.
const MAX_REFUSED: usize = 1000;

/// Where an OpenAI-compatible server is and how it is used.
#[derive(Clone, PartialEq, Eq)]
pub struct OpenAiConfig {
    /// `OPENAI_BASE_URL`, with or without `/v1`. Its query goes with each request.
    pub base_url: String,
    /// `OPENAI_API_KEY`.
    pub api_key: Option<String>,
    /// `OPENAI_DEFAULT_MODEL`; the server's first model where absent.
    pub default_model: Option<String>,
}

impl fmt::Debug for OpenAiConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiConfig")
            .field("base_url", &redacted(&self.base_url))
            .field("api_key", &self.api_key.as_ref().map(|_| "(hidden)"))
            .field("default_model", &self.default_model)
            .finish()
    }
}

impl OpenAiConfig {
    /// The key, where there is one.
    fn key(&self) -> Option<&str> {
        let key = self.api_key.as_deref()?.trim();
        (!key.is_empty()).then_some(key)
    }
}

/// An OpenAI-compatible server.
pub struct OpenAiBackend {
    config: OpenAiConfig,
    /// What the API's paths stand under.
    base: Url,
    client: Client,
    /// The [`Flavour`] as of the last probe.
    flavour: AtomicU8,
    roles: RoleMemory,
    /// What a model refused and is not sent again, by that name.
    refused: Mutex<HashSet<(String, &'static str)>>,
}

impl OpenAiBackend {
    /// Sends nothing yet.
    ///
    /// # Errors
    /// [`LlmError::NotReady`] where the address or the key cannot be one.
    pub fn new(config: OpenAiConfig) -> Result<Self, LlmError> {
        let base = address::api_root(&config.base_url).ok_or_else(|| {
            LlmError::NotReady(Trouble::new(
                PhraseCode::NoOpenaiAddress,
                PhraseCode::SetOpenaiUrl,
            ))
        })?;
        let mut headers = HeaderMap::new();
        if let Some(key) = config.key() {
            let (header, value) = match address::key_header(&base) {
                Some(header) => (header, key.to_owned()),
                None => (AUTHORIZATION, format!("Bearer {key}")),
            };
            let mut value = HeaderValue::try_from(value).map_err(|_| {
                LlmError::NotReady(Trouble::new(
                    PhraseCode::KeyCharacters,
                    PhraseCode::SetKeyAlone,
                ))
            })?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        let client = http::client(&base, headers)?;
        Ok(Self {
            config,
            base,
            client,
            flavour: AtomicU8::new(Flavour::Plain as u8),
            roles: RoleMemory::default(),
            refused: Mutex::default(),
        })
    }

    /// Asks, and waits for the first thing that is said: some servers refuse within an answer.
    async fn ask(&self, body: &Body<'_>) -> Result<ChatStream, LlmError> {
        let url = http::under(&self.base, "chat/completions");
        let accept = if request::is_streamed(&body.fields) {
            "text/event-stream"
        } else {
            "application/json"
        };
        let ask = Ask {
            request: self
                .client
                .post(url.clone())
                .header(ACCEPT, accept)
                .json(body),
            url: &url,
            model: body.model,
        };
        let sent = ask.send().await;
        let mut answer = read(http::body(sent.map_err(|error| self.without_key(error))?));
        let first = answer.next().await.transpose();
        let first = first.map_err(|error| self.without_key(error))?;
        let first = futures_util::stream::iter(first.map(Ok));
        Ok(Box::pin(first.chain(answer)))
    }

    /// Asks, and leaves out what a server refuses and an answer can do without.
    async fn ask_simply(&self, request: &ChatRequest) -> Result<ChatStream, LlmError> {
        let flavour = Flavour::from_u8(self.flavour.load(Ordering::Relaxed));
        let mut body = request::body(request, flavour, &self.base);
        if self.refuses(&request.model, request::LIMIT) {
            request::rename_limit(&mut body.fields);
        }
        body.fields
            .retain(|field, _| !self.refuses(&request.model, field));
        loop {
            match self.ask(&body).await {
                // Servers differ in what they know. Each round takes a field away, renames one,
                // or begins to stream, for good, so this ends.
                Err(LlmError::Rejected { status, message }) if matches!(status, 400 | 422) => {
                    if request::wants_new_limit(&message) && request::rename_limit(&mut body.fields)
                    {
                        tracing::debug!("the model server has another name for an answer's limit");
                        self.remember(&request.model, request::LIMIT);
                    } else if let Some(field) = request::dispensable_field(&body.fields, &message) {
                        tracing::debug!(
                            field,
                            "the model server refuses a field; asking without it"
                        );
                        body.fields.remove(field);
                        if request::is_refused_for_all(field, request) {
                            self.remember(&request.model, field);
                        }
                    } else if request::wants_streams(&body.fields, &message) {
                        tracing::debug!("the model server only streams; asking for a stream");
                        body.fields.insert("stream".to_owned(), true.into());
                    } else {
                        return Err(LlmError::Rejected { status, message });
                    }
                }
                outcome => return outcome,
            }
        }
    }

    /// Asks, in an order of roles that the model's template takes.
    async fn ask_in_order(&self, request: &ChatRequest) -> Result<ChatStream, LlmError> {
        let mut roles = self.roles.of(&request.model);
        let answer = loop {
            let outcome = self.ask_simply(&roles.arranged(request)).await;
            match roles.after(request, &outcome) {
                Some(next) => roles = next,
                None => break outcome?,
            }
        };
        self.roles.learn(&request.model, roles);
        Ok(answer)
    }

    fn refuses(&self, model: &str, field: &str) -> bool {
        let refused = self.refused.lock();
        let mut refused = refused.iter();
        refused.any(|(of, known)| of == model && *known == field)
    }

    fn remember(&self, model: &str, field: &'static str) {
        let mut refused = self.refused.lock();
        if refused.len() < MAX_REFUSED {
            refused.insert((model.to_owned(), field));
        }
    }

    /// Some servers repeat a wrong key in their answer; it must not reach a log or a page.
    fn without_key(&self, error: LlmError) -> LlmError {
        let query = self.base.query_pairs();
        let of_query = query.filter_map(|(name, value)| names_key(&name).then_some(value));
        let keys = of_query.chain(self.config.api_key.as_deref().map(Into::into));
        let keys: Vec<_> = keys.filter(|key| key.len() > 3).collect();
        let without = |message: String| {
            let keys = keys.iter();
            keys.fold(message, |said, key| said.replace(&**key, "(the key)"))
        };
        match error {
            LlmError::Unauthorized { status, message } => LlmError::Unauthorized {
                status,
                message: without(message),
            },
            LlmError::Rejected { status, message } => LlmError::Rejected {
                status,
                message: without(message),
            },
            other => other,
        }
    }

    /// What it answers to who asks for its models.
    async fn list(&self) -> Result<Value, LlmError> {
        let url = http::under(&self.base, "models");
        let ask = Ask {
            request: self.list_request(&url),
            url: &url,
            model: "",
        };
        let answer = ask.json(MODELS_TIMEOUT).await;
        answer.map_err(|error| self.without_key(error))
    }

    fn list_request(&self, url: &Url) -> RequestBuilder {
        let request = self.client.get(url.clone());
        if url.host_str() != Some("api.anthropic.com") {
            return request;
        }
        // There it is a path of its own API (docs.anthropic.com/en/api/models-list).
        let request = request.header("anthropic-version", "2023-06-01");
        match self.config.key().map(HeaderValue::try_from) {
            Some(Ok(mut key)) => {
                key.set_sensitive(true);
                request.header("x-api-key", key)
            }
            _ => request,
        }
    }

    fn down(&self, error: &LlmError) -> Probe {
        let remedy = match error {
            LlmError::Unreachable { .. } => PhraseCode::StartServer,
            LlmError::Unauthorized { .. } => PhraseCode::SetKey,
            _ => PhraseCode::CheckOpenai,
        };
        self.probed(BackendState::down(Trouble::new(error.phrase(), remedy)))
    }

    fn probed(&self, state: BackendState) -> Probe {
        Probe {
            state,
            version: None,
            models: Vec::new(),
            default_model: self.config.default_model.clone(),
            capacity: None,
        }
    }

    /// How many calls it takes at once. llama.cpp says so; a service for many people refuses
    /// what is too much; of others on one's own network nobody knows.
    async fn capacity(&self, flavour: Flavour) -> Option<Capacity> {
        match flavour {
            Flavour::LlamaCpp => {
                let mut url = self.base.clone();
                // Beside the API, not under its version.
                let root = self.base.path().trim_end_matches('/');
                let root = root.rsplit_once('/').map_or("", |(root, _)| root);
                url.set_path(&format!("{root}/props"));
                let ask = Ask {
                    request: self.client.get(url.clone()),
                    url: &url,
                    model: "",
                };
                let told = ask.json(MODELS_TIMEOUT).await.ok()?;
                let slots = usize::try_from(told.get("total_slots")?.as_u64()?).ok()?;
                Some(Capacity::Told(slots))
            }
            Flavour::Vllm => Some(Capacity::Many),
            Flavour::Plain if http::is_own_network(&self.base) => Some(Capacity::Unknown),
            Flavour::Plain => Some(Capacity::Many),
        }
    }
}

#[async_trait]
impl Backend for OpenAiBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Openai
    }

    fn address(&self) -> String {
        http::shown(&self.base)
    }

    async fn probe(&self) -> Probe {
        let has_model = self.config.default_model.is_some();
        let list = match self.list().await {
            Ok(answer) => models::read(&answer),
            // llama.cpp says so until its model is in memory.
            Err(LlmError::Busy { message, .. }) => {
                return self.probed(BackendState::Loading { detail: message });
            }
            Err(error) if has_model && lists_none(&error) => None,
            Err(error) => return self.down(&error),
        };
        let Some(list) = list else {
            // Some hosted servers list no models; with a model configured that is no fault.
            if has_model {
                return Probe {
                    capacity: self.capacity(Flavour::Plain).await,
                    ..self.probed(BackendState::Ready)
                };
            }
            let url = http::under(&self.base, "models");
            return self.down(&LlmError::Malformed {
                message: format!("no list of models at {}", http::shown(&url)),
            });
        };
        self.flavour.store(list.flavour as u8, Ordering::Relaxed);
        let default_model = self
            .config
            .default_model
            .clone()
            .or_else(|| list.models.first().map(|model| model.name.clone()));
        let state = if default_model.is_some() {
            BackendState::Ready
        } else {
            let address = [("address", self.address())];
            BackendState::down(Trouble::new(
                Phrase::new(PhraseCode::ServerEmpty, address),
                PhraseCode::LoadModel,
            ))
        };
        Probe {
            state,
            version: None,
            models: list.models,
            default_model,
            capacity: self.capacity(list.flavour).await,
        }
    }

    async fn chat(&self, request: Arc<ChatRequest>) -> Result<ChatStream, LlmError> {
        let blind = || {
            let mut request = ChatRequest::clone(&request);
            hide_images(&mut request.messages);
            request
        };
        let model = &request.model;
        if self.refuses(model, request::IMAGE) {
            return self.ask_in_order(&blind()).await;
        }
        match self.ask_in_order(&request).await {
            Err(error) if request::refuses_images(&request, &error) => {
                tracing::debug!(model, %error, "the model takes no images; asking without them");
                let answer = self.ask_in_order(&blind()).await?;
                self.remember(model, request::IMAGE);
                Ok(answer)
            }
            outcome => outcome,
        }
    }
}

/// Whether an error says no more than that there is no list of models.
fn lists_none(error: &LlmError) -> bool {
    match error {
        // Some answer so to a wrong key.
        LlmError::Rejected {
            status: 400,
            message,
        } => !message.to_lowercase().contains("key"),
        LlmError::Rejected {
            status: 404 | 405, ..
        }
        | LlmError::Server { status: 501, .. } => true,
        _ => false,
    }
}

/// The body of an answer as the deltas that it means.
pub(super) fn read(body: ByteStream) -> ChatStream {
    decoded(
        frames::answer(body, MAX_REPLY_BYTES),
        OpenAiDecoder::default(),
    )
}

impl fmt::Debug for OpenAiBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiBackend")
            .field("address", &self.address())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
