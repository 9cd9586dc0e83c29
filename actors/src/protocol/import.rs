//! A conversation that comes from a file: what this page or another one exported.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids::CallId;
use super::message::{MessageState, Role, ToolCall, ToolOutcome};
use super::session::SessionSummary;

/// A conversation as its export has it. What else stands there is passed over: ids, plans, how
/// it was pinned or may act without asking.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedSession {
    /// The start of its first message where it is empty.
    #[serde(default)]
    pub title: String,
    /// The default profile where there is none of this name.
    #[serde(default)]
    pub profile_id: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub created_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub last_active: Option<DateTime<Utc>>,
    pub messages: Vec<ImportedMessage>,
}

/// A message of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedMessage {
    pub role: Role,
    #[serde(default)]
    pub content: Option<String>,
    /// Those of a run bear the same one. Where there is none, each message of the user's begins
    /// a run.
    #[serde(default)]
    pub run_id: Option<String>,
    /// Base64, with or without a `data:` prefix; user and assistant only.
    #[serde(default)]
    pub images: Vec<String>,
    /// They are not in the file: they are left out, and counted.
    #[serde(default)]
    pub files: Vec<Value>,
    /// Assistant only.
    #[serde(default)]
    pub tool_calls: Vec<ToolCall>,
    /// Tool results only: a call of a message before.
    #[serde(default)]
    pub tool_call_id: Option<CallId>,
    #[serde(default)]
    pub outcome: Option<ToolOutcome>,
    #[serde(default)]
    pub duration_ms: Option<u64>,
    #[serde(default)]
    pub thinking: Option<String>,
    #[serde(default)]
    pub state: MessageState,
    #[serde(default)]
    pub is_plan: bool,
    /// As the message before it where it is left out.
    #[serde(default)]
    pub created_at: Option<DateTime<Utc>>,
}

/// What came of an import.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    pub session: SessionSummary,
    /// How many messages it has.
    pub messages: u64,
    pub left_out: LeftOut,
}

/// What was in the file, or named there, and is not in the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Images that are none, or over the limits of those that are sent.
    pub images: u32,
    /// Attached files, which exports name and do not hold.
    pub files: u32,
}
