//! What a backend's guard is asked and told.

use std::sync::atomic::{AtomicU64, Ordering};

use actix::Message;
use tokio_util::sync::CancellationToken;

use super::{Lease, Priority};
use crate::domain::breaker::Health;
use crate::domain::first_chunk::{Prompt, Timing};
use crate::domain::lanes::QueueView;
use crate::protocol::error::NaviError;
use crate::protocol::ids::UserId;
use crate::protocol::phrase::Phrase;

/// One request for a slot, for as long as it waits and holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(pub(super) u64);

impl Ticket {
    /// A ticket that nobody else in this process has.
    #[must_use]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Default for Ticket {
    fn default() -> Self {
        Self::new()
    }
}

/// Asks for a slot. Answered when there is one; asking no longer gives it up.
#[derive(Debug, Message)]
#[rtype(result = "Result<Lease, NaviError>")]
pub struct Acquire {
    pub priority: Priority,
    /// Whose work it is; none where it is nobody's.
    pub person: Option<UserId>,
    pub ticket: Ticket,
    /// Ends what is done with the slot. From then on it should come back; where it does not, as
    /// from a thread that hangs, it is taken.
    pub stop: CancellationToken,
}

impl Acquire {
    /// For work that is nobody's, and that nobody stops.
    #[must_use]
    pub fn new(priority: Priority) -> Self {
        Self {
            priority,
            person: None,
            ticket: Ticket::new(),
            stop: CancellationToken::new(),
        }
    }
}

/// Asks how the queue looks from the place of one that waits. None where it does not wait.
#[derive(Debug, Message)]
#[rtype(result = "Option<QueueView>")]
pub struct GetQueue(pub Ticket);

/// Asks the backend now how it is, and answers when it has said so.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct ProbeNow;

/// Another backend is in this one's place: its guard ends.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct Retire;

/// A slot came back.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Release {
    pub(super) ticket: Ticket,
    pub(super) trial: bool,
}

/// A call began.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct CallBegan {
    pub(super) model: String,
    pub(super) prompt: Prompt,
    pub(super) ticket: Ticket,
    pub(super) streamed: bool,
}

/// The first chunk of a stream came.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct CallTalks(pub(super) Ticket);

/// A call came to its end, by itself.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct CallEnded {
    pub(super) ticket: Ticket,
    pub(super) model: String,
    pub(super) health: Health,
    /// The server has more to do than it can.
    pub(super) busy: bool,
    /// The error in words, where it was one.
    pub(super) problem: Option<Phrase>,
    pub(super) trial: bool,
    pub(super) timing: Option<Timing>,
}
