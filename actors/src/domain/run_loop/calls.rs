//! The calls of one reply, from their start to their results.

use std::collections::{HashSet, VecDeque};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::steps::{
    CallPlan, CallResult, Cut, NOT_FINISHED, NOT_RUN, OUTCOME_UNKNOWN, PlannedCall, Record,
};
use crate::protocol::event::Event;
use crate::protocol::ids::{ApprovalId, CallId, MessageId, Origin};
use crate::protocol::message::{Message, ToolOutcome};
use crate::protocol::tool::Effect;

/// What a call is told that the run's time limit ended.
const TIME_UP: &str =
    "ended: the time limit of this task ran out while it ran; it may have taken effect in part";
const TIME_UP_BEFORE: &str = "not run: the time limit of this task ran out before it began";

/// Calls of the last reply, in order; those that are answered have left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct OpenCalls(VecDeque<OpenCall>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OpenCall {
    message_id: MessageId,
    planned: PlannedCall,
    /// The request that it waits for, or waited for.
    #[serde(default)]
    asked: Option<Asked>,
    started: bool,
    /// Ended, but a call before it has not.
    result: Option<CallResult>,
}

/// What a call waits for before it begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub approval_id: ApprovalId,
    /// What the answer is bound to.
    pub digest: String,
    /// What was asked, in a line.
    pub summary: String,
}

/// What was recorded after a loop was stored.
#[derive(Clone, Copy, Debug)]
pub struct Since<'a> {
    /// The calls that have a result.
    pub answered: &'a HashSet<CallId>,
    /// Those whose start was told.
    pub begun: &'a HashSet<CallId>,
    /// The requests that still wait.
    pub waiting: &'a HashSet<ApprovalId>,
}

/// Why calls are closed before they ended.
pub(super) enum Closing<'a> {
    Cut(&'a Cut),
    TimeUp,
}

impl OpenCalls {
    pub(super) fn of(message_id: MessageId, planned: Vec<PlannedCall>) -> Self {
        Self(
            planned
                .into_iter()
                .map(|planned| OpenCall {
                    message_id,
                    planned,
                    asked: None,
                    started: false,
                    result: None,
                })
                .collect(),
        )
    }

    /// A person is asked about a call that has not begun.
    pub(super) fn ask(&mut self, call_id: &CallId, asked: Asked) {
        if let Some(entry) = self
            .0
            .iter_mut()
            .find(|entry| &entry.planned.call.id == call_id && !entry.started)
        {
            entry.asked = Some(asked);
        }
    }

    pub(super) fn asked(&self, call_id: &CallId) -> Option<&Asked> {
        self.entry(call_id)?.asked.as_ref()
    }

    /// The message that made this call.
    pub(super) fn asked_by(&self, call_id: &CallId) -> Option<MessageId> {
        self.entry(call_id).map(|entry| entry.message_id)
    }

    fn entry(&self, call_id: &CallId) -> Option<&OpenCall> {
        let mut entries = self.0.iter();
        entries.find(|entry| &entry.planned.call.id == call_id)
    }

    /// The calls that have not begun.
    pub(super) fn not_begun(&self) -> impl Iterator<Item = &PlannedCall> {
        let waiting = self.0.iter().filter(|entry| !entry.started);
        waiting.map(|entry| &entry.planned)
    }

    /// Takes in what was recorded after the loop was stored. What had begun and has no result
    /// went down with the process; what was answered and had not begun is asked anew.
    pub(super) fn resume(
        &mut self,
        since: &Since<'_>,
        origin: Origin,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        self.0
            .retain(|entry| !since.answered.contains(&entry.planned.call.id));
        for entry in &mut self.0 {
            entry.started = since.begun.contains(&entry.planned.call.id);
            entry
                .asked
                .take_if(|asked| !since.waiting.contains(&asked.approval_id));
            entry.result = entry.started.then(|| lost(&entry.planned));
        }
        self.flush(origin, now)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first calls that have not begun: one, or as many in a row as may run side by side.
    pub(super) fn next_group(&self) -> Vec<PlannedCall> {
        let mut waiting = self.0.iter().filter(|entry| !entry.started).peekable();
        let mut group = Vec::new();
        while let Some(entry) = waiting.next() {
            group.push(entry.planned.clone());
            let next_joins = waiting
                .peek()
                .is_some_and(|next| next.planned.plan.side_by_side());
            if !(entry.planned.plan.side_by_side() && next_joins) {
                break;
            }
        }
        group
    }

    pub(super) fn start(&mut self, group: &[PlannedCall], origin: Origin) -> Vec<Record> {
        let mut records = Vec::new();
        for planned in group {
            let found = self
                .0
                .iter_mut()
                .find(|entry| entry.planned.call.id == planned.call.id && !entry.started);
            if let Some(entry) = found {
                entry.started = true;
                records.push(started(entry, origin));
            }
        }
        records
    }

    /// Takes in a result, and gives back what may be recorded now, in the order of the calls.
    pub(super) fn end(
        &mut self,
        call_id: &CallId,
        result: CallResult,
        origin: Origin,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        if let Some(entry) = self
            .0
            .iter_mut()
            .find(|entry| &entry.planned.call.id == call_id && entry.result.is_none())
        {
            entry.result = Some(result);
        }
        self.flush(origin, now)
    }

    /// Records the results that no call before them is in the way of.
    fn flush(&mut self, origin: Origin, now: DateTime<Utc>) -> Vec<Record> {
        let mut records = Vec::new();
        while let Some(entry) = self.0.pop_front_if(|entry| entry.result.is_some()) {
            answer(origin, entry, now, &mut records);
        }
        records
    }

    /// Gives every call that is left its result.
    pub(super) fn close(
        &mut self,
        closing: &Closing<'_>,
        origin: Origin,
        now: DateTime<Utc>,
        records: &mut Vec<Record>,
    ) {
        for mut entry in std::mem::take(&mut self.0) {
            let (outcome, text) = match (closing, entry.started) {
                (Closing::Cut(Cut::Stopped), true) => (
                    ToolOutcome::Stopped,
                    "stopped by the user while it ran; it may have taken effect in part",
                ),
                (Closing::Cut(Cut::Stopped), false) => {
                    (ToolOutcome::Stopped, "stopped by the user before it began")
                }
                (Closing::Cut(Cut::Interrupted { .. }), true) => {
                    cut_off(only_reads(&entry.planned))
                }
                (Closing::Cut(Cut::Interrupted { .. }), false) => (ToolOutcome::Failed, NOT_RUN),
                (Closing::TimeUp, true) => (ToolOutcome::Failed, TIME_UP),
                (Closing::TimeUp, false) => (ToolOutcome::Failed, TIME_UP_BEFORE),
            };
            if !entry.started {
                // So that every `tool_call` that a client sees has its `tool_started`.
                records.push(started(&entry, origin));
            }
            entry.result.get_or_insert_with(|| CallResult {
                outcome,
                text: text.to_owned(),
                outside: false,
                files: Vec::new(),
                duration_ms: 0,
            });
            answer(origin, entry, now, records);
        }
    }
}

/// What becomes of a call that was under way when the process went down.
#[must_use]
pub fn cut_off(only_reads: bool) -> (ToolOutcome, &'static str) {
    if only_reads {
        (ToolOutcome::Interrupted, NOT_FINISHED)
    } else {
        (ToolOutcome::OutcomeUnknown, OUTCOME_UNKNOWN)
    }
}

fn only_reads(planned: &PlannedCall) -> bool {
    match &planned.plan {
        CallPlan::Run { effect, .. } => *effect == Effect::Read,
        CallPlan::Refuse(_) => true,
    }
}

/// The result of a call that was under way when the process went down.
fn lost(planned: &PlannedCall) -> CallResult {
    let (outcome, text) = cut_off(only_reads(planned));
    CallResult {
        outcome,
        text: text.to_owned(),
        outside: false,
        files: Vec::new(),
        duration_ms: 0,
    }
}

fn started(entry: &OpenCall, origin: Origin) -> Record {
    let call = &entry.planned.call;
    Record::Event(Event::ToolStarted {
        tool: call.name.clone(),
        args: call.arguments.clone(),
        is_subagent: origin.is_subagent(),
        call_id: call.id.clone(),
        message_id: entry.message_id,
    })
}

fn answer(origin: Origin, entry: OpenCall, now: DateTime<Utc>, records: &mut Vec<Record>) {
    let Some(result) = entry.result else {
        return;
    };
    let call = entry.planned.call;
    let mut message = Message::tool_result(
        origin.run_id,
        &call,
        result.outcome,
        result.text.clone(),
        now,
    );
    message.duration_ms = Some(result.duration_ms);
    message.outside = result.outside;
    if result.outside {
        records.push(Record::Tainted);
    }
    message.files.clone_from(&result.files);
    records.push(Record::Message(message));
    records.push(Record::Event(Event::ToolCall {
        tool: call.name,
        args: call.arguments,
        result: result.text,
        success: result.outcome == ToolOutcome::Success,
        outcome: result.outcome,
        is_subagent: origin.is_subagent(),
        call_id: call.id,
        duration_ms: result.duration_ms,
        files: result.files,
    }));
}
