//! What a session's changes write, in no database's terms.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::change::Closed;
use crate::domain::consent::Asking;
use crate::domain::history::{Branch, ContextState};
use crate::domain::model_calls::ModelCall;
use crate::domain::run_loop::EndReason;
use crate::protocol::approval::{ConsentEntry, ConsentMode, ConsentRule, Resolution};
use crate::protocol::event::PartKind;
use crate::protocol::ids::{ApprovalId, CallId, MessageId, PartId, RunId, UserId};
use crate::protocol::message::Message;
use crate::protocol::people::PersonRef;
use crate::protocol::plan::Plan;
use crate::protocol::session::{QueuedMessage, RunState, Shared};
use crate::protocol::todo::{Scratchpad, TodoItem};

/// One write of a commit.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Appends to the event log. `seq` is the session's last one plus one.
    Event(EventRow),
    /// Appends streamed text to the log.
    Chunk(ChunkRow),
    /// Streamed text is over: the log refers to the message that holds it, and keeps in one
    /// piece what no message holds.
    Closed(Closed),
    /// Appends to the conversation.
    Message(Arc<Message>),
    RunStarted(RunRow),
    /// Which model a run got: known a moment after its start.
    RunModel {
        run_id: RunId,
        backend: String,
        model: String,
    },
    RunEnded {
        run_id: RunId,
        state: RunState,
        reason: Option<EndReason>,
        iterations: u32,
        prompt_tokens: u64,
        completion_tokens: u64,
        cached_tokens: u64,
        /// Calls that the model wrote as text and that were taken as calls all the same.
        leaked_calls: u32,
        at: DateTime<Utc>,
    },
    Enqueue(QueuedMessage),
    /// Takes a message from the queue (it became a message, or was withdrawn).
    Dequeue(MessageId),
    /// What it says then is its author's, who need not be who wrote it first.
    EditQueued {
        message_id: MessageId,
        content: String,
        author: Option<PersonRef>,
    },
    Title(String),
    Pinned(bool),
    Archived(bool),
    /// Whether a stop holds back what waits, until the next run begins.
    Held(bool),
    Tags(Vec<String>),
    Profile(String),
    ContextTokens(u32),
    Plan(Option<Plan>),
    /// How the context of a branch differs from its messages.
    Context {
        branch_id: u32,
        context: ContextState,
    },
    /// Starts a branch and shows it: the messages that follow stand on it, those before it
    /// in the same commit do not. Its id is one more than the session's highest.
    Fork(Branch),
    /// Shows another branch: likewise.
    ShowBranch(u32),
    Todo(Vec<TodoItem>),
    Scratchpad(Scratchpad),
    /// The model that the session's runs ask for; none: its profile's.
    Model(Option<String>),
    /// How much the session may do without asking.
    Mode(ConsentMode),
    /// Who takes part from here on; `since` where nobody else did before. Who they are stands in
    /// the store by itself.
    Shared {
        since: Option<DateTime<Utc>>,
        shared: Shared,
    },
    /// The session has read text from outside. The first time stays.
    Tainted(DateTime<Utc>),
    /// The loop of a run that waits for a person, so that it can go on after a restart.
    RunLoop {
        run_id: RunId,
        json: String,
    },
    /// A model call of a run.
    ModelCall {
        run_id: RunId,
        call: Box<ModelCall>,
    },
    ApprovalRequested(Asking),
    /// The first answer counts.
    ApprovalResolved {
        approval_id: ApprovalId,
        resolution: Resolution,
        at: DateTime<Utc>,
    },
    /// A rule that its user made: it takes the place of the one for the same calls, but for one
    /// that forbids them, which stands until it is taken back.
    ConsentRule(NewRule),
    /// What was allowed or denied, for the list.
    Consented(ConsentRow),
    /// Moves `last_active`.
    Active(DateTime<Utc>),
    /// Marks the session as deleted (or takes that back, with `None`).
    Deleted(Option<DateTime<Utc>>),
}

/// A rule of a user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRule {
    pub user_id: UserId,
    pub key: String,
    pub rule: ConsentRule,
}

/// A line of the list of what was allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentRow {
    pub user_id: UserId,
    /// Its `id` is given when it is written.
    pub entry: ConsentEntry,
}

/// A durable event as the log keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRow {
    pub seq: u64,
    pub run_id: Option<RunId>,
    /// The event's `type`.
    pub kind: String,
    /// The whole envelope, serialised: the bytes that every tab gets.
    pub json: String,
    pub at: DateTime<Utc>,
}

/// A piece of streamed text for the log, or pieces of a part that follow each other as they are
/// read. Told after event `after_seq` and before the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkRow {
    pub after_seq: u64,
    pub run_id: RunId,
    pub part_id: PartId,
    pub kind: PartKind,
    /// The assistant message whose text or reasoning this is, or whose call made the output.
    pub message_id: MessageId,
    /// Of the piece's start, in UTF-16 code units of the part.
    pub offset: u64,
    pub text: String,
    /// The run that started this one; subagents only.
    pub parent_run_id: Option<RunId>,
    /// The row of the log that takes it in; none where it is one of its own, and where it is read.
    pub goes_on: Option<OpenRow>,
}

/// A row of the log that takes in what follows of its part, as far as it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenRow {
    /// Of its text's start, in UTF-16 code units of the part.
    pub offset: u64,
    /// How many it has taken in.
    pub pieces: u32,
}

/// A run as it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    pub run_id: RunId,
    pub parent_run_id: Option<RunId>,
    /// The `spawn_agent` call that it answers; subagents only.
    pub call_id: Option<CallId>,
    /// The user message that it answers.
    pub message_id: MessageId,
    pub profile_id: String,
    pub backend: String,
    pub model: String,
    pub started_at: DateTime<Utc>,
}
