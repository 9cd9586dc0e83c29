//! The starter as a backend: which file answers, how that stands, and the way to the engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use futures_util::stream;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};

use super::StarterConfig;
use super::chat_model::{ChatModel, MAX_WINDOW};
use super::choice::{StarterChoice, UnknownChoice};
use super::engine::{Engine, Load};
use super::error::ModelError;
use super::fetch::{FetchError, FetchState, Fetcher};
use super::inspect::Inspector;
use super::models::{STARTER_MODELS, StarterModel};
use super::resources::{available_memory, readable};
use crate::domain::slots::Capacity;
use crate::llm::{Backend, ChatStream, LlmError, Probe};
use crate::protocol::chat::{ChatDelta, ChatRequest};
use crate::protocol::offered::OfferedTools;
use crate::protocol::phrase::{Phrase, PhraseCode, Trouble};
use crate::protocol::status::{BackendKind, BackendState, FetchableModel, ModelInfo};

/// The model in this process as a backend.
///
/// One request is answered at a time; the actor above keeps the queue. Nothing is fetched or
/// loaded by itself: that actor decides when to call [`fetch`](Self::fetch), and the first
/// request loads the model.
#[derive(Debug)]
pub struct StarterBackend {
    /// Held for a moment only, never across an await.
    choice: Mutex<StarterChoice>,
    /// Nobody chose the demo since the start: it stands back behind a real model.
    stands_back: AtomicBool,
    models_dir: PathBuf,
    fetcher: Fetcher,
    engine: Engine,
    inspector: Inspector,
}

impl StarterBackend {
    /// Sets everything up; touches neither disk nor network.
    #[must_use]
    pub fn new(config: StarterConfig) -> Self {
        let load: Load = Arc::new(|path| Ok(Box::new(load(path)?)));
        Self {
            choice: Mutex::new(config.model),
            stands_back: AtomicBool::new(true),
            fetcher: Fetcher::new(config.models_dir.clone()),
            models_dir: config.models_dir,
            engine: Engine::new(load, config.idle),
            inspector: Inspector::default(),
        }
    }

    /// Fetches a model by its name, from the first source that has it, and gives back its file.
    /// Answers at once where it is here already. One fetch runs at a time; a second call waits
    /// for the first. Dropping the future stops the fetch, and what was received is kept for
    /// the next one. It does not choose the model: that is [`use_model`](Self::use_model).
    pub async fn fetch(&self, name: &str) -> Result<PathBuf, FetchError> {
        self.fetcher.fetch(name).await
    }

    /// How the fetch stands, kept up to date while one runs.
    #[must_use]
    pub fn fetch_state(&self) -> watch::Receiver<FetchState> {
        self.fetcher.state()
    }

    /// The models that can be fetched, and which of them are here.
    #[must_use]
    pub fn fetchable(&self) -> Vec<FetchableModel> {
        let state = self.fetcher.state().borrow().clone();
        let failed = |model: &StarterModel| match &state {
            FetchState::Failed {
                model: failed,
                problem,
            } if *failed == model.name => Some(problem.clone()),
            _ => None,
        };
        STARTER_MODELS
            .iter()
            .map(|model| (model, failed(model)))
            .map(|(model, failed)| FetchableModel {
                name: model.name.to_owned(),
                title: model.title.to_owned(),
                size: model.size,
                memory: model.memory,
                demo: model.demo,
                present: model.is_present(&self.models_dir),
                received: match &state {
                    FetchState::Fetching {
                        model: fetched,
                        received,
                        ..
                    } if *fetched == model.name => Some(*received),
                    _ => None,
                },
                problem: failed.as_ref().map(ToString::to_string),
                phrase: failed,
            })
            .collect()
    }

    /// Answers with this model from the next request on, fetched or not. The one in memory goes when
    /// that request comes.
    pub fn use_model(&self, name: &str) -> Result<(), UnknownChoice> {
        let choice = StarterChoice::parse(name)?;
        *self.choice.lock() = choice;
        self.stands_back.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Whoever fetched a real model means to use it, by whatever program: the demo stands back,
    /// unless it was chosen since.
    fn choice(&self) -> StarterChoice {
        let choice = self.choice.lock().clone();
        match choice {
            StarterChoice::Named(model)
                if model.demo && self.stands_back.load(Ordering::Relaxed) =>
            {
                STARTER_MODELS
                    .iter()
                    .find(|model| !model.demo && model.is_present(&self.models_dir))
                    .map_or(choice, StarterChoice::Named)
            }
            StarterChoice::Named(_) | StarterChoice::File(_) | StarterChoice::Off => choice,
        }
    }

    /// The state of a chosen model that is known by its name.
    fn named_state(&self, model: &StarterModel) -> BackendState {
        if model.is_present(&self.models_dir) {
            return BackendState::Ready;
        }
        match &*self.fetcher.state().borrow() {
            FetchState::Fetching {
                model: fetched,
                received,
                total,
                ..
            } if *fetched == model.name => BackendState::Fetching {
                model: model.name.to_owned(),
                received: *received,
                total: *total,
            },
            FetchState::Failed {
                model: failed,
                problem,
            } if *failed == model.name => {
                BackendState::down(Trouble::new(problem.clone(), fetch_remedy(model)))
            }
            _ => {
                let params = [
                    ("title", model.title.to_owned()),
                    ("size", readable(model.size)),
                ];
                let not_here = Phrase::new(PhraseCode::NotHereSize, params);
                BackendState::down(Trouble::new(not_here, fetch_remedy(model)))
            }
        }
    }

    /// The file that answers a request for this model, and whether that is a demo.
    fn file_for(&self, wanted: &str) -> Result<(PathBuf, Tools), LlmError> {
        let choice = self.choice();
        let chosen = wanted.is_empty() || choice.name().as_deref() == Some(wanted);
        let model = match choice {
            StarterChoice::Off => return Err(LlmError::NotReady(off())),
            StarterChoice::File(path) if chosen => return Ok((path, Tools::Held)),
            StarterChoice::Named(model) if chosen => model,
            _ => StarterModel::named(wanted)
                .filter(|model| model.is_present(&self.models_dir))
                .ok_or_else(|| LlmError::ModelNotFound {
                    model: wanted.to_owned(),
                    message: "it is not among the models that were fetched".to_owned(),
                })?,
        };
        if !model.is_present(&self.models_dir) {
            let not_here = Phrase::new(PhraseCode::NotHere, [("title", model.title.to_owned())]);
            return Err(LlmError::NotReady(Trouble::new(
                not_here,
                fetch_remedy(model),
            )));
        }
        let tools = if model.demo { Tools::None } else { Tools::Held };
        Ok((model.path(&self.models_dir), tools))
    }
}

/// What becomes of the tools that a request offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tools {
    /// The model only chats; it is not told of them.
    None,
    /// The reply is held to their schemas.
    Held,
}

fn off() -> Trouble {
    Trouble::new(PhraseCode::StarterOff, PhraseCode::UnsetStarter)
}

fn fetch_remedy(model: &StarterModel) -> Phrase {
    Phrase::new(PhraseCode::FetchModel, [("model", model.name.to_owned())])
}

/// Loads a model if there is room for it.
fn load(path: &Path) -> Result<ChatModel, ModelError> {
    let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    // The weights, the second form that candle multiplies by, and the cache.
    let needed = size.saturating_mul(2);
    match available_memory() {
        Some(available) if available < needed => Err(ModelError::NoMemory {
            needed: readable(needed),
            available: readable(available),
        }),
        _ => ChatModel::load(path),
    }
}

fn info(model: &StarterModel) -> ModelInfo {
    let most = u32::try_from(MAX_WINDOW).unwrap_or(u32::MAX);
    ModelInfo {
        name: model.name.to_owned(),
        tools: Some(!model.demo),
        vision: Some(false),
        thinking: Some(false),
        context_window: Some(model.context_window.min(most)),
        bytes: Some(model.size),
        demo: model.demo,
        stands_for: None,
    }
}

#[async_trait]
impl Backend for StarterBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Starter
    }

    fn address(&self) -> String {
        "in process".to_owned()
    }

    fn is_looked_for(&self) -> bool {
        true
    }

    async fn probe(&self) -> Probe {
        let choice = self.choice();
        let mut models: Vec<ModelInfo> = STARTER_MODELS
            .iter()
            .filter(|model| model.is_present(&self.models_dir))
            .map(info)
            .collect();
        let state = match &choice {
            StarterChoice::Off => BackendState::down(off()),
            StarterChoice::Named(model) => self.named_state(model),
            StarterChoice::File(path) => match self.inspector.window(path).await {
                Ok(window) => {
                    models.push(ModelInfo {
                        name: path.display().to_string(),
                        tools: Some(true),
                        vision: Some(false),
                        thinking: Some(false),
                        context_window: Some(window),
                        bytes: None,
                        demo: false,
                        stands_for: None,
                    });
                    BackendState::Ready
                }
                Err(error) => {
                    BackendState::down(Trouble::new(error.phrase(), PhraseCode::SetStarter))
                }
            },
        };
        Probe {
            state,
            version: None,
            models,
            default_model: choice.name(),
            capacity: Some(Capacity::Told(1)),
        }
    }

    async fn chat(&self, request: Arc<ChatRequest>) -> Result<ChatStream, LlmError> {
        let mut request = Arc::unwrap_or_clone(request);
        let (path, tools) = self.file_for(&request.model)?;
        if tools == Tools::None {
            request.tools = OfferedTools::default();
        }
        let deltas = self.engine.ask(path, request)?;
        Ok(Box::pin(stream::unfold(Some(deltas), next_delta)))
    }
}

type Deltas = mpsc::Receiver<Result<ChatDelta, LlmError>>;

/// The next delta; nothing after `Done` or an error, and an error where neither comes.
async fn next_delta(
    deltas: Option<Deltas>,
) -> Option<(Result<ChatDelta, LlmError>, Option<Deltas>)> {
    let mut deltas = deltas?;
    match deltas.recv().await {
        Some(last @ (Ok(ChatDelta::Done { .. }) | Err(_))) => Some((last, None)),
        Some(delta) => Some((delta, Some(deltas))),
        None => Some((Err(LlmError::EndedEarly), None)),
    }
}

#[cfg(test)]
#[path = "backend_tests.rs"]
mod backend_tests;
