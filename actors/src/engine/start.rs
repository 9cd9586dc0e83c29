//! What the service is made of, and how it starts.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use actix::{Actor, Arbiter};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Engine, ModelFetcher};
use crate::compression::CompressionActor;
use crate::domain::hangs::{Patience, Role};
use crate::domain::model_choice;
use crate::domain::slots::Parallel;
use crate::extensions::{ExtensionPlaces, Extensions};
use crate::files::janitor::JanitorActor;
use crate::files::{FileLimits, SessionFiles};
use crate::homes::{Homes, PersonMeans};
use crate::hub::Hub;
use crate::journal::JournalActor;
use crate::llm::Backend;
use crate::llm::guard::StreamLimits;
use crate::llm::ollama::OllamaBackend;
use crate::memory::{MemoryHandle, MemoryTimes, Reader};
use crate::metrics;
use crate::models::Models;
use crate::onlookers::Onlookers;
use crate::people::People;
use crate::prices::Prices;
use crate::profiles::{ProfileSet, Profiles};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::OwnerId;
use crate::protocol::limits::PersonLimits;
use crate::protocol::phrase::Phrase;
use crate::protocol::status::Fence;
use crate::pulls::Pulls;
use crate::root::{OpenSession, SystemRoot, store_error};
use crate::services::{CompressionPolicy, ConsentPolicy, ResumePolicy, RunLimits, Services};
use crate::session::log_moments::LogMoments;
use crate::session_turns::SessionTurns;
use crate::store::{LogLimits, Store, StoreError};
use crate::supervision::{Ending, Guard, RestartPolicy, keep_alive};
use crate::tools::lent::Lending;
use crate::tools::registry::Registry;
use crate::tools::sandbox::PersonCommands;
use crate::tools::toolbox::Toolbox;
use crate::tools::workspace::FileAccess;
use crate::watchdog::{Asked, Watchdog};

/// What the service is made of.
#[derive(Debug)]
pub struct EngineConfig {
    pub store: Store,
    /// In order of preference.
    pub backends: Vec<Arc<dyn Backend>>,
    /// How many requests each of them is sent at once.
    pub parallel: Parallel,
    pub fetcher: Option<Arc<dyn ModelFetcher>>,
    /// That of `backends` which is asked to pull models.
    pub ollama: Option<Arc<OllamaBackend>>,
    pub profiles: ProfileSet,
    pub default_profile: String,
    /// What each of several people may have; none: there is one user, who may use all.
    pub people: Option<PersonLimits>,
    /// What their commands have.
    pub person_commands: PersonCommands,
    /// The tools that come with Navi.
    pub registry: Arc<Registry>,
    /// Where tools from outside are; none where there are to be none.
    pub extensions: Option<ExtensionPlaces>,
    pub sessions_dir: PathBuf,
    /// What the filesystem tool may reach: undoing what it did may reach no more.
    pub file_access: Arc<FileAccess>,
    /// The window that backends are asked for, in tokens.
    pub context_window: u32,
    pub think: bool,
    pub limits: StreamLimits,
    pub runs: RunLimits,
    pub resume: ResumePolicy,
    pub files: FileLimits,
    /// How long what was told is kept.
    pub log: LogLimits,
    pub compression: CompressionPolicy,
    pub consent: ConsentPolicy,
    pub memory: MemoryTimes,
    /// Where a person may say what models cost; it need not exist.
    pub prices_file: PathBuf,
    /// When a thread that does not answer hangs; none where nothing is to be done about it.
    pub patience: Option<Patience>,
    /// What was wrong at start, beside the profiles, and did not stop it: for the page.
    pub warnings: Vec<Phrase>,
    /// What keeps tools in, for the page.
    pub fence: Fence,
    /// The process's one runtime: the sessions' arbiters run on it too.
    pub runtime: Arc<tokio::runtime::Runtime>,
}

impl Engine {
    /// Starts every service. To be called within the actix system.
    ///
    /// # Errors
    /// Where the default profile is missing or the store does not answer.
    pub async fn start(config: EngineConfig) -> Result<Self, NaviError> {
        let closed = CancellationToken::new();
        let (break_down, broken) = watch::channel(false);
        let break_down = Arc::new(break_down);
        let profiles = Profiles::new(config.profiles, config.default_profile)?;
        let store = config.store.clone();
        let give_up = Arc::clone(&break_down);
        let runtime = Arc::clone(&config.runtime);
        let journal_thread = Arbiter::with_tokio_rt(move || runtime);
        let thread = journal_thread.handle();
        let journal = keep_alive(
            "journal",
            RestartPolicy::default(),
            closed.clone(),
            move |guard| {
                let store = store.clone();
                JournalActor::start_in_arbiter(&thread, |_| JournalActor::new(store, guard))
            },
            move || {
                give_up.send_replace(true);
            },
        );
        let models = Models::start(config.backends, config.parallel, &closed);
        let compressor = keep_alive(
            "compression",
            RestartPolicy::default(),
            closed.clone(),
            {
                let (store, models) = (config.store.clone(), models.clone());
                let (limits, policy) = (config.limits, config.compression);
                let window = config.context_window;
                move |guard| {
                    let (store, models) = (store.clone(), models.clone());
                    CompressionActor::new(store, models, limits, policy, window, guard).start()
                }
            },
            // Without it contexts stay as they are.
            || {},
        );
        let memory = MemoryHandle::start(
            Reader {
                store: config.store.clone(),
                models: models.clone(),
                limits: config.limits,
                context_window: config.context_window,
                idle_after: config.memory.idle_after,
                stop: closed.clone(),
            },
            config.memory.rewrite_after,
            config.runtime.handle().clone(),
        );
        let homes = match config.people {
            None => Homes::from(config.sessions_dir),
            Some(_) => Homes::of_each(config.sessions_dir),
        };
        homes.settle(&config.store).await.map_err(|error| {
            tracing::error!(%error, "workspaces are not where they belong");
            NaviError::new(
                ErrorCode::Internal,
                format!("the workspaces of conversations cannot be brought to where they belong: {error}"),
            )
        })?;
        let files = SessionFiles::new(config.store.clone(), homes.clone(), config.files);
        let toolbox = Toolbox::new(Registry::clone(&config.registry));
        keep_alive(
            "janitor",
            RestartPolicy::default(),
            closed.clone(),
            {
                let (files, toolbox) = (files.clone(), toolbox.clone());
                let (started, log) = (SystemTime::now(), config.log);
                move |guard| {
                    JanitorActor::new(files.clone(), started, log, toolbox.clone(), guard).start()
                }
            },
            // Without it what is past its time stays, and no more.
            || {},
        );
        let extensions = Extensions::start(
            config.extensions,
            Registry::clone(&config.registry),
            toolbox.clone(),
            config.store.clone(),
            closed.clone(),
        );
        // The first run shall have the tools that are there.
        extensions.rescan().await;
        let people = match config.people {
            Some(limits) => People::several(config.store.clone(), limits)
                .await
                .map_err(|error| store_error(&error))?,
            None => People::one(),
        };
        let means = PersonMeans::new(
            config.store.clone(),
            homes.clone(),
            people.clone(),
            config.person_commands,
            closed.clone(),
        );
        let services = Arc::new(Services {
            files,
            compressor,
            runs: config.runs,
            resume: config.resume,
            compression: config.compression,
            consent: config.consent,
            store: config.store,
            journal,
            models,
            memory,
            toolbox,
            people,
            lending: Lending::default(),
            offers: Arc::default(),
            log_moments: LogMoments::default(),
            profiles: Arc::new(profiles),
            prices: Arc::new(Prices::new(config.prices_file)),
            hub: Hub::default(),
            onlookers: Onlookers::default(),
            sharing: SessionTurns::default(),
            owner: OwnerId::new(),
            homes,
            means,
            context_window: config.context_window,
            think: config.think,
            limits: config.limits,
            told_missing: Arc::default(),
        });
        let guard = Guard::new(move |ending| {
            if ending == Ending::Died {
                break_down.send_replace(true);
            }
        });
        let (watchdog, sleeping) = Watchdog::new(config.patience);
        let journal = Asked::Arbiter(journal_thread.handle());
        watchdog.watch(Role::Service("journal"), journal);
        let (mends, mended) = watch::channel(None);
        let for_root = (watchdog.clone(), sleeping);
        let runtime = Arc::clone(&config.runtime);
        let root = SystemRoot::new(Arc::clone(&services), runtime, for_root, mends, guard);
        let live = root.live();
        let root = root.start();
        let engine = Self {
            services,
            root,
            live,
            journal_thread: journal_thread.handle(),
            fetcher: config.fetcher,
            pulls: Pulls::new(config.ollama),
            extensions,
            warnings: config.warnings.into(),
            watchdog,
            mended,
            file_access: config.file_access,
            fence: Arc::new(config.fence),
            closed,
            broken,
            runtime: config.runtime,
        };
        engine.recover_sessions().await?;
        engine.spawn_until_closed(engine.clone().tell_status());
        engine.spawn_until_closed(engine.clone().tell_extensions());
        engine.spawn_until_closed(engine.clone().tell_hangs());
        if engine.services.people.are_several() {
            engine.spawn_until_closed(engine.clone().tend_onlookers());
        }
        engine.spawn_until_closed(engine.clone().fetch_first_model());
        if metrics::on().is_some() {
            engine.spawn_until_closed(engine.clone().probe_mailboxes());
        }
        Ok(engine)
    }

    /// Opens every session whose run a crash cut off, so that it gets its end, and every one with a
    /// message that waits to be answered.
    async fn recover_sessions(&self) -> Result<(), NaviError> {
        let store = &self.services.store;
        let failed = |error: StoreError| store_error(&error);
        let mut found = store.running_sessions().await.map_err(failed)?;
        found.extend(store.waiting_sessions().await.map_err(failed)?);
        for session in found {
            let user = match store.session_owner_user(session).await {
                // It went since it was found.
                Err(StoreError::SessionNotFound) => continue,
                user => user.map_err(failed)?,
            };
            if let Err(error) = self.open(OpenSession::as_owner(user, session)).await {
                tracing::error!(%session, %error, "session could not be recovered");
            }
        }
        Ok(())
    }

    fn spawn_until_closed(&self, task: impl Future<Output = ()> + 'static) {
        let closed = self.closed.clone();
        actix::spawn(async move {
            closed.run_until_cancelled(task).await;
        });
    }

    async fn fetch_first_model(self) {
        self.services.models.probe().await;
        let backends = self.services.models.statuses();
        if model_choice::active(&backends).is_some() {
            return;
        }
        let first = self
            .fetcher
            .as_ref()
            .and_then(|fetcher| fetcher.first_model());
        if let Some(name) = first
            && let Err(error) = self.fetch_model(&name).await
        {
            tracing::warn!(model = name, %error, "the starter model cannot be fetched");
        }
    }
}
