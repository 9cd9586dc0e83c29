//! What of a session's events a program is told.

use std::borrow::Cow;
use std::collections::VecDeque;

use navi_actors::domain::session::QUEUE_HELD;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::event::{Envelope, Event};
use navi_actors::protocol::ids::{PartId, RunId};
use navi_actors::protocol::message::Role;
use navi_actors::protocol::session::{SessionSnapshot, SessionState};
use navi_actors::tools::lent::LentCall;
use tokio::time::Instant;

use super::turns::{Ask, Begin, HandedOver, Turns};
use super::{Approvals, Ending, Step, TOGETHER, Told};
use crate::doors::heard::Heard;

/// What of a session's events a program is told.
pub(super) struct View {
    run_id: RunId,
    ephemeral: bool,
    approvals: Approvals,
    /// Something of the run was told: what is asked in the session is asked for it.
    goes: bool,
    /// Before that a run of the session was stopped: what waits behind it may be held back.
    may_be_held: bool,
    text: Heard,
    thinking: Heard,
    turns: Turns,
    /// When what waits for the program is handed over: the first of it began a moment before.
    pub(super) turn_by: Option<Instant>,
}

impl View {
    pub(super) fn of(run_id: RunId, ephemeral: bool, approvals: Approvals, begin: Begin) -> Self {
        Self {
            run_id,
            ephemeral,
            approvals,
            goes: false,
            may_be_held: false,
            text: Heard::default(),
            thinking: Heard::default(),
            turns: Turns::new(begin),
            turn_by: None,
        }
    }

    /// The same of a run that waited before it was asked for: the stop may be in the past.
    pub(super) fn of_what_waited(self) -> Self {
        Self {
            may_be_held: true,
            ..self
        }
    }

    /// Whether the run may be held back by a stop, which no event of its own tells.
    pub(super) fn may_be_held(&self) -> bool {
        self.may_be_held && !self.goes
    }

    /// Whether something of the run was told.
    pub(super) fn goes(&self) -> bool {
        self.goes
    }

    pub(super) fn turns(&self) -> &Turns {
        &self.turns
    }

    pub(super) fn take(&mut self, envelope: Cow<'_, Envelope>, told: &mut VecDeque<Told>) {
        let event = &envelope.event;
        if let Event::Resync { session, .. } = event {
            return self.take_snapshot(session, told);
        }
        let (run_id, parent_run_id) = (envelope.run_id, envelope.parent_run_id);
        let is_own = run_id == Some(self.run_id) && parent_run_id.is_none();
        self.goes |= is_own && !matches!(event, Event::MessageAccepted { .. });
        let is_stop = match event {
            Event::StreamStopped {} => parent_run_id.is_none(),
            Event::Notice { code, .. } => code == QUEUE_HELD,
            _ => false,
        };
        self.may_be_held |= is_stop && !self.goes;
        // What a subagent asks for is asked of whoever its run answers.
        let is_asked = matches!(
            event,
            Event::ApprovalRequested { .. } | Event::ApprovalResolved { .. }
        );
        if !(is_own || is_asked && self.goes) {
            return;
        }
        if let Event::MessageAccepted { .. } | Event::StreamStart { .. } = event {
            // Nothing of it is told.
            return;
        }
        let Some(event) = self.take_turn(envelope.into_owned().event, told) else {
            return;
        };
        if self.turns.passes_over() {
            let ends = matches!(
                event,
                Event::StreamEnd { .. }
                    | Event::StreamStopped {}
                    | Event::RunInterrupted { .. }
                    | Event::Error {
                        recoverable: false,
                        ..
                    }
            );
            if !ends {
                return self.pass_over(event);
            }
            self.turns.begin_now();
        }
        self.tell(event, told);
    }

    /// What waits for the program, and what was answered. Gives back what is neither.
    fn take_turn(&mut self, event: Event, told: &mut VecDeque<Told>) -> Option<Event> {
        let handed = match event {
            // Whose tool it is the event alone says, live and from the log: a name may be one of
            // ours too, and what had it may be gone.
            Event::ToolStarted {
                tool,
                args,
                call_id,
                lent: true,
                ..
            } => {
                let (id, name) = (call_id, tool);
                self.turns.call(LentCall { id, name, args });
                self.begin_turn();
                return None;
            }
            Event::ApprovalRequested {
                approval_id,
                tool,
                request,
                ..
            } if self.approvals == Approvals::ByProgram => {
                let ask = Ask {
                    approval_id,
                    tool,
                    request,
                };
                self.turns.ask(ask);
                self.begin_turn();
                return None;
            }
            Event::ToolCall {
                ref call_id,
                success,
                ..
            } => self.turns.call_ended(call_id, success),
            Event::ApprovalResolved { approval_id, .. } => self.turns.ask_resolved(approval_id),
            _ => None,
        };
        let Some(HandedOver { asks, calls }) = handed else {
            return Some(event);
        };
        if !self.turns.passes_over() && self.turns.is_waited_for() {
            self.begin_turn();
        }
        if !asks.is_empty() || !calls.is_empty() {
            told.extend(asks.into_iter().map(|ask| Told::Step(Step::Asks(ask))));
            told.extend(calls.into_iter().map(Told::Call));
            told.push_back(Told::Over(Ending::Turn));
        }
        None
    }

    /// What waits is handed over soon, with what else waits by then.
    fn begin_turn(&mut self) {
        let soon = Instant::now() + TOGETHER;
        self.turn_by = Some(self.turn_by.unwrap_or(soon));
    }

    /// What belongs to an answer that was told before.
    fn pass_over(&mut self, event: Event) {
        match event {
            Event::StreamDelta(delta) => drop(self.text.take(delta)),
            Event::ThinkingDelta(delta) => drop(self.thinking.take(delta)),
            _ => {}
        }
    }

    fn tell(&mut self, event: Event, told: &mut VecDeque<Told>) {
        let step = |step: Step| Told::Step(step);
        match event {
            Event::StreamDelta(delta) => told.extend(self.text.take(delta).map(Told::Text)),
            Event::ThinkingDelta(delta) => {
                told.extend(self.thinking.take(delta).map(Told::Thinking));
            }
            Event::ToolStarted {
                tool,
                args,
                call_id,
                ..
            } => told.push_back(step(Step::Began {
                call: call_id,
                tool,
                args,
            })),
            Event::ToolCall {
                tool,
                args,
                result,
                success,
                call_id,
                ..
            } => told.push_back(step(Step::Ended {
                call: call_id,
                tool,
                args,
                result,
                succeeded: success,
            })),
            Event::PlanReady { .. } => told.push_back(done("made a plan")),
            Event::SubagentStarted { .. } => told.push_back(done("sent out a subagent")),
            Event::ApprovalRequested {
                approval_id,
                tool,
                request,
                ..
            } => told.push_back(step(Step::Asks(Ask {
                approval_id,
                tool,
                request,
            }))),
            Event::RunWaiting { detail, .. } => told.push_back(done(&detail)),
            Event::ContextCompressed { .. } => {
                told.push_back(done("summarised the older part of the conversation"));
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
                let error = NaviError::new(code, message);
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

    /// The log does not go back to where the run began, or the session changed hands: what can be
    /// told is the answer as it is stored.
    pub(super) fn take_snapshot(&mut self, session: &SessionSnapshot, told: &mut VecDeque<Told>) {
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
            // What was stopped before it is not told any more.
            self.may_be_held |= waits && session.run.is_none();
            return;
        }
        let reason = session.reason.clone().unwrap_or_default();
        told.push_back(Told::Over(match session.summary.state {
            SessionState::Interrupted => Ending::Failed(interrupted(&reason)),
            SessionState::Failed => Ending::Failed(NaviError::new(ErrorCode::RunFailed, reason)),
            SessionState::Idle | SessionState::Running => Ending::Whole,
        }));
    }

    /// What a stop means to who waits for the answer.
    fn stopped(&self) -> Ending {
        if !self.ephemeral {
            return Ending::Stopped;
        }
        Ending::Failed(NaviError::new(
            ErrorCode::RunFailed,
            "the run was stopped, since nobody waited for its answer any more",
        ))
    }
}

fn done(what: &str) -> Told {
    Told::Step(Step::Other(what.to_owned()))
}

fn interrupted(reason: &str) -> NaviError {
    NaviError::new(
        ErrorCode::RunFailed,
        format!("the run was interrupted: {reason}"),
    )
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
