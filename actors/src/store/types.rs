//! What goes into the store and comes out of it, in no database's terms.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::domain::consent::Asking;
use crate::domain::history::{Branch, ContextState};
use crate::domain::model_calls::{ModelCall, Recipe};
use crate::protocol::approval::{ConsentEntry, ConsentMode, ConsentRule, Resolution};
use crate::protocol::event::PartKind;
use crate::protocol::ids::{
    ApprovalId, CallId, MessageId, OwnerId, PartId, RunId, SessionId, UserId,
};
use crate::protocol::inspect::{CallInfo, CallReply};
use crate::protocol::message::Message;
use crate::protocol::plan::Plan;
use crate::protocol::session::{QueuedMessage, RunState, SessionSummary};
use crate::protocol::todo::{Scratchpad, TodoItem};

/// One step of a session's history: written whole, or not at all.
#[derive(Clone, Debug, PartialEq)]
pub struct Commit {
    pub session_id: SessionId,
    /// Both must be the session's, or the commit is [`StoreError::Fenced`](super::StoreError::Fenced).
    pub owner: OwnerId,
    pub epoch: i64,
    pub writes: Vec<Write>,
}

/// One write of a commit.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Appends to the event log. `seq` is the session's last one plus one.
    Event(EventRow),
    /// Appends streamed text to the log.
    Chunk(ChunkRow),
    /// Appends to the conversation.
    Message(Message),
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
        reason: Option<String>,
        iterations: u32,
        prompt_tokens: u64,
        completion_tokens: u64,
        /// Calls that the model wrote as text and that were taken as calls all the same.
        leaked_calls: u32,
        at: DateTime<Utc>,
    },
    Enqueue(QueuedMessage),
    /// Takes a message from the queue (it became a message, or was withdrawn).
    Dequeue(MessageId),
    EditQueued {
        message_id: MessageId,
        content: String,
    },
    Title(String),
    Pinned(bool),
    Profile(String),
    ContextTokens(u32),
    Plan(Option<Plan>),
    /// How the context of the branch that is shown differs from its messages.
    Context(ContextState),
    /// Starts a branch and shows it: the messages that follow stand on it, those before it
    /// in the same commit do not. Its id is one more than the session's highest.
    Fork(Branch),
    /// Shows another branch: likewise.
    ShowBranch(u32),
    Todo(Vec<TodoItem>),
    Scratchpad(Scratchpad),
    /// How much the session may do without asking.
    Mode(ConsentMode),
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
    /// A rule that its user made: it takes the place of the one for the same calls.
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

/// A piece of streamed text as the log keeps it. Told after event `after_seq` and before
/// the next one.
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
}

/// A part that ended, where events were told between its beginning and its end. Who has
/// everything up to one of them, as a snapshot does, may lack what was streamed before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub part_id: PartId,
    /// The last event that was told before it began.
    pub after: u64,
    /// The last event that was told before it ended.
    pub until: u64,
}

/// How many parts are known to span events. A client reads a snapshot and joins within
/// moments, and few parts end in that time.
pub const MAX_SPANS: usize = 64;

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

/// A run as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRun {
    pub row: RunRow,
    pub state: RunState,
    pub reason: Option<String>,
    /// Its loop as it stood when a person was last asked.
    pub loop_state: Option<String>,
}

/// Everything that a session's actor starts from.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedSession {
    pub summary: SessionSummary,
    /// Those of the newest foreground run, in order, after the message that it answers
    /// where that is an older run's. The rest stays in the store.
    pub messages: Vec<Message>,
    /// How many messages there are on all branches: the next one's ordinal.
    pub message_count: u64,
    /// At least the root branch.
    pub branches: Vec<Branch>,
    /// The branch that is shown.
    pub branch_id: u32,
    pub plan: Option<Plan>,
    /// Child runs that the store still has as running.
    pub running_children: Vec<RunRow>,
    /// In order of arrival.
    pub queue: Vec<QueuedMessage>,
    pub todo: Vec<TodoItem>,
    pub scratchpad: Scratchpad,
    pub last_seq: u64,
    pub epoch: i64,
    /// The newest run, whatever its state.
    pub last_run: Option<StoredRun>,
    /// How many runs that answered the same message were interrupted.
    pub interruptions: u32,
    /// The branch that its messages stand on; the root where it has none.
    pub last_run_branch: u32,
    /// Of the runs that are still marked `running`: their streamed text that no message
    /// holds, joined per part, in order of arrival. `after_seq` is that of the part's last
    /// piece. A child stores no messages, so all of its text is here, with its
    /// `parent_run_id`.
    pub unfinished_parts: Vec<ChunkRow>,
    /// The last parts that the newest run and those under it streamed, oldest first. Where a
    /// part ended is not stored: `until` is the last event before which it can have.
    pub spans: Vec<Span>,
    /// Of the newest run, where it is still marked `running`: the calls whose start was told.
    pub started_calls: Vec<CallId>,
    /// Of `running_children`, the calls that were told to begin and not to end.
    pub child_calls: Vec<ChildCall>,
    /// None where it was never set.
    pub mode: Option<ConsentMode>,
    /// When the session first read text from outside.
    pub tainted_at: Option<DateTime<Utc>>,
    /// What nobody has answered yet, oldest first.
    pub approvals: Vec<Asking>,
    /// Where `approvals` has any: the first event of the newest run.
    pub run_first_seq: Option<u64>,
}

/// A call of a child run, as its events tell it.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildCall {
    pub run_id: RunId,
    pub call_id: CallId,
    pub tool: String,
    pub args: serde_json::Value,
}

/// A model call as the store has it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredCall {
    pub info: CallInfo,
    pub recipe: Recipe,
    /// The request's [`seal`](crate::domain::model_calls::seal).
    pub sha256: String,
    /// The reply; of what was said before a call failed or was cut off, what was kept.
    pub reply: CallReply,
}

/// A new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    pub id: SessionId,
    pub user_id: UserId,
    pub title: String,
    pub profile_id: String,
    pub mode: ConsentMode,
    pub created_at: DateTime<Utc>,
}

/// One item of the log, as a tab that catches up reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogItem {
    Event(EventRow),
    Chunk(ChunkRow),
}

/// Where a page of the log ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage {
    pub items: Vec<LogItem>,
    /// Where the next page starts; none where this was the last.
    pub next: Option<LogCursor>,
}

/// A place in the log: everything up to event `seq` was read, and of the chunks that
/// follow it those up to `chunk` (a row id; 0 for none).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogCursor {
    pub seq: u64,
    pub chunk: i64,
}

/// What part of a session's log to read: what stands after `from`, up to and including
/// event `to_seq`. Text that was streamed after that event is not part of it: its parts may
/// still be open, and then the session's actor has them whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRange {
    pub from: LogCursor,
    pub to_seq: u64,
}

/// How much one page of the log may hold. A page has at least one item, however large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimits {
    pub items: usize,
    pub bytes: usize,
}

/// What a user may do (SPEC section 14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserRole {
    Admin,
    User,
}

/// A person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    pub name: String,
    pub role: UserRole,
    pub created_at: DateTime<Utc>,
}

/// SHA-256 of an API token or of a cookie's secret. The secret itself is never stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretHash(pub [u8; 32]);

/// An API token as its owner sees it in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiToken {
    pub id: Uuid,
    pub user_id: UserId,
    pub name: String,
    pub created_at: DateTime<Utc>,
    /// To the minute.
    pub last_used_at: Option<DateTime<Utc>>,
}

/// A browser that may come in without a password until `expires_at`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebLogin {
    pub hash: SecretHash,
    pub user_id: UserId,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}
