//! The store as the value meets it: what it refuses, and what it gives back after a restart.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use chrono::DateTime;

use crate::domain::history::Branch;
use crate::domain::session::change::Change;
use crate::domain::session::state::State;
use crate::domain::session::stored::{
    AcceptedId, ChildCall, LoadedSession, StartedCall, StoredRun,
};
use crate::domain::session::write::{RunRow, Write};
use crate::protocol::approval::ConsentMode;
use crate::protocol::ids::{ApprovalId, CallId, MessageId, RunId, SessionId, UserId};
use crate::protocol::message::{Message, Role};
use crate::protocol::session::{RunState, SessionState, SessionSummary};
use crate::protocol::todo::Scratchpad;

/// So many `client_id`s are few.
const FEW: usize = 4;

/// What is durable.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) state: State,
    /// By ordinal, each with the branch that it stands on.
    pub(super) messages: Vec<(Arc<Message>, u32)>,
    rows: HashMap<RunId, RunRow>,
    loops: HashMap<RunId, String>,
    resolved: HashSet<ApprovalId>,
    interruptions: HashMap<MessageId, u32>,
    pub(super) deleted: bool,
}

impl Stored {
    pub(super) fn new() -> Self {
        Self {
            state: State::from_loaded(empty(), ConsentMode::Edits),
            messages: Vec::new(),
            rows: HashMap::new(),
            loops: HashMap::new(),
            resolved: HashSet::new(),
            interruptions: HashMap::new(),
            deleted: false,
        }
    }

    /// Commits a change: what the schema refuses, no session may ask for.
    pub(super) fn commit(&mut self, change: &Change) {
        assert!(
            !self.deleted || change.is_empty(),
            "a deleted session writes"
        );
        for write in &change.writes {
            self.check(write);
            self.state.apply_write(write);
        }
        for (origin, event) in &change.events {
            self.state.apply_event(*origin, event);
        }
    }

    fn check(&mut self, write: &Write) {
        match write {
            Write::Dequeue(id) | Write::EditQueued { message_id: id, .. } => {
                let mut queue = self.state.queue.iter();
                assert!(
                    queue.any(|queued| queued.message_id == *id),
                    "message {id} is not in the queue: {write:?}"
                );
            }
            Write::Message(message) => {
                assert!(
                    self.messages.iter().all(|(it, _)| it.id != message.id),
                    "message {} is there twice",
                    message.id
                );
                if let Some(call) = &message.tool_call_id {
                    let results = self
                        .messages
                        .iter()
                        .filter_map(|(it, _)| it.tool_call_id.as_ref());
                    assert!(
                        { results }.all(|it| it != call),
                        "call {call} has two results"
                    );
                }
                self.messages
                    .push((Arc::clone(message), self.state.branch_id));
            }
            Write::RunStarted(row) => {
                let foreground = row.parent_run_id.is_none();
                assert!(
                    !foreground || self.state.running().is_none(),
                    "a second run starts"
                );
                self.rows.insert(row.run_id, row.clone());
            }
            Write::RunEnded { run_id, state, .. } => {
                let row = self
                    .rows
                    .get(run_id)
                    .expect("a run ends that never started");
                if *state == RunState::Interrupted {
                    *self.interruptions.entry(row.message_id).or_default() += 1;
                }
                if row.parent_run_id.is_none() {
                    self.check_calls(*run_id);
                }
                self.loops.remove(run_id);
            }
            Write::RunLoop { run_id, json } => {
                self.loops.insert(*run_id, json.clone());
            }
            Write::ApprovalResolved { approval_id, .. } => {
                assert!(
                    self.resolved.insert(*approval_id),
                    "a request is answered twice"
                );
            }
            Write::Context { branch_id, .. } | Write::ShowBranch(branch_id) => {
                let mut branches = self.state.branches.iter();
                assert!(
                    branches.any(|branch| branch.id == *branch_id),
                    "no such branch"
                );
            }
            Write::Deleted(at) => self.deleted = at.is_some(),
            _ => {}
        }
    }

    /// Every call of a run that ended has its result.
    fn check_calls(&self, run_id: RunId) {
        let results: HashSet<&CallId> = self
            .messages
            .iter()
            .filter_map(|(message, _)| message.tool_call_id.as_ref())
            .collect();
        let of_run = self.messages.iter().filter(|(it, _)| it.run_id == run_id);
        for call in of_run.flat_map(|(message, _)| &message.tool_calls) {
            assert!(results.contains(&call.id), "call {} has no result", call.id);
        }
    }

    /// What the next process reads.
    pub(super) fn load(&self) -> LoadedSession {
        let state = &self.state;
        let last = state.last_run.as_ref();
        let running = state.running().map(|run| run.run_id);
        let children = state.children.values();
        let child_calls = children.clone().flat_map(|child| {
            child.open_calls.iter().map(|call| ChildCall {
                run_id: child.origin.run_id,
                call_id: call.call_id.clone(),
                tool: call.tool.clone(),
                args: call.args.clone(),
            })
        });
        let started_calls = state
            .started_calls
            .iter()
            .map(|(call_id, lent)| StartedCall {
                call_id: call_id.clone(),
                lent: *lent,
            });
        LoadedSession {
            summary: state.summary.clone(),
            messages: self
                .messages
                .iter()
                .filter(|(message, _)| {
                    last.is_some_and(|run| {
                        run.run_id == message.run_id || run.message_id == message.id
                    })
                })
                .map(|(message, _)| Message::clone(message))
                .collect(),
            message_count: state.message_count,
            sent: self.sent_ids(),
            branches: state.branches.clone(),
            branch_id: state.branch_id,
            plan: state.plan.clone(),
            running_children: state
                .children
                .keys()
                .filter_map(|run_id| self.rows.get(run_id).cloned())
                .collect(),
            queue: state.queue.iter().cloned().collect(),
            todo: state.todo.clone(),
            scratchpad: state.scratchpad.clone(),
            last_seq: state.last_seq,
            epoch: 1,
            last_run: last.map(|run| StoredRun {
                row: RunRow {
                    model: run.model.clone(),
                    ..self.rows[&run.run_id].clone()
                },
                state: run.state,
                reason: None,
                loop_state: self.loops.get(&run.run_id).cloned(),
            }),
            interruptions: last
                .and_then(|run| self.interruptions.get(&run.message_id).copied())
                .unwrap_or_default(),
            last_run_branch: last.map_or(0, |run| run.branch_id),
            unfinished_parts: Vec::new(),
            spans: Vec::new(),
            started_calls: running.map(|_| started_calls.collect()).unwrap_or_default(),
            child_calls: child_calls.collect(),
            used: children
                .map(|child| (child.origin.run_id, child.used))
                .chain(state.running().map(|run| (run.run_id, run.used)))
                .collect(),
            mode: Some(state.mode),
            tainted_at: state.tainted_at,
            held: state.held,
            approvals: state.approvals.clone(),
            run_first_seq: Some(1),
        }
    }

    /// All of them where they are few, as the store does.
    fn sent_ids(&self) -> Option<Vec<AcceptedId>> {
        let sent: Vec<_> = self
            .sent()
            .filter_map(|message| AcceptedId::of_message(message))
            .collect();
        (sent.len() <= FEW).then_some(sent)
    }

    /// The messages of the user's that stand in the conversation.
    pub(super) fn sent(&self) -> impl Iterator<Item = &Arc<Message>> {
        let messages = self.messages.iter().map(|(message, _)| message);
        messages.filter(|message| message.role == Role::User)
    }
}

pub(crate) fn empty() -> LoadedSession {
    LoadedSession {
        summary: SessionSummary {
            id: SessionId::new(),
            user_id: UserId::new(),
            title: String::new(),
            profile_id: "secretary".to_owned(),
            model: None,
            pinned: false,
            archived: false,
            ephemeral: false,
            tags: Vec::new(),
            context_token_count: 0,
            state: SessionState::Idle,
            asks: 0,
            shared: None,
            created_at: DateTime::UNIX_EPOCH,
            last_active: DateTime::UNIX_EPOCH,
        },
        messages: Vec::new(),
        message_count: 0,
        sent: Some(Vec::new()),
        branches: vec![Branch::root()],
        branch_id: 0,
        plan: None,
        running_children: Vec::new(),
        queue: Vec::new(),
        todo: Vec::new(),
        scratchpad: Scratchpad::new(),
        last_seq: 0,
        epoch: 1,
        last_run: None,
        interruptions: 0,
        last_run_branch: 0,
        unfinished_parts: Vec::new(),
        spans: Vec::new(),
        started_calls: Vec::new(),
        child_calls: Vec::new(),
        used: BTreeMap::new(),
        mode: None,
        tainted_at: None,
        held: false,
        approvals: Vec::new(),
        run_first_seq: None,
    }
}
