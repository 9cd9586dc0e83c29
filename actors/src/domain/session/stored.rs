//! A session as it is read from the store.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::state::TokensUsed;
use super::write::{ChunkRow, RunRow};
use crate::domain::consent::Asking;
use crate::domain::history::Branch;
use crate::domain::run_loop::EndReason;
use crate::protocol::approval::ConsentMode;
use crate::protocol::ids::{CallId, MessageId, PartId, RunId};
use crate::protocol::message::Message;
use crate::protocol::plan::Plan;
use crate::protocol::session::{QueuedMessage, RunState, SessionSummary};
use crate::protocol::todo::{Scratchpad, TodoItem};

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

/// How many accepted `client_id`s a session remembers. The store knows the others.
pub const CLIENT_IDS: usize = 64;

/// What was accepted under a `client_id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedId {
    pub client_id: String,
    pub message_id: MessageId,
    pub run_id: RunId,
}

impl AcceptedId {
    /// None where the message came without one.
    #[must_use]
    pub fn of_message(message: &Message) -> Option<Self> {
        Some(Self {
            client_id: message.client_id.clone()?,
            message_id: message.id,
            run_id: message.run_id,
        })
    }

    /// The same of one that waits.
    #[must_use]
    pub fn of_queued(message: &QueuedMessage) -> Option<Self> {
        Some(Self {
            client_id: message.client_id.clone()?,
            message_id: message.message_id,
            run_id: message.run_id,
        })
    }
}

/// A run as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRun {
    pub row: RunRow,
    pub state: RunState,
    pub reason: Option<EndReason>,
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
    /// What of them was sent under a `client_id`, on all branches. None where that is more than
    /// [`CLIENT_IDS`].
    pub sent: Option<Vec<AcceptedId>>,
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
    /// The branch that was shown when it began; the root where there is none.
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
    pub started_calls: Vec<StartedCall>,
    /// Of `running_children`, the calls that were told to begin and not to end.
    pub child_calls: Vec<ChildCall>,
    /// What the model calls used of the runs that are still marked `running`.
    pub used: BTreeMap<RunId, TokensUsed>,
    /// None where it was never set.
    pub mode: Option<ConsentMode>,
    /// When the session first read text from outside.
    pub tainted_at: Option<DateTime<Utc>>,
    /// A stop holds back what waits.
    pub held: bool,
    /// What nobody has answered yet, oldest first.
    pub approvals: Vec<Asking>,
    /// Where `approvals` has any: the first event of the newest run.
    pub run_first_seq: Option<u64>,
}

/// A call of a foreground run, as its `tool_started` tells it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct StartedCall {
    pub call_id: CallId,
    #[serde(default)]
    pub lent: bool,
}

/// A call of a child run, as its events tell it.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildCall {
    pub run_id: RunId,
    pub call_id: CallId,
    pub tool: String,
    pub args: serde_json::Value,
}
