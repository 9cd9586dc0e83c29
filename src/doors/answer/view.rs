//! What of a session's events a program is told.

use std::collections::{HashSet, VecDeque};

use navi_actors::engine::Engine;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::event::{Envelope, Event};
use navi_actors::protocol::ids::{CallId, PartId, RunId};
use navi_actors::protocol::message::Role;
use navi_actors::protocol::session::{SessionSnapshot, SessionState};
use tokio::time::Instant;

use super::{Ending, TOGETHER, Told};
use crate::doors::heard::Heard;

/// What of a session's events a program is told.
pub(super) struct View {
    engine: Engine,
    run_id: RunId,
    ephemeral: bool,
    text: Heard,
    thinking: Heard,
    /// Calls with whose results what is told begins.
    passes_over: HashSet<CallId>,
    /// Calls of lent tools that were told to begin, and not to end.
    open_calls: HashSet<CallId>,
    /// When they are handed over: the first of them began a moment before.
    pub(super) calls_by: Option<Instant>,
}

impl View {
    pub(super) fn of(engine: Engine, run_id: RunId, ephemeral: bool) -> Self {
        Self {
            engine,
            run_id,
            ephemeral,
            text: Heard::default(),
            thinking: Heard::default(),
            passes_over: HashSet::new(),
            open_calls: HashSet::new(),
            calls_by: None,
        }
    }

    /// Tells nothing that came before the results of these calls.
    pub(super) fn pass_over_to(&mut self, calls: impl Iterator<Item = CallId>) {
        self.passes_over.extend(calls);
    }

    pub(super) fn has_open_calls(&self) -> bool {
        !self.open_calls.is_empty()
    }

    pub(super) fn take(&mut self, envelope: Envelope, told: &mut VecDeque<Told>) {
        let Envelope {
            run_id,
            parent_run_id,
            event,
            ..
        } = envelope;
        if let Event::Resync { session, .. } = event {
            return self.take_snapshot(&session, told);
        }
        if run_id != Some(self.run_id) || parent_run_id.is_some() {
            return;
        }
        if !self.passes_over.is_empty() {
            return self.pass_over(&event, told);
        }
        match event {
            Event::StreamDelta(delta) => told.extend(self.text.take(delta).map(Told::Text)),
            Event::ThinkingDelta(delta) => {
                told.extend(self.thinking.take(delta).map(Told::Thinking));
            }
            Event::ToolStarted { tool, call_id, .. } => {
                if self.engine.lends(self.run_id, &tool) {
                    self.lent_call_began(call_id);
                } else {
                    told.push_back(Told::Doing {
                        what: tool,
                        done: false,
                    });
                }
            }
            Event::ToolCall { tool, call_id, .. } => {
                if !self.open_calls.remove(&call_id) {
                    told.push_back(Told::Doing {
                        what: tool,
                        done: true,
                    });
                }
            }
            Event::PlanReady { .. } => told.push_back(doing("made a plan")),
            Event::SubagentStarted { .. } => told.push_back(doing("sent out a subagent")),
            Event::ApprovalRequested { request, .. } => told.push_back(Told::Doing {
                what: format!("waits for you to allow on Navi's page: {}", request.summary),
                done: false,
            }),
            Event::RunWaiting { detail, .. } => told.push_back(doing(&detail)),
            Event::ContextCompressed { .. } => {
                told.push_back(doing("summarised the older part of the conversation"));
            }
            Event::StreamEnd {
                content,
                message_id,
                completed,
                ..
            } => {
                let rest = self.text.take_whole(PartId::text(message_id), &content);
                told.extend(rest.map(Told::Text));
                told.push_back(Told::Over(if completed {
                    Ending::Whole
                } else {
                    Ending::Limited
                }));
            }
            Event::StreamStopped {} => told.push_back(Told::Over(self.stopped())),
            // It was withdrawn before its run began.
            Event::QueueChanged { content: None, .. } => {
                let message = "the message was withdrawn on Navi's page";
                let error = NaviError::new(ErrorCode::MessageNotFound, message);
                told.push_back(Told::Over(Ending::Failed(error)));
            }
            Event::RunInterrupted { reason, .. } => {
                told.push_back(Told::Over(Ending::Failed(interrupted(&reason))));
            }
            Event::Error {
                message,
                recoverable: false,
                code,
                ..
            } => {
                let error = NaviError { code, message };
                told.push_back(Told::Over(Ending::Failed(error)));
            }
            // What stands in the answer already, what is the page's alone, and what a person does
            // there meanwhile.
            Event::Error { .. }
            | Event::MessageAccepted { .. }
            | Event::QueueChanged { .. }
            | Event::MessageSteered { .. }
            | Event::BranchChanged { .. }
            | Event::StreamStart { .. }
            | Event::ThinkingEnd { .. }
            | Event::TurnThinking { .. }
            | Event::SubagentFinished { .. }
            | Event::ProfileSwitched { .. }
            | Event::ToolOutput { .. }
            | Event::ApprovalResolved { .. }
            | Event::CallResolved { .. }
            | Event::ModeChanged { .. }
            | Event::ModelChanged { .. }
            | Event::TodoUpdated { .. }
            | Event::Notice { .. }
            | Event::Resync { .. }
            | Event::Pong {} => {}
        }
    }

    /// What was told before the program came with its results; calls that it does not know yet
    /// are told.
    fn pass_over(&mut self, event: &Event, told: &mut VecDeque<Told>) {
        match event {
            Event::ToolStarted { tool, call_id, .. } if self.engine.lends(self.run_id, tool) => {
                self.lent_call_began(call_id.clone());
            }
            Event::ToolCall { call_id, .. } => {
                self.open_calls.remove(call_id);
                self.passes_over.remove(call_id);
            }
            Event::StreamDelta(delta) => drop(self.text.take(delta.clone())),
            Event::ThinkingDelta(delta) => drop(self.thinking.take(delta.clone())),
            Event::StreamEnd { .. }
            | Event::StreamStopped {}
            | Event::RunInterrupted { .. }
            | Event::Error {
                recoverable: false, ..
            } => {
                self.passes_over.clear();
                let envelope = Envelope {
                    seq: None,
                    run_id: Some(self.run_id),
                    parent_run_id: None,
                    at: chrono::Utc::now(),
                    event: event.clone(),
                };
                self.take(envelope, told);
            }
            _ => {}
        }
    }

    /// The log does not go back to where the run began, or the session changed hands: what can be
    /// told is the answer as it is stored.
    fn take_snapshot(&mut self, session: &SessionSnapshot, told: &mut VecDeque<Told>) {
        let of_run = session.messages.iter().filter(|message| {
            message.run_id == self.run_id && message.role == Role::Assistant && !message.is_plan
        });
        for message in of_run {
            let content = message.content.as_deref().unwrap_or_default();
            let rest = self.text.take_whole(PartId::text(message.id), content);
            told.extend(rest.map(Told::Text));
        }
        let goes = session
            .run
            .as_ref()
            .is_some_and(|run| run.run_id == self.run_id);
        let waits = session.queue.iter().any(|it| it.run_id == self.run_id);
        if goes || waits {
            return;
        }
        let reason = session.reason.clone().unwrap_or_default();
        told.push_back(Told::Over(match session.summary.state {
            SessionState::Interrupted => Ending::Failed(interrupted(&reason)),
            SessionState::Failed => Ending::Failed(NaviError::new(ErrorCode::RunFailed, reason)),
            SessionState::Idle | SessionState::Running => Ending::Whole,
        }));
    }

    fn lent_call_began(&mut self, call: CallId) {
        self.open_calls.insert(call);
        let soon = Instant::now() + TOGETHER;
        self.calls_by = Some(self.calls_by.unwrap_or(soon));
    }

    /// What a stop means to who waits for the answer.
    fn stopped(&self) -> Ending {
        if !self.ephemeral {
            return Ending::Whole;
        }
        Ending::Failed(NaviError::new(
            ErrorCode::RunFailed,
            "the run was stopped, since nobody waited for its answer any more",
        ))
    }
}

fn doing(what: &str) -> Told {
    Told::Doing {
        what: what.to_owned(),
        done: true,
    }
}

fn interrupted(reason: &str) -> NaviError {
    NaviError::new(
        ErrorCode::RunFailed,
        format!("the run was interrupted: {reason}"),
    )
}
