//! [`Engine`]: the one handle that doors hold. Everything that a door can ask stands here.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actix::dev::ToEnvelope;
use actix::{Actor, Addr, Arbiter, Handler, Message};
use tokio::sync::watch;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::WatchStream;
use tokio_util::sync::CancellationToken;

use crate::domain::{input, model_choice};
use crate::feed::{self, Feed};
use crate::hub::{Hub, HubFrame};
use crate::journal::{Flush, JournalActor};
use crate::llm::Backend;
use crate::llm::guard::StreamLimits;
use crate::llm_actor::LlmActor;
use crate::models::{GuardedBackend, Models};
use crate::protocol::chat::ChatRequest;
use crate::protocol::command::UserInput;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::{MessageId, OwnerId, RunId, SessionId, UserId};
use crate::protocol::profile::Profile;
use crate::protocol::session::{SessionSnapshot, SessionSummary};
use crate::protocol::status::{FetchableModel, SystemStatus};
use crate::protocol::tool::ToolSpec;
use crate::root::{CloseSessions, OpenSession, StopRoot, SystemRoot, store_error};
use crate::services::now;
use crate::services::{Profiles, Services};
use crate::session::SessionActor;
use crate::session::messages::{
    Accepted, Attach, Attached, ChangeSession, ContinueRun, EditQueued, GetContext, GetSnapshot,
    PlainAnswer, RunPlain, Send as SendMessage, StopRun, Withdraw,
};
use crate::store::{NewSession, Store};
use crate::supervision::{Ending, Guard, RestartPolicy, Slot, keep_alive};
use crate::tools::registry::Registry;

/// How long a deleted session can be had back.
const UNDO: Duration = Duration::from_secs(600);

/// How often what is past its time is cleared away.
const CLEAR_EVERY: Duration = Duration::from_secs(60);

/// How often a page is told how far a model is fetched.
const FETCH_PROGRESS: Duration = Duration::from_millis(500);

/// The most characters of a title.
const TITLE_CHARS: usize = 200;

/// The place in the sessions' directory where deleted ones wait.
const TRASH: &str = ".trash";

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
    pub profiles: Vec<Profile>,
    pub default_profile: String,
    pub persona: String,
    pub registry: Arc<Registry>,
    pub sessions_dir: PathBuf,
    /// The window that backends are asked for, in tokens.
    pub context_window: u32,
    pub think: bool,
    pub limits: StreamLimits,
    /// What was wrong at start and did not stop it, for the page.
    pub warnings: Vec<String>,
    /// The process's one runtime: the sessions' arbiters run on it too.
    pub runtime: Arc<tokio::runtime::Runtime>,
}

/// See the module. Cheap to clone; all clones are one service.
#[derive(Clone, Debug)]
pub struct Engine {
    services: Arc<Services>,
    root: Addr<SystemRoot>,
    fetcher: Option<Arc<dyn ModelFetcher>>,
    warnings: Arc<[String]>,
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
        let profiles = Profiles {
            by_id: config
                .profiles
                .into_iter()
                .map(|profile| (profile.id.clone(), Arc::new(profile)))
                .collect(),
            default_id: config.default_profile,
        };
        profiles.find(&profiles.default_id)?;
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
        let models = Models::new(
            config
                .backends
                .into_iter()
                .map(|backend| guard_backend(backend, &closed))
                .collect(),
        );
        let services = Arc::new(Services {
            store: config.store,
            journal,
            models,
            registry: config.registry,
            profiles: Arc::new(profiles),
            persona: config.persona,
            hub: Hub::default(),
            owner: OwnerId::new(),
            sessions_dir: config.sessions_dir,
            context_window: config.context_window,
            think: config.think,
            limits: config.limits,
            told_missing: Arc::default(),
        });
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let arbiters = (0..cores)
            .map(|_| {
                let runtime = Arc::clone(&config.runtime);
                Arbiter::with_tokio_rt(move || runtime)
            })
            .collect();
        let guard = Guard::new(move |ending| {
            if ending == Ending::Died {
                break_down.send_replace(true);
            }
        });
        let root = SystemRoot::new(Arc::clone(&services), arbiters, guard).start();
        let engine = Self {
            services,
            root,
            fetcher: config.fetcher,
            warnings: config.warnings.into(),
            closed,
            broken,
            runtime: config.runtime,
        };
        engine.recover_sessions().await?;
        engine.spawn_until_closed(engine.clone().tell_status());
        engine.spawn_until_closed(engine.clone().clear_away());
        engine.spawn_until_closed(engine.clone().fetch_first_model());
        Ok(engine)
    }

    /// A new session. The default profile where none is named.
    ///
    /// # Errors
    /// `unknown_profile`, or what the store says.
    pub async fn create_session(
        &self,
        user: UserId,
        profile_id: Option<String>,
    ) -> Result<SessionSummary, NaviError> {
        self.refuse_when_closed()?;
        let profiles = &self.services.profiles;
        let profile = profiles.find(profile_id.as_ref().unwrap_or(&profiles.default_id))?;
        let session = NewSession {
            id: SessionId::new(),
            user_id: user,
            title: String::new(),
            profile_id: profile.id.clone(),
            created_at: now(),
        };
        let loaded = self
            .services
            .store
            .create_session(session, &self.services.owner)
            .await
            .map_err(|error| store_error(&error))?;
        self.services.hub.session_changed(loaded.summary.clone());
        Ok(loaded.summary)
    }

    /// The user's sessions: pinned first, then the latest activity.
    ///
    /// # Errors
    /// What the store says.
    pub async fn sessions(&self, user: UserId) -> Result<Vec<SessionSummary>, NaviError> {
        self.services
            .store
            .list_sessions(user)
            .await
            .map_err(|error| store_error(&error))
    }

    /// The session with its conversation.
    ///
    /// # Errors
    /// `session_not_found`; as for every call about a session, another user's is not found.
    pub async fn snapshot(
        &self,
        user: UserId,
        session: SessionId,
    ) -> Result<SessionSnapshot, NaviError> {
        let outline = self.ask(user, session, || GetSnapshot).await?;
        outline
            .fill(self.store())
            .await
            .map_err(|error| store_error(&error))
    }

    /// What the model would be sent now.
    ///
    /// # Errors
    /// `session_not_found`, `unknown_profile`.
    pub async fn context(
        &self,
        user: UserId,
        session: SessionId,
    ) -> Result<ChatRequest, NaviError> {
        self.ask(user, session, || GetContext).await?
    }

    /// Sends a message. Answered when it is committed; its run has begun or waits.
    ///
    /// # Errors
    /// What is wrong with the input; `queue_full`; what the store says. Nothing is stored then.
    pub async fn send(
        &self,
        user: UserId,
        session: SessionId,
        input: UserInput,
    ) -> Result<Accepted, NaviError> {
        let input = input::validate(input)?;
        self.tell(user, session, SendMessage(input)).await?
    }

    /// Sends a message and waits for the end of its run.
    ///
    /// # Errors
    /// As [`Engine::send`]; `session_busy` while another run goes; what made the run fail.
    pub async fn run_plain(
        &self,
        user: UserId,
        session: SessionId,
        input: UserInput,
    ) -> Result<PlainAnswer, NaviError> {
        let input = input::validate(input)?;
        self.tell(user, session, RunPlain(input)).await?
    }

    /// Asks the session's run to stop. Says whether there was one.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn stop(&self, user: UserId, session: SessionId) -> Result<bool, NaviError> {
        self.ask(user, session, || StopRun).await
    }

    /// Goes on from an interrupted, limited or failed run.
    ///
    /// # Errors
    /// `nothing_to_continue`.
    pub async fn continue_run(&self, user: UserId, session: SessionId) -> Result<RunId, NaviError> {
        self.tell(user, session, ContinueRun).await?
    }

    /// Takes back a message that waits.
    ///
    /// # Errors
    /// `message_not_found` where it does not wait (any more).
    pub async fn withdraw(
        &self,
        user: UserId,
        session: SessionId,
        message_id: MessageId,
    ) -> Result<(), NaviError> {
        self.tell(user, session, Withdraw(message_id)).await?
    }

    /// Changes a message that waits.
    ///
    /// # Errors
    /// What is wrong with the text; `message_not_found`.
    pub async fn edit_queued(
        &self,
        user: UserId,
        session: SessionId,
        message_id: MessageId,
        content: String,
    ) -> Result<(), NaviError> {
        let input = input::validate(UserInput {
            content,
            ..UserInput::default()
        })?;
        let edit = EditQueued {
            message_id,
            content: input.content,
        };
        self.tell(user, session, edit).await?
    }

    /// Gives the session another title.
    ///
    /// # Errors
    /// `invalid_field` where it is empty or over 200 characters.
    pub async fn rename(
        &self,
        user: UserId,
        session: SessionId,
        title: String,
    ) -> Result<SessionSummary, NaviError> {
        let title = title.trim().to_owned();
        let chars = title.chars().count();
        if chars == 0 || chars > TITLE_CHARS {
            return Err(NaviError::new(
                ErrorCode::InvalidField,
                format!("title must have 1 to {TITLE_CHARS} characters; this one has {chars}"),
            ));
        }
        self.tell(user, session, ChangeSession::Rename(title))
            .await?
    }

    /// Pins or unpins; without a wish, the other of what it is.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn pin(
        &self,
        user: UserId,
        session: SessionId,
        pinned: Option<bool>,
    ) -> Result<SessionSummary, NaviError> {
        let change = pinned.map_or(ChangeSession::TogglePin, ChangeSession::Pin);
        self.tell(user, session, change).await?
    }

    /// Deletes the session and its files. For ten minutes [`Engine::restore`] takes that back.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn delete(&self, user: UserId, session: SessionId) -> Result<(), NaviError> {
        self.tell(user, session, ChangeSession::Delete).await??;
        let (from, to) = self.workspace_and_trash(session);
        move_dir(&from, &to).await
    }

    /// Takes a deletion back.
    ///
    /// # Errors
    /// `session_not_found` where it was not deleted, or is gone for good.
    pub async fn restore(
        &self,
        user: UserId,
        session: SessionId,
    ) -> Result<SessionSummary, NaviError> {
        self.refuse_when_closed()?;
        let (to, from) = self.workspace_and_trash(session);
        let summary = self
            .services
            .store
            .restore(user, session)
            .await
            .map_err(|error| store_error(&error))?;
        move_dir(&from, &to).await?;
        self.services.hub.session_changed(summary.clone());
        Ok(summary)
    }

    /// Joins the session's events. `after` is the last event that the tab has; without it the
    /// tab gets the run that goes from its start. `epoch` is the one that the tab knows.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn attach(
        &self,
        user: UserId,
        session: SessionId,
        after: Option<u64>,
        epoch: Option<i64>,
    ) -> Result<Feed, NaviError> {
        let attached = self.join(user, session, Attach { after, epoch }).await?;
        feed::feed(self.clone(), user, session, attached)
            .await
            .map_err(|error| store_error(&error))
    }

    /// What a page that watches the session list is sent.
    #[must_use]
    pub fn watch(&self, user: UserId) -> Feed {
        feed::watch_feed(self.clone(), user)
    }

    /// How the service is.
    #[must_use]
    pub fn status(&self) -> SystemStatus {
        let backends = self.services.models.statuses();
        SystemStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            active: model_choice::active(&backends).map(|backend| backend.kind),
            backends,
            warnings: self.warnings.to_vec(),
            fetchable: self
                .fetcher
                .as_ref()
                .map_or_else(Vec::new, |fetcher| fetcher.fetchable()),
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
        self.services
            .profiles
            .by_id
            .values()
            .map(|profile| profile.as_ref().clone())
            .collect()
    }

    /// Every tool.
    #[must_use]
    pub fn tools(&self) -> Vec<ToolSpec> {
        self.services.registry.all().cloned().collect()
    }

    /// The store, for what is no business of a session (users, logins, tokens).
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.services.store
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
        let grace = deadline.mul_f32(0.6);
        let sessions = self.root.send(CloseSessions { grace });
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

    pub(crate) fn runtime(&self) -> &tokio::runtime::Runtime {
        &self.runtime
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

    async fn open(
        &self,
        user: UserId,
        session: SessionId,
    ) -> Result<Addr<SessionActor>, NaviError> {
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
            Ok(answer) => Ok(answer),
            Err(_) => self
                .open(user, session)
                .await?
                .send(message())
                .await
                .map_err(|_| went_down()),
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
        self.open(user, session)
            .await?
            .send(message)
            .await
            .map_err(|_| went_down())
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
            let status = Box::new(self.status());
            self.services.hub.tell(None, HubFrame::Status { status });
        }
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

    async fn clear_away(self) {
        let mut every = tokio::time::interval(CLEAR_EVERY);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            if let Err(error) = self.purge_deleted().await {
                tracing::warn!(%error, "deleted sessions could not be cleared away");
            }
        }
    }

    async fn purge_deleted(&self) -> Result<(), NaviError> {
        let store = &self.services.store;
        let before = now() - UNDO;
        let gone = store
            .deleted_before(before)
            .await
            .map_err(|error| store_error(&error))?;
        for session in gone {
            store
                .purge_session(session)
                .await
                .map_err(|error| store_error(&error))?;
            let (_, trash) = self.workspace_and_trash(session);
            remove_dir(&trash).await?;
        }
        store
            .purge_web_logins(now())
            .await
            .map_err(|error| store_error(&error))?;
        Ok(())
    }

    fn workspace_and_trash(&self, session: SessionId) -> (PathBuf, PathBuf) {
        let dir = &self.services.sessions_dir;
        let name = session.to_string();
        (dir.join(&name), dir.join(TRASH).join(name))
    }
}

fn guard_backend(backend: Arc<dyn Backend>, closed: &CancellationToken) -> GuardedBackend {
    let kind = backend.kind();
    let (tx, status) = watch::channel(LlmActor::unknown(backend.as_ref()));
    let guard: Slot<LlmActor> = keep_alive(
        kind.as_str(),
        RestartPolicy {
            // A backend's guard is worth starting for as long as the service lives.
            limit: u32::MAX,
            ..RestartPolicy::default()
        },
        closed.clone(),
        move |guard| LlmActor::new(Arc::clone(&backend), tx.clone(), guard),
        || {},
    );
    GuardedBackend {
        kind,
        guard,
        status,
    }
}

fn went_down() -> NaviError {
    NaviError::new(
        ErrorCode::Internal,
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

async fn remove_dir(dir: &Path) -> Result<(), NaviError> {
    match tokio::fs::remove_dir_all(dir).await {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::error!(%error, "a deleted session's files could not be removed");
            Err(NaviError::new(
                ErrorCode::Internal,
                "a deleted session's files could not be removed; see Navi's log",
            ))
        }
        _ => Ok(()),
    }
}
