//! A session as it is committed: what clients see, and what commits change.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::domain::history::{self, Branch, ContextState, Segment};
use crate::domain::recovery;
use crate::protocol::approval::{ConsentMode, PendingApproval};
use crate::protocol::ids::{CallId, MessageId, RunId};
use crate::protocol::message::Message;
use crate::protocol::plan::Plan;
use crate::protocol::session::{
    QueuedMessage, RunState, SessionState as ListState, SessionSummary, UnknownCall,
};
use crate::protocol::todo::{Scratchpad, TodoItem};
use crate::store::{LoadedSession, Write};

/// How many accepted `client_id`s a session remembers. The store knows the others.
const CLIENT_IDS: usize = 256;

/// A context in which nothing was replaced.
static WHOLE: ContextState = ContextState {
    start: 0,
    summary: None,
    plan: None,
    memory: None,
    decisions: BTreeMap::new(),
};

/// The newest run in the foreground.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastRun {
    pub run_id: RunId,
    /// The user message that it answers.
    pub message_id: MessageId,
    pub state: RunState,
    /// The branch that was shown when it began.
    pub branch_id: u32,
}

/// The session's committed state. Changed by [`State::apply`] alone.
#[derive(Clone, Debug)]
pub struct State {
    pub summary: SessionSummary,
    /// How many messages there are on all branches: the next one's ordinal. They themselves
    /// stay in the store: a session costs the same memory however long its conversation is.
    pub message_count: u64,
    /// Those of the newest foreground run. Its children's are in the log alone.
    pub run_messages: Vec<Arc<Message>>,
    pub branches: Vec<Branch>,
    /// The branch that is shown.
    pub branch_id: u32,
    /// The newest plan.
    pub plan: Option<Plan>,
    pub queue: VecDeque<QueuedMessage>,
    pub todo: Vec<TodoItem>,
    pub scratchpad: Scratchpad,
    pub last_run: Option<LastRun>,
    /// How much it may do without asking.
    pub mode: ConsentMode,
    /// When it first read text from outside.
    pub tainted_at: Option<DateTime<Utc>>,
    /// What nobody has answered yet, oldest first.
    pub approvals: Vec<PendingApproval>,
    /// Calls of the running run whose start was committed and which have no result.
    pub started_calls: HashSet<CallId>,
    /// The newest [`CLIENT_IDS`] that were accepted, oldest first.
    accepted: VecDeque<Accepted>,
}

/// What was accepted under a `client_id`.
#[derive(Clone, Debug)]
struct Accepted {
    client_id: String,
    message_id: MessageId,
    run_id: RunId,
}

impl State {
    /// The state that the store holds. `mode` is that of sessions where none was ever set.
    #[must_use]
    pub fn from_loaded(loaded: LoadedSession, mode: ConsentMode) -> Self {
        let sent = loaded
            .messages
            .iter()
            .map(|message| (message.client_id.clone(), message.id, message.run_id));
        let waiting = loaded
            .queue
            .iter()
            .map(|queued| (queued.client_id.clone(), queued.message_id, queued.run_id));
        let known: Vec<_> = sent.chain(waiting).collect();
        let last_run_id = loaded.last_run.as_ref().map(|run| run.row.run_id);
        let mut state = Self {
            summary: loaded.summary,
            message_count: loaded.message_count,
            run_messages: loaded
                .messages
                .into_iter()
                .filter(|message| Some(message.run_id) == last_run_id)
                .map(Arc::new)
                .collect(),
            branches: loaded.branches,
            branch_id: loaded.branch_id,
            plan: loaded.plan,
            queue: loaded.queue.into(),
            todo: loaded.todo,
            scratchpad: loaded.scratchpad,
            last_run: loaded.last_run.map(|run| LastRun {
                run_id: run.row.run_id,
                message_id: run.row.message_id,
                state: run.state,
                branch_id: loaded.last_run_branch,
            }),
            mode: loaded.mode.unwrap_or(mode),
            tainted_at: loaded.tainted_at,
            approvals: loaded
                .approvals
                .into_iter()
                .map(|asking| asking.pending)
                .collect(),
            started_calls: loaded.started_calls.into_iter().collect(),
            accepted: VecDeque::new(),
        };
        for (client_id, message_id, run_id) in known {
            state.remember(client_id.as_ref(), message_id, run_id);
        }
        state
    }

    /// The message that was accepted under this `client_id`, and the run that answers it.
    /// Only the newest are known here; for the others ask
    /// [`Store::message_by_client_id`](crate::store::Store::message_by_client_id).
    #[must_use]
    pub fn accepted(&self, client_id: &str) -> Option<(MessageId, RunId)> {
        self.accepted
            .iter()
            .find(|known| known.client_id == client_id)
            .map(|known| (known.message_id, known.run_id))
    }

    /// The stretches that make up the conversation as it is shown.
    #[must_use]
    pub fn path(&self) -> Vec<Segment> {
        history::path(&self.branches, self.branch_id)
    }

    /// How the context of the branch that is shown differs from its messages.
    #[must_use]
    pub fn context(&self) -> &ContextState {
        self.branches
            .iter()
            .find(|branch| branch.id == self.branch_id)
            .map_or(&WHOLE, |branch| &branch.context)
    }

    /// Whether `continue` would do something: the last run has more to do, and is what is shown.
    #[must_use]
    pub fn can_continue(&self) -> bool {
        self.last_run.as_ref().is_some_and(|run| match run.state {
            RunState::Interrupted | RunState::Limited | RunState::Failed => {
                run.branch_id == self.branch_id
            }
            RunState::Running | RunState::Completed | RunState::Stopped => false,
        })
    }

    /// The calls of the last run that a person may say what became of.
    #[must_use]
    pub fn unknown_calls(&self) -> Vec<UnknownCall> {
        if !self.can_continue() {
            return Vec::new();
        }
        recovery::unknown_calls(&self.run_messages, &self.context().decisions)
    }

    /// Takes in a write that is committed.
    pub fn apply(&mut self, write: &Write) {
        match write {
            Write::Message(message) => {
                if let Some(call) = &message.tool_call_id {
                    self.started_calls.remove(call);
                }
                self.remember(message.client_id.as_ref(), message.id, message.run_id);
                self.message_count += 1;
                if self
                    .last_run
                    .as_ref()
                    .is_none_or(|run| run.run_id != message.run_id)
                {
                    // The first of a new run: its `RunStarted` follows in the same commit.
                    self.run_messages.clear();
                }
                self.run_messages.push(Arc::new(message.clone()));
            }
            Write::RunStarted(row) if row.parent_run_id.is_none() => {
                self.started_calls.clear();
                self.run_messages
                    .retain(|message| message.run_id == row.run_id);
                self.last_run = Some(LastRun {
                    run_id: row.run_id,
                    message_id: row.message_id,
                    state: RunState::Running,
                    branch_id: self.branch_id,
                });
            }
            Write::RunEnded { run_id, state, .. } => {
                if let Some(run) = self.last_run.as_mut().filter(|run| run.run_id == *run_id) {
                    run.state = *state;
                }
            }
            Write::Enqueue(queued) => {
                self.remember(queued.client_id.as_ref(), queued.message_id, queued.run_id);
                self.queue.push_back(queued.clone());
            }
            Write::Dequeue(id) => self.queue.retain(|queued| queued.message_id != *id),
            Write::EditQueued {
                message_id,
                content,
            } => {
                if let Some(queued) = self
                    .queue
                    .iter_mut()
                    .find(|queued| queued.message_id == *message_id)
                {
                    queued.content.clone_from(content);
                }
            }
            Write::Title(title) => self.summary.title.clone_from(title),
            Write::Pinned(pinned) => self.summary.pinned = *pinned,
            Write::Profile(profile) => self.summary.profile_id.clone_from(profile),
            Write::ContextTokens(tokens) => self.summary.context_token_count = *tokens,
            Write::Todo(items) => self.todo.clone_from(items),
            Write::Scratchpad(notes) => self.scratchpad.clone_from(notes),
            Write::Active(at) => self.summary.last_active = *at,
            Write::Plan(plan) => self.plan.clone_from(plan),
            Write::Context(context) => {
                if let Some(branch) = self
                    .branches
                    .iter_mut()
                    .find(|branch| branch.id == self.branch_id)
                {
                    branch.context.clone_from(context);
                }
            }
            Write::Fork(branch) => {
                self.branch_id = branch.id;
                self.branches.push(branch.clone());
            }
            Write::ShowBranch(id) => self.branch_id = *id,
            Write::Mode(mode) => self.mode = *mode,
            Write::Tainted(at) => {
                self.tainted_at.get_or_insert(*at);
            }
            Write::ApprovalRequested(asking) => self.approvals.push(asking.pending.clone()),
            Write::ApprovalResolved { approval_id, .. } => self
                .approvals
                .retain(|pending| pending.approval_id != *approval_id),
            // A child's.
            Write::RunStarted(_) => {}
            Write::RunLoop { .. }
            | Write::ModelCall { .. }
            | Write::ConsentRule(_)
            | Write::Consented(_) => {}
            Write::Event(_) | Write::Chunk(_) | Write::RunModel { .. } | Write::Deleted(_) => {}
        }
        self.summary.state = self.list_state();
        self.summary.asks = u32::try_from(self.approvals.len()).unwrap_or(u32::MAX);
    }

    fn remember(&mut self, client_id: Option<&String>, message_id: MessageId, run_id: RunId) {
        let Some(client_id) = client_id else {
            return;
        };
        self.accepted.retain(|known| known.client_id != *client_id);
        if self.accepted.len() == CLIENT_IDS {
            self.accepted.pop_front();
        }
        self.accepted.push_back(Accepted {
            client_id: client_id.clone(),
            message_id,
            run_id,
        });
    }

    fn list_state(&self) -> ListState {
        match self.last_run.as_ref().map(|run| run.state) {
            None | Some(RunState::Completed | RunState::Limited | RunState::Stopped) => {
                ListState::Idle
            }
            Some(RunState::Running) => ListState::Running,
            Some(RunState::Interrupted) => ListState::Interrupted,
            Some(RunState::Failed) => ListState::Failed,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#[path = "state_tests.rs"]
mod tests;
