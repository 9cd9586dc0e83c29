//! A request to plan anew when a step failed (SPEC section 5, `adaptive_replan_enabled`).

use std::fmt::Write as _;

use crate::domain::shorten;
use crate::protocol::todo::{TodoItem, TodoStatus};

/// As many steps as the note names.
const MAX_NAMED: usize = 5;
const MAX_TEXT_CHARS: usize = 150;
const MAX_NOTE_CHARS: usize = 300;

/// The steps that failed between two lists: failed now, and not already failed before.
#[must_use]
pub fn newly_failed<'a>(before: &[TodoItem], after: &'a [TodoItem]) -> Vec<&'a TodoItem> {
    let failed_before = |item: &TodoItem| {
        // A plan that replaced the list gave the number to another step.
        before.iter().any(|old| {
            old.id == item.id && old.text == item.text && old.status == TodoStatus::Failed
        })
    };
    after
        .iter()
        .filter(|item| item.status == TodoStatus::Failed && !failed_before(item))
        .collect()
}

/// The request, with the steps and why they failed. None where none did.
#[must_use]
pub fn note(failed: &[&TodoItem]) -> Option<String> {
    if failed.is_empty() {
        return None;
    }
    let mut note = "[replan] Failed:".to_owned();
    for item in failed.iter().take(MAX_NAMED) {
        let text = shorten::one_line(&item.text, MAX_TEXT_CHARS);
        // Writing to a string cannot fail.
        let _ = write!(note, "\n- step {}: {text}", item.id);
        if let Some(why) = &item.note {
            let _ = write!(note, " ({})", shorten::one_line(why, MAX_NOTE_CHARS));
        }
    }
    if let Some(more) = failed.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
        let _ = write!(note, "\n- and {more} more");
    }
    note.push_str(
        "\nPlan anew before you go on: find another way, add the new steps with the todo tool, and mark steps that make no sense any more as skipped. If there is no other way, tell the user.",
    );
    Some(note)
}
