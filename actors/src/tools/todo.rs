//! `todo`: the steps of the work, as the model keeps them and the user watches them.

use std::sync::Arc;

use super::actions::{ActionFields, actions, read_action};
use super::output::counted;
use super::schema::spec_of;
use super::{Tool, ToolContext, ToolResult};
use crate::domain::todo::{MAX_NOTE_CHARS, TodoCommand};
use crate::domain::{plan_edit, shorten};
use crate::protocol::powers::Powers;
use crate::protocol::todo::{TodoItem, TodoStatus};
use crate::protocol::tool::{Effect, ToolSpec};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const DESCRIPTION: &str = "The todo list of this conversation. The user sees it. \
    Add all steps at once before you begin a task of several steps, mark a step in_progress when \
    you begin it, and done, failed or skipped when it is over. Every answer is the whole list.";

/// What to do with the list. One flat object, since small models fill that in best.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({"action": "add", "texts": ["read the notes", "write the report"]}))]
struct TodoArgs {
    /// list: show the steps. add: put `texts` at the end. mark: set the `status` of `ids`.
    action: Action,
    /// add: the steps to add, a short sentence each.
    #[serde(default)]
    texts: Vec<String>,
    /// mark: the numbers of the steps.
    #[serde(default)]
    #[schemars(inner(range(min = 1, max = 1_000_000_000)))]
    ids: Vec<u32>,
    /// mark: the new status.
    status: Option<TodoStatus>,
    /// done: what shows that the step is done.
    validation: Option<String>,
    /// failed or skipped: why.
    note: Option<String>,
}

actions! {
    "list" List Read [] [];
    "add" Add Write ["texts"] [] r#"{"action":"add","texts":["read the notes"]}"#;
    "mark" Mark Write ["ids", "status"] ["validation", "note"]
        r#"{"action":"mark","ids":[1],"status":"done"}"#;
}

tool!(
    TodoTool,
    SPEC = spec_of::<TodoArgs>("todo", DESCRIPTION, Effect::Write, 10_000)
);

#[async_trait]
impl Tool for TodoTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn needs_workspace(&self) -> bool {
        false
    }

    fn for_powers(self: Arc<Self>, _: &Powers) -> Option<Arc<dyn Tool>> {
        Some(self)
    }

    fn actions(&self) -> &[ActionFields] {
        ACTIONS
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        let args: TodoArgs = read_action(ACTIONS, args)?;
        let notes = match args.action {
            Action::List => MAX_NOTE_CHARS,
            // A reminder is enough there: every answer stays in the context.
            Action::Add | Action::Mark => 120,
        };
        let command = match (args.action, args.status) {
            (Action::Add, _) => TodoCommand::Add { texts: args.texts },
            (Action::Mark, Some(status)) => TodoCommand::Mark {
                ids: args.ids,
                status,
                note: args.note,
                validation: args.validation,
            },
            (Action::List, _) | (Action::Mark, None) => TodoCommand::List,
        };
        let items = context.session.todo(command).await?;
        Ok(render(&items, notes).into())
    }
}

/// The list, a step a line, as the model reads it, with so many characters of each note.
fn render(items: &[TodoItem], note_chars: usize) -> String {
    if items.is_empty() {
        return "the todo list is empty".to_owned();
    }
    let open = items
        .iter()
        .filter(|item| matches!(item.status, TodoStatus::Pending | TodoStatus::InProgress))
        .count();
    let mut text = format!("{}, {open} open:", counted(items.len(), "step"));
    for item in items {
        let status = json!(item.status);
        let status = status.as_str().unwrap_or_default();
        let by_user = match item {
            _ if item.held => ", held by the user",
            _ if plan_edit::is_skipped(item) => " by the user",
            _ => "",
        };
        text.push_str(&format!("\n{}. [{status}{by_user}] {}", item.id, item.text));
        if let Some(note) = &item.note {
            text.push_str(&format!(" ({})", shorten::cut(note, note_chars)));
        }
    }
    text
}

#[cfg(test)]
#[path = "todo_tests.rs"]
mod tests;
