//! The calls of one reply, from their start to their results.

use std::collections::{HashSet, VecDeque};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::call_end::{CallStage, Unfinished, call_started, end_call};
use super::steps::{CallPlan, CallResult, PlannedCall, Record};
use crate::protocol::ids::{ApprovalId, CallId, MessageId, Origin};
use crate::protocol::tool::Effect;

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
    /// Ended, or refused and never begun, but a call before it has not.
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

    /// The calls that have not begun, and are not refused.
    pub(super) fn not_begun(&self) -> impl Iterator<Item = &PlannedCall> {
        let entries = self.0.iter();
        let waiting = entries.filter(|entry| !entry.started && entry.result.is_none());
        waiting.map(|entry| &entry.planned)
    }

    /// Takes in what was recorded after the loop was stored. What had begun and has no result
    /// went down with the process; a result that was kept until those before it are there stays;
    /// what was answered and had not begun is asked anew.
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
            if entry.started && entry.result.is_none() {
                let lost = CallResult::unfinished(Unfinished::Down, stage(entry));
                entry.result = Some(lost);
            }
        }
        self.flush(origin, now)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first calls that have not begun: one, or as many in a row as may run side by side.
    pub(super) fn next_group(&self) -> Vec<PlannedCall> {
        let mut waiting = self.not_begun().peekable();
        let mut group = Vec::new();
        while let Some(planned) = waiting.next() {
            group.push(planned.clone());
            let next_joins = waiting.peek().is_some_and(|next| next.plan.side_by_side());
            if !(planned.plan.side_by_side() && next_joins) {
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

    /// Records the results that no call before them is in the way of. A call that never began has
    /// its start told with its result, as in [`Self::close`]: before that, a crash would leave it
    /// as one that may have taken effect.
    fn flush(&mut self, origin: Origin, now: DateTime<Utc>) -> Vec<Record> {
        let mut records = Vec::new();
        while let Some(entry) = self.0.pop_front_if(|entry| entry.result.is_some()) {
            if !entry.started {
                records.push(started(&entry, origin));
            }
            if let Some(result) = entry.result {
                let PlannedCall { call, lent, .. } = entry.planned;
                end_call(origin, (call, lent), result, now, &mut records);
            }
        }
        records
    }

    /// Gives every call that is left its result.
    pub(super) fn close(
        &mut self,
        why: Unfinished,
        origin: Origin,
        now: DateTime<Utc>,
        records: &mut Vec<Record>,
    ) {
        for entry in std::mem::take(&mut self.0) {
            if !entry.started {
                // So that every `tool_call` that a client sees has its `tool_started`.
                records.push(started(&entry, origin));
            }
            let stage = stage(&entry);
            let result = entry
                .result
                .unwrap_or_else(|| CallResult::unfinished(why, stage));
            let PlannedCall { call, lent, .. } = entry.planned;
            end_call(origin, (call, lent), result, now, records);
        }
    }
}

fn stage(entry: &OpenCall) -> CallStage {
    match &entry.planned.plan {
        _ if !entry.started => CallStage::NotBegun,
        CallPlan::Run { effect, .. } if *effect != Effect::Read => CallStage::Working,
        CallPlan::Run { .. } | CallPlan::Refuse(_) => CallStage::Reading,
    }
}

fn started(entry: &OpenCall, origin: Origin) -> Record {
    let PlannedCall { call, lent, .. } = &entry.planned;
    Record::Event(call_started(call, entry.message_id, origin, *lent))
}
