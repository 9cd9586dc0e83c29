//! An engine as the settings want it, in a temporary directory of its own: nothing of the
//! user's is read but settings, profiles and persona, and nothing is written there.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use chrono::{DateTime, TimeDelta, Utc};
use navi::engine_config::{Parts, engine_config, tool_config};
use navi::profiles::ProfileFiles;
use navi::settings::Settings;
use navi_actors::domain::session::write::{RunRow, Write};
use navi_actors::engine::Engine;
use navi_actors::homes::Homes;
use navi_actors::llm::Backend;
use navi_actors::protocol::ids::{MessageId, OwnerId, RunId, SessionId, UserId};
use navi_actors::protocol::message::Message;
use navi_actors::protocol::people::UserRole;
use navi_actors::protocol::session::RunState;
use navi_actors::protocol::status::{BackendState, BackendStatus};
use navi_actors::services::ConsentPolicy;
use navi_actors::store::{Commit, Location, NewSession, Store, StoreConfig};
use navi_actors::tools::registry::Registry;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tracing::warn;

use crate::tasks::Past;

/// How long a backend may load or fetch its model before the first task.
const LOADING: Duration = Duration::from_secs(300);
const LOADING_LOOK: Duration = Duration::from_secs(2);

/// How long runs have to end when the house closes.
const CLOSING: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug)]
pub(crate) struct House {
    pub(crate) engine: Engine,
    store: Store,
    homes: Homes,
    default_profile: String,
    dir: TempDir,
}

impl House {
    /// Starts an engine on these backends.
    ///
    /// # Errors
    /// No temporary directory, or settings that no engine starts with.
    pub(crate) async fn open(
        settings: &Settings,
        backends: Vec<Arc<dyn Backend>>,
        runtime: Arc<Runtime>,
    ) -> anyhow::Result<Self> {
        let dir = temporary_dir()?;
        let registry = Registry::builtin(&tool_config(settings));
        let tools = registry.all().map(|tool| tool.name.clone()).collect();
        let profiles = ProfileFiles::new(settings, tools).read();
        for warning in &profiles.warnings {
            warn!("{warning}");
        }
        let store = Store::open(&StoreConfig {
            location: Location::Sqlite(dir.path().join("navi.db")),
        })
        .await?;
        let sessions_dir = dir.path().join("session_files");
        std::fs::create_dir(&sessions_dir)?;
        let parts = Parts {
            store: store.clone(),
            backends,
            // Nothing is fetched for a measurement.
            ollama: None,
            fetcher: None,
            profiles,
            registry,
            // What is measured is Navi, not what its user added.
            extensions: None,
            sessions_dir: sessions_dir.clone(),
            warnings: Vec::new(),
            runtime,
        };
        let mut config = engine_config(settings, parts);
        // Nobody watches: what would be asked is denied before long.
        config.consent = ConsentPolicy {
            timeout: Duration::from_secs(1),
            ..ConsentPolicy::default()
        };
        let engine = Engine::start(config).await?;
        Ok(Self {
            engine,
            store,
            homes: Homes::from(sessions_dir),
            default_profile: settings.default_profile.clone(),
            dir,
        })
    }

    /// The backend that answers, once it does.
    ///
    /// # Errors
    /// None is ready, with what each of them says and what to do.
    pub(crate) async fn ready_backend(&self) -> anyhow::Result<BackendStatus> {
        let until = tokio::time::Instant::now() + LOADING;
        loop {
            self.engine.probe().await;
            let status = self.engine.status();
            let active = |backend: &BackendStatus| Some(backend.kind) == status.active;
            if let Some(active) = status.backends.iter().find(|backend| active(backend)) {
                return Ok(active.clone());
            }
            let is_coming = status.backends.iter().any(|backend| {
                matches!(
                    backend.state,
                    BackendState::Loading { .. } | BackendState::Fetching { .. }
                )
            });
            if !is_coming || tokio::time::Instant::now() >= until {
                bail!("no model answers: {}", troubles(&status.backends));
            }
            tokio::time::sleep(LOADING_LOOK).await;
        }
    }

    /// A user of their own for a task, so that no task knows another's facts.
    ///
    /// # Errors
    /// The database does not take it.
    pub(crate) async fn new_user(&self, past: &[Past]) -> anyhow::Result<UserId> {
        let user = self.store.create_user("eval", UserRole::User).await?.id;
        for past in past {
            self.remember(user, past)
                .await
                .context("an earlier conversation cannot be written")?;
        }
        Ok(user)
    }

    /// Where the files of a session of this user are.
    pub(crate) fn workspace(&self, user: UserId, session: SessionId) -> PathBuf {
        self.homes.workspace(user, session)
    }

    /// Writes a conversation as it would stand in the store some hours after it was had.
    async fn remember(&self, user: UserId, past: &Past) -> anyhow::Result<()> {
        let at = Utc::now() - TimeDelta::hours(i64::from(past.hours_ago));
        let session = NewSession {
            id: SessionId::new(),
            user_id: user,
            title: "Earlier".to_owned(),
            mode: navi_actors::protocol::approval::ConsentMode::default(),
            ephemeral: false,
            model: None,
            profile_id: self.default_profile.clone(),
            created_at: at,
        };
        let (id, owner) = (session.id, OwnerId::new());
        let loaded = self.store.create_session(session, &owner).await?;
        let commit = Commit {
            session_id: id,
            owner,
            epoch: loaded.epoch,
            writes: exchange(past, &loaded.summary.profile_id, at),
        };
        for fate in self.store.commit_group(vec![commit]).await {
            fate?;
        }
        Ok(())
    }

    /// Ends everything and removes the directory.
    pub(crate) async fn close(self) {
        self.engine.shutdown(CLOSING).await;
        if let Err(error) = self.store.close().await {
            warn!(%error, "the database could not be closed");
        }
        if let Err(error) = self.dir.close() {
            warn!(%error, "a temporary directory is left over");
        }
    }
}

fn exchange(past: &Past, profile_id: &str, at: DateTime<Utc>) -> Vec<Write> {
    let run_id = RunId::new();
    let asked = Message::user(MessageId::new(), run_id, past.user.clone(), at);
    let answered = Message {
        content: Some(past.assistant.clone()),
        ..Message::assistant(MessageId::new(), run_id, at)
    };
    vec![
        Write::RunStarted(RunRow {
            run_id,
            parent_run_id: None,
            call_id: None,
            message_id: asked.id,
            profile_id: profile_id.to_owned(),
            backend: String::new(),
            model: String::new(),
            started_at: at,
        }),
        Write::Message(Arc::new(asked)),
        Write::Message(Arc::new(answered)),
        Write::RunEnded {
            run_id,
            state: RunState::Completed,
            reason: None,
            iterations: 1,
            prompt_tokens: 0,
            leaked_calls: 0,
            completion_tokens: 0,
            cached_tokens: 0,
            at,
        },
        Write::Active(at),
    ]
}

fn troubles(backends: &[BackendStatus]) -> String {
    let troubles: Vec<String> = backends
        .iter()
        .map(|backend| {
            let name = backend.kind.as_str();
            match &backend.state {
                BackendState::Down {
                    problem, remedy, ..
                } => format!("{name}: {problem}; {remedy}"),
                BackendState::Loading { detail } => format!("{name}: {detail}"),
                BackendState::Fetching { model, .. } => {
                    format!("{name}: {model} is still being fetched")
                }
                BackendState::Unknown | BackendState::Ready => {
                    format!("{name}: it said nothing of itself")
                }
            }
        })
        .collect();
    if troubles.is_empty() {
        "none is set up; set LLM_BACKEND, or OPENAI_BASE_URL".to_owned()
    } else {
        troubles.join(". ")
    }
}

/// A directory that only its owner can enter.
fn temporary_dir() -> anyhow::Result<TempDir> {
    let dir = tempfile::Builder::new().prefix("navi-eval-").tempdir();
    dir.context("a temporary directory cannot be made; set TMPDIR to another place")
}
