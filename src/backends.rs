//! The backends that the settings ask for, in order of preference.

use std::sync::Arc;

use anyhow::Context as _;
use navi_actors::engine::ModelFetcher;
use navi_actors::llm::Backend;
use navi_actors::llm::ollama::{OllamaBackend, OllamaConfig};
use navi_actors::llm::openai::{FoundOpenAi, OpenAiBackend, OpenAiConfig};

use crate::settings::{BackendChoice, OpenaiSettings, Settings};

/// What answers model calls.
#[derive(Debug)]
pub struct Backends {
    pub all: Vec<Arc<dyn Backend>>,
    pub(crate) fetcher: Option<Arc<dyn ModelFetcher>>,
}

/// Builds them; asks none of them anything.
///
/// # Errors
/// An address or a key that no client can be made with.
pub fn build(settings: &Settings) -> anyhow::Result<Backends> {
    let model = &settings.model;
    let wants = |choice| model.backend == BackendChoice::Auto || model.backend == choice;
    let mut all: Vec<Arc<dyn Backend>> = Vec::new();
    if wants(BackendChoice::Ollama) {
        let config = OllamaConfig::new(&model.ollama_host, &model.ollama_model);
        all.push(Arc::new(OllamaBackend::new(config).context("OLLAMA_HOST")?));
    }
    match &model.openai {
        Some(openai) if wants(BackendChoice::Openai) => all.push(Arc::new(
            OpenAiBackend::new(openai_config(openai)).context("OPENAI_BASE_URL")?,
        )),
        None if model.backend == BackendChoice::Auto => all.push(Arc::new(FoundOpenAi::new()?)),
        _ => {}
    }
    let mut fetcher = None;
    if wants(BackendChoice::Starter) {
        fetcher = starter(settings, &mut all)?;
    }
    Ok(Backends { all, fetcher })
}

fn openai_config(settings: &OpenaiSettings) -> OpenAiConfig {
    OpenAiConfig {
        base_url: settings.base_url.clone(),
        api_key: settings.api_key.as_ref().map(|key| key.reveal().to_owned()),
        default_model: settings.default_model.clone(),
    }
}

#[cfg(feature = "starter")]
fn starter(
    settings: &Settings,
    all: &mut Vec<Arc<dyn Backend>>,
) -> anyhow::Result<Option<Arc<dyn ModelFetcher>>> {
    let Some(starter) = crate::starter::build(settings)? else {
        return Ok(None);
    };
    all.push(starter.backend());
    Ok(Some(Arc::new(starter)))
}

#[cfg(not(feature = "starter"))]
fn starter(
    settings: &Settings,
    _: &mut Vec<Arc<dyn Backend>>,
) -> anyhow::Result<Option<Arc<dyn ModelFetcher>>> {
    match (settings.model.backend, &settings.model.starter) {
        (BackendChoice::Starter, Some(model)) => anyhow::bail!(
            "LLM_BACKEND asks for the starter model {model}, but this navi was built without it"
        ),
        _ => Ok(None),
    }
}
