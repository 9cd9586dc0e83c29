//! A session for tests: a list and notes in memory, under the same rules as the real one.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::DateTime;
use parking_lot::Mutex;
use serde::Deserialize as _;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::means::Means;
use super::registry::{Registry, ToolConfig};
use super::{Agents, OutputSink, SessionState, SpawnOrder, ToolContext, ToolError, ToolResult};
use super::{MemoryAccess, SavedByTool};
use crate::domain::memory::FactName;
use crate::domain::plan_edit;
use crate::domain::scratchpad::{self, ScratchpadCommand};
use crate::domain::todo::{self, TodoCommand};
use crate::protocol::command::PlanEdit;
use crate::protocol::ids::{CallId, RunId, SessionId, UserId};
use crate::protocol::memory::{Fact, FactSource};
use crate::protocol::todo::{Scratchpad, TodoItem};

#[derive(Debug, Default)]
pub(super) struct FakeSession {
    sections: Vec<String>,
    step_validation: bool,
    todo: Mutex<Vec<TodoItem>>,
    scratchpad: Mutex<Scratchpad>,
    /// What was asked of children.
    pub(super) orders: Mutex<Vec<SpawnOrder>>,
    facts: Mutex<Vec<Fact>>,
}

impl FakeSession {
    /// With these sections of notes, and `step_validation_enabled` or not.
    pub(super) fn with(sections: &[&str], step_validation: bool) -> Self {
        Self {
            sections: sections.iter().map(|&name| name.to_owned()).collect(),
            step_validation,
            ..Self::default()
        }
    }

    /// With the list as its user changed it.
    pub(super) fn edited(edits: &[Value]) -> Self {
        let edits = edits.iter().map(PlanEdit::deserialize);
        let items = edits.fold(Vec::new(), |items, edit| {
            plan_edit::apply(&items, edit.unwrap(), DateTime::default()).unwrap()
        });
        Self {
            todo: Mutex::new(items),
            ..Self::default()
        }
    }
}

#[async_trait]
impl Agents for FakeSession {
    async fn spawn(&self, _: &CallId, order: SpawnOrder) -> ToolResult {
        self.orders.lock().push(order);
        Ok("completed_normally: true\n\ndone".to_owned().into())
    }
}

#[async_trait]
impl SessionState for FakeSession {
    async fn switch_profile(&self, profile_id: String) -> ToolResult<String> {
        Ok(profile_id)
    }

    async fn todo(&self, command: TodoCommand) -> ToolResult<Vec<TodoItem>> {
        let mut items = self.todo.lock();
        *items = todo::apply(&items, command, self.step_validation).map_err(ToolError)?;
        Ok(items.clone())
    }

    async fn scratchpad(&self, command: ScratchpadCommand) -> ToolResult<Scratchpad> {
        let mut notes = self.scratchpad.lock();
        *notes = scratchpad::apply(&notes, command, &self.sections).map_err(ToolError)?;
        Ok(notes.clone())
    }
}

#[async_trait]
impl MemoryAccess for FakeSession {
    async fn facts(&self) -> ToolResult<Vec<Fact>> {
        Ok(self.facts.lock().clone())
    }

    async fn save(
        &self,
        name: FactName,
        value: String,
        confidence: f32,
    ) -> ToolResult<SavedByTool> {
        let mut facts = self.facts.lock();
        let known = facts.iter().position(|fact| FactName::of(fact) == name);
        if let Some(at) = known
            && facts[at].confidence > confidence
        {
            return Ok(SavedByTool::Known(facts[at].value.clone()));
        }
        let known = known.map(|at| facts.remove(at));
        facts.push(Fact {
            category: name.category,
            key: name.key,
            value: value.clone(),
            source: FactSource::default(),
            confidence,
            created_at: DateTime::UNIX_EPOCH,
            updated_at: DateTime::UNIX_EPOCH,
        });
        Ok(match known {
            None => SavedByTool::Created,
            Some(known) if known.value == value => SavedByTool::Known(known.value),
            Some(known) => SavedByTool::Replaced { former: known },
        })
    }

    async fn forget(&self, name: FactName) -> ToolResult<bool> {
        let mut facts = self.facts.lock();
        let before = facts.len();
        facts.retain(|fact| FactName::of(fact) != name);
        Ok(facts.len() < before)
    }
}

/// Live output, kept.
#[derive(Debug, Default)]
pub(super) struct Recorded(pub(super) Mutex<String>);

impl OutputSink for Recorded {
    fn push(&self, text: &str) {
        self.0.lock().push_str(text);
    }
}

/// A call's surroundings.
pub(super) fn context(session: &Arc<FakeSession>, workspace: &Path) -> ToolContext {
    ToolContext {
        session_id: SessionId::new(),
        user_id: UserId::new(),
        run_id: RunId::new(),
        is_subagent: false,
        call_id: CallId::new(),
        output: Arc::new(Recorded::default()),
        workspace: workspace.to_owned(),
        means: Means::default(),
        stop: CancellationToken::new(),
        stopped: CancellationToken::new(),
        session: Arc::clone(session) as Arc<dyn SessionState>,
        agents: Arc::clone(session) as Arc<dyn Agents>,
        memory: Arc::clone(session) as Arc<dyn MemoryAccess>,
        untrusted: false,
        sees_images: true,
        approved: false,
    }
}

/// A call the whole way: checked by the registry, then run.
pub(super) async fn call(name: &str, arguments: Value, context: ToolContext) -> ToolResult<String> {
    call_with(&ToolConfig::default(), name, arguments, context).await
}

/// The same with other settings.
pub(super) async fn call_with(
    config: &ToolConfig,
    name: &str,
    arguments: Value,
    context: ToolContext,
) -> ToolResult<String> {
    let prepared = Registry::builtin(config).prepare(name, &arguments, &[name.to_owned()])?;
    let output = prepared.tool.call(prepared.args, context).await?;
    Ok(output.text)
}
