//! The loop of one run (SPEC section 5), as data that can be stepped, stored and replayed.
//!
//! A driver asks [`RunLoop::next_step`], does what it says, and tells the outcome to one of
//! the `on_…` methods. Each gives back what must be recorded, in order, in one commit. The
//! loop never waits and never decides by a clock; the driver never decides.

use std::collections::VecDeque;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::protocol::chat::{RequestedCall, Usage};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::Event;
use crate::protocol::ids::{CallId, MessageId, RunId};
use crate::protocol::message::{Message, MessageState, ToolCall, ToolOutcome};
use crate::protocol::session::RunState;
use crate::protocol::tool::Effect;

/// What the driver does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Call the model. Without tools where the run is at its limit and must say how things stand.
    CallModel { tools: ToolUse },
    /// Run these calls: several only where all of them read, and then side by side.
    RunTools(Vec<PlannedCall>),
    /// The run has ended; everything is recorded.
    Finish(RunEnd),
}

/// Whether the model may call tools this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolUse {
    Offered,
    Withheld,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunEnd {
    Answered,
    Limited,
    Stopped,
    Failed(NaviError),
    /// The process died or was shut down under it.
    Interrupted {
        reason: String,
    },
}

impl RunEnd {
    /// How the store marks such a run.
    #[must_use]
    pub fn state(&self) -> RunState {
        match self {
            Self::Answered => RunState::Completed,
            Self::Limited => RunState::Limited,
            Self::Stopped => RunState::Stopped,
            Self::Failed(_) => RunState::Failed,
            Self::Interrupted { .. } => RunState::Interrupted,
        }
    }

    /// Why it ended so, where that is not plain from the state.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Answered | Self::Limited | Self::Stopped => None,
            Self::Failed(error) => Some(error.message.clone()),
            Self::Interrupted { reason } => Some(reason.clone()),
        }
    }
}

/// Why a run is cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// By its user.
    Stopped,
    /// By a shutdown.
    Interrupted { reason: String },
}

/// What the model and the user are told of a call that was under way when Navi went down.
pub const OUTCOME_UNKNOWN: &str = "outcome unknown: Navi went down while this ran; it may or may not have taken effect, so check before doing it again";

/// What they are told of one that had not begun.
pub const NOT_RUN: &str = "not run: Navi went down before this began";

/// A call after the registry looked at it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedCall {
    pub call: ToolCall,
    pub plan: CallPlan,
}

/// What is to become of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CallPlan {
    Run(Effect),
    /// Unknown, not allowed, or with arguments that miss the schema: the model is told why.
    Refuse(String),
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    pub outcome: ToolOutcome,
    pub text: String,
    pub duration_ms: u64,
}

/// What the model said in one call, whole or up to where it was cut off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The id under which its text was streamed.
    pub message_id: MessageId,
    pub text: String,
    pub thinking: String,
    pub calls: Vec<RequestedCall>,
    pub usage: Option<Usage>,
}

impl Reply {
    /// A reply of which nothing has come yet.
    #[must_use]
    pub fn empty(message_id: MessageId) -> Self {
        Self {
            message_id,
            text: String::new(),
            thinking: String::new(),
            calls: Vec::new(),
            usage: None,
        }
    }

    fn says_nothing(&self) -> bool {
        self.text.trim().is_empty() && self.calls.is_empty()
    }

    fn into_message(self, run_id: RunId, state: MessageState, now: DateTime<Utc>) -> Message {
        let mut message = Message::assistant(self.message_id, run_id, now);
        message.content = (!self.text.is_empty()).then_some(self.text);
        message.thinking = (!self.thinking.is_empty()).then_some(self.thinking);
        message.state = state;
        message
    }
}

/// Something to be recorded. All that one transition gives is one commit.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    Event(Event),
    Message(Message),
    /// The last prompt size that is known.
    ContextTokens(u32),
    /// The run got its backend and its model, and begins.
    Began {
        backend: String,
        model: String,
    },
    /// The run is over.
    Ended(RunSummary),
}

/// A run that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    pub end: RunEnd,
    pub iterations: u32,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
}

/// The loop of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunLoop {
    run_id: RunId,
    max_iterations: u32,
    max_context_tokens: u32,
    context_tokens: u32,
    iterations: u32,
    prompt_tokens: u64,
    completion_tokens: u64,
    /// The model said nothing and was asked once more.
    asked_again: bool,
    phase: Phase,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Phase {
    /// The model's turn.
    Model(ToolUse),
    /// Calls of the last reply, in order; those that are answered have left.
    Tools(VecDeque<OpenCall>),
    Ended(RunEnd),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OpenCall {
    message_id: MessageId,
    planned: PlannedCall,
    started: bool,
    /// Ended, but a call before it has not.
    result: Option<CallResult>,
}

impl RunLoop {
    /// A loop at its start. `context_tokens` is what the last run of the session left.
    #[must_use]
    pub fn new(
        run_id: RunId,
        max_iterations: u32,
        context_tokens: u32,
        max_context_tokens: u32,
    ) -> Self {
        Self {
            run_id,
            max_iterations: max_iterations.max(1),
            max_context_tokens,
            context_tokens,
            iterations: 0,
            prompt_tokens: 0,
            completion_tokens: 0,
            asked_again: false,
            phase: Phase::Model(ToolUse::Offered),
        }
    }

    /// What to do next. Asking twice changes nothing.
    #[must_use]
    pub fn next_step(&self) -> Step {
        match &self.phase {
            Phase::Model(tools) => Step::CallModel { tools: *tools },
            Phase::Tools(open) => Step::RunTools(next_group(open)),
            Phase::Ended(end) => Step::Finish(end.clone()),
        }
    }

    /// The model answered. `plan` looks each requested call up in the registry.
    pub fn on_reply(
        &mut self,
        mut reply: Reply,
        plan: impl Fn(&ToolCall) -> CallPlan,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        let Phase::Model(tools) = self.phase else {
            return Vec::new();
        };
        self.iterations += 1;
        let mut records = self.count(&reply);
        if tools == ToolUse::Withheld {
            // It was asked to say how things stand; calls made all the same are not run.
            reply.calls.clear();
        }
        if reply.says_nothing() {
            return self.on_silence(records);
        }
        if reply.calls.is_empty() {
            let completed = tools == ToolUse::Offered;
            let content = reply.text.clone();
            let message_id = reply.message_id;
            records.push(Record::Message(reply.into_message(
                self.run_id,
                MessageState::Complete,
                now,
            )));
            records.push(Record::Event(Event::StreamEnd {
                content,
                message_id,
                context_tokens: self.context_tokens,
                max_context_tokens: self.max_context_tokens,
                completed,
            }));
            let end = if completed {
                RunEnd::Answered
            } else {
                RunEnd::Limited
            };
            self.end(end, &mut records);
            return records;
        }
        self.open_calls(reply, plan, now, &mut records);
        records
    }

    /// The call failed for good. What had been said is kept.
    pub fn on_model_failed(
        &mut self,
        partial: Reply,
        error: NaviError,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        let mut records = self.keep_partial(partial, MessageState::Failed, now);
        self.fail(error, &mut records);
        records
    }

    /// These calls begin. To be recorded before they do: that is what makes a crash
    /// between a call's effect and its result visible afterwards.
    pub fn on_tools_started(&mut self, group: &[PlannedCall]) -> Vec<Record> {
        let Phase::Tools(open) = &mut self.phase else {
            return Vec::new();
        };
        let mut records = Vec::new();
        for planned in group {
            let found = open
                .iter_mut()
                .find(|entry| entry.planned.call.id == planned.call.id && !entry.started);
            if let Some(entry) = found {
                entry.started = true;
                records.push(Record::Event(started(entry)));
            }
        }
        records
    }

    /// A call ended. Results are recorded in the order of the calls: this one may have
    /// to wait for those before it.
    pub fn on_tool_result(
        &mut self,
        call_id: &CallId,
        result: CallResult,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        let Phase::Tools(open) = &mut self.phase else {
            return Vec::new();
        };
        if let Some(entry) = open
            .iter_mut()
            .find(|entry| &entry.planned.call.id == call_id && entry.result.is_none())
        {
            entry.result = Some(result);
        }
        let mut records = Vec::new();
        while let Some(entry) = open.pop_front_if(|entry| entry.result.is_some()) {
            answer(self.run_id, entry, now, &mut records);
        }
        if open.is_empty() {
            self.phase = Phase::Model(if self.iterations < self.max_iterations {
                ToolUse::Offered
            } else {
                ToolUse::Withheld
            });
        }
        records
    }

    /// The run is cut off, by its user or by a shutdown. Keeps what was said and gives
    /// every open call its result.
    pub fn cut(&mut self, cut: &Cut, partial: Option<Reply>, now: DateTime<Utc>) -> Vec<Record> {
        if matches!(self.phase, Phase::Ended(_)) {
            return Vec::new();
        }
        let state = match cut {
            Cut::Stopped => MessageState::Stopped,
            Cut::Interrupted { .. } => MessageState::Interrupted,
        };
        let mut records = partial.map_or_else(Vec::new, |p| self.keep_partial(p, state, now));
        self.close_calls(cut, now, &mut records);
        match cut {
            Cut::Stopped => {
                records.push(Record::Event(Event::StreamStopped {}));
                self.end(RunEnd::Stopped, &mut records);
            }
            Cut::Interrupted { reason } => {
                records.push(Record::Event(Event::RunInterrupted {
                    reason: reason.clone(),
                    can_continue: true,
                }));
                let reason = reason.clone();
                self.end(RunEnd::Interrupted { reason }, &mut records);
            }
        }
        records
    }

    fn count(&mut self, reply: &Reply) -> Vec<Record> {
        let Some(usage) = reply.usage else {
            return Vec::new();
        };
        self.prompt_tokens += u64::from(usage.prompt_tokens);
        self.completion_tokens += u64::from(usage.completion_tokens);
        self.context_tokens = usage.prompt_tokens.saturating_add(usage.completion_tokens);
        vec![Record::ContextTokens(self.context_tokens)]
    }

    fn on_silence(&mut self, mut records: Vec<Record>) -> Vec<Record> {
        if self.asked_again {
            self.fail(
                NaviError::new(
                    ErrorCode::EmptyReply,
                    "the model answered nothing, twice; try again, or choose another model",
                ),
                &mut records,
            );
        } else {
            self.asked_again = true;
        }
        records
    }

    fn open_calls(
        &mut self,
        reply: Reply,
        plan: impl Fn(&ToolCall) -> CallPlan,
        now: DateTime<Utc>,
        records: &mut Vec<Record>,
    ) {
        let message_id = reply.message_id;
        let calls: Vec<ToolCall> = reply
            .calls
            .iter()
            .map(|requested| ToolCall {
                id: CallId::new(),
                name: requested.name.clone(),
                arguments: requested.arguments.clone(),
            })
            .collect();
        if !reply.thinking.is_empty() {
            records.push(Record::Event(Event::TurnThinking {
                thinking: reply.thinking.clone(),
                is_subagent: false,
            }));
        }
        let mut message = reply.into_message(self.run_id, MessageState::Complete, now);
        message.tool_calls.clone_from(&calls);
        records.push(Record::Message(message));
        self.asked_again = false;
        self.phase = Phase::Tools(
            calls
                .into_iter()
                .map(|call| OpenCall {
                    message_id,
                    planned: PlannedCall {
                        plan: plan(&call),
                        call,
                    },
                    started: false,
                    result: None,
                })
                .collect(),
        );
    }

    fn keep_partial(
        &mut self,
        partial: Reply,
        state: MessageState,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        let mut records = self.count(&partial);
        if !partial.text.is_empty() || !partial.thinking.is_empty() {
            // Calls that were cut off with it never began: they are not part of the history.
            records.push(Record::Message(partial.into_message(
                self.run_id,
                state,
                now,
            )));
        }
        records
    }

    fn close_calls(&mut self, cut: &Cut, now: DateTime<Utc>, records: &mut Vec<Record>) {
        let Phase::Tools(open) = &mut self.phase else {
            return;
        };
        for mut entry in std::mem::take(open) {
            let (outcome, text) = match (cut, entry.started) {
                (Cut::Stopped, true) => (
                    ToolOutcome::Stopped,
                    "stopped by the user while it ran; it may have taken effect in part",
                ),
                (Cut::Stopped, false) => {
                    (ToolOutcome::Stopped, "stopped by the user before it began")
                }
                (Cut::Interrupted { .. }, true) => (ToolOutcome::OutcomeUnknown, OUTCOME_UNKNOWN),
                (Cut::Interrupted { .. }, false) => (ToolOutcome::Failed, NOT_RUN),
            };
            if !entry.started {
                // So that every `tool_call` that a client sees has its `tool_started`.
                records.push(Record::Event(started(&entry)));
            }
            entry.result.get_or_insert_with(|| CallResult {
                outcome,
                text: text.to_owned(),
                duration_ms: 0,
            });
            answer(self.run_id, entry, now, records);
        }
    }

    fn fail(&mut self, error: NaviError, records: &mut Vec<Record>) {
        records.push(Record::Event(failed(&error)));
        self.end(RunEnd::Failed(error), records);
    }

    fn end(&mut self, end: RunEnd, records: &mut Vec<Record>) {
        records.push(Record::Ended(RunSummary {
            end: end.clone(),
            iterations: self.iterations,
            prompt_tokens: self.prompt_tokens,
            completion_tokens: self.completion_tokens,
        }));
        self.phase = Phase::Ended(end);
    }
}

/// The first calls that have not begun: one, or as many in a row as only read.
fn next_group(open: &VecDeque<OpenCall>) -> Vec<PlannedCall> {
    let side_by_side = |planned: &PlannedCall| {
        matches!(
            planned.plan,
            CallPlan::Run(Effect::Read) | CallPlan::Refuse(_)
        )
    };
    let mut waiting = open.iter().filter(|entry| !entry.started).peekable();
    let mut group = Vec::new();
    while let Some(entry) = waiting.next() {
        group.push(entry.planned.clone());
        let next_joins = waiting
            .peek()
            .is_some_and(|next| side_by_side(&next.planned));
        if !(side_by_side(&entry.planned) && next_joins) {
            break;
        }
    }
    group
}

/// The event of a run that failed.
#[must_use]
pub fn failed(error: &NaviError) -> Event {
    Event::Error {
        message: error.message.clone(),
        recoverable: false,
        code: error.code,
        client_id: None,
    }
}

fn started(entry: &OpenCall) -> Event {
    let call = &entry.planned.call;
    Event::ToolStarted {
        tool: call.name.clone(),
        args: call.arguments.clone(),
        is_subagent: false,
        call_id: call.id.clone(),
        message_id: entry.message_id,
    }
}

fn answer(run_id: RunId, entry: OpenCall, now: DateTime<Utc>, records: &mut Vec<Record>) {
    let Some(result) = entry.result else {
        return;
    };
    let call = entry.planned.call;
    let mut message = Message::tool_result(run_id, &call, result.outcome, result.text.clone(), now);
    message.duration_ms = Some(result.duration_ms);
    records.push(Record::Message(message));
    records.push(Record::Event(Event::ToolCall {
        tool: call.name,
        args: call.arguments,
        result: result.text,
        success: result.outcome == ToolOutcome::Success,
        outcome: result.outcome,
        is_subagent: false,
        call_id: call.id,
        duration_ms: result.duration_ms,
    }));
}
