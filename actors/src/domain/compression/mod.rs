//! Compression of `context` (SPEC section 8): when it is due, what it takes, what it leaves.
//!
//! In order: [`is_due`], [`choose_cut`], [`transcript`] of the old part, [`request_messages`]
//! for the one model call, [`checked`] on its answer, [`summary_message`], [`compressed`]. A
//! fault anywhere leaves the context as it was: nothing here changes one in place.

mod summary;
mod transcript;

use std::borrow::Borrow;
use std::collections::HashSet;

use super::history::ContextState;
use super::turns;
use crate::protocol::ids::MessageId;
use crate::protocol::message::{Message, Role};
use crate::protocol::plan::Plan;
use crate::protocol::todo::{Scratchpad, TodoItem};

pub use summary::{
    SummaryFault, answer_tokens, checked, language, request_messages, summary_message,
};
pub use transcript::transcript;

/// The session's state that code carries over a compression, so that no model can lose it.
#[derive(Clone, Copy, Debug)]
pub struct TypedState<'a> {
    /// The newest plan.
    pub plan: Option<&'a Plan>,
    pub todo: &'a [TodoItem],
    pub scratchpad: &'a Scratchpad,
}

/// Where a context is parted: what is older becomes a summary, what follows stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// How many of the messages are older.
    pub older: usize,
    /// The ordinal of the first message that stays: the context's new start.
    pub start: u64,
}

/// A context after compression, with what `context_compressed` tells of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Compressed {
    /// Its memory is as it was: whoever stores it puts the newest there, since the prefix
    /// changes now anyway.
    pub state: ContextState,
    /// How many messages of the conversation the model saw, and sees now.
    pub messages_before: u32,
    pub messages_after: u32,
    /// The first message that stands word for word; none where no message does.
    pub first_kept: Option<MessageId>,
}

/// Whether a context is so full that it is to be compressed. `threshold` is the part of the
/// window, from 0 to 1; a window of 0 is one that nobody knows, and is never full.
#[must_use]
pub fn is_due(context_tokens: u32, window: u32, threshold: f64, enabled: bool) -> bool {
    enabled && window > 0 && f64::from(context_tokens) >= f64::from(window) * threshold
}

/// Parts a context, given as its messages with their ordinals, oldest first. The last
/// `keep_recent_turns` stay, and never fewer than one: the newest may not be answered yet.
///
/// None where nothing is older than those. A cut stands at a turn's beginning; should a call and
/// its result stand on two sides of it all the same, it moves back until they don't.
#[must_use]
pub fn choose_cut<M: Borrow<Message>>(
    messages: &[(u64, M)],
    keep_recent_turns: usize,
) -> Option<Cut> {
    let plain: Vec<&Message> = messages
        .iter()
        .map(|(_, message)| message.borrow())
        .collect();
    let starts = turns::starts(&plain);
    let newest = starts.len().checked_sub(keep_recent_turns.max(1))?;
    starts[..=newest]
        .iter()
        .rev()
        .copied()
        .find(|older| !parts_a_call(&plain, *older))
        .filter(|older| *older > 0)
        .map(|older| Cut {
            older,
            start: messages[older].0,
        })
}

fn parts_a_call(messages: &[&Message], older: usize) -> bool {
    let (old, kept) = messages.split_at(older);
    let mut results = kept
        .iter()
        .filter(|message| message.role == Role::Tool)
        .filter_map(|message| message.tool_call_id.as_ref())
        .peekable();
    if results.peek().is_none() {
        return false;
    }
    let open: HashSet<_> = old
        .iter()
        .flat_map(|message| &message.tool_calls)
        .map(|call| &call.id)
        .collect();
    let answered: HashSet<_> = kept
        .iter()
        .flat_map(|message| &message.tool_calls)
        .map(|call| &call.id)
        .collect();
    results.any(|id| open.contains(id) && !answered.contains(id))
}

/// The context after `messages[..cut.older]` became `summary`. The newest plan goes in whole
/// after the summary, unless its own message stays.
#[must_use]
pub fn compressed<M: Borrow<Message>>(
    before: &ContextState,
    messages: &[(u64, M)],
    cut: Cut,
    summary: Message,
    plan: Option<&Plan>,
) -> Compressed {
    let kept = messages.get(cut.older..).unwrap_or_default();
    let stands = |plan: &&Plan| {
        kept.iter()
            .any(|(_, message)| message.borrow().id == plan.message_id)
    };
    let plan = plan.filter(|plan| !stands(plan));
    let seen = |messages: usize, summary: bool, plan: bool| {
        let seen = messages + usize::from(summary) + usize::from(plan);
        u32::try_from(seen).unwrap_or(u32::MAX)
    };
    Compressed {
        messages_before: seen(
            messages.len(),
            before.summary.is_some(),
            before.plan.is_some(),
        ),
        messages_after: seen(kept.len(), true, plan.is_some()),
        first_kept: kept.first().map(|(_, message)| message.borrow().id),
        state: ContextState {
            start: cut.start,
            summary: Some(summary),
            plan: plan.cloned(),
            memory: before.memory.clone(),
            decisions: before
                .decisions
                .iter()
                .filter(|(call, _)| {
                    kept.iter()
                        .any(|(_, message)| message.borrow().tool_call_id.as_ref() == Some(call))
                })
                .map(|(call, decision)| (call.clone(), *decision))
                .collect(),
        },
    }
}

#[cfg(test)]
mod tests;
