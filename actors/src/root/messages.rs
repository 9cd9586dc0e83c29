//! What the root is asked and told.

use std::sync::Arc;
use std::time::Duration;

use actix::{Addr, Handler, Message};
use tokio_util::sync::CancellationToken;

use crate::domain::hangs::ThreadId;
use crate::domain::session::command::Leaving;
use crate::domain::sharing::{By, Reach};
use crate::llm::Backend;
use crate::protocol::error::NaviError;
use crate::protocol::ids::{SessionId, UserId};
use crate::session::SessionActor;
use crate::supervision::Ending;

/// Finds a session for somebody who reaches so far, and starts its actor where none lives. Whoever
/// asks for a session says by one of these what they need.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Result<LiveSession, NaviError>")]
pub struct OpenSession {
    pub by: By,
    pub session: SessionId,
    pub needs: Reach,
}

impl OpenSession {
    /// For what is its owner's alone.
    #[must_use]
    pub fn as_owner(user: UserId, session: SessionId) -> Self {
        Self::needing(Reach::Owns, user.into(), session)
    }

    /// For what everybody does who takes part.
    #[must_use]
    pub fn as_participant(user: UserId, session: SessionId) -> Self {
        Self::needing(Reach::TakesPart, user.into(), session)
    }

    /// For what whoever looks at it sees.
    #[must_use]
    pub fn as_onlooker(by: impl Into<By>, session: SessionId) -> Self {
        Self::needing(Reach::Looks, by.into(), session)
    }

    fn needing(needs: Reach, by: By, session: SessionId) -> Self {
        Self { by, session, needs }
    }
}

/// Where a session is.
#[derive(Clone, Debug)]
pub struct LiveSession {
    pub addr: Addr<SessionActor>,
    /// Cancelled when the root gives this actor up: it hangs, and will answer nobody.
    pub given_up: CancellationToken,
}

impl LiveSession {
    /// Asks it. None where it went down, or hangs.
    pub(crate) async fn send<M>(&self, message: M) -> Option<M::Result>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        SessionActor: Handler<M>,
    {
        let answer = self.given_up.run_until_cancelled(self.addr.send(message));
        answer.await?.ok()
    }
}

/// The arbiter of this thread hangs, for so long already: its sessions are to go on elsewhere.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct ReplaceArbiter {
    pub id: ThreadId,
    pub silent: Duration,
}

/// Puts a backend in the place of that of its kind.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct ReplaceBackend(pub Arc<dyn Backend>);

/// A session's actor went.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct SessionEnded {
    pub(super) session: SessionId,
    /// Which of its actors.
    pub(super) start: u64,
    pub(super) ending: Ending,
}

/// Closes every session. Answered when all are closed.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct CloseSessions(pub Leaving);

/// Ends the root itself, after its sessions.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct StopRoot;
