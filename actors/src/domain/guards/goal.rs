//! The user's goal, repeated every few iterations (SPEC section 5, `goal_anchoring_enabled`).

use crate::domain::shorten;

/// As much of the goal as is repeated.
const MAX_CHARS: usize = 500;

/// The note, where one is due after so many iterations. An interval of 0 is never due, and
/// neither is a goal without words.
#[must_use]
pub fn note(iterations: u32, interval: u32, goal: &str) -> Option<String> {
    if iterations == 0 || interval == 0 || !iterations.is_multiple_of(interval) {
        return None;
    }
    let goal = shorten::one_line(goal, MAX_CHARS);
    (!goal.is_empty()).then(|| {
        format!("[goal] What the user asked for: {goal}\nDo only what serves this. If it is reached, answer now.")
    })
}
