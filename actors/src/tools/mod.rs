//! Tools: one a file. What they are, what they may touch, and how they answer.

pub mod filesystem;
pub mod output;
pub mod registry;
pub mod scratchpad;
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

use crate::domain::scratchpad::ScratchpadCommand;
use crate::domain::todo::TodoCommand;
use crate::protocol::ids::{CallId, SessionId};
use crate::protocol::profile::Profile;
use crate::protocol::todo::{Scratchpad, TodoItem};
use crate::protocol::tool::{Effect, ToolSpec};

/// Something that the model can call. One instance serves every session.
#[async_trait]
pub trait Tool: Send + Sync + Debug + 'static {
    fn spec(&self) -> &ToolSpec;

    /// What a profile's model is told: [`Tool::spec`], narrowed by what the profile says of
    /// this tool. The same bytes for the same profile, always: it is part of the prompt's prefix.
    fn spec_for(&self, _profile: &Profile) -> ToolSpec {
        self.spec().clone()
    }

    /// What this very call does. `spec().effect` is the most that any call does.
    /// `args` has passed the schema.
    fn effect(&self, args: &Value) -> Effect;

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
}

/// The parts of a session's state that tools can reach. The session's actor stands behind it.
#[async_trait]
pub trait SessionState: Send + Sync + Debug {
    /// Applies a command to the todo list; a change is committed and told to the watchers
    /// before this returns. Gives back the list as it stands.
    async fn todo(&self, command: TodoCommand) -> Result<Vec<TodoItem>, ToolError>;

    /// Applies a command to the scratchpad; a change is committed before this returns.
    async fn scratchpad(&self, command: ScratchpadCommand) -> Result<Scratchpad, ToolError>;
}
