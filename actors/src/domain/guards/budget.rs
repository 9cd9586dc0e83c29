//! How many iterations are left (SPEC section 5, `iteration_budget_enabled`).

use super::Progress;

/// From so many left on, the model is told to finish.
const FEW: u32 = 5;

/// The whole budget, as the system message has it: it stands there in every call.
#[must_use]
pub fn whole(max_iterations: u32) -> String {
    match max_iterations {
        0 | 1 => "You have one iteration for a task: answer at once.".to_owned(),
        max => format!(
            "You have at most {max} iterations for a task; every answer that calls tools is one."
        ),
    }
}

/// The note before the next call. None once the budget is used up: the model is then asked,
/// in other words, to say how things stand. None either before the first call of a long budget,
/// where [`whole`] tells it all: a number last in the prompt is what a small model answers to.
#[must_use]
pub fn note(progress: Progress) -> Option<String> {
    let max = progress.max_iterations;
    let left = max.saturating_sub(progress.iterations);
    // A short budget as a whole is not yet a hurry.
    let few = FEW.min(max / 3);
    match left {
        0 => None,
        1 => Some(
            "[budget] This is the last iteration. Call only what you cannot do without; or answer the user now, and say what is not done."
                .to_owned(),
        ),
        left if left <= few => Some(format!(
            "[budget] Only {left} of {max} iterations left. Start nothing new: finish what matters most, then answer."
        )),
        left if progress.iterations == 0 && left > FEW => None,
        left => Some(format!(
            "[budget] {left} of {max} iterations left. Answer the user in words as soon as you can; call a tool only for what is still missing."
        )),
    }
}
