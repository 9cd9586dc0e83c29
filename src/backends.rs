//! The backends that the settings ask for, in order of preference.

use std::sync::Arc;

use anyhow::Context as _;
use navi_actors::engine::ModelFetcher;
use navi_actors::llm::Backend;
use navi_actors::llm::ollama::{OllamaBackend, OllamaConfig};
use navi_actors::llm::openai::{FoundOpenAi, OpenAiBackend, OpenAiConfig};

use crate::settings::{BackendChoice, Settings};
use crate::starter;

/// What answers model calls.
#[derive(Debug)]
pub struct Backends {
    pub all: Vec<Arc<dyn Backend>>,
    pub(crate) fetcher: Option<Arc<dyn ModelFetcher>>,
    /// The one of `all` that pulls models.
    pub(crate) ollama: Option<Arc<OllamaBackend>>,
}

/// Builds them; asks none of them anything.
///
/// # Errors
/// An address or a key that no client can be made with, or no starter model of that name.
pub fn build(settings: &Settings) -> anyhow::Result<Backends> {
    let mut backends = of_servers(settings)?;
    if wants(settings, BackendChoice::Starter)
        && let Some(starter) = starter::build(settings)?
    {
        backends.all.push(starter.backend());
        backends.fetcher = Some(Arc::new(starter));
    }
    Ok(backends)
}

/// Those that are servers.
fn of_servers(settings: &Settings) -> anyhow::Result<Backends> {
    let model = &settings.model;
    let mut all: Vec<Arc<dyn Backend>> = Vec::new();
    let mut ollama = None;
    if wants(settings, BackendChoice::Ollama) {
        let config = OllamaConfig::new(&model.ollama_host, &model.ollama_model);
        let backend = Arc::new(OllamaBackend::new(config).context("OLLAMA_HOST")?);
        all.push(Arc::<OllamaBackend>::clone(&backend));
        ollama = Some(backend);
    }
    all.extend(openai(model.backend, model.openai.as_ref())?);
    Ok(Backends {
        all,
        fetcher: None,
        ollama,
    })
}

fn wants(settings: &Settings, choice: BackendChoice) -> bool {
    [BackendChoice::Auto, choice].contains(&settings.model.backend)
}

/// The OpenAI-compatible server that is asked, where one is.
///
/// # Errors
/// As [`build`].
pub(crate) fn openai(
    choice: BackendChoice,
    server: Option<&OpenAiConfig>,
) -> anyhow::Result<Option<Arc<dyn Backend>>> {
    Ok(match (choice, server) {
        (BackendChoice::Auto | BackendChoice::Openai, Some(server)) => Some(Arc::new(
            OpenAiBackend::new(server.clone()).context("OPENAI_BASE_URL")?,
        )),
        (BackendChoice::Auto, None) => Some(Arc::new(FoundOpenAi::new()?)),
        _ => None,
    })
}
