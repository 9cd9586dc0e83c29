//! Warns a run that moves without getting anywhere (SPEC section 5, `anti_stall_enabled`).

use serde::{Deserialize, Serialize};

use super::{Iteration, fingerprint};
use crate::protocol::todo::TodoItem;

/// Counts iterations in a row that brought nothing.
///
/// An iteration brought something where the status of a todo step changed, unless it only
/// repeated calls of the iteration before: a model can also mark a step to and fro.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StallGuard {
    /// Since the last progress or the last warning.
    stalled: u32,
    /// Those of them that only repeated calls.
    repeated: u32,
    last_calls: Vec<u64>,
}

impl StallGuard {
    /// Counts an iteration. Gives the warning at the threshold, and then counts anew, so that
    /// the next one is as far away again.
    pub fn on_iteration(&mut self, iteration: &Iteration<'_>, threshold: u32) -> Option<String> {
        let calls: Vec<u64> = iteration
            .calls
            .iter()
            .map(|call| fingerprint(&call.name, &call.arguments))
            .collect();
        let repeats = !calls.is_empty() && calls.iter().all(|call| self.last_calls.contains(call));
        self.last_calls = calls;
        if !repeats && has_progress(iteration.todo_before, iteration.todo_after) {
            self.stalled = 0;
            self.repeated = 0;
            return None;
        }
        self.stalled = self.stalled.saturating_add(1);
        self.repeated = self.repeated.saturating_add(u32::from(repeats));
        if self.stalled < threshold.max(1) {
            return None;
        }
        let note = warning(self.stalled, self.repeated, iteration.todo_after);
        self.stalled = 0;
        self.repeated = 0;
        Some(note)
    }
}

fn has_progress(before: &[TodoItem], after: &[TodoItem]) -> bool {
    after.iter().any(|item| {
        before
            .iter()
            .any(|old| old.id == item.id && old.status != item.status)
    })
}

fn warning(stalled: u32, repeated: u32, todo: &[TodoItem]) -> String {
    let what = if repeated == stalled {
        format!("The last {stalled} iterations repeated the same call.")
    } else if todo.is_empty() {
        format!("{stalled} iterations in a row without marked progress.")
    } else {
        format!("{stalled} iterations in a row without a change in the todo list.")
    };
    let then = if todo.is_empty() {
        "If you have what you need, answer now. If not, try another way, or tell the user what stands in the way."
    } else {
        "Mark what is done. If the way does not work, mark the step as failed and try another, or tell the user what stands in the way."
    };
    format!("[stall] {what} {then}")
}
