//! [`SystemRoot`]: the directory of live sessions.
//!
//! Started with the service, stopped by its shutdown. It owns where each live session is,
//! and the arbiters that they live on. It must not know what a session does. When it dies,
//! the process exits: nothing could be found any more.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, Arbiter, AsyncContext, Context, Handler, Message,
    ResponseActFuture, ResponseFuture, WrapFuture,
};
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::{SessionId, UserId};
use crate::services::Services;
use crate::session::SessionActor;
use crate::session::messages::Close;
use crate::store::{LoadedSession, StoreError};
use crate::supervision::{Ending, Guard};

/// A session that died more often than this within [`DEATH_WINDOW`] is left alone until
/// somebody asks for it.
const DEATHS: usize = 5;
const DEATH_WINDOW: Duration = Duration::from_secs(60);
const REVIVE_PAUSE: Duration = Duration::from_millis(100);

/// Finds a session, and starts its actor where none lives.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Result<Addr<SessionActor>, NaviError>")]
pub struct OpenSession {
    pub user: UserId,
    pub session: SessionId,
}

/// A session's actor went.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct SessionEnded {
    user: UserId,
    session: SessionId,
    ending: Ending,
}

/// Closes every session. Answered when all are closed.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct CloseSessions {
    /// How long runs may go on to their next safe point.
    pub grace: Duration,
}

#[derive(Debug)]
struct Live {
    user: UserId,
    addr: Addr<SessionActor>,
}

/// See the module.
pub struct SystemRoot {
    services: Arc<Services>,
    arbiters: Vec<Arbiter>,
    live: HashMap<SessionId, Live>,
    deaths: Vec<(SessionId, Instant)>,
    closing: bool,
    guard: Guard,
}

impl std::fmt::Debug for SystemRoot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SystemRoot")
            .field("live", &self.live.len())
            .field("closing", &self.closing)
            .finish_non_exhaustive()
    }
}

impl SystemRoot {
    /// A root whose sessions live on these arbiters.
    #[must_use]
    pub fn new(services: Arc<Services>, arbiters: Vec<Arbiter>, guard: Guard) -> Self {
        Self {
            services,
            arbiters,
            live: HashMap::new(),
            deaths: Vec::new(),
            closing: false,
            guard,
        }
    }

    fn find_live(&self, open: OpenSession) -> Option<Result<Addr<SessionActor>, NaviError>> {
        if self.closing {
            return Some(Err(NaviError::new(
                ErrorCode::ShuttingDown,
                "Navi is shutting down; come back when it is up again",
            )));
        }
        let live = self
            .live
            .get(&open.session)
            .filter(|live| live.addr.connected())?;
        Some(if live.user == open.user {
            Ok(live.addr.clone())
        } else {
            Err(not_found())
        })
    }

    fn start(
        &mut self,
        ctx: &Context<Self>,
        open: OpenSession,
        loaded: LoadedSession,
    ) -> Result<Addr<SessionActor>, NaviError> {
        if let Some(found) = self.find_live(open) {
            return found;
        }
        let root = ctx.address();
        let OpenSession { user, session } = open;
        let guard = Guard::new(move |ending| {
            // Once a session.
            root.do_send(SessionEnded {
                user,
                session,
                ending,
            });
        });
        let services = Arc::clone(&self.services);
        let mut hasher = DefaultHasher::new();
        session.hash(&mut hasher);
        let at = usize::try_from(hasher.finish() % self.arbiters.len().max(1) as u64).unwrap_or(0);
        let addr = match self.arbiters.get(at) {
            Some(arbiter) => SessionActor::start_in_arbiter(&arbiter.handle(), move |_| {
                SessionActor::new(services, loaded, guard)
            }),
            None => SessionActor::new(services, loaded, guard).start(),
        };
        self.live.insert(
            session,
            Live {
                user,
                addr: addr.clone(),
            },
        );
        Ok(addr)
    }

    fn open(
        &mut self,
        open: OpenSession,
    ) -> ResponseActFuture<Self, Result<Addr<SessionActor>, NaviError>> {
        if let Some(found) = self.find_live(open) {
            return Box::pin(actix::fut::ready(found));
        }
        let services = Arc::clone(&self.services);
        Box::pin(
            async move {
                services.store.find_session(open.user, open.session).await?;
                services
                    .store
                    .take_session(open.session, &services.owner)
                    .await
            }
            .into_actor(self)
            .map(move |loaded, actor, ctx| match loaded {
                Ok(loaded) => actor.start(ctx, open, loaded),
                Err(error) => Err(store_error(&error)),
            }),
        )
    }
}

impl Actor for SystemRoot {
    type Context = Context<Self>;
}

impl Handler<OpenSession> for SystemRoot {
    type Result = ResponseActFuture<Self, Result<Addr<SessionActor>, NaviError>>;

    fn handle(&mut self, open: OpenSession, _: &mut Self::Context) -> Self::Result {
        self.open(open)
    }
}

impl Handler<SessionEnded> for SystemRoot {
    type Result = ();

    fn handle(&mut self, ended: SessionEnded, ctx: &mut Self::Context) {
        // A successor may live already: someone asked before this message came.
        if self
            .live
            .get(&ended.session)
            .is_some_and(|live| !live.addr.connected())
        {
            self.live.remove(&ended.session);
        }
        if ended.ending == Ending::Clean || self.closing {
            return;
        }
        let now = Instant::now();
        self.deaths
            .retain(|(_, died)| now.duration_since(*died) < DEATH_WINDOW);
        self.deaths.push((ended.session, now));
        let recent = self
            .deaths
            .iter()
            .filter(|(session, _)| *session == ended.session)
            .count();
        if recent > DEATHS {
            tracing::error!(session = %ended.session, "session keeps dying, left until it is asked for");
            return;
        }
        tracing::error!(session = %ended.session, "session died, reading it again");
        let open = OpenSession {
            user: ended.user,
            session: ended.session,
        };
        let pause = REVIVE_PAUSE * u32::try_from(recent).unwrap_or(1);
        ctx.run_later(pause, move |actor, ctx| {
            let revive = actor.open(open).map(|revived, _, _| {
                if let Err(error) = revived {
                    tracing::error!(%error, "session could not be read again");
                }
            });
            ctx.spawn(revive);
        });
    }
}

impl Handler<CloseSessions> for SystemRoot {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, close: CloseSessions, ctx: &mut Self::Context) -> Self::Result {
        self.closing = true;
        let all: Vec<_> = self
            .live
            .drain()
            .filter(|(_, live)| live.addr.connected())
            .map(|(_, live)| live.addr.send(Close { grace: close.grace }))
            .collect();
        let root = ctx.address();
        Box::pin(async move {
            // One that died meanwhile has nothing to close.
            join_all(all).await;
            drop(root);
        })
    }
}

/// Ends the root itself, after its sessions.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct StopRoot;

impl Handler<StopRoot> for SystemRoot {
    type Result = ();

    fn handle(&mut self, _: StopRoot, ctx: &mut Self::Context) {
        self.guard.mark_clean();
        for arbiter in &self.arbiters {
            arbiter.stop();
        }
        ctx.stop();
    }
}

/// A store's error in a client's terms. What stands behind it is logged.
#[must_use]
pub fn store_error(error: &StoreError) -> NaviError {
    match error {
        StoreError::SessionNotFound => not_found(),
        StoreError::Fenced => NaviError::new(
            ErrorCode::StoreUnavailable,
            "another process has taken this session over; use that one",
        ),
        StoreError::Unavailable(_) | StoreError::Corrupt(_) => {
            tracing::error!(%error, "store failed");
            NaviError::new(
                ErrorCode::StoreUnavailable,
                "the database does not answer as it should; see Navi's log and `navi doctor`",
            )
        }
    }
}

fn not_found() -> NaviError {
    NaviError::new(
        ErrorCode::SessionNotFound,
        "there is no such session; it may have been deleted",
    )
}
