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
use parking_lot::Mutex;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, Response, Url};

use crate::domain::context::hide_images;
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
    /// `OPENAI_BASE_URL`, with or without `/v1`.
    pub base_url: String,
    /// `OPENAI_API_KEY`.
    pub api_key: Option<String>,
    /// `OPENAI_DEFAULT_MODEL`; the server's first model where absent.
    pub default_model: Option<String>,
}

impl fmt::Debug for OpenAiConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiConfig")
            .field("base_url", &self.base_url)
            .field("api_key", &self.api_key.as_ref().map(|_| "(hidden)"))
            .field("default_model", &self.default_model)
            .finish()
    }
}

/// An OpenAI-compatible server.
pub struct OpenAiBackend {
    config: OpenAiConfig,
    /// Ends with the API's version.
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
        if let Some(key) = config
            .api_key
            .as_deref()
            .map(str::trim)
            .filter(|key| !key.is_empty())
        {
            let mut bearer = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| {
                LlmError::NotReady(Trouble::new(
                    PhraseCode::KeyCharacters,
                    PhraseCode::SetKeyAlone,
                ))
            })?;
            bearer.set_sensitive(true);
            headers.insert(AUTHORIZATION, bearer);
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

    async fn ask(&self, body: &Body<'_>) -> Result<Response, LlmError> {
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
        ask.send().await.map_err(|error| self.without_key(error))
    }

    /// Asks, and leaves out what a server refuses and an answer can do without.
    async fn ask_simply(&self, request: &ChatRequest) -> Result<Response, LlmError> {
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
    async fn ask_in_order(&self, request: &ChatRequest) -> Result<Response, LlmError> {
        let mut roles = self.roles.of(&request.model);
        let response = loop {
            let outcome = self.ask_simply(&roles.arranged(request)).await;
            match roles.after(request, &outcome) {
                Some(next) => roles = next,
                None => break outcome?,
            }
        };
        self.roles.learn(&request.model, roles);
        Ok(response)
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
        let Some(key) = self.config.api_key.as_deref().filter(|key| key.len() > 3) else {
            return error;
        };
        match error {
            LlmError::Unauthorized { status, message } => LlmError::Unauthorized {
                status,
                message: message.replace(key, "(the key)"),
            },
            LlmError::Rejected { status, message } => LlmError::Rejected {
                status,
                message: message.replace(key, "(the key)"),
            },
            other => other,
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
        let url = http::under(&self.base, "models");
        let ask = Ask {
            request: self.client.get(url.clone()),
            url: &url,
            model: "",
        };
        let answer = match ask.json(MODELS_TIMEOUT).await {
            Ok(answer) => answer,
            // llama.cpp says so until its model is in memory.
            Err(LlmError::Busy { message, .. }) => {
                return self.probed(BackendState::Loading { detail: message });
            }
            // Some hosted servers list no models; with a model configured that is no fault.
            Err(LlmError::Rejected { status: 404, .. }) if self.config.default_model.is_some() => {
                return Probe {
                    capacity: self.capacity(Flavour::Plain).await,
                    ..self.probed(BackendState::Ready)
                };
            }
            Err(error) => return self.down(&self.without_key(error)),
        };
        let Some(list) = models::read(&answer) else {
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
        let response = if self.refuses(model, request::IMAGE) {
            self.ask_in_order(&blind()).await?
        } else {
            match self.ask_in_order(&request).await {
                Err(error) if request::refuses_images(&request, &error) => {
                    tracing::debug!(model, %error, "the model takes no images; asking without them");
                    let response = self.ask_in_order(&blind()).await?;
                    self.remember(model, request::IMAGE);
                    response
                }
                outcome => outcome?,
            }
        };
        Ok(read(http::body(response)))
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
