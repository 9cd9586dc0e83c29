//! [`Engine`]: the one handle that doors hold. Everything that a door can ask stands here, and
//! what it can ask of sessions in `sessions`.

mod changes;
mod consent;
mod files;
mod runs;
mod sessions;

pub use self::consent::ApprovalAnswer;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use actix::dev::ToEnvelope;
use actix::{Actor, Addr, Arbiter, Handler, Message};
use tokio::sync::watch;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::WatchStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::compression::CompressionActor;
use crate::domain::hangs::{Patience, Role};
use crate::domain::model_choice;
use crate::extensions::{ExtensionPlaces, Extensions};
use crate::files::janitor::JanitorActor;
use crate::files::{FileLimits, SessionFiles};
use crate::hub::{Hub, HubFrame};
use crate::journal::{Flush, JournalActor};
use crate::llm::Backend;
use crate::llm::guard::StreamLimits;
use crate::memory::{MemoryHandle, MemoryTimes, Reader};
use crate::models::Models;
use crate::profiles::{ProfileSet, Profiles};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::{OwnerId, SessionId, UserId};
use crate::protocol::profile::Profile;
use crate::protocol::status::{Fence, FetchableModel, SystemStatus};
use crate::protocol::tool::ListedTool;
use crate::root::{CloseSessions, LiveSession, OpenSession, StopRoot, SystemRoot, store_error};
use crate::services::{CompressionPolicy, ConsentPolicy, ResumePolicy, RunLimits, Services};
use crate::session::SessionActor;
use crate::session::messages::{Attach, Attached, Leaving, LeftRuns};
use crate::store::{Store, StoreError};
use crate::supervision::{Ending, Guard, RestartPolicy, keep_alive};
use crate::tools::filesystem::FileAccess;
use crate::tools::registry::Registry;
use crate::tools::toolbox::Toolbox;
use crate::watchdog::{Asked, Watchdog};

/// How often a page is told how far a model is fetched.
const FETCH_PROGRESS: Duration = Duration::from_millis(500);

/// A question to the store takes no longer than this.
const STORE_LIMIT: Duration = Duration::from_secs(10);

/// The place in the sessions' directory where deleted ones wait.
pub(crate) const TRASH: &str = ".trash";

/// Fetches models for a backend that keeps its own.
#[async_trait::async_trait]
pub trait ModelFetcher: Send + Sync + std::fmt::Debug {
    /// What can be fetched, and what is here.
    fn fetchable(&self) -> Vec<FetchableModel>;

    /// The model to fetch unasked, on a machine where nothing else can answer.
    fn first_model(&self) -> Option<String>;

    /// Starts fetching and uses the model from then on; how it goes is told by the backend's probe.
    async fn fetch(&self, name: &str) -> Result<(), NaviError>;
}

/// What the service is made of.
#[derive(Debug)]
pub struct EngineConfig {
    pub store: Store,
    /// In order of preference.
    pub backends: Vec<Arc<dyn Backend>>,
    pub fetcher: Option<Arc<dyn ModelFetcher>>,
    pub profiles: ProfileSet,
    pub default_profile: String,
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
    pub compression: CompressionPolicy,
    pub consent: ConsentPolicy,
    pub memory: MemoryTimes,
    /// When a thread that does not answer hangs; none where nothing is to be done about it.
    pub patience: Option<Patience>,
    /// What was wrong at start, beside the profiles, and did not stop it: for the page.
    pub warnings: Vec<String>,
    /// What keeps tools in, for the page.
    pub fence: Fence,
    /// The process's one runtime: the sessions' arbiters run on it too.
    pub runtime: Arc<tokio::runtime::Runtime>,
}

/// See the module. Cheap to clone; all clones are one service.
#[derive(Clone, Debug)]
pub struct Engine {
    services: Arc<Services>,
    root: Addr<SystemRoot>,
    fetcher: Option<Arc<dyn ModelFetcher>>,
    extensions: Extensions,
    warnings: Arc<[String]>,
    watchdog: Watchdog,
    /// What hung and was mended.
    mended: watch::Receiver<Option<String>>,
    file_access: Arc<FileAccess>,
    fence: Arc<Fence>,
    closed: CancellationToken,
    /// Told once when the service cannot go on.
    broken: watch::Receiver<bool>,
    runtime: Arc<tokio::runtime::Runtime>,
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
        let journal = keep_alive(
            "journal",
            RestartPolicy::default(),
            closed.clone(),
            move |guard| JournalActor::new(store.clone(), guard),
            move || {
                give_up.send_replace(true);
            },
        );
        let models = Models::start(config.backends, &closed);
        let compressor = keep_alive(
            "compression",
            RestartPolicy::default(),
            closed.clone(),
            {
                let (store, models) = (config.store.clone(), models.clone());
                let (limits, policy) = (config.limits, config.compression);
                let window = config.context_window;
                move |guard| {
                    CompressionActor::new(
                        store.clone(),
                        models.clone(),
                        limits,
                        policy,
                        window,
                        guard,
                    )
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
        let files = SessionFiles::new(
            config.store.clone(),
            config.sessions_dir.clone(),
            config.files,
        );
        keep_alive(
            "janitor",
            RestartPolicy::default(),
            closed.clone(),
            {
                let (store, files) = (config.store.clone(), files.clone());
                let sessions = config.sessions_dir.clone();
                let started = SystemTime::now();
                move |guard| {
                    JanitorActor::new(
                        store.clone(),
                        files.clone(),
                        sessions.clone(),
                        started,
                        guard,
                    )
                }
            },
            // Without it what is past its time stays, and no more.
            || {},
        );
        let toolbox = Toolbox::new(Registry::clone(&config.registry));
        let extensions = Extensions::start(
            config.extensions,
            Registry::clone(&config.registry),
            toolbox.clone(),
            config.store.clone(),
            closed.clone(),
        );
        // The first run shall have the tools that are there.
        extensions.rescan().await;
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
            profiles: Arc::new(profiles),
            hub: Hub::default(),
            owner: OwnerId::new(),
            sessions_dir: config.sessions_dir,
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
        let (mends, mended) = watch::channel(None);
        let for_root = (watchdog.clone(), sleeping);
        let runtime = Arc::clone(&config.runtime);
        let root = SystemRoot::new(Arc::clone(&services), runtime, for_root, mends, guard).start();
        let engine = Self {
            services,
            root,
            fetcher: config.fetcher,
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
        engine.spawn_until_closed(engine.clone().fetch_first_model());
        Ok(engine)
    }

    /// How the service is.
    #[must_use]
    pub fn status(&self) -> SystemStatus {
        let backends = self.services.models.statuses();
        SystemStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            active: model_choice::active(&backends).map(|backend| backend.kind),
            backends,
            warnings: [
                &*self.warnings,
                &self.services.profiles.warnings(),
                &self.extensions.view().problems,
                &self.hangs(),
            ]
            .concat(),
            fetchable: self
                .fetcher
                .as_ref()
                .map_or_else(Vec::new, |fetcher| fetcher.fetchable()),
            fence: self.fence.as_ref().clone(),
        }
    }

    /// Asks every backend how it is, now.
    pub async fn probe(&self) {
        self.services.models.probe().await;
    }

    /// Starts fetching a model; how it goes is in [`Engine::status`].
    ///
    /// # Errors
    /// `model_unknown`; no room for it.
    pub async fn fetch_model(&self, name: &str) -> Result<(), NaviError> {
        let Some(fetcher) = &self.fetcher else {
            return Err(NaviError::new(
                ErrorCode::ModelUnknown,
                "this Navi has no starter model; it was built without it, or STARTER_MODEL is off",
            ));
        };
        fetcher.fetch(name).await?;
        self.services.models.probe().await;
        Ok(())
    }

    /// The profiles by id.
    #[must_use]
    pub fn profiles(&self) -> Vec<Profile> {
        let all = self.services.profiles.all();
        all.iter().map(|profile| profile.as_ref().clone()).collect()
    }

    /// Puts other profiles and another persona in force from the next model call on, and tells
    /// the pages. The default profile stays where it is not among them.
    pub fn replace_profiles(&self, set: ProfileSet) {
        self.services.profiles.replace(set);
        self.tell_status_now();
    }

    /// Every tool.
    #[must_use]
    pub fn tools(&self) -> Vec<ListedTool> {
        self.services.toolbox.now().listed().collect()
    }

    /// What is added from outside: user tools, MCP servers, skills.
    #[must_use]
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// What is remembered of users.
    #[must_use]
    pub fn memory(&self) -> &MemoryHandle {
        &self.services.memory
    }

    /// Ends when the service closes.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Ends when the service cannot go on and the process must exit.
    pub async fn broken(&self) {
        let mut broken = self.broken.clone();
        // An error means that everything that could break is gone already.
        let _ = broken.wait_for(|broken| *broken).await;
    }

    /// Shuts down in order: no new runs; runs reach a safe point or are interrupted; all is
    /// written; feeds end. Takes no longer than `deadline`, and a moment.
    pub async fn shutdown(&self, deadline: Duration) {
        self.leave(deadline, LeftRuns::Interrupted).await;
    }

    /// As [`Engine::shutdown`], with what becomes of the runs that go. Where such runs resume
    /// by themselves they are parked in any case.
    pub async fn leave(&self, deadline: Duration, runs: LeftRuns) {
        let runs = match self.services.resume {
            ResumePolicy::Reads => LeftRuns::Parked,
            ResumePolicy::Ask => runs,
        };
        let grace = deadline.mul_f32(0.6);
        let sessions = self.root.send(CloseSessions(Leaving { grace, runs }));
        if tokio::time::timeout(deadline, sessions).await.is_err() {
            tracing::warn!("sessions did not close in time");
        }
        if tokio::time::timeout(deadline, self.services.journal.addr().send(Flush))
            .await
            .is_err()
        {
            tracing::error!("the journal could not be flushed in time");
        }
        self.closed.cancel();
        // Once a shutdown.
        self.root.do_send(StopRoot);
    }

    /// Asks the store on the service's own runtime: whoever asks is polled by an HTTP worker,
    /// and a pooled connection hangs with the runtime that opened it.
    ///
    /// # Errors
    /// What the store says; `store_unavailable` where it says nothing in time.
    pub(crate) async fn stored<T, F>(
        &self,
        ask: impl FnOnce(Store) -> F + Send + 'static,
    ) -> Result<T, NaviError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let store = self.services.store.clone();
        let work = async move { tokio::time::timeout(STORE_LIMIT, ask(store)).await };
        // Whoever asked may have gone: then nobody needs the answer.
        let work = AbortOnDropHandle::new(self.runtime.spawn(work));
        match work.await {
            Ok(Ok(answer)) => answer.map_err(|error| store_error(&error)),
            Ok(Err(_)) => Err(store_error(&StoreError::Unavailable(format!(
                "no answer within {} s",
                STORE_LIMIT.as_secs()
            )))),
            Err(error) => {
                tracing::error!(%error, "a question to the store went down");
                Err(NaviError::new(
                    ErrorCode::Internal,
                    "something failed here; Navi's log says what",
                ))
            }
        }
    }

    /// Watches the thread that this is called on, of which there is one of its kind: where it
    /// hangs for long, the process ends.
    pub fn watch_thread(&self, name: &'static str) {
        if let Some(arbiter) = Arbiter::try_current() {
            self.watchdog
                .watch(Role::Service(name), Asked::Arbiter(arbiter));
        }
    }

    fn hangs(&self) -> Vec<String> {
        let hanging = self.watchdog.hanging();
        let hanging = hanging.borrow();
        let hanging = hanging.iter().map(|name| {
            format!("a part of Navi ({name}) does not answer; if it does not come back, Navi ends, to be started again")
        });
        hanging.chain(self.mended.borrow().clone()).collect()
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.services.hub
    }

    pub(crate) async fn join(
        &self,
        user: UserId,
        session: SessionId,
        attach: Attach,
    ) -> Result<Attached, NaviError> {
        let Attach { after, epoch } = attach;
        self.ask(user, session, || Attach { after, epoch }).await
    }

    async fn open(&self, user: UserId, session: SessionId) -> Result<LiveSession, NaviError> {
        self.refuse_when_closed()?;
        self.root
            .send(OpenSession { user, session })
            .await
            .map_err(|_| went_down())?
    }

    /// Sends a session something that may be sent again where the session went away under it.
    async fn ask<M>(
        &self,
        user: UserId,
        session: SessionId,
        message: impl Fn() -> M,
    ) -> Result<M::Result, NaviError>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        SessionActor: Handler<M>,
        <SessionActor as Actor>::Context: ToEnvelope<SessionActor, M>,
    {
        let first = self.open(user, session).await?.send(message()).await;
        match first {
            Some(answer) => Ok(answer),
            None => {
                let again = self.open(user, session).await?.send(message()).await;
                again.ok_or_else(went_down)
            }
        }
    }

    /// Sends a session something that must not be done twice.
    async fn tell<M>(
        &self,
        user: UserId,
        session: SessionId,
        message: M,
    ) -> Result<M::Result, NaviError>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        SessionActor: Handler<M>,
        <SessionActor as Actor>::Context: ToEnvelope<SessionActor, M>,
    {
        let told = self.open(user, session).await?.send(message).await;
        told.ok_or_else(went_down)
    }

    fn refuse_when_closed(&self) -> Result<(), NaviError> {
        if self.closed.is_cancelled() {
            return Err(NaviError::new(
                ErrorCode::ShuttingDown,
                "Navi is shutting down; come back when it is up again",
            ));
        }
        Ok(())
    }

    /// Opens every session whose run a crash cut off, so that it gets its end.
    async fn recover_sessions(&self) -> Result<(), NaviError> {
        let cut_off = self
            .services
            .store
            .running_sessions()
            .await
            .map_err(|error| store_error(&error))?;
        for session in cut_off {
            let user = self
                .services
                .store
                .session_owner_user(session)
                .await
                .map_err(|error| store_error(&error))?;
            if let Err(error) = self.open(user, session).await {
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

    /// Tells pages when a backend's state changed, and how a fetch goes on.
    async fn tell_status(self) {
        let watches = self.services.models.watches();
        let mut changes =
            futures_util::stream::select_all(watches.into_iter().map(WatchStream::from_changes));
        let mut fetches = tokio::time::interval(FETCH_PROGRESS);
        let mut fetchable = Vec::new();
        loop {
            tokio::select! {
                _ = changes.next() => {}
                _ = fetches.tick() => {
                    let now = self.fetcher.as_ref().map_or_else(Vec::new, |f| f.fetchable());
                    if now == fetchable {
                        continue;
                    }
                    fetchable = now;
                }
            }
            self.tell_status_now();
        }
    }

    /// What is wrong with extensions stands in the status.
    async fn tell_extensions(self) {
        let mut changes = self.extensions.changes();
        while changes.changed().await.is_ok() {
            self.tell_status_now();
        }
    }

    /// What hangs stands in the status.
    async fn tell_hangs(self) {
        let (mut hanging, mut mended) = (self.watchdog.hanging(), self.mended.clone());
        loop {
            let changed = tokio::select! {
                changed = hanging.changed() => changed,
                changed = mended.changed() => changed,
            };
            if changed.is_err() {
                return;
            }
            self.tell_status_now();
        }
    }

    fn tell_status_now(&self) {
        let status = Box::new(self.status());
        self.services.hub.tell(None, HubFrame::Status { status });
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

    fn workspace_and_trash(&self, session: SessionId) -> (PathBuf, PathBuf) {
        let dir = &self.services.sessions_dir;
        let name = session.to_string();
        (dir.join(&name), dir.join(TRASH).join(name))
    }
}

fn went_down() -> NaviError {
    // Nearly always over a commit that failed.
    NaviError::new(
        ErrorCode::StoreUnavailable,
        "the session went down under this and is started again; look whether it was done, and try again",
    )
}

async fn move_dir(from: &Path, to: &Path) -> Result<(), NaviError> {
    let moved = async {
        if !tokio::fs::try_exists(from).await? {
            return Ok(());
        }
        if let Some(parent) = to.parent() {
            tokio::fs::create_dir_all(parent).await?;
        }
        tokio::fs::rename(from, to).await
    };
    moved.await.map_err(|error: std::io::Error| {
        tracing::error!(%error, "a session's files could not be moved");
        NaviError::new(
            ErrorCode::Internal,
            "the session's files could not be moved; see Navi's log",
        )
    })
}
