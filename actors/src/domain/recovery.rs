//! What a crash left behind, and how the history is made whole again (DESIGN section 4).

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::protocol::command::CallDecision;
use crate::protocol::event::{Event, PartKind};
use crate::protocol::ids::{CallId, MessageId, Origin, RunId};
use crate::protocol::message::{Message, MessageState, Role, ToolCall, ToolOutcome};
use crate::protocol::session::UnknownCall;

use super::run_loop::{
    CallResult, CallStage, Record, RunEnd, RunSummary, Unfinished, call_started, end_call, failed,
};
use super::session::state::TokensUsed;

/// Streamed text that no message holds yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedPart {
    pub message_id: MessageId,
    pub kind: PartKind,
    pub text: String,
}

/// A run that nobody drives any more, as far as it got.
#[derive(Debug)]
pub struct DeadRun<'a, M> {
    pub run_id: RunId,
    /// The conversation.
    pub messages: &'a [M],
    pub unfinished: &'a [UnfinishedPart],
    /// The calls whose start was told, and whether their tool is lent. One that started may have
    /// taken effect; one that did not start certainly has not.
    pub started: &'a HashMap<CallId, bool>,
    /// The calls that only read: they can be made again.
    pub reads: &'a HashSet<CallId>,
    /// What its model calls used.
    pub used: TokensUsed,
}

/// Everything that is to be recorded so that the run has its end: what the model had said,
/// one result for each call without one, and how it ended.
#[must_use]
pub fn close<M: AsRef<Message>>(
    dead: &DeadRun<'_, M>,
    end: RunEnd,
    now: DateTime<Utc>,
) -> Vec<Record> {
    let run_id = dead.run_id;
    let mut records = Vec::new();
    let origin = Origin::foreground(run_id);
    let (why, state) = match end {
        RunEnd::Stopped => (Unfinished::Stopped, MessageState::Stopped),
        _ => (Unfinished::Down, MessageState::Interrupted),
    };
    for open in open_calls(dead.messages) {
        let started = dead.started.get(&open.call.id);
        let begun = started.is_some();
        // Of one that did not start nothing says any more whose tool it was of.
        let lent = started.copied().unwrap_or_default();
        if !begun {
            records.push(Record::Event(call_started(
                open.call,
                open.message_id,
                origin,
                lent,
            )));
        }
        let stage = match begun {
            false => CallStage::NotBegun,
            true if dead.reads.contains(&open.call.id) => CallStage::Reading,
            true => CallStage::Working,
        };
        let result = CallResult::unfinished(why, stage);
        let call = open.call.clone();
        end_call(origin, (call, lent), result, now, &mut records);
    }
    records.extend(
        partial_replies((run_id, state), dead.unfinished, now)
            .into_iter()
            .map(Record::Message),
    );
    records.push(Record::Event(match &end {
        RunEnd::Failed(error) => failed(error),
        RunEnd::Interrupted { reason } => Event::interrupted(reason),
        // A loop that answered or came to a limit has recorded its own end, and is no dead.
        RunEnd::Answered | RunEnd::Limited | RunEnd::Stopped => Event::StreamStopped {},
    }));
    records.push(Record::Ended(RunSummary {
        end,
        text: String::new(),
        // These two its loop alone knew.
        leaked_calls: 0,
        iterations: 0,
        prompt_tokens: dead.used.prompt,
        completion_tokens: dead.used.completion,
        cached_tokens: dead.used.cached,
    }));
    records
}

/// Calls of a run's messages that were cut off, with what became of them.
fn cut_calls<M: AsRef<Message>>(messages: &[M]) -> impl Iterator<Item = (Open<'_>, ToolOutcome)> {
    let results = messages.iter().map(AsRef::as_ref).filter_map(|result| {
        let outcome = result.outcome?;
        let unclear = matches!(
            outcome,
            ToolOutcome::OutcomeUnknown | ToolOutcome::Interrupted
        );
        unclear.then_some((result.tool_call_id.as_ref()?, outcome))
    });
    results.filter_map(|(id, outcome)| {
        let askers = messages.iter().map(AsRef::as_ref);
        let mut calls = askers.flat_map(|message| {
            let open = |call| Open {
                message_id: message.id,
                call,
            };
            message.tool_calls.iter().map(open)
        });
        let found = calls.find(|open| open.call.id == *id)?;
        Some((found, outcome))
    })
}

/// The calls of a run that nobody has said yet what became of.
#[must_use]
pub fn unknown_calls<M: AsRef<Message>>(
    messages: &[M],
    decisions: &BTreeMap<CallId, CallDecision>,
) -> Vec<UnknownCall> {
    cut_calls(messages)
        .filter(|(open, outcome)| {
            *outcome == ToolOutcome::OutcomeUnknown && !decisions.contains_key(&open.call.id)
        })
        .map(|(open, _)| UnknownCall {
            call_id: open.call.id.clone(),
            tool: open.call.name.clone(),
            args: open.call.arguments.clone(),
            message_id: open.message_id,
        })
        .collect()
}

/// The calls of a run that are to be made again when it goes on: those that only read, and
/// those that the user said so of.
#[must_use]
pub fn calls_again<M: AsRef<Message>>(
    messages: &[M],
    decisions: &BTreeMap<CallId, CallDecision>,
) -> Vec<ToolCall> {
    cut_calls(messages)
        .filter(|(open, outcome)| {
            *outcome == ToolOutcome::Interrupted
                || decisions.get(&open.call.id) == Some(&CallDecision::Retry)
        })
        .map(|(open, _)| open.call.clone())
        .collect()
}

struct Open<'a> {
    message_id: MessageId,
    call: &'a ToolCall,
}

/// Calls without a result. Only the last assistant message can have any.
fn open_calls(messages: &[impl AsRef<Message>]) -> Vec<Open<'_>> {
    let mut answered = HashSet::new();
    for message in messages.iter().rev().map(AsRef::as_ref) {
        match message.role {
            Role::Tool => answered.extend(&message.tool_call_id),
            Role::Assistant => {
                return message
                    .tool_calls
                    .iter()
                    .filter(|call| !answered.contains(&call.id))
                    .map(|call| Open {
                        message_id: message.id,
                        call,
                    })
                    .collect();
            }
            Role::User | Role::System => return Vec::new(),
        }
    }
    Vec::new()
}

/// Text and reasoning of a reply, put together again. A tool's output is not kept: the
/// call's result says what became of it.
fn partial_replies(
    (run_id, state): (RunId, MessageState),
    unfinished: &[UnfinishedPart],
    now: DateTime<Utc>,
) -> Vec<Message> {
    let mut replies: Vec<Message> = Vec::new();
    for part in unfinished {
        if part.kind == PartKind::ToolOutput || part.text.is_empty() {
            continue;
        }
        let at = replies
            .iter()
            .position(|reply| reply.id == part.message_id)
            .unwrap_or_else(|| {
                let mut reply = Message::assistant(part.message_id, run_id, now);
                reply.state = state;
                replies.push(reply);
                replies.len() - 1
            });
        match part.kind {
            PartKind::Text => replies[at].content = Some(part.text.clone()),
            PartKind::Thinking => replies[at].thinking = Some(part.text.clone()),
            PartKind::ToolOutput => {}
        }
    }
    replies
}
