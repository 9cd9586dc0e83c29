//! What stands in a session's workspace, as its user sees it.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A directory of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceListing {
    /// By name.
    pub entries: Vec<WorkspaceEntry>,
    /// False where there are more than are listed.
    pub complete: bool,
}

/// One name in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkspaceEntry {
    /// From the workspace down.
    pub path: String,
    pub kind: EntryKind,
    /// 0 for what is no file.
    pub bytes: u64,
    /// None where it cannot be told.
    pub modified_at: Option<DateTime<Utc>>,
}

/// What an entry is. A link is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    File,
    Directory,
    Link,
    /// A socket, a pipe or a device.
    Other,
}
