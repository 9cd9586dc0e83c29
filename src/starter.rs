//! The starter model as the service has it: chosen by the settings, fetched when asked.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use navi_actors::engine::ModelFetcher;
use navi_actors::llm::Backend;
use navi_actors::llm::starter::{FetchError, StarterBackend, StarterChoice, StarterConfig};
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::status::FetchableModel;
use parking_lot::Mutex;
use tracing::{info, warn};

use crate::settings::Settings;

/// How long a model stays in memory after its last request.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// How long a request to fetch waits for what fails at once: no room, no such directory.
const EARLY_FAILURE: Duration = Duration::from_millis(500);

/// The starter, and the fetches that run.
#[derive(Clone, Debug)]
pub(crate) struct Starter {
    backend: Arc<StarterBackend>,
    /// The model that the settings name; none where they name a file.
    named: Option<String>,
    fetching: Arc<Mutex<BTreeSet<String>>>,
}

/// The starter as the settings want it; none where it is off.
///
/// # Errors
/// `STARTER_MODEL` names no model.
pub(crate) fn build(settings: &Settings) -> anyhow::Result<Option<Starter>> {
    let Some(wanted) = &settings.model.starter else {
        return Ok(None);
    };
    let models_dir = settings.data_dir.join("models");
    let model = StarterChoice::parse(wanted).context("STARTER_MODEL")?;
    let named = match &model {
        StarterChoice::Off => return Ok(None),
        StarterChoice::Named(_) => model.name(),
        StarterChoice::File(_) => None,
    };
    Ok(Some(Starter {
        backend: Arc::new(StarterBackend::new(StarterConfig {
            model,
            models_dir,
            idle: IDLE,
        })),
        named,
        fetching: Arc::default(),
    }))
}

impl Starter {
    pub(crate) fn backend(&self) -> Arc<dyn Backend> {
        Arc::<StarterBackend>::clone(&self.backend)
    }

    /// The model itself, for the command line, which waits for a fetch.
    pub(crate) fn model(&self) -> &StarterBackend {
        &self.backend
    }

    async fn fetch_and_use(self, name: String) -> Result<(), FetchError> {
        let fetched = self.backend.fetch(&name).await;
        self.fetching.lock().remove(&name);
        match &fetched {
            Ok(_) => {
                info!(model = name, "the model is here");
                if let Err(error) = self.backend.use_model(&name) {
                    warn!(%error, "the fetched model cannot be used");
                }
            }
            Err(error) => warn!(%error, "a model could not be fetched"),
        }
        fetched.map(|_| ())
    }
}

#[async_trait]
impl ModelFetcher for Starter {
    fn fetchable(&self) -> Vec<FetchableModel> {
        self.backend.fetchable()
    }

    fn first_model(&self) -> Option<String> {
        let named = self.named.as_ref()?;
        self.backend
            .fetchable()
            .into_iter()
            .find(|model| model.name == *named && !model.present)
            .map(|model| model.name)
    }

    async fn fetch(&self, name: &str) -> Result<(), NaviError> {
        if !self.fetching.lock().insert(name.to_owned()) {
            return Ok(());
        }
        let fetch = tokio::spawn(self.clone().fetch_and_use(name.to_owned()));
        match tokio::time::timeout(EARLY_FAILURE, fetch).await {
            Ok(Ok(Err(error))) => {
                let code = match &error {
                    FetchError::UnknownModel { .. } => ErrorCode::ModelUnknown,
                    FetchError::NoDisk { .. }
                    | FetchError::NoMemory { .. }
                    | FetchError::Directory { .. }
                    | FetchError::NoSource { .. } => ErrorCode::BackendUnavailable,
                };
                Err(NaviError::new(code, error.to_string()))
            }
            // It goes on, or is done; how it goes is in the status.
            Err(_) | Ok(Ok(Ok(())) | Err(_)) => Ok(()),
        }
    }
}
