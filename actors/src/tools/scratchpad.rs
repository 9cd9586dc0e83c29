//! `scratchpad`: the session's notes, under the profile's sections.

use std::sync::LazyLock;

use async_trait::async_trait;
use itertools::Itertools as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::actions::{ActionFields, actions};
use super::arguments::read;
use super::output::human_size;
use super::schema::spec_of;
use super::spill::bounded_for;
use super::{Audience, Tool, ToolContext, ToolResult};
use crate::domain::scratchpad::{ScratchpadCommand, allowed_sections};
use crate::protocol::todo::Scratchpad;
use crate::protocol::tool::{Effect, ToolSpec};

const DESCRIPTION: &str = "Your own notes in this conversation, kept in named sections. They stay \
    when old messages are left out, so keep here what you will need later.";

/// What to do with the notes. One flat object, since small models fill that in best.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({"action": "read"}))]
struct ScratchpadArgs {
    /// read: show the notes. write: replace a section by `text`. append: add `text` to a
    /// section's end. clear: empty a section.
    action: Action,
    /// The section. read without it shows all of them; the others need it.
    section: Option<String>,
    /// write, append: the text.
    text: Option<String>,
}

actions! {
    "read" Read Read [] ["section"];
    "write" Write Write ["section", "text"] [];
    "append" Append Write ["section", "text"] [];
    "clear" Clear Write ["section"] [];
}

/// The tool.
#[derive(Debug)]
pub struct ScratchpadTool;

static SPEC: LazyLock<ToolSpec> =
    LazyLock::new(|| spec_of::<ScratchpadArgs>("scratchpad", DESCRIPTION, Effect::Write, 10_000));

#[async_trait]
impl Tool for ScratchpadTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    /// Names the profile's sections. The session has the last word on them, since it also knows
    /// those that an earlier profile left behind.
    fn spec_for(&self, audience: &Audience<'_>) -> ToolSpec {
        let profile = audience.profile;
        let mut spec = SPEC.clone();
        spec.parameters["properties"]["section"]["enum"] =
            json!(allowed_sections(&profile.scratchpad_sections));
        spec
    }

    fn actions(&self) -> &[ActionFields] {
        ACTIONS
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        let args: ScratchpadArgs = read(args)?;
        let section = args.section.filter(|section| !section.is_empty());
        let command = match (args.action, section.clone(), args.text) {
            (Action::Read, ..) => ScratchpadCommand::Read,
            (Action::Write, Some(section), Some(text)) => {
                ScratchpadCommand::Write { section, text }
            }
            (Action::Append, Some(section), Some(text)) => {
                ScratchpadCommand::Append { section, text }
            }
            (Action::Clear, Some(section), _) => ScratchpadCommand::Clear { section },
            (Action::Write | Action::Append, ..) => {
                refuse!(
                    "write and append need `section` and `text`, for example {{\"action\":\"append\",\"section\":\"…\",\"text\":\"…\"}}"
                );
            }
            (Action::Clear, None, _) => {
                refuse!(
                    "clear needs `section`, for example {{\"action\":\"clear\",\"section\":\"…\"}}"
                );
            }
        };
        let notes = context.session.scratchpad(command).await?;
        let text = match (args.action, section) {
            (Action::Read, None) => render(&notes),
            (Action::Read, Some(section)) => render_section(&notes, &section),
            (_, section) => changed(&notes, &section.unwrap_or_default()),
        };
        Ok(bounded_for(text, &context).await?.into())
    }
}

fn render(notes: &Scratchpad) -> String {
    if notes.is_empty() {
        return "the scratchpad is empty".to_owned();
    }
    let mut sections = notes
        .iter()
        .map(|(section, text)| format!("## {section}\n{text}"));
    sections.join("\n\n")
}

fn render_section(notes: &Scratchpad, section: &str) -> String {
    match notes.get(section) {
        Some(text) => format!("## {section}\n{text}"),
        None if notes.is_empty() => "the scratchpad is empty".to_owned(),
        None => format!(
            "nothing is written under that section; there are notes under: {}",
            notes.keys().join(", ")
        ),
    }
}

fn changed(notes: &Scratchpad, section: &str) -> String {
    match notes.get(section) {
        Some(text) => format!(
            "section {section} now has {}",
            human_size(text.len() as u64)
        ),
        None => format!("section {section} is now empty"),
    }
}

#[cfg(test)]
#[path = "scratchpad_tests.rs"]
mod tests;
