//! [`SystemRoot`]: the directory of live sessions.
//!
//! Started with the service, stopped by its shutdown. It owns where each live session is,
//! the arbiters that they live on, and the watchdog. It must not know what a session does.
//! When it dies, the process exits: nothing could be found any more.
//!
//! A session that hangs with its arbiter cannot be asked to go. It is given up: the store is
//! told of a new epoch, which keeps whatever it may still want to write out, its token ends
//! what works for it, and another actor is started from the store.

mod directory;
mod messages;

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext, ActorFutureExt, Arbiter, AsyncContext, Context, Handler,
    ResponseActFuture, ResponseFuture, WrapFuture,
};
use futures_util::future::join_all;
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use self::directory::Directory;
use self::directory::Live;
use self::messages::SessionEnded;
pub use self::messages::{
    CloseSessions, LiveSession, OpenSession, ReplaceArbiter, ReplaceBackend, StopRoot,
};
use crate::domain::hangs::{Role, ThreadId};
use crate::domain::session::command::Command;
use crate::domain::session::stored::LoadedSession;
use crate::domain::sharing::By;
use crate::metrics;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::SessionId;
use crate::protocol::phrase::{Phrase, PhraseCode};
use crate::services::{Services, now};
use crate::session::SessionActor;
use crate::session::messages::Ask;
use crate::store::{StoreError, answered};
use crate::supervision::{Ending, Guard};
use crate::watchdog::{Asked, Sleeping, Watchdog, millis};

/// The pause before a session that died is read again doubles with each death within the
/// window. It is never given up: a message that waits in it was acknowledged.
const DEATH_WINDOW: Duration = Duration::from_secs(60);
const REVIVE_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_REVIVE_PAUSE: Duration = Duration::from_secs(10);

/// The least number of arbiters that sessions are spread over.
const LEAST_ARBITERS: usize = 4;

/// A session is not waited for any longer than this when it is read.
const TAKE_LIMIT: Duration = Duration::from_secs(30);

/// An arbiter of sessions, as the watchdog knows it.
#[derive(Debug)]
struct SessionArbiter {
    thread: ThreadId,
    arbiter: Arbiter,
}

/// See the module.
pub struct SystemRoot {
    services: Arc<Services>,
    runtime: Arc<Runtime>,
    arbiters: Vec<SessionArbiter>,
    watchdog: Watchdog,
    /// The watchdog until it is started.
    sleeping: Option<Sleeping>,
    live: Directory,
    starts: u64,
    /// The sessions that are being read, and who waits for the end of that.
    reading: HashMap<SessionId, Vec<oneshot::Sender<()>>>,
    /// Who waits to hear how an actor ended that is gone already.
    ending: HashMap<SessionId, Vec<oneshot::Sender<()>>>,
    /// Sessions of which something may still write that is not theirs any more, or of which tabs
    /// have what is not stored: their epoch moves on when they are read.
    fenced_off: HashSet<SessionId>,
    deaths: Vec<(SessionId, Instant)>,
    /// What hung and was mended, for the page.
    mended: watch::Sender<Option<Phrase>>,
    hangs: u32,
    closing: bool,
    guard: Guard,
}

impl std::fmt::Debug for SystemRoot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SystemRoot")
            .field("live", &self.live.read().len())
            .field("closing", &self.closing)
            .finish_non_exhaustive()
    }
}

impl SystemRoot {
    /// A root whose sessions live on as many arbiters of this runtime as there are
    /// processors. What hung and was mended is told to `mended`.
    #[must_use]
    pub fn new(
        services: Arc<Services>,
        runtime: Arc<Runtime>,
        (watchdog, sleeping): (Watchdog, Sleeping),
        mended: watch::Sender<Option<Phrase>>,
        guard: Guard,
    ) -> Self {
        Self {
            services,
            runtime,
            arbiters: Vec::new(),
            watchdog,
            sleeping: Some(sleeping),
            live: Directory::default(),
            starts: 0,
            reading: HashMap::new(),
            ending: HashMap::new(),
            fenced_off: HashSet::new(),
            deaths: Vec::new(),
            mended,
            hangs: 0,
            closing: false,
            guard,
        }
    }

    /// Where its sessions are.
    pub(crate) fn live(&self) -> Directory {
        self.live.clone()
    }

    fn new_arbiter(&self) -> SessionArbiter {
        let runtime = Arc::clone(&self.runtime);
        let arbiter = Arbiter::with_tokio_rt(move || runtime);
        let asked = Asked::Arbiter(arbiter.handle());
        SessionArbiter {
            thread: self.watchdog.watch(Role::Sessions, asked),
            arbiter,
        }
    }

    fn find_live(&self, session: SessionId) -> Option<Result<LiveSession, NaviError>> {
        if self.closing {
            return Some(Err(NaviError::said(
                ErrorCode::ShuttingDown,
                PhraseCode::DownComeBack,
            )));
        }
        let all = self.live.read();
        let live = all.get(&session);
        let live = live.filter(|live| live.session.addr.connected())?;
        Some(Ok(live.session.clone()))
    }

    fn start(
        &mut self,
        ctx: &Context<Self>,
        session: SessionId,
        loaded: LoadedSession,
    ) -> Result<LiveSession, NaviError> {
        if let Some(found) = self.find_live(session) {
            return found;
        }
        let root = ctx.address();
        let user = loaded.summary.user_id;
        self.starts += 1;
        let start = self.starts;
        let guard = Guard::new(move |ending| {
            // Once an actor.
            root.do_send(SessionEnded {
                session,
                start,
                ending,
            });
        });
        let mut hasher = DefaultHasher::new();
        session.hash(&mut hasher);
        let at = hasher.finish() % self.arbiters.len().max(1) as u64;
        let arbiter = usize::try_from(at)
            .ok()
            .and_then(|at| self.arbiters.get(at));
        let Some(arbiter) = arbiter else {
            return Err(NaviError::new(
                ErrorCode::Internal,
                "there is no place for a session",
            ));
        };
        let services = Arc::clone(&self.services);
        let given_up = CancellationToken::new();
        let token = given_up.clone();
        let addr = SessionActor::start_in_arbiter(&arbiter.arbiter.handle(), move |_| {
            SessionActor::new(services, loaded, token, guard)
        });
        let found = LiveSession { addr, given_up };
        self.live.write().insert(
            session,
            Live {
                user,
                session: found.clone(),
                start,
                thread: arbiter.thread,
            },
        );
        Ok(found)
    }

    /// Whose a live session is, is known here; of everybody else the store says how they reach it.
    fn open(
        &mut self,
        open: OpenSession,
    ) -> ResponseActFuture<Self, Result<LiveSession, NaviError>> {
        let OpenSession { by, session, needs } = open;
        let owner = self.live.read().get(&session).map(|live| live.user);
        if owner.is_some_and(|owner| by == By::Person(owner)) {
            return self.bring(session);
        }
        let store = self.services.store.clone();
        let reached = async move { answered(TAKE_LIMIT, store.reach(by, session)).await };
        Box::pin(reached.into_actor(self).then(move |found, actor, _| {
            let found = found.map_err(|error| store_error(&error));
            match found.and_then(|found| found.reach.check(needs)) {
                Ok(()) => actor.bring(session),
                Err(error) => Box::pin(actix::fut::ready(Err(error))),
            }
        }))
    }

    /// A session as it lives, whoever wants it.
    fn bring(
        &mut self,
        session: SessionId,
    ) -> ResponseActFuture<Self, Result<LiveSession, NaviError>> {
        if let Some(found) = self.find_live(session) {
            return Box::pin(actix::fut::ready(found));
        }
        // One that is being read twice would fence itself off, and how the last actor ended
        // decides how it is read.
        let waiting = if self.live.read().contains_key(&session) {
            Some(self.ending.entry(session).or_default())
        } else {
            self.reading.get_mut(&session)
        };
        if let Some(waiting) = waiting {
            let (tx, rx) = oneshot::channel();
            waiting.push(tx);
            return Box::pin(
                rx.into_actor(self)
                    .then(move |_, actor, _| actor.bring(session)),
            );
        }
        self.reading.insert(session, Vec::new());
        let services = Arc::clone(&self.services);
        let fence_off = self.fenced_off.contains(&session);
        let take = async move {
            let (store, owner) = (&services.store, &services.owner);
            if fence_off {
                store.seize_session(session, owner).await
            } else {
                store.take_session(session, owner).await
            }
        };
        Box::pin(
            answered(TAKE_LIMIT, take)
                .into_actor(self)
                .map(move |loaded, actor, ctx| {
                    actor.reading.remove(&session);
                    match loaded {
                        Ok(loaded) => {
                            if fence_off {
                                actor.fenced_off.remove(&session);
                            }
                            actor.start(ctx, session, loaded)
                        }
                        Err(error) => Err(store_error(&error)),
                    }
                }),
        )
    }
}

impl SystemRoot {
    /// Reads a session again after a pause, and again where the store cannot give it yet.
    fn revive(&mut self, ctx: &mut Context<Self>, session: SessionId) {
        let now = Instant::now();
        self.deaths
            .retain(|(_, died)| now.duration_since(*died) < DEATH_WINDOW);
        let before = self
            .deaths
            .iter()
            .filter(|(died, _)| *died == session)
            .count();
        self.deaths.push((session, now));
        let doublings = u32::try_from(before).unwrap_or(u32::MAX);
        let pause = REVIVE_PAUSE
            .saturating_mul(2_u32.saturating_pow(doublings))
            .min(LONGEST_REVIVE_PAUSE);
        ctx.run_later(pause, move |actor, ctx| {
            let revive = actor
                .bring(session)
                .map(move |revived, actor, ctx| match revived {
                    Err(error) if error.code == ErrorCode::StoreUnavailable => {
                        tracing::error!(%session, %error, "session could not be read again yet");
                        actor.revive(ctx, session);
                    }
                    Err(error) => {
                        tracing::debug!(%session, %error, "session is not read again");
                    }
                    Ok(_) => {}
                });
            ctx.spawn(revive);
        });
    }
}

impl Actor for SystemRoot {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // With a single one, a session that hangs would keep every other one waiting.
        self.arbiters = (0..cores.max(LEAST_ARBITERS))
            .map(|_| self.new_arbiter())
            .collect();
        let services = Asked::Arbiter(Arbiter::current());
        self.watchdog.watch(Role::Service("services"), services);
        let runtime = Asked::Runtime(self.runtime.handle().clone());
        self.watchdog.watch(Role::Service("runtime"), runtime);
        if let Some(sleeping) = self.sleeping.take() {
            sleeping.wake(ctx.address());
        }
    }
}

impl Handler<OpenSession> for SystemRoot {
    type Result = ResponseActFuture<Self, Result<LiveSession, NaviError>>;

    fn handle(&mut self, open: OpenSession, _: &mut Self::Context) -> Self::Result {
        fail::fail_point!("root::open");
        self.open(open)
    }
}

impl Handler<SessionEnded> for SystemRoot {
    type Result = ();

    fn handle(&mut self, ended: SessionEnded, ctx: &mut Self::Context) {
        let mut all = self.live.write();
        let known = all.get(&ended.session);
        if known.is_none_or(|live| live.start != ended.start) {
            // One that was given up before.
            return;
        }
        all.remove(&ended.session);
        drop(all);
        self.ending.remove(&ended.session);
        if ended.ending == Ending::Clean || self.closing {
            return;
        }
        if ended.ending == Ending::Unsettled {
            self.fenced_off.insert(ended.session);
        }
        metrics::record(|on| on.service.restarted("session"));
        tracing::error!(session = %ended.session, "session died, reading it again");
        self.revive(ctx, ended.session);
    }
}

impl Handler<ReplaceArbiter> for SystemRoot {
    type Result = ();

    fn handle(&mut self, replace: ReplaceArbiter, ctx: &mut Self::Context) {
        let hangs = self.arbiters.iter().position(|it| it.thread == replace.id);
        let Some(at) = hangs.filter(|_| !self.closing) else {
            return;
        };
        let fresh = self.new_arbiter();
        let old = std::mem::replace(&mut self.arbiters[at], fresh);
        // Where the thread ever comes back, this ends all that lives on it.
        old.arbiter.stop();
        let theirs = self
            .live
            .write()
            .extract_if(|_, live| live.thread == replace.id)
            .collect::<Vec<_>>();
        tracing::error!(
            sessions = theirs.len(),
            silent_ms = millis(replace.silent),
            "a thread of sessions hangs, reading its sessions again on another one"
        );
        self.hangs += 1;
        metrics::record(|on| on.service.restarted("thread"));
        let code = match self.hangs {
            1 => PhraseCode::HungOnce,
            _ => PhraseCode::HungOften,
        };
        let params = [
            ("times", self.hangs.to_string()),
            ("at", now().format("%Y-%m-%d %H:%M:%S UTC").to_string()),
            ("seconds", replace.silent.as_secs().to_string()),
            ("n", theirs.len().to_string()),
        ];
        self.mended.send_replace(Some(Phrase::new(code, params)));
        for (session, live) in theirs {
            self.fenced_off.insert(session);
            self.ending.remove(&session);
            live.session.given_up.cancel();
            self.revive(ctx, session);
        }
    }
}

impl Handler<ReplaceBackend> for SystemRoot {
    type Result = ();

    /// Here, so that its guard lives where the others do.
    fn handle(&mut self, ReplaceBackend(backend): ReplaceBackend, _: &mut Self::Context) {
        let (kind, address) = (backend.kind().as_str(), backend.address());
        if !self.closing && self.services.models.replace(backend) {
            tracing::info!(kind, address, "another model server is asked from now on");
        }
    }
}

impl Handler<CloseSessions> for SystemRoot {
    type Result = ResponseFuture<()>;

    fn handle(
        &mut self,
        CloseSessions(leaving): CloseSessions,
        ctx: &mut Self::Context,
    ) -> Self::Result {
        self.closing = true;
        // Nobody tells how these ended any more: who waits for it is told that the service closes.
        self.ending.clear();
        let all: Vec<_> = self
            .live
            .write()
            .drain()
            .filter(|(_, live)| live.session.addr.connected())
            .map(|(_, live)| {
                live.session
                    .addr
                    .send(Ask::<()>::new(Command::Close(leaving)))
            })
            .collect();
        let root = ctx.address();
        Box::pin(async move {
            // One that died meanwhile has nothing to close.
            join_all(all).await;
            drop(root);
        })
    }
}

impl Handler<StopRoot> for SystemRoot {
    type Result = ();

    fn handle(&mut self, _: StopRoot, ctx: &mut Self::Context) {
        self.guard.mark_clean();
        self.watchdog.end();
        for arbiter in &self.arbiters {
            arbiter.arbiter.stop();
        }
        ctx.stop();
    }
}

/// A store's error in a client's terms. What stands behind it is logged.
#[must_use]
pub fn store_error(error: &StoreError) -> NaviError {
    match error {
        StoreError::SessionNotFound => not_found(),
        StoreError::Fenced => {
            NaviError::said(ErrorCode::StoreUnavailable, PhraseCode::SessionTaken)
        }
        StoreError::Unavailable(_) | StoreError::Unsettled(_) | StoreError::Corrupt(_) => {
            tracing::error!(%error, "store failed");
            NaviError::said(ErrorCode::StoreUnavailable, PhraseCode::StoreFails)
        }
    }
}

fn not_found() -> NaviError {
    NaviError::said(ErrorCode::SessionNotFound, PhraseCode::NoSuchSession)
}
