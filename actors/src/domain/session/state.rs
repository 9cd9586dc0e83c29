//! A session as its changes make it: submitted, or committed and told. Both are this value, made
//! by the same [`State::apply`], the second one a few changes behind the first.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::change::Change;
use super::stored::{AcceptedId, CLIENT_IDS, LoadedSession};
use super::write::Write;
use crate::domain::consent::Asking;
use crate::domain::history::{self, Branch, ContextState, Segment};
use crate::domain::recovery;
use crate::domain::run_loop::EndReason;
use crate::protocol::approval::ConsentMode;
use crate::protocol::chat::Usage;
use crate::protocol::event::Event;
use crate::protocol::ids::{CallId, MessageId, Origin, RunId};
use crate::protocol::inspect::CallKind;
use crate::protocol::message::Message;
use crate::protocol::plan::Plan;
use crate::protocol::session::{
    QueuedMessage, RunState, RunWait, SessionState as ListState, SessionSummary, UnknownCall,
};
use crate::protocol::todo::{Scratchpad, TodoItem};

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
    /// Empty until it is known.
    pub model: String,
    pub started_at: DateTime<Utc>,
    /// Why it failed or was interrupted.
    pub reason: Option<EndReason>,
    /// What its model calls used, while it goes.
    pub used: TokensUsed,
}

/// A child run that goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    pub origin: Origin,
    /// The call that it answers.
    pub call_id: CallId,
    /// Its own calls that have begun and have no result.
    pub open_calls: Vec<ChildCallState>,
    /// What its model calls used.
    pub used: TokensUsed,
}

/// Tokens, as model servers count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokensUsed {
    pub prompt: u64,
    pub completion: u64,
    /// Of the prompts, what servers said that they had read before.
    pub cached: u64,
}

impl TokensUsed {
    fn add(&mut self, usage: Usage) {
        self.prompt += u64::from(usage.prompt_tokens);
        self.completion += u64::from(usage.completion_tokens);
        self.cached += u64::from(usage.cached_tokens.unwrap_or(0));
    }
}

/// A call of a child's that is under way.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildCallState {
    pub call_id: CallId,
    pub tool: String,
    pub args: Value,
}

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub summary: SessionSummary,
    /// How many messages there are on all branches: the next one's ordinal. They themselves
    /// stay in the store: a session costs the same memory however long its conversation is.
    pub message_count: u64,
    /// Those of the newest foreground run, after the one that it answers, as long as there is
    /// something to go on from. Its children's are in the log alone.
    pub run_messages: Vec<Arc<Message>>,
    pub branches: Vec<Branch>,
    /// The branch that is shown.
    pub branch_id: u32,
    /// The newest plan.
    pub plan: Option<Plan>,
    pub queue: VecDeque<QueuedMessage>,
    /// A stop holds it back until the next run begins, whatever ends the one that was stopped.
    pub held: bool,
    pub todo: Vec<TodoItem>,
    pub scratchpad: Scratchpad,
    pub last_run: Option<LastRun>,
    /// What the foreground run waits for, as far as its events tell.
    pub waiting: Option<RunWait>,
    /// How much it may do without asking.
    pub mode: ConsentMode,
    /// When it first read text from outside.
    pub tainted_at: Option<DateTime<Utc>>,
    /// What nobody has answered yet, oldest first.
    pub approvals: Vec<Asking>,
    /// Calls of the running run that have begun and have no result, and whether their tool is lent.
    pub started_calls: HashMap<CallId, bool>,
    /// The runs that the foreground run started, and those that they started.
    pub children: BTreeMap<RunId, Child>,
    pub last_seq: u64,
    /// The newest [`CLIENT_IDS`] that were accepted, oldest first.
    accepted: VecDeque<AcceptedId>,
    /// Whether those are all that ever were.
    accepted_are_all: bool,
}

impl State {
    /// The state that the store holds. `mode` is that of sessions where none was ever set.
    #[must_use]
    pub fn from_loaded(loaded: LoadedSession, mode: ConsentMode) -> Self {
        let accepted_are_all = loaded.sent.is_some();
        let known = loaded.sent.unwrap_or_else(|| {
            let sent = loaded.messages.iter();
            sent.filter_map(AcceptedId::of_message).collect()
        });
        let waiting: Vec<_> = loaded
            .queue
            .iter()
            .filter_map(AcceptedId::of_queued)
            .collect();
        let last_run = loaded.last_run.as_ref();
        let last_run = last_run.map(|run| (run.row.run_id, run.row.message_id));
        let used = loaded.used;
        let used_by = |run_id: RunId| used.get(&run_id).copied().unwrap_or_default();
        let mut children: BTreeMap<RunId, Child> = BTreeMap::new();
        for row in loaded.running_children {
            let Some(call_id) = row.call_id else { continue };
            let origin = Origin {
                run_id: row.run_id,
                parent_run_id: row.parent_run_id,
            };
            let child = Child {
                origin,
                call_id,
                open_calls: Vec::new(),
                used: used_by(row.run_id),
            };
            children.insert(row.run_id, child);
        }
        for call in loaded.child_calls {
            if let Some(child) = children.get_mut(&call.run_id) {
                child.open_calls.push(ChildCallState {
                    call_id: call.call_id,
                    tool: call.tool,
                    args: call.args,
                });
            }
        }
        let mut state = Self {
            summary: loaded.summary,
            message_count: loaded.message_count,
            run_messages: loaded
                .messages
                .into_iter()
                .filter(|message| last_run.is_some_and(|run| is_of(message, run)))
                .map(Arc::new)
                .collect(),
            branches: loaded.branches,
            branch_id: loaded.branch_id,
            plan: loaded.plan,
            queue: loaded.queue.into(),
            held: loaded.held,
            todo: loaded.todo,
            scratchpad: loaded.scratchpad,
            last_run: loaded.last_run.map(|run| LastRun {
                run_id: run.row.run_id,
                message_id: run.row.message_id,
                state: run.state,
                branch_id: loaded.last_run_branch,
                model: run.row.model,
                started_at: run.row.started_at,
                reason: run.reason,
                used: used_by(run.row.run_id),
            }),
            waiting: None,
            mode: loaded.mode.unwrap_or(mode),
            tainted_at: loaded.tainted_at,
            approvals: loaded.approvals,
            started_calls: loaded
                .started_calls
                .into_iter()
                .map(|call| (call.call_id, call.lent))
                .collect(),
            children,
            last_seq: loaded.last_seq,
            accepted: VecDeque::new(),
            accepted_are_all,
        };
        if !state.keeps_run_messages() {
            state.run_messages.clear();
        }
        for accepted in known.into_iter().chain(waiting) {
            state.remember(accepted);
        }
        state
    }

    /// The message that was accepted under this `client_id`, and the run that answers it.
    /// Only the newest are known here: see [`State::may_be_accepted`].
    #[must_use]
    pub fn accepted(&self, client_id: &str) -> Option<(MessageId, RunId)> {
        self.accepted
            .iter()
            .find(|known| known.client_id == client_id)
            .map(|known| (known.message_id, known.run_id))
    }

    /// Whether the store may know a message under this `client_id` that is not known here. Ask
    /// [`Store::message_by_client_id`](crate::store::Store::message_by_client_id) then.
    #[must_use]
    pub fn may_be_accepted(&self, client_id: &str) -> bool {
        !self.accepted_are_all && self.accepted(client_id).is_none()
    }

    /// The foreground run, while it goes.
    #[must_use]
    pub fn running(&self) -> Option<&LastRun> {
        let run = self.last_run.as_ref();
        run.filter(|run| run.state == RunState::Running)
    }

    /// The place of a run that goes: the foreground run, or a child.
    #[must_use]
    pub fn origin_of(&self, run_id: RunId) -> Option<Origin> {
        let foreground = self.running().filter(|run| run.run_id == run_id);
        foreground
            .map(|run| Origin::foreground(run.run_id))
            .or_else(|| self.children.get(&run_id).map(|child| child.origin))
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

    /// Whether a stop holds back something that waits.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held && !self.queue.is_empty()
    }

    /// Whether there is something to go on from: the last run has more to do, and is what is shown.
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

    /// Takes in a change.
    pub fn apply(&mut self, change: &Change) {
        for write in &change.writes {
            self.apply_write(write);
        }
        for (origin, event) in &change.events {
            self.apply_event(*origin, event);
        }
    }

    /// Takes in an event. What it changes, no write does: so the order between the two is of no
    /// account.
    pub(super) fn apply_event(&mut self, origin: Option<Origin>, event: &Event) {
        self.last_seq += 1;
        let child = origin.filter(|origin| origin.is_subagent());
        if origin.is_some() && child.is_none() {
            self.note_waiting(event);
        }
        match event {
            Event::ToolStarted {
                call_id,
                tool,
                args,
                lent,
                ..
            } => match child {
                None => {
                    self.started_calls.insert(call_id.clone(), *lent);
                }
                Some(origin) => {
                    if let Some(child) = self.children.get_mut(&origin.run_id) {
                        child.open_calls.push(ChildCallState {
                            call_id: call_id.clone(),
                            tool: tool.clone(),
                            args: args.clone(),
                        });
                    }
                }
            },
            Event::ToolCall { call_id, .. } => match child {
                None => {
                    self.started_calls.remove(call_id);
                }
                Some(origin) => {
                    if let Some(child) = self.children.get_mut(&origin.run_id) {
                        child.open_calls.retain(|open| open.call_id != *call_id);
                    }
                }
            },
            _ => {}
        }
    }

    /// What a run waits for is over with whatever it tells next.
    fn note_waiting(&mut self, event: &Event) {
        match event {
            Event::RunWaiting {
                reason,
                detail,
                phrase,
                ..
            } => {
                self.waiting = Some(RunWait {
                    reason: *reason,
                    detail: detail.clone(),
                    phrase: phrase.clone(),
                });
            }
            // People tell these, in its name.
            Event::MessageAccepted { .. } | Event::QueueChanged { .. } | Event::Notice { .. } => {}
            _ => self.waiting = None,
        }
    }

    pub(super) fn apply_write(&mut self, write: &Write) {
        match write {
            Write::Message(message) => {
                if let Some(accepted) = AcceptedId::of_message(message) {
                    self.remember(accepted);
                }
                self.message_count += 1;
                if self
                    .last_run
                    .as_ref()
                    .is_none_or(|run| run.run_id != message.run_id)
                {
                    // The first of a new run: its `RunStarted` follows in the same commit.
                    self.run_messages.clear();
                }
                self.run_messages.push(Arc::clone(message));
            }
            Write::RunStarted(row) => match row.parent_run_id {
                None => {
                    let run = (row.run_id, row.message_id);
                    self.run_messages.retain(|message| is_of(message, run));
                    self.last_run = Some(LastRun {
                        run_id: row.run_id,
                        message_id: row.message_id,
                        state: RunState::Running,
                        branch_id: self.branch_id,
                        model: row.model.clone(),
                        started_at: row.started_at,
                        reason: None,
                        used: TokensUsed::default(),
                    });
                }
                Some(parent) => {
                    let child = row.call_id.clone().map(|call_id| Child {
                        origin: Origin {
                            run_id: row.run_id,
                            parent_run_id: Some(parent),
                        },
                        call_id,
                        open_calls: Vec::new(),
                        used: TokensUsed::default(),
                    });
                    self.children.extend(child.map(|child| (row.run_id, child)));
                }
            },
            Write::RunModel { run_id, model, .. } => {
                if let Some(run) = self.last_run.as_mut().filter(|run| run.run_id == *run_id) {
                    run.model.clone_from(model);
                }
            }
            // A run's own count, too, is without the summaries that are made meanwhile.
            Write::ModelCall { run_id, call } if call.kind != CallKind::Summary => {
                let foreground = self.last_run.as_mut();
                let foreground = foreground.filter(|run| run.run_id == *run_id);
                let used = match self.children.get_mut(run_id) {
                    Some(child) => Some(&mut child.used),
                    None => foreground.map(|run| &mut run.used),
                };
                if let Some((used, usage)) = used.zip(call.usage) {
                    used.add(usage);
                }
            }
            Write::RunEnded {
                run_id,
                state,
                reason,
                ..
            } => {
                self.children.remove(run_id);
                if let Some(run) = self.last_run.as_mut().filter(|run| run.run_id == *run_id) {
                    run.state = *state;
                    run.reason.clone_from(reason);
                    if !self.keeps_run_messages() {
                        self.run_messages.clear();
                    }
                }
            }
            Write::Enqueue(queued) => {
                if let Some(accepted) = AcceptedId::of_queued(queued) {
                    self.remember(accepted);
                }
                self.queue.push_back(queued.clone());
            }
            Write::Dequeue(id) => self.queue.retain(|queued| queued.message_id != *id),
            Write::EditQueued {
                message_id,
                content,
                author,
            } => {
                if let Some(queued) = self
                    .queue
                    .iter_mut()
                    .find(|queued| queued.message_id == *message_id)
                {
                    queued.content.clone_from(content);
                    queued.author.clone_from(author);
                }
            }
            Write::Title(title) => self.summary.title.clone_from(title),
            Write::Pinned(pinned) => self.summary.pinned = *pinned,
            Write::Archived(archived) => self.summary.archived = *archived,
            Write::Held(held) => self.held = *held,
            Write::Tags(tags) => self.summary.tags.clone_from(tags),
            Write::Profile(profile) => self.summary.profile_id.clone_from(profile),
            Write::Model(model) => self.summary.model.clone_from(model),
            Write::ContextTokens(tokens) => self.summary.context_token_count = *tokens,
            Write::Todo(items) => self.todo.clone_from(items),
            Write::Scratchpad(notes) => self.scratchpad.clone_from(notes),
            Write::Active(at) => self.summary.last_active = *at,
            Write::Plan(plan) => self.plan.clone_from(plan),
            Write::Context { branch_id, context } => {
                let mut branches = self.branches.iter_mut();
                if let Some(branch) = branches.find(|branch| branch.id == *branch_id) {
                    branch.context.clone_from(context);
                }
            }
            Write::Fork(branch) => {
                self.branch_id = branch.id;
                self.branches.push(branch.clone());
            }
            Write::ShowBranch(id) => self.branch_id = *id,
            Write::Mode(mode) => self.mode = *mode,
            Write::Shared { shared, .. } => self.summary.shared = Some(Box::new(shared.clone())),
            Write::Tainted(at) => {
                self.tainted_at.get_or_insert(*at);
            }
            Write::ApprovalRequested(asking) => self.approvals.push(asking.clone()),
            Write::ApprovalResolved { approval_id, .. } => self
                .approvals
                .retain(|asking| asking.pending.approval_id != *approval_id),
            Write::ModelCall { .. }
            | Write::RunLoop { .. }
            | Write::ConsentRule(_)
            | Write::Consented(_)
            | Write::Event(_)
            | Write::Chunk(_)
            | Write::Closed(_)
            | Write::Deleted(_) => {}
        }
        self.summary.state = self.list_state();
        self.summary.asks = u32::try_from(self.approvals.len()).unwrap_or(u32::MAX);
    }

    fn remember(&mut self, accepted: AcceptedId) {
        self.accepted
            .retain(|known| known.client_id != accepted.client_id);
        if self.accepted.len() == CLIENT_IDS {
            self.accepted.pop_front();
            self.accepted_are_all = false;
        }
        self.accepted.push_back(accepted);
    }

    /// Whether the last run's messages are of use yet: to itself, or to one that goes on from it.
    fn keeps_run_messages(&self) -> bool {
        self.last_run.as_ref().is_none_or(|run| match run.state {
            RunState::Running | RunState::Interrupted | RunState::Limited | RunState::Failed => {
                true
            }
            RunState::Completed | RunState::Stopped => false,
        })
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

/// Whether a message is one of the run's, or the one that it answers.
fn is_of(message: &Message, (run_id, answers): (RunId, MessageId)) -> bool {
    message.run_id == run_id || message.id == answers
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
