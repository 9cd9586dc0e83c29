//! How a call ends: every call gets one result, by these functions alone.

use chrono::{DateTime, Utc};

use super::steps::{CallResult, Record};
use crate::protocol::event::Event;
use crate::protocol::ids::{MessageId, Origin};
use crate::protocol::message::{Message, ToolCall, ToolOutcome};

/// What the model and the user are told of a call that was under way when Navi went down.
pub const OUTCOME_UNKNOWN: &str = "outcome unknown: Navi went down while this ran; it may or may not have taken effect, so check before doing it again";

/// What they are told of one that had not begun.
pub const NOT_RUN: &str = "not run: Navi went down before this began";

/// What they are told of one that only read, and did not end.
pub const NOT_FINISHED: &str = "not finished: Navi went down while this ran; it changes nothing, so call it again if you need it";

/// Why a call has no result of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// Its user stopped the run.
    Stopped,
    /// The process went down, or the run's driver died.
    Down,
    /// The run's time was up.
    TimeUp,
    /// It was a subagent's, which ended.
    EndedWithRun,
}

/// How far a call came that has no result of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStage {
    /// It certainly changed nothing.
    NotBegun,
    /// Nor did this one, which only reads.
    Reading,
    Working,
}

impl CallResult {
    /// The result of a call that has none of its own.
    #[must_use]
    pub fn unfinished(why: Unfinished, stage: CallStage) -> Self {
        let (outcome, text) = match (why, stage) {
            (Unfinished::Stopped, CallStage::Reading | CallStage::Working) => (
                ToolOutcome::Stopped,
                "stopped by the user while it ran; it may have taken effect in part",
            ),
            (Unfinished::Stopped, CallStage::NotBegun) => {
                (ToolOutcome::Stopped, "stopped by the user before it began")
            }
            (Unfinished::Down, CallStage::Reading) => (ToolOutcome::Interrupted, NOT_FINISHED),
            (Unfinished::Down, CallStage::Working) => {
                (ToolOutcome::OutcomeUnknown, OUTCOME_UNKNOWN)
            }
            (Unfinished::Down, CallStage::NotBegun) => (ToolOutcome::Failed, NOT_RUN),
            (Unfinished::TimeUp, CallStage::Reading | CallStage::Working) => (
                ToolOutcome::Failed,
                "ended: the time limit of this task ran out while it ran; it may have taken effect in part",
            ),
            (Unfinished::TimeUp, CallStage::NotBegun) => (
                ToolOutcome::Failed,
                "not run: the time limit of this task ran out before it began",
            ),
            (Unfinished::EndedWithRun, _) => (
                ToolOutcome::Stopped,
                "ended with its subagent; it may have taken effect in part",
            ),
        };
        Self {
            outcome,
            text: text.to_owned(),
            outside: false,
            files: Vec::new(),
            duration_ms: 0,
        }
    }
}

/// The event of a call that begins. `lent`: its tool is the program's that asks.
#[must_use]
pub fn call_started(call: &ToolCall, message_id: MessageId, origin: Origin, lent: bool) -> Event {
    Event::ToolStarted {
        tool: call.name.clone(),
        args: call.arguments.clone(),
        is_subagent: origin.is_subagent(),
        call_id: call.id.clone(),
        message_id,
        lent,
    }
}

/// The event of a call that ended. `lent` as it began.
#[must_use]
pub fn call_ended(call: ToolCall, result: CallResult, origin: Origin, lent: bool) -> Event {
    Event::ToolCall {
        tool: call.name,
        args: call.arguments,
        result: result.text,
        success: result.outcome == ToolOutcome::Success,
        outcome: result.outcome,
        is_subagent: origin.is_subagent(),
        call_id: call.id,
        duration_ms: result.duration_ms,
        outside: result.outside,
        files: result.files,
        lent,
    }
}

/// Records the one result of a call, of a lent tool or not.
pub(in crate::domain) fn end_call(
    origin: Origin,
    (call, lent): (ToolCall, bool),
    result: CallResult,
    now: DateTime<Utc>,
    records: &mut Vec<Record>,
) {
    let mut message = Message::tool_result(
        origin.run_id,
        &call,
        result.outcome,
        result.text.clone(),
        now,
    );
    message.duration_ms = Some(result.duration_ms);
    message.outside = result.outside;
    message.files.clone_from(&result.files);
    if result.outside {
        records.push(Record::Tainted);
    }
    records.push(Record::Message(message));
    records.push(Record::Event(call_ended(call, result, origin, lent)));
}
