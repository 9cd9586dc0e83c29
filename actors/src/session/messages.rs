//! What a session can be asked and told.

use actix::Message as ActixMessage;
use serde::Serialize;
use tokio::sync::broadcast;

use super::sequencer::{Frame, Piece};
use crate::domain::run_loop::Record;
use crate::domain::scratchpad::ScratchpadCommand;
use crate::domain::todo::TodoCommand;
use crate::protocol::chat::ChatRequest;
use crate::protocol::command::UserInput;
use crate::protocol::error::NaviError;
use crate::protocol::event::ResyncReason;
use crate::protocol::ids::{MessageId, RunId};
use crate::protocol::session::{SessionSnapshot, SessionSummary};
use crate::protocol::todo::{Scratchpad, TodoItem};
use crate::store::{Store, StoreError};
use crate::supervision::Ending;
use crate::tools::ToolError;

/// A message that is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub message_id: MessageId,
    /// The run that answers it.
    pub run_id: RunId,
    /// It waits for the run before it.
    pub queued: bool,
    /// It had been accepted before, under the same `client_id`.
    pub duplicate: bool,
}

/// The answer of a plain run (SPEC section 3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct PlainAnswer {
    pub run_id: RunId,
    pub message_id: MessageId,
    pub content: String,
    /// False where a limit ended the run.
    pub completed: bool,
    pub context_tokens: u32,
}

/// Sends a message (`input` is validated already). Answered when it is committed.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<Accepted, NaviError>")]
pub struct Send(pub UserInput);

/// Sends a message and waits for the end of its run. Refused while another run goes.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<PlainAnswer, NaviError>")]
pub struct RunPlain(pub UserInput);

/// Goes on from an interrupted, limited or failed run.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<RunId, NaviError>")]
pub struct ContinueRun;

/// Asks the run to stop. Says whether there was one. Its end comes as an event.
#[derive(Debug, ActixMessage)]
#[rtype(result = "bool")]
pub struct StopRun;

/// Takes back a message that waits.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<(), NaviError>")]
pub struct Withdraw(pub MessageId);

/// Changes a message that waits. `content` is validated already.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<(), NaviError>")]
pub struct EditQueued {
    pub message_id: MessageId,
    pub content: String,
}

/// The session as it stands.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Outline")]
pub struct GetSnapshot;

/// A snapshot whose messages are still in the store: the first `message_count` of them.
#[derive(Debug)]
pub struct Outline {
    pub session: SessionSnapshot,
    pub message_count: usize,
}

impl Outline {
    /// Reads the messages in.
    ///
    /// # Errors
    /// As [`Store::messages`].
    pub async fn fill(mut self, store: &Store) -> Result<SessionSnapshot, StoreError> {
        let mut messages = store.messages(self.session.summary.id).await?;
        // What was committed since and not told yet is for the events to tell.
        messages.truncate(self.message_count);
        self.session.messages = messages;
        Ok(self.session)
    }
}

/// What the model would be sent now.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<ChatRequest, NaviError>")]
pub struct GetContext;

/// Changes the session's row.
#[derive(Clone, Debug, PartialEq, Eq, ActixMessage)]
#[rtype(result = "Result<SessionSummary, NaviError>")]
pub enum ChangeSession {
    Rename(String),
    Pin(bool),
    TogglePin,
    /// Ends its run, marks it deleted and ends the actor.
    Delete,
}

/// Joins the session's events.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Attached")]
pub struct Attach {
    /// The last event that the tab has. Where absent, the tab gets the running run from its start.
    pub after: Option<u64>,
    /// The epoch that the tab knows; another one gets a snapshot.
    pub epoch: Option<i64>,
}

/// What a tab gets: where it stands, and everything from here on. Both are of one moment:
/// nothing is told between them.
#[derive(Debug)]
pub struct Attached {
    pub start: Start,
    pub epoch: i64,
    /// Parts that are open, each from offset 0 up to what was told.
    pub open: Vec<Piece>,
    pub live: broadcast::Receiver<Frame>,
}

/// Where a tab starts.
#[derive(Debug)]
pub enum Start {
    /// The tab is to read the log after `after`, up to and with `upto`.
    Log { after: u64, upto: u64 },
    /// The tab's cursor is not one of this log: a `resync` first.
    Resync {
        reason: ResyncReason,
        outline: Box<Outline>,
    },
}

/// A run's records, committed together. Answered when they are.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<(), RunGone>")]
pub struct Commit {
    pub run_id: RunId,
    pub records: Vec<Record>,
}

/// Text that a run streams. Answered when it is told: one is on its way at a time.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<(), RunGone>")]
pub struct Stream(pub Vec<Piece>);

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

/// A tool's command to the todo list.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<Vec<TodoItem>, ToolError>")]
pub struct ChangeTodo {
    pub run_id: RunId,
    pub command: TodoCommand,
}

/// A tool's command to the notes.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<Scratchpad, ToolError>")]
pub struct ChangeScratchpad {
    pub run_id: RunId,
    pub command: ScratchpadCommand,
}

/// The service shuts down: no new run; the one that goes is interrupted after `grace`.
/// Answered when the session has nothing left to write.
#[derive(Debug, ActixMessage)]
#[rtype(result = "()")]
pub struct Close {
    pub grace: std::time::Duration,
}
