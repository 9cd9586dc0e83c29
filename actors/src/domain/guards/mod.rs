//! What keeps a run on its way (SPEC section 5): the notes that the model gets before a call,
//! and the calls that are refused. One value a run; it belongs to the run's serialisable state.

pub mod budget;
pub mod goal;
pub mod repeats;
pub mod replan;
pub mod stall;

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::protocol::message::ToolCall;
use crate::protocol::profile::ProfileFlags;
use crate::protocol::todo::TodoItem;
use repeats::RepeatGuard;
use stall::StallGuard;

/// All guards of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guards {
    repeats: RepeatGuard,
    stall: StallGuard,
    /// Due before the next model call, and only then.
    warning: Option<String>,
    replan: Option<String>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Iterations that are over.
    pub iterations: u32,
    pub max_iterations: u32,
}

/// An iteration that called tools, when all of them have their results.
#[derive(Clone, Copy, Debug)]
pub struct Iteration<'a> {
    pub calls: &'a [ToolCall],
    /// The todo list before the calls, and after them.
    pub todo_before: &'a [TodoItem],
    pub todo_after: &'a [TodoItem],
}

impl Guards {
    /// Before a call runs: why it is refused, where it is. To be asked once for each call, in
    /// their order, also for those that are refused for another reason.
    pub fn on_call(&mut self, name: &str, arguments: &Value) -> Option<String> {
        self.repeats.on_call(name, arguments)
    }

    /// After an iteration's calls: counts progress and notices steps that newly failed.
    pub fn on_iteration(&mut self, iteration: &Iteration<'_>, flags: &ProfileFlags) {
        self.warning = self
            .stall
            .on_iteration(iteration, flags.anti_stall_threshold)
            .filter(|_| flags.anti_stall_enabled);
        self.replan = flags
            .adaptive_replan_enabled
            .then(|| replan::newly_failed(iteration.todo_before, iteration.todo_after))
            .and_then(|failed| replan::note(&failed));
    }

    /// The notes of the next model call, in the order of SPEC section 7. Asking twice changes
    /// nothing.
    #[must_use]
    pub fn notes(&self, progress: Progress, goal: &str, flags: &ProfileFlags) -> Vec<String> {
        let budget = flags
            .iteration_budget_enabled
            .then(|| budget::note(progress))
            .flatten();
        let goal = flags
            .goal_anchoring_enabled
            .then(|| goal::note(progress.iterations, flags.goal_anchoring_interval, goal))
            .flatten();
        [budget, goal, self.warning.clone(), self.replan.clone()]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// Which call this is: equal for equal names and equal arguments, in whatever order their keys
/// stand, and whether or not the backend read them as JSON already. A number, since arguments
/// can be whole files and the guards are stored. After an upgrade of the compiler it may be
/// another one; a run that goes on across that counts anew.
fn fingerprint(name: &str, arguments: &Value) -> u64 {
    let parsed = arguments
        .as_str()
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    let mut hasher = DefaultHasher::new();
    (name, parsed.as_ref().unwrap_or(arguments)).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
