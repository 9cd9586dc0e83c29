//! [`Engine`]: the one handle that doors hold. Everything that a door can ask stands here, and
//! what it can ask of sessions in `sessions` and `turns`.

mod backends;
mod changes;
mod consent;
mod conversation;
mod files;
mod imports;
mod limits;
mod measuring;
mod pictures;
mod powers;
mod programs;
mod pulls;
mod runs;
mod sessions;
mod shares;
mod start;
mod status;
mod turns;
mod workspace;

pub use self::consent::MAX_LOG_PAGE;
pub use self::limits::check_limits;
pub use self::programs::ProgramSession;
pub use self::sessions::TITLE_CHARS;
pub use self::start::EngineConfig;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actix::dev::ToEnvelope;
use actix::{Actor, Addr, Arbiter, ArbiterHandle, Handler, Message};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::domain::hangs::Role;
use crate::domain::session::command::{Command, Leaving, LeftRuns};
use crate::domain::session::transition::Reply;
use crate::extensions::Extensions;
use crate::hub::Hub;
use crate::journal::Flush;
use crate::memory::MemoryHandle;
use crate::onlookers::Onlookers;
use crate::profiles::ProfileSet;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::{SessionId, UserId};
use crate::protocol::people::PersonRef;
use crate::protocol::phrase::{Phrase, PhraseCode};
use crate::protocol::profile::Profile;
use crate::protocol::status::{Fence, FetchableModel};
use crate::protocol::tool::ListedTool;
use crate::pulls::Pulls;
use crate::root::{
    CloseSessions, Directory, LiveSession, OpenSession, StopRoot, SystemRoot, store_error,
};
use crate::services::{ResumePolicy, Services};
use crate::session::SessionActor;
use crate::session::messages::{Ask, Attach, Attached};
use crate::session::replies::NoReply;
use crate::store::{ANSWER_LIMIT, Store, StoreError, answered};
use crate::tools::workspace::FileAccess;
use crate::watchdog::{Asked, Watchdog};

/// What runs have of the time of a shutdown, to reach a safe point.
const GRACE_SHARE: f32 = 0.6;
/// What sessions have of it until they are closed. The journal has at least the rest.
const SESSIONS_SHARE: f32 = 0.85;

/// The place in a home where deleted sessions wait.
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

/// See the module. Cheap to clone; all clones are one service.
#[derive(Clone, Debug)]
pub struct Engine {
    services: Arc<Services>,
    root: Addr<SystemRoot>,
    live: Directory,
    /// Where the journal lives.
    journal_thread: ArbiterHandle,
    fetcher: Option<Arc<dyn ModelFetcher>>,
    pulls: Pulls,
    extensions: Extensions,
    warnings: Arc<[Phrase]>,
    watchdog: Watchdog,
    /// What hung and was mended.
    mended: watch::Receiver<Option<Phrase>>,
    file_access: Arc<FileAccess>,
    fence: Arc<Fence>,
    closed: CancellationToken,
    /// Told once when the service cannot go on.
    broken: watch::Receiver<bool>,
    runtime: Arc<tokio::runtime::Runtime>,
}

impl Engine {
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
            return Err(NaviError::said(
                ErrorCode::ModelUnknown,
                PhraseCode::NoStarter,
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
    /// written; feeds end. Takes no longer than `deadline`.
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
        let until = Instant::now() + deadline;
        let grace = deadline.mul_f32(GRACE_SHARE);
        let sessions = self.root.send(CloseSessions(Leaving { grace, runs }));
        if timeout(deadline.mul_f32(SESSIONS_SHARE), sessions)
            .await
            .is_err()
        {
            tracing::warn!("sessions did not close in time");
        }
        let flushed = self.services.journal.addr().send(Flush);
        match timeout_at(until, flushed).await {
            Ok(_) => drop(self.journal_thread.stop()),
            // It goes with the process, and the database may still take what it is writing.
            Err(_) => tracing::error!("the journal could not be flushed in time"),
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
        let work = async move { answered(ANSWER_LIMIT, ask(store)).await };
        // Whoever asked may have gone: then nobody needs the answer.
        let work = AbortOnDropHandle::new(self.runtime.spawn(work));
        match work.await {
            Ok(answer) => answer.map_err(|error| store_error(&error)),
            Err(error) => {
                tracing::error!(%error, "a question to the store went down");
                Err(NaviError::said(
                    ErrorCode::Internal,
                    PhraseCode::SomethingFailed,
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

    pub(crate) fn onlookers(&self) -> &Onlookers {
        &self.services.onlookers
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.services.hub
    }

    pub(crate) async fn join(
        &self,
        open: OpenSession,
        attach: Attach,
    ) -> Result<Attached, NaviError> {
        self.ask(open, || attach).await
    }

    /// Whose a session is, for somebody who reaches it so far. What is asked of the store or the
    /// disk alone is asked after this; everything else goes by [`Engine::ask`] and its like.
    async fn find(&self, open: OpenSession) -> Result<UserId, NaviError> {
        let OpenSession { by, session, needs } = open;
        let found = self.stored(async move |store| store.reach(by, session).await);
        let found = found.await?;
        found.reach.check(needs)?;
        Ok(found.owner)
    }

    async fn open(&self, open: OpenSession) -> Result<LiveSession, NaviError> {
        self.refuse_when_closed()?;
        if let Some(live) = self.live.of_owner(open) {
            return Ok(live);
        }
        self.root.send(open).await.map_err(|_| went_down())?
    }

    /// Sends a session something that may be sent again where the session went away under it.
    async fn ask<M>(
        &self,
        open: OpenSession,
        message: impl Fn() -> M,
    ) -> Result<M::Result, NaviError>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        SessionActor: Handler<M>,
        <SessionActor as Actor>::Context: ToEnvelope<SessionActor, M>,
    {
        let first = self.open(open).await?.send(message()).await;
        match first {
            Some(answer) => Ok(answer),
            None => {
                let again = self.open(open).await?.send(message()).await;
                again.ok_or_else(went_down)
            }
        }
    }

    /// Sends a session something that must not be done twice.
    async fn tell<M>(&self, open: OpenSession, message: M) -> Result<M::Result, NaviError>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        SessionActor: Handler<M>,
        <SessionActor as Actor>::Context: ToEnvelope<SessionActor, M>,
    {
        let told = self.open(open).await?.send(message).await;
        told.ok_or_else(went_down)
    }

    /// Has a session do something that must not be done twice.
    async fn request<T>(&self, open: OpenSession, command: Command) -> Result<T, NaviError>
    where
        T: TryFrom<Reply> + Send + 'static,
    {
        let told = self.tell(open, Ask::new(command)).await?;
        told.map_err(NoReply::into_error)
    }

    /// Who somebody is to others, where there are accounts.
    async fn author(&self, user: UserId) -> Result<Option<PersonRef>, NaviError> {
        if !self.services.people.are_several() {
            return Ok(None);
        }
        let found = self.stored(async move |store| store.user(user).await);
        Ok(found.await?.map(|user| PersonRef {
            id: user.id,
            name: user.name,
        }))
    }

    fn refuse_when_closed(&self) -> Result<(), NaviError> {
        if self.closed.is_cancelled() {
            return Err(NaviError::said(
                ErrorCode::ShuttingDown,
                PhraseCode::DownComeBack,
            ));
        }
        Ok(())
    }

    fn workspace_and_trash(&self, owner: UserId, session: SessionId) -> (PathBuf, PathBuf) {
        let homes = &self.services.homes;
        (homes.workspace(owner, session), homes.trash(owner, session))
    }
}

fn went_down() -> NaviError {
    // Nearly always over a commit that failed.
    NaviError::said(ErrorCode::StoreUnavailable, PhraseCode::SessionFell)
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
