//! Which messages a session shows and which the model sees: branches and the context's start.
//!
//! Messages are appended with ever growing ordinals, each on the branch that was shown then. An
//! edited message or an answer made anew starts a branch: the new messages share everything
//! before the fork with the branch they came from, and nothing is lost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::context::ContextMessage;
use crate::protocol::command::CallDecision;
use crate::protocol::ids::{CallId, MessageId, RunId};
use crate::protocol::message::{Message, Role, ToolOutcome};
use crate::protocol::plan::Plan;
use crate::protocol::session::Fork;

/// The branch that every session starts with.
pub const ROOT_BRANCH: u32 = 0;

/// How many branches a session may have.
pub const MAX_BRANCHES: usize = 500;

/// One way that a conversation went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Branch {
    pub id: u32,
    /// None for [`ROOT_BRANCH`] alone.
    pub parent_id: Option<u32>,
    /// Of the parent's path, the messages below this ordinal are shared.
    pub fork_ordinal: u64,
    pub context: ContextState,
}

impl Branch {
    /// The branch of a session in which nothing was edited yet.
    #[must_use]
    pub fn root() -> Self {
        Self {
            id: ROOT_BRANCH,
            parent_id: None,
            fork_ordinal: 0,
            context: ContextState::default(),
        }
    }
}

/// How `context` differs from `messages`: a pointer, never a copy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextState {
    /// Messages below this ordinal are replaced by `summary`.
    pub start: u64,
    /// `role: user`, `is_summary: true`.
    pub summary: Option<Message>,
    /// The plan whose message the summary replaced: it stands after it, whole. A newer plan
    /// leaves it where it is until the next compression, so that the prefix stays the same.
    pub plan: Option<Plan>,
    /// The summary of the user's facts as it stood when this context was first built: part of
    /// the prefix, so it changes only with a compression or a switch of profile.
    pub memory: Option<String>,
    /// What the user said of calls whose outcome a crash left unknown: their results read
    /// so for the model.
    pub decisions: BTreeMap<CallId, CallDecision>,
}

/// What the model reads in place of "outcome unknown".
const DONE: &str = "done: Navi went down while this ran, and the user says that it took effect; do not do it again";
const LEFT: &str =
    "left: Navi went down while this ran, and the user says to leave it; do not do it again";
const AGAIN: &str =
    "unknown: Navi went down while this ran, and the user wants it done again; that follows";

impl ContextState {
    /// A message as the model is to read it, with what the user decided about its call.
    #[must_use]
    pub fn as_decided(&self, message: ContextMessage) -> ContextMessage {
        let decision = message
            .tool_call_id
            .as_ref()
            .and_then(|call| self.decisions.get(call));
        let Some(decision) = decision else {
            return message;
        };
        let (outcome, text) = match decision {
            CallDecision::Done => (ToolOutcome::Success, DONE),
            CallDecision::Skip => (ToolOutcome::Failed, LEFT),
            CallDecision::Retry => (ToolOutcome::OutcomeUnknown, AGAIN),
        };
        ContextMessage::from(Message {
            content: Some(text.to_owned()),
            outcome: Some(outcome),
            ..Message::clone(&message)
        })
    }
}

/// Where a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessagePosition {
    pub branch: u32,
    pub ordinal: u64,
}

/// A stretch of a path: the messages of `branch` below `below`; all of them where it is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub branch: u32,
    pub below: Option<u64>,
}

/// The stretches that make up what `shown` shows, oldest first. Unknown branches show nothing.
#[must_use]
pub fn path(branches: &[Branch], shown: u32) -> Vec<Segment> {
    let mut path = Vec::new();
    let mut at = branches.iter().find(|branch| branch.id == shown);
    let mut below: Option<u64> = None;
    while let Some(branch) = at {
        path.push(Segment {
            branch: branch.id,
            below,
        });
        below = Some(below.map_or(branch.fork_ordinal, |b| b.min(branch.fork_ordinal)));
        // A parent is always older than its child, so this ends.
        at = branch.parent_id.and_then(|parent| {
            branches
                .iter()
                .find(|other| other.id == parent && other.id < branch.id)
        });
    }
    path.reverse();
    path
}

/// Below which ordinal two ways have the same messages.
#[must_use]
pub fn shared_below(one: &[Segment], other: &[Segment]) -> u64 {
    let mut shared = 0;
    for (one, other) in one.iter().zip(other) {
        if one.branch != other.branch {
            break;
        }
        let [one, other] = [one, other].map(|segment| segment.below.unwrap_or(u64::MAX));
        shared = one.min(other);
        if one != other {
            break;
        }
    }
    shared
}

/// A message as it counts for where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub ordinal: u64,
    pub role: Role,
    pub run_id: RunId,
}

/// From which ordinal on a page goes that is to hold `most` of these messages, which stand newest
/// first, one more than twice as many where there are so many.
///
/// It begins with a turn, where one begins within as many messages again, and never between a
/// call and its result.
#[must_use]
pub fn page_start(newest: &[Place], most: usize) -> u64 {
    if newest.len() <= most {
        return 0;
    }
    let begins_turn = |&at: &usize| {
        newest[at].role == Role::User
            && newest
                .get(at + 1)
                .is_none_or(|before| before.run_id != newest[at].run_id)
    };
    let places = most.saturating_sub(1)..newest.len().min(most.saturating_mul(2));
    let first = places
        .clone()
        .find(begins_turn)
        .or_else(|| places.clone().find(|at| newest[*at].role != Role::Tool))
        .unwrap_or(places.end - 1);
    newest.get(first + 1).map_or(0, |before| before.ordinal + 1)
}

/// The branch that says, or answers, the message at `ordinal` of the path of `shown` anew, and
/// what came after it. `before` is the last message of that path which both share. None where the
/// session has [`MAX_BRANCHES`] already.
///
/// It forks from the branch that holds `before`, right after it: so all that ever stood in
/// one place forks from the same one. What the model sees of the part that is shared stays
/// the same, unless the message lies inside what a summary replaces.
#[must_use]
pub fn fork(
    branches: &[Branch],
    shown: u32,
    before: Option<MessagePosition>,
    ordinal: u64,
) -> Option<Branch> {
    if branches.len() >= MAX_BRANCHES {
        return None;
    }
    let context = branches
        .iter()
        .find(|branch| branch.id == shown)
        .map(|branch| branch.context.clone())
        .unwrap_or_default();
    let newest = branches.iter().map(|branch| branch.id).max();
    Some(Branch {
        id: newest.unwrap_or(ROOT_BRANCH) + 1,
        parent_id: Some(before.map_or(ROOT_BRANCH, |place| place.branch)),
        fork_ordinal: before.map_or(0, |place| place.ordinal + 1),
        context: if context.start <= ordinal {
            context
        } else {
            ContextState {
                memory: context.memory,
                ..ContextState::default()
            }
        },
    })
}

/// The places on the path of `shown` from which other branches go on, oldest first.
/// `first_from` gives the first message of that path at or above an ordinal.
#[must_use]
pub fn forks(
    branches: &[Branch],
    shown: u32,
    first_from: impl Fn(u64) -> Option<MessageId>,
) -> Vec<Fork> {
    let path = path(branches, shown);
    let mut forks: Vec<(u64, Fork)> = Vec::new();
    for (index, segment) in path.iter().enumerate() {
        let next = path.get(index + 1).map(|next| next.branch);
        let mut children: Vec<&Branch> = branches
            .iter()
            .filter(|branch| branch.parent_id == Some(segment.branch))
            .filter(|branch| {
                segment
                    .below
                    .is_none_or(|below| branch.fork_ordinal <= below)
            })
            .collect();
        children.sort_by_key(|branch| (branch.fork_ordinal, branch.id));
        for place in children.chunk_by(|a, b| a.fork_ordinal == b.fork_ordinal) {
            let ordinal = place[0].fork_ordinal;
            let Some(message_id) = first_from(ordinal) else {
                continue;
            };
            let taken = place.iter().find(|branch| Some(branch.id) == next);
            let branch_ids = std::iter::once(segment.branch)
                .chain(place.iter().map(|branch| branch.id))
                .collect();
            let fork = Fork {
                message_id,
                branch_ids,
                shown: taken.map_or(segment.branch, |branch| branch.id),
            };
            forks.push((ordinal, fork));
        }
    }
    forks.sort_by_key(|(ordinal, _)| *ordinal);
    forks.into_iter().map(|(_, fork)| fork).collect()
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
