//! A session as it is committed: what clients see, and what commits change.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::protocol::ids::{CallId, MessageId, RunId};
use crate::protocol::message::Message;
use crate::protocol::session::{
    QueuedMessage, RunState, SessionState as ListState, SessionSummary,
};
use crate::protocol::todo::{Scratchpad, TodoItem};
use crate::store::{LoadedSession, Write};

/// The newest run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastRun {
    pub run_id: RunId,
    /// The user message that it answers.
    pub message_id: MessageId,
    pub state: RunState,
}

/// The session's committed state. Changed by [`State::apply`] alone.
#[derive(Clone, Debug)]
pub struct State {
    pub summary: SessionSummary,
    /// How many messages the conversation has. They themselves stay in the store: a session
    /// costs the same memory however long its conversation is.
    pub message_count: usize,
    /// Those of the newest run.
    pub run_messages: Vec<Arc<Message>>,
    pub queue: VecDeque<QueuedMessage>,
    pub todo: Vec<TodoItem>,
    pub scratchpad: Scratchpad,
    pub last_run: Option<LastRun>,
    /// Calls of the running run whose start was committed and which have no result.
    pub started_calls: HashSet<CallId>,
    /// Every `client_id` that was accepted, with its message and run.
    client_ids: HashMap<String, (MessageId, RunId)>,
}

impl State {
    /// The state that the store holds.
    #[must_use]
    pub fn from_loaded(loaded: LoadedSession) -> Self {
        let mut client_ids = HashMap::new();
        for message in &loaded.messages {
            if let Some(client_id) = &message.client_id {
                client_ids.insert(client_id.clone(), (message.id, message.run_id));
            }
        }
        for queued in &loaded.queue {
            if let Some(client_id) = &queued.client_id {
                client_ids.insert(client_id.clone(), (queued.message_id, queued.run_id));
            }
        }
        let last_run_id = loaded.last_run.as_ref().map(|run| run.row.run_id);
        Self {
            summary: loaded.summary,
            message_count: loaded.messages.len(),
            run_messages: loaded
                .messages
                .into_iter()
                .filter(|message| Some(message.run_id) == last_run_id)
                .map(Arc::new)
                .collect(),
            queue: loaded.queue.into(),
            todo: loaded.todo,
            scratchpad: loaded.scratchpad,
            last_run: loaded.last_run.map(|run| LastRun {
                run_id: run.row.run_id,
                message_id: run.row.message_id,
                state: run.state,
            }),
            started_calls: loaded.started_calls.into_iter().collect(),
            client_ids,
        }
    }

    /// The message that was accepted under this `client_id`, and the run that answers it.
    #[must_use]
    pub fn accepted(&self, client_id: &str) -> Option<(MessageId, RunId)> {
        self.client_ids.get(client_id).copied()
    }

    /// Whether `continue` would do something.
    #[must_use]
    pub fn can_continue(&self) -> bool {
        self.last_run.as_ref().is_some_and(|run| match run.state {
            RunState::Interrupted | RunState::Limited | RunState::Failed => true,
            RunState::Running | RunState::Completed | RunState::Stopped => false,
        })
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
            Write::RunStarted(row) => {
                self.started_calls.clear();
                self.set_last_run(row.run_id, row.message_id, RunState::Running);
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
            Write::Event(_) | Write::Chunk(_) | Write::RunModel { .. } | Write::Deleted(_) => {}
        }
        self.summary.state = self.list_state();
    }

    fn remember(&mut self, client_id: Option<&String>, message: MessageId, run: RunId) {
        if let Some(client_id) = client_id {
            self.client_ids.insert(client_id.clone(), (message, run));
        }
    }

    fn set_last_run(&mut self, run_id: RunId, message_id: MessageId, state: RunState) {
        self.last_run = Some(LastRun {
            run_id,
            message_id,
            state,
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
