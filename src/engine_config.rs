//! What the engine is made of, as the settings want it: one place for the service and the eval.

use std::path::PathBuf;
use std::sync::Arc;

use navi_actors::engine::{EngineConfig, ModelFetcher};
use navi_actors::llm::Backend;
use navi_actors::llm::guard::StreamLimits;
use navi_actors::memory::MemoryTimes;
use navi_actors::profiles::ProfileSet;
use navi_actors::store::Store;
use navi_actors::tools::registry::Registry;
use tokio::runtime::Runtime;

use crate::settings::Settings;

/// What the settings do not say.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) store: Store,
    /// In order of preference.
    pub(crate) backends: Vec<Arc<dyn Backend>>,
    pub(crate) fetcher: Option<Arc<dyn ModelFetcher>>,
    pub(crate) profiles: ProfileSet,
    pub(crate) registry: Registry,
    pub(crate) sessions_dir: PathBuf,
    /// What was wrong with the settings and did not stop the start.
    pub(crate) warnings: Vec<String>,
    pub(crate) runtime: Arc<Runtime>,
}

/// An engine of these parts, with everything else as the settings have it.
pub(crate) fn engine_config(settings: &Settings, parts: Parts) -> EngineConfig {
    EngineConfig {
        store: parts.store,
        backends: parts.backends,
        fetcher: parts.fetcher,
        profiles: parts.profiles,
        default_profile: settings.default_profile.clone(),
        registry: Arc::new(parts.registry),
        sessions_dir: parts.sessions_dir,
        context_window: settings.model.context_window,
        think: settings.model.think,
        limits: StreamLimits {
            first_chunk: settings.model.first_chunk_timeout,
            chunk: settings.model.chunk_timeout,
        },
        runs: settings.runs,
        compression: settings.compression,
        memory: MemoryTimes::default(),
        warnings: parts.warnings,
        runtime: parts.runtime,
    }
}
