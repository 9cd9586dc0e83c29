//! A session for tests: a list and notes in memory, under the same rules as the real one.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::registry::Registry;
use super::{SessionState, ToolContext, ToolError, ToolResult};
use crate::domain::scratchpad::{self, ScratchpadCommand};
use crate::domain::todo::{self, TodoCommand};
use crate::protocol::ids::{CallId, SessionId};
use crate::protocol::todo::{Scratchpad, TodoItem};

#[derive(Debug, Default)]
pub(super) struct FakeSession {
    sections: Vec<String>,
    todo: Mutex<Vec<TodoItem>>,
    scratchpad: Mutex<Scratchpad>,
}

impl FakeSession {
    pub(super) fn with_sections(sections: &[&str]) -> Self {
        Self {
            sections: sections.iter().map(|&name| name.to_owned()).collect(),
            ..Self::default()
        }
    }
}

#[async_trait]
impl SessionState for FakeSession {
    async fn todo(&self, command: TodoCommand) -> Result<Vec<TodoItem>, ToolError> {
        let mut items = self.todo.lock().unwrap_or_else(PoisonError::into_inner);
        *items = todo::apply(&items, command).map_err(ToolError)?;
        Ok(items.clone())
    }

    async fn scratchpad(&self, command: ScratchpadCommand) -> Result<Scratchpad, ToolError> {
        let mut notes = self
            .scratchpad
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *notes = scratchpad::apply(&notes, command, &self.sections).map_err(ToolError)?;
        Ok(notes.clone())
    }
}

/// A call's surroundings.
pub(super) fn context(session: &Arc<FakeSession>, workspace: &Path) -> ToolContext {
    ToolContext {
        session_id: SessionId::new(),
        call_id: CallId::new(),
        workspace: workspace.to_owned(),
        stop: CancellationToken::new(),
        session: Arc::clone(session) as Arc<dyn SessionState>,
    }
}

/// A call the whole way: checked by the registry, then run.
pub(super) async fn call(name: &str, arguments: Value, context: ToolContext) -> ToolResult {
    let prepared = Registry::builtin().prepare(name, &arguments, &[name.to_owned()])?;
    prepared.tool.call(prepared.args, context).await
}
