//! Tools: one a file. What they are, what they may touch, and how they answer.

pub mod filesystem;
pub mod memory;
pub mod output;
pub mod registry;
pub mod scratchpad;
pub mod spawn_agent;
pub mod switch_profile;
pub mod todo;

mod arguments;
mod schema;

#[cfg(test)]
mod fake_session;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::domain::memory::FactName;
use crate::domain::planning::AgentInfo;
use crate::domain::scratchpad::ScratchpadCommand;
use crate::domain::todo::TodoCommand;
use crate::protocol::ids::{CallId, SessionId};
use crate::protocol::memory::Fact;
use crate::protocol::profile::Profile;
use crate::protocol::todo::{Scratchpad, TodoItem};
use crate::protocol::tool::{Effect, ToolSpec};

/// Something that the model can call. One instance serves every session.
#[async_trait]
pub trait Tool: Send + Sync + Debug + 'static {
    fn spec(&self) -> &ToolSpec;

    /// What a profile's model is told: [`Tool::spec`], narrowed by what the profile says of
    /// this tool. The same bytes for the same audience, always: it is part of the prompt's prefix.
    fn spec_for(&self, _audience: &Audience<'_>) -> ToolSpec {
        self.spec().clone()
    }

    /// What this very call does. `spec().effect` is the most that any call does.
    /// `args` has passed the schema.
    fn effect(&self, args: &Value) -> Effect;

    /// Whether this call may run beside others that may: one that only reads, as a rule.
    fn side_by_side(&self, args: &Value) -> bool {
        self.effect(args) == Effect::Read
    }

    /// Runs the call. `args` has passed the schema. The caller races it against the
    /// stop token and the time limit and drops it when either comes first.
    async fn call(&self, args: Value, context: ToolContext) -> ToolResult;
}

/// What a call gives back to the model: text, or text that says what was wrong and what to do.
pub type ToolResult = Result<String, ToolError>;

/// A call that did not do what was asked. The model reads the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

/// What a call may use. Everything else is out of its reach.
#[derive(Clone, Debug)]
pub struct ToolContext {
    pub session_id: SessionId,
    pub call_id: CallId,
    /// The session's own directory. It exists.
    pub workspace: PathBuf,
    pub stop: CancellationToken,
    pub session: Arc<dyn SessionState>,
    pub agents: Arc<dyn Agents>,
    pub memory: Arc<dyn MemoryAccess>,
    /// Whether this turn has read text from outside.
    pub untrusted: bool,
}

/// Who a tool describes itself to.
#[derive(Clone, Copy, Debug)]
pub struct Audience<'a> {
    pub profile: &'a Profile,
    /// Every profile that there is.
    pub agents: &'a [AgentInfo<'a>],
}

/// Starts child runs. The run that the tool works for stands behind it.
#[async_trait]
pub trait Agents: Send + Sync + Debug {
    /// Runs a child to its end. Gives back its result, with a first line that says whether it
    /// completed normally. Dropping the future stops the child.
    async fn spawn(&self, call_id: &CallId, order: SpawnOrder) -> ToolResult;
}

/// What a child is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnOrder {
    pub task: String,
    /// The run's own where absent.
    pub profile_id: Option<String>,
    /// What the child has to know beside the task.
    pub context: Option<String>,
}

/// The parts of a session's state that tools can reach. The session's actor stands behind it.
#[async_trait]
pub trait SessionState: Send + Sync + Debug {
    /// Applies a command to the todo list; a change is committed and told to the watchers
    /// before this returns. Gives back the list as it stands.
    async fn todo(&self, command: TodoCommand) -> Result<Vec<TodoItem>, ToolError>;

    /// Gives the session another profile, which is told to the watchers before this returns.
    /// It holds from the run's next iteration on. Gives back its name.
    async fn switch_profile(&self, profile_id: String) -> Result<String, ToolError>;

    /// Applies a command to the scratchpad; a change is committed before this returns.
    async fn scratchpad(&self, command: ScratchpadCommand) -> Result<Scratchpad, ToolError>;
}

/// What is remembered of the user. The run binds the user, and where a fact came from.
#[async_trait]
pub trait MemoryAccess: Send + Sync + Debug {
    /// All facts, a bounded number.
    async fn facts(&self) -> Result<Vec<Fact>, ToolError>;

    /// Saves a fact; it is committed before this returns.
    async fn save(&self, fact: SaveFact) -> Result<SavedByTool, ToolError>;

    /// Forgets a fact and its history. Tells whether it was there.
    async fn forget(&self, name: FactName) -> Result<bool, ToolError>;
}

/// A fact as a tool gives it to the memory.
#[derive(Clone, Debug, PartialEq)]
pub struct SaveFact {
    pub name: FactName,
    pub value: String,
    pub confidence: f32,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SavedByTool {
    /// Nothing: this value was known and stays, be it the same, or one that is more certain.
    Known(String),
    Created,
    Replaced {
        former: String,
    },
}
