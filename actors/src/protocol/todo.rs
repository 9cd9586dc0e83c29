//! The session's todo list (SPEC section 11) and scratchpad.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a step stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    #[default]
    Pending,
    InProgress,
    Done,
    Failed,
    Skipped,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TodoItem {
    /// Counts from 1 within the list; another step gets it only when a plan replaces the list.
    pub id: u32,
    pub text: String,
    pub status: TodoStatus,
    /// What showed that the step is done, or why it failed or was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Its user wants to look first: it is not begun before they release it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
    /// What its user did about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<StepEdited>,
}

/// What a step's user did about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepEdited {
    pub how: StepEdit,
    pub at: DateTime<Utc>,
}

/// See [`StepEdited`]. What says most about the step stays said: one that was added and then
/// moved is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepEdit {
    Added,
    Rewritten,
    Moved,
    Skipped,
    Restored,
    Released,
}

/// Notes by section name.
pub type Scratchpad = BTreeMap<String, String>;
