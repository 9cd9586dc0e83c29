//! What the model is told beside the conversation: notes at the end of one call.

use super::{Phase, RunLoop, ToolUse};
use crate::domain::demands::Demands;
use crate::domain::guards::Progress;
use crate::domain::plan_edit;

/// What the model is told once, right after its plan.
const CARRY_OUT: &str = "[plan] Carry out the plan above now, one step after the other.";

/// And of the list, where the plan's steps are in it.
const MARKED: &str = " Steps with TOOL are marked in the todo list as you call it; mark the others as you begin and end them.";

/// The same where each step is to be proven.
const PROVEN: &str = " Steps with TOOL are marked as begun in the todo list as you call it; mark the others as you begin them, and each as done with a validation.";

/// What it is told when it may only say how things stand.
const LIMIT: &str = "[limit] The limit of this task is reached. Say briefly what is done and what is not; call no tools.";

/// What it is told where its answer was none.
const UNFINISHED: &str = "[unfinished] You said what you would do, or wrote a call as text, and called no tool: nothing was done. Call the tool now, or tell the user what stands in the way.";

impl RunLoop {
    /// What the model is told at the end of the next call, and only there.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        match self.phase {
            Phase::Model(ToolUse::Withheld) => return vec![LIMIT.to_owned()],
            Phase::Model(ToolUse::Demanded) => return vec![self.demands.note_of_call(&self.draft)],
            Phase::Model(ToolUse::Formed) => return vec![Demands::note_of_form(&self.draft)],
            _ => {}
        }
        let mut notes: Vec<String> = self.demands.note().into_iter().collect();
        if self.fresh_plan {
            notes.push(self.carry_out());
        }
        if !self.origin.is_subagent() {
            notes.extend(plan_edit::note(&self.todo, self.edits_since));
        }
        if self.unfinished {
            notes.push(UNFINISHED.to_owned());
        }
        let progress = Progress {
            iterations: self.iterations,
            max_iterations: self.max_iterations,
        };
        notes.extend(self.guards.notes(progress, &self.goal, &self.flags));
        notes
    }

    /// The steps of a subagent's plan are in no list: the session's is its parent's.
    fn carry_out(&self) -> String {
        let list = if self.origin.is_subagent() {
            ""
        } else if self.flags.step_validation_enabled {
            PROVEN
        } else {
            MARKED
        };
        format!("{CARRY_OUT}{list}")
    }
}
