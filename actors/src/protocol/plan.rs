//! A run's plan (SPEC section 4): typed, beside the conversation, so that no compression eats it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ids::{MessageId, RunId};

/// Who carries a step out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "executor", rename_all = "snake_case")]
pub enum Executor {
    /// One call of this tool.
    Tool { tool: String },
    /// A bounded subtask for a subagent with this profile.
    Agent { profile_id: String },
    /// The run itself.
    #[serde(rename = "self")]
    Itself,
}

/// One step of a plan. Its status is that of the todo item with the same number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanStep {
    /// Counts from 1; the id of its todo item.
    pub number: u32,
    /// What is to be done, on one line.
    pub text: String,
    #[serde(flatten)]
    pub executor: Executor,
    /// The milestone that it stands under, where the plan has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milestone: Option<String>,
}

/// The newest plan of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    pub run_id: RunId,
    /// The message that holds it (`is_plan`).
    pub message_id: MessageId,
    /// As the model wrote it.
    pub text: String,
    pub steps: Vec<PlanStep>,
}
