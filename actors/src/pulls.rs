//! [`Pulls`]: the one model that Ollama pulls at a time, for all who ask for it or watch it.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::llm::ollama::OllamaBackend;
use crate::llm::ollama::pull::{ModelName, PullError, PullProgress};
use crate::protocol::error::{ErrorCode, NaviError, invalid};
use crate::protocol::phrase::{Phrase, PhraseCode};
use crate::protocol::status::ModelPull;

/// Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Pulls {
    ollama: Option<Arc<OllamaBackend>>,
    now: Arc<Mutex<Option<Pull>>>,
}

/// One that goes on, or ended without its model.
#[derive(Debug)]
struct Pull {
    told: ModelPull,
    /// Cancelled, it changes nothing here any more.
    stop: CancellationToken,
}

/// A pull that is to be carried out.
#[derive(Debug)]
pub(crate) struct Begun {
    ollama: Arc<OllamaBackend>,
    name: ModelName,
    stop: CancellationToken,
}

impl Pulls {
    pub(crate) fn new(ollama: Option<Arc<OllamaBackend>>) -> Self {
        Self {
            ollama,
            now: Arc::default(),
        }
    }

    /// How the pull is that goes on, or why the last one failed.
    pub(crate) fn now(&self) -> Option<ModelPull> {
        self.now.lock().as_ref().map(|pull| pull.told.clone())
    }

    /// Begins a pull; none where that of the same model goes on already.
    ///
    /// # Errors
    /// `invalid_field`; `backend_unavailable` where no Ollama is asked; `backend_busy` where
    /// another model is being pulled.
    pub(crate) fn begin(&self, name: &str) -> Result<Option<Begun>, NaviError> {
        let name = parsed(name)?;
        let ollama = self
            .ollama
            .clone()
            .ok_or_else(|| NaviError::said(ErrorCode::BackendUnavailable, PhraseCode::NoOllama))?;
        let mut now = self.now.lock();
        let going = now.as_ref().filter(|pull| pull.told.problem.is_none());
        match going.map(|pull| &pull.told.name) {
            Some(other) if name.means(other) => return Ok(None),
            Some(other) => {
                return Err(NaviError::said(
                    ErrorCode::BackendBusy,
                    Phrase::new(PhraseCode::PullGoes, [("name", other.clone())]),
                ));
            }
            None => {}
        }
        let stop = CancellationToken::new();
        *now = Some(Pull {
            told: ModelPull {
                name: name.as_str().to_owned(),
                ..ModelPull::default()
            },
            stop: stop.clone(),
        });
        Ok(Some(Begun { ollama, name, stop }))
    }

    /// Pulls to the end, or until it is stopped.
    pub(crate) async fn carry_out(&self, begun: Begun) {
        let Begun { ollama, name, stop } = begun;
        let tell = |progress: &PullProgress| self.tell(&stop, progress);
        let pulled = stop.run_until_cancelled(ollama.pull(&name, tell)).await;
        if let Some(pulled) = pulled {
            self.end(&stop, &name, pulled);
        }
    }

    /// Stops the pull of this model, or puts away why it failed.
    ///
    /// # Errors
    /// `invalid_field`; `not_found` where there is none.
    pub(crate) fn stop(&self, name: &str) -> Result<(), NaviError> {
        let name = parsed(name)?;
        let stopped = self
            .now
            .lock()
            .take_if(|pull| name.means(&pull.told.name))
            .map(|pull| pull.stop.cancel());
        stopped.ok_or_else(|| {
            NaviError::new(
                ErrorCode::NotFound,
                format!("{} is not being pulled", name.as_str()),
            )
        })
    }

    fn tell(&self, stop: &CancellationToken, progress: &PullProgress) {
        let mut now = self.now.lock();
        if let Some(pull) = now.as_mut().filter(|_| !stop.is_cancelled()) {
            let PullProgress {
                step,
                received,
                total,
            } = progress.clone();
            pull.told = ModelPull {
                step,
                received,
                total,
                ..std::mem::take(&mut pull.told)
            };
        }
    }

    fn end(&self, stop: &CancellationToken, name: &ModelName, pulled: Result<(), PullError>) {
        let mut now = self.now.lock();
        if stop.is_cancelled() {
            return;
        }
        match pulled {
            Ok(()) => {
                tracing::info!(model = name.as_str(), "Ollama has pulled a model");
                *now = None;
            }
            Err(error) => {
                tracing::warn!(%error, "Ollama could not pull a model");
                if let Some(pull) = now.as_mut() {
                    pull.told.problem = Some(error.to_string());
                    pull.told.phrase = Some(error.phrase());
                }
            }
        }
    }
}

fn parsed(name: &str) -> Result<ModelName, NaviError> {
    ModelName::parse(name.trim()).ok_or_else(|| {
        invalid(
            "field `name`: a model's name is expected, as in qwen3:8b or hf.co/owner/model:Q4_K_M",
        )
    })
}
