//! What the engine is made of, as the settings want it: one place for the service and the eval.

use std::path::PathBuf;
use std::sync::Arc;

use navi_actors::engine::{EngineConfig, ModelFetcher};
use navi_actors::extensions::ExtensionPlaces;
use navi_actors::llm::Backend;
use navi_actors::llm::guard::StreamLimits;
use navi_actors::llm::ollama::OllamaBackend;
use navi_actors::memory::MemoryTimes;
use navi_actors::profiles::ProfileSet;
use navi_actors::protocol::phrase::Phrase;
use navi_actors::store::Store;
use navi_actors::tools::registry::{Registry, ToolConfig};
use navi_actors::tools::sandbox::Sandbox;
use navi_actors::tools::ssh::SshConfig;
use navi_actors::tools::user::Runner;
use tokio::runtime::Runtime;

use crate::settings::Settings;

/// What the settings do not say.
#[derive(Debug)]
pub struct Parts {
    pub store: Store,
    /// In order of preference.
    pub backends: Vec<Arc<dyn Backend>>,
    pub fetcher: Option<Arc<dyn ModelFetcher>>,
    /// That of them which is asked to pull models.
    pub ollama: Option<Arc<OllamaBackend>>,
    pub profiles: ProfileSet,
    pub registry: Registry,
    pub sessions_dir: PathBuf,
    /// None where nothing from outside is to be had.
    pub extensions: Option<ExtensionPlaces>,
    /// What was wrong with the settings and did not stop the start.
    pub warnings: Vec<Phrase>,
    pub runtime: Arc<Runtime>,
}

/// What the settings say of tools.
pub fn tool_config(settings: &Settings) -> ToolConfig {
    ToolConfig {
        files: Arc::new(settings.file_access.clone()),
        terminal: settings.terminal.clone(),
        fetch_grants: settings.web.fetch_grants.clone(),
        search: settings.web.search.clone(),
        home_assistant: settings.web.home_assistant.clone(),
        ssh: settings.ssh.clone().map(|ssh| SshConfig {
            agent_socket: std::env::var_os("SSH_AUTH_SOCK").map(PathBuf::from),
            ..ssh
        }),
    }
}

/// Where tools from outside are, and what runs them.
pub(crate) fn extension_places(settings: &Settings) -> ExtensionPlaces {
    ExtensionPlaces {
        tools_dir: settings.extensions.tools_dir.clone(),
        skills_dir: settings.extensions.skills_dir.clone(),
        mcp_config: settings.extensions.mcp_config.clone(),
        copies_dir: settings.data_dir.join("tool_copies"),
        runner: Runner::new(Some(Sandbox::new(settings.terminal.sandbox.clone()))),
    }
}

/// How long a model may be silent.
pub(crate) fn stream_limits(settings: &Settings) -> StreamLimits {
    StreamLimits {
        first_chunk: settings.model.first_chunk_timeout,
        chunk: settings.model.chunk_timeout,
    }
}

/// An engine of these parts, with everything else as the settings have it.
pub fn engine_config(settings: &Settings, parts: Parts) -> EngineConfig {
    let sandbox = Sandbox::new(settings.terminal.sandbox.clone());
    let mut fence = settings.fence.clone();
    if let Err(why) = sandbox.available() {
        fence.open_for(why.clone().into());
    }
    EngineConfig {
        store: parts.store,
        backends: parts.backends,
        parallel: settings.model.parallel,
        fetcher: parts.fetcher,
        ollama: parts.ollama,
        profiles: parts.profiles,
        default_profile: settings.default_profile.clone(),
        people: settings.people.accounts.then_some(settings.people.limits),
        person_commands: sandbox.person_commands(),
        registry: Arc::new(parts.registry),
        extensions: parts.extensions,
        sessions_dir: parts.sessions_dir,
        file_access: Arc::new(settings.file_access.clone()),
        context_window: settings.model.context_window,
        think: settings.model.think,
        limits: stream_limits(settings),
        runs: settings.runs,
        resume: settings.resume,
        files: settings.files,
        log: settings.log,
        compression: settings.compression,
        consent: settings.consent,
        memory: MemoryTimes::default(),
        prices_file: settings.prices_file.clone(),
        patience: settings.patience,
        warnings: parts.warnings,
        fence,
        runtime: parts.runtime,
    }
}
