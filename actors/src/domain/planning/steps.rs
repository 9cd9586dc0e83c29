//! The steps of a plan that are one call of a tool each, followed as calls begin and end: a
//! small model plans and calls, and forgets the list.

use serde::{Deserialize, Serialize};

use crate::domain::shorten;
use crate::domain::todo::StepMark;
use crate::protocol::ids::CallId;
use crate::protocol::message::{ToolCall, ToolOutcome};
use crate::protocol::plan::{Executor, PlanStep};
use crate::protocol::todo::{TodoItem, TodoStatus};

/// As much of a failed call's result as the list shows.
const MAX_NOTE_CHARS: usize = 300;

/// Those that are not over, in the plan's order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSteps(Vec<ToolStep>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ToolStep {
    number: u32,
    tool: String,
    /// The call that carries it out just now.
    call: Option<CallId>,
    has_failed: bool,
    /// Its user wants to look first.
    #[serde(default)]
    held: bool,
}

impl ToolSteps {
    #[must_use]
    pub fn of(steps: &[PlanStep]) -> Self {
        let steps = steps.iter().filter_map(|step| match &step.executor {
            Executor::Tool { tool } => Some(ToolStep {
                number: step.number,
                tool: tool.clone(),
                call: None,
                has_failed: false,
                held: false,
            }),
            Executor::Agent { .. } | Executor::Itself => None,
        });
        Self(steps.collect())
    }

    /// The list as the model, too, and its user may have changed it. No call is under way where
    /// it is looked at: the end of one that is noted here went down with its process.
    pub fn on_todo(&mut self, todo: &[TodoItem]) {
        self.0.retain_mut(|step| {
            step.call = None;
            let item = todo.iter().find(|item| item.id == step.number);
            step.has_failed = item.is_some_and(|item| item.status == TodoStatus::Failed);
            step.held = item.is_some_and(|item| item.held);
            item.is_some_and(|item| !matches!(item.status, TodoStatus::Done | TodoStatus::Skipped))
        });
        self.0
            .sort_by_key(|step| todo.iter().position(|item| item.id == step.number));
    }

    /// A call begins. It carries out the next step, if that is one of its tool: steps go in
    /// their order, and a call out of order is none of them. One that failed is tried again by
    /// the next call of its tool, and holds up nothing; nor does one that is held.
    pub fn begin(&mut self, call: &ToolCall) -> Option<StepMark> {
        let waiting = self.0.iter_mut();
        let mut waiting = waiting.filter(|step| step.call.is_none() && !step.held);
        let step = waiting.find(|step| step.tool == call.name || !step.has_failed)?;
        if step.tool != call.name {
            return None;
        }
        step.call = Some(call.id.clone());
        Some(StepMark {
            number: step.number,
            status: TodoStatus::InProgress,
            note: None,
        })
    }

    /// A call ended. What was cut off, or nobody knows the outcome of, stays as it was.
    pub fn end(&mut self, call: &CallId, outcome: ToolOutcome, result: &str) -> Option<StepMark> {
        let at = self
            .0
            .iter()
            .position(|step| step.call.as_ref() == Some(call))?;
        let number = self.0[at].number;
        let (status, note) = match outcome {
            ToolOutcome::Success => {
                self.0.remove(at);
                (TodoStatus::Done, None)
            }
            ToolOutcome::Failed => {
                self.0[at].call = None;
                self.0[at].has_failed = true;
                let why = shorten::one_line(result, MAX_NOTE_CHARS);
                (TodoStatus::Failed, Some(why))
            }
            ToolOutcome::Stopped | ToolOutcome::Interrupted | ToolOutcome::OutcomeUnknown => {
                self.0[at].call = None;
                return None;
            }
        };
        Some(StepMark {
            number,
            status,
            note,
        })
    }
}
