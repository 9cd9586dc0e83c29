//! What a session can be asked and told.

use std::marker::PhantomData;
use std::sync::Arc;

use actix::Message as ActixMessage;
use tokio::sync::{broadcast, oneshot};
use tokio_util::sync::CancellationToken;

use super::outline::Outline;
use super::replies::NoReply;
use super::sequencer::{Frame, Piece};
use crate::domain::permissions::Memory;
use crate::domain::session::ConsentState;
use crate::domain::session::command::{ChildStart, Command};
use crate::domain::session::stored::Span;
use crate::domain::session::transition::{Accepted, Branched, PlainAnswer, Refused, Reply};
use crate::protocol::chat::ChatRequest;
use crate::protocol::command::{PlainInput, UserInput};
use crate::protocol::context::ContextParts;
use crate::protocol::error::NaviError;
use crate::protocol::event::ResyncReason;
use crate::protocol::ids::{MessageId, RunId};
use crate::protocol::people::PersonRef;
use crate::protocol::plan::Plan;
use crate::protocol::todo::{Scratchpad, TodoItem};
use crate::supervision::Ending;

/// Has the session do something. Answered with a reply of this type.
#[derive(Debug)]
pub struct Ask<T> {
    pub command: Command,
    reply: PhantomData<fn() -> T>,
}

impl<T> Ask<T> {
    #[must_use]
    pub fn new(command: Command) -> Self {
        Self {
            command,
            reply: PhantomData,
        }
    }
}

impl<T: 'static> ActixMessage for Ask<T> {
    type Result = Result<T, NoReply>;
}

/// The same for one who does not wait for the reply here; perhaps for what it is sent to.
#[derive(Debug, ActixMessage)]
#[rtype(result = "()")]
pub struct Tell(
    pub Command,
    pub Option<oneshot::Sender<Result<Reply, Refused>>>,
);

/// The same of what nobody waits for: it is written with what comes within a moment.
#[derive(Debug, ActixMessage)]
#[rtype(result = "()")]
pub struct TellSoon(pub Command, pub oneshot::Sender<Result<Reply, Refused>>);

/// Sends a message (`input` is validated already). Answered when it is committed.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<Accepted, NoReply>")]
pub struct Send(pub UserInput);

/// The same, with the session's events from right before the message on.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<(Accepted, Attached), NoReply>")]
pub struct SendWatched(pub UserInput);

/// Sends a message and waits for the end of its run. Refused while another run goes.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<PlainAnswer, NoReply>")]
pub struct RunPlain(pub PlainInput);

/// The session as it stands.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Outline")]
pub struct GetSnapshot;

/// What the model would be sent now, for one who is shown the memory in it or is not.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<NextCall, NaviError>")]
pub struct GetContext(pub Memory);

/// A request that nobody has sent, and what fills it.
#[derive(Clone, Debug, PartialEq)]
pub struct NextCall {
    pub request: ChatRequest,
    pub parts: ContextParts,
}

/// Joins the session's events.
#[derive(Clone, Copy, Debug, Default, ActixMessage)]
#[rtype(result = "Attached")]
pub struct Attach {
    /// The last event that the tab has. Where absent, the tab gets the running run from its start.
    pub after: Option<u64>,
    /// The epoch that the tab knows; another one gets a snapshot.
    pub epoch: Option<i64>,
    /// The log does not go back to `after` any more: it gets a snapshot.
    pub is_expired: bool,
    /// What was told before the run that goes is not for it: with a cursor from before that, it
    /// gets a snapshot.
    pub without_past: bool,
}

/// What a tab gets: where it stands, and everything from here on. Both are of one moment:
/// nothing is told between them.
#[derive(Debug)]
pub struct Attached {
    pub start: Start,
    pub epoch: i64,
    /// Parts that are open, each from offset 0 up to what was told, in blocks.
    pub open: Vec<Arc<Piece>>,
    pub live: broadcast::Receiver<Arc<Frame>>,
    /// Cancelled when that session's actor hangs: nothing more comes of it.
    pub given_up: CancellationToken,
}

/// Where a tab starts.
#[derive(Debug)]
pub enum Start {
    /// The tab is to read the log after `after`, up to and with `upto`; and of the parts that
    /// go across `after` what stands before.
    Log {
        after: u64,
        upto: u64,
        across: Vec<Span>,
    },
    /// The tab's cursor is not one of this log: a `resync` first.
    Resync {
        reason: ResyncReason,
        outline: Box<Outline>,
    },
}

/// Starts a branch of the conversation: with another text in place of a message of the user's,
/// or with another answer to it. `content` is validated already. Refused while a run goes.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<Branched, NoReply>")]
pub struct StartBranch {
    /// A message of the user's that is shown.
    pub message_id: MessageId,
    /// None where it is to be answered anew.
    pub content: Option<String>,
    /// Who has it so, where there are accounts.
    pub author: Option<PersonRef>,
}

/// What the session keeps in typed form.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Notes")]
pub struct GetNotes;

/// What no compression may eat.
#[derive(Clone, Debug, actix::dev::MessageResponse)]
pub struct Notes {
    pub plan: Option<Plan>,
    pub todo: Vec<TodoItem>,
    pub scratchpad: Scratchpad,
}

/// A child run begins. Answered when that is committed and told.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<(), RunGone>")]
pub struct StartChild {
    pub start: ChildStart,
    /// Cancelled to stop it.
    pub stop: CancellationToken,
    /// See [`Ends::stopped`](crate::run::Ends).
    pub stopped: CancellationToken,
}

/// How the session stands to consent, before calls of a run begin.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<ConsentState, RunGone>")]
pub struct GetConsent(pub RunId);

/// Text that a run streams. Answered by what comes with it when it is told: one is on its way at a
/// time. Where the run is not the session's any more that goes unanswered.
#[derive(Debug, ActixMessage)]
#[rtype(result = "()")]
pub struct Stream(pub Vec<Piece>, pub oneshot::Sender<Result<Reply, Refused>>);

/// The run is not the session's any more; it is to end without a further word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run is not the session's any more")]
pub struct RunGone;

/// A run's actor went.
#[derive(Debug, ActixMessage)]
#[rtype(result = "()")]
pub struct RunActorEnded {
    pub run_id: RunId,
    pub ending: Ending,
}
