//! What a tool says of itself, to the model and to the loop.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What running a tool does to the world (DESIGN section 6), from harmless to anything.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Read,
    /// Changes things inside the session: its workspace, todo list, notes.
    Write,
    /// Sends something out.
    Egress,
    /// Anything on the machine.
    Host,
}

/// A tool as the model and the profile see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments: an object.
    pub parameters: Value,
    /// The most that any call of it does; one call may do less.
    pub effect: Effect,
    pub time_limit_ms: u64,
}

/// Where a tool comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolSource {
    BuiltIn,
    /// A folder in `TOOLS_DIR`.
    User,
    /// A Model Context Protocol server.
    Mcp,
}

/// A tool as the list of all tools shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListedTool {
    #[serde(flatten)]
    pub spec: ToolSpec,
    pub source: ToolSource,
}
