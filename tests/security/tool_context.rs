//! What a tool is given when it is called by itself: a session that has nothing.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use navi_actors::domain::memory::FactName;
use navi_actors::domain::scratchpad::ScratchpadCommand;
use navi_actors::domain::todo::TodoCommand;
use navi_actors::protocol::ids::{CallId, RunId, SessionId, UserId};
use navi_actors::protocol::memory::Fact;
use navi_actors::protocol::todo::{Scratchpad, TodoItem};
use navi_actors::tools::means::Means;
use navi_actors::tools::{
    Agents, MemoryAccess, OutputSink, SavedByTool, SessionState, SpawnOrder, ToolContext,
    ToolError, ToolResult,
};
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
struct Nothing;

fn none<T>() -> Result<T, ToolError> {
    Err(ToolError("there is no session here".to_owned()))
}

impl OutputSink for Nothing {
    fn push(&self, _: &str) {}
}

#[async_trait]
impl Agents for Nothing {
    async fn spawn(&self, _: &CallId, _: SpawnOrder) -> ToolResult {
        none()
    }
}

#[async_trait]
impl SessionState for Nothing {
    async fn todo(&self, _: TodoCommand) -> Result<Vec<TodoItem>, ToolError> {
        none()
    }

    async fn switch_profile(&self, _: String) -> Result<String, ToolError> {
        none()
    }

    async fn scratchpad(&self, _: ScratchpadCommand) -> Result<Scratchpad, ToolError> {
        none()
    }
}

#[async_trait]
impl MemoryAccess for Nothing {
    async fn facts(&self) -> Result<Vec<Fact>, ToolError> {
        none()
    }

    async fn save(&self, _: FactName, _: String, _: f32) -> Result<SavedByTool, ToolError> {
        none()
    }

    async fn forget(&self, _: FactName) -> Result<bool, ToolError> {
        none()
    }
}

/// The surroundings of one call.
pub(crate) fn context(workspace: &Path) -> ToolContext {
    ToolContext {
        session_id: SessionId::new(),
        run_id: RunId::new(),
        is_subagent: false,
        user_id: UserId::new(),
        call_id: CallId::new(),
        output: Arc::new(Nothing),
        workspace: workspace.to_owned(),
        means: Means::default(),
        stop: CancellationToken::new(),
        stopped: CancellationToken::new(),
        session: Arc::new(Nothing),
        agents: Arc::new(Nothing),
        memory: Arc::new(Nothing),
        untrusted: false,
        approved: false,
        sees_images: true,
    }
}
