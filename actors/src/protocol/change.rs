//! Changes to files, as a session's owner sees and undoes them.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ids::{CallId, ChangeId, RunId};

/// What was done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeAction {
    Write,
    Edit,
    Move,
    Delete,
    /// An earlier change was taken back.
    Undo,
}

/// A change to a file, made by the filesystem tool or by taking one back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    pub id: ChangeId,
    pub action: ChangeAction,
    /// In the workspace where it is relative.
    pub path: String,
    /// Where a move went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    pub at: DateTime<Utc>,
    /// The run that did it; none where a person took a change back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// The change that this one took back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<ChangeId>,
    pub undoable: bool,
    /// Why it cannot be undone, in a sentence; none where it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

/// A change of a file with what it changed in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    pub change: Change,
    /// A unified difference; none where it moved the file, where one side of it is not known any
    /// more or is no text, and where it is too long to be looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// The changes of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileHistory {
    /// Newest first, at most 50.
    pub changes: Vec<FileChange>,
}
