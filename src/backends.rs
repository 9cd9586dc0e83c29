//! The backends that the settings ask for, in order of preference.

use std::sync::Arc;

use anyhow::Context as _;
use navi_actors::engine::ModelFetcher;
use navi_actors::llm::Backend;
use navi_actors::llm::ollama::{OllamaBackend, OllamaConfig};
use navi_actors::llm::openai::{FoundOpenAi, OpenAiBackend, OpenAiConfig};

use crate::settings::{BackendChoice, OpenaiSettings, Settings};
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
/// An address or a key that no client can be made with.
pub fn build(settings: &Settings) -> anyhow::Result<Backends> {
    let model = &settings.model;
    let wants = |choice| model.backend == BackendChoice::Auto || model.backend == choice;
    let mut all: Vec<Arc<dyn Backend>> = Vec::new();
    let mut ollama = None;
    if wants(BackendChoice::Ollama) {
        let config = OllamaConfig::new(&model.ollama_host, &model.ollama_model);
        let backend = Arc::new(OllamaBackend::new(config).context("OLLAMA_HOST")?);
        all.push(Arc::<OllamaBackend>::clone(&backend));
        ollama = Some(backend);
    }
    match &model.openai {
        Some(openai) if wants(BackendChoice::Openai) => all.push(Arc::new(
            OpenAiBackend::new(openai_config(openai)).context("OPENAI_BASE_URL")?,
        )),
        None if model.backend == BackendChoice::Auto => all.push(Arc::new(FoundOpenAi::new()?)),
        _ => {}
    }
    let mut fetcher: Option<Arc<dyn ModelFetcher>> = None;
    if wants(BackendChoice::Starter)
        && let Some(starter) = starter::build(settings)?
    {
        all.push(starter.backend());
        fetcher = Some(Arc::new(starter));
    }
    Ok(Backends {
        all,
        fetcher,
        ollama,
    })
}

fn openai_config(settings: &OpenaiSettings) -> OpenAiConfig {
    OpenAiConfig {
        base_url: settings.base_url.clone(),
        api_key: settings.api_key.as_ref().map(|key| key.reveal().to_owned()),
        default_model: settings.default_model.clone(),
    }
}
