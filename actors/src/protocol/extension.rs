//! What is added to Navi from outside: user tools, MCP servers, skills.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tool::Effect;

/// Where a tool comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExtensionKind {
    /// A folder in `TOOLS_DIR`.
    User,
    /// An MCP server.
    Mcp,
}

/// Whether a tool may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExtensionState {
    /// As it is now.
    Allowed,
    /// Not before its owner allowed it.
    New,
    /// It was allowed, and is another one now: not before its owner allowed it again.
    Changed,
    /// It cannot be used; `problem` says why.
    Failed,
}

/// A user's tool, or one of an MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExtensionTool {
    pub name: String,
    pub kind: ExtensionKind,
    pub state: ExtensionState,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What an allowance has to name: over everything in the folder, or everything that the
    /// server says of the tool. Absent where nothing could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    pub description: String,
    /// What it says that it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// The folder of a user's tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The server of an MCP tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// How an MCP server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpServerState {
    Starting,
    Ready,
    /// It went, and is started again in a while.
    Waiting,
    /// It went too often; it is started again when it is asked for, or when its settings change.
    Failed,
}

/// An MCP server as it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpServer {
    pub name: String,
    /// `stdio` or `http`.
    pub transport: String,
    pub state: McpServerState,
    /// Since when.
    pub since: DateTime<Utc>,
    /// How often it went since it was last well for a while.
    pub failures: u32,
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// What of it was left out, one sentence each.
    pub problems: Vec<String>,
    /// The names of its tools, as the model calls them.
    pub tools: Vec<String>,
    /// That of its entry in the file, as `GET /mcp/{name}` tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A skill: instructions for a kind of work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillInfo {
    pub name: String,
    pub description: String,
    pub folder: String,
}
