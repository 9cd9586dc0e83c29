//! `scratchpad`: the session's notes, under the profile's sections.

use std::sync::Arc;

use async_trait::async_trait;
use itertools::Itertools as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::actions::{ActionFields, actions, read_action};
use super::output::{bounded_for, human_size};
use super::schema::spec_of;
use super::{Audience, Tool, ToolContext, ToolResult};
use crate::domain::scratchpad::{ScratchpadCommand, allowed_sections};
use crate::protocol::powers::Powers;
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
    #[serde(default)]
    section: String,
    /// write, append: the text.
    #[serde(default)]
    text: String,
}

actions! {
    "read" Read Read [] ["section"];
    "write" Write Write ["section", "text"] [] r#"{"action":"write","section":"…","text":"…"}"#;
    "append" Append Write ["section", "text"] [] r#"{"action":"append","section":"…","text":"…"}"#;
    "clear" Clear Write ["section"] [] r#"{"action":"clear","section":"…"}"#;
}

tool!(
    ScratchpadTool,
    SPEC = spec_of::<ScratchpadArgs>("scratchpad", DESCRIPTION, Effect::Write, 10_000)
);

#[async_trait]
impl Tool for ScratchpadTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn needs_workspace(&self) -> bool {
        false
    }

    fn for_powers(self: Arc<Self>, _: &Powers) -> Option<Arc<dyn Tool>> {
        Some(self)
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
        let args: ScratchpadArgs = read_action(ACTIONS, args)?;
        let (named, section, text) = (args.section.clone(), args.section, args.text);
        let command = match args.action {
            Action::Read => ScratchpadCommand::Read,
            Action::Write => ScratchpadCommand::Write { section, text },
            Action::Append => ScratchpadCommand::Append { section, text },
            Action::Clear => ScratchpadCommand::Clear { section },
        };
        let notes = context.session.scratchpad(command).await?;
        let text = match args.action {
            Action::Read => render(&notes, &named),
            _ => match notes.get(&named) {
                Some(text) => format!("section {named} now has {}", human_size(text.len() as u64)),
                None => format!("section {named} is now empty"),
            },
        };
        Ok(bounded_for(text, &context).await?.into())
    }
}

/// The notes of a section; of all where none is named.
fn render(notes: &Scratchpad, section: &str) -> String {
    let shown = |(section, text): (&String, &String)| format!("## {section}\n{text}");
    match notes.get_key_value(section) {
        _ if notes.is_empty() => "the scratchpad is empty".to_owned(),
        Some(found) => shown(found),
        None if section.is_empty() => notes.iter().map(shown).join("\n\n"),
        None => format!(
            "nothing is written under that section; there are notes under: {}",
            notes.keys().join(", ")
        ),
    }
}

#[cfg(test)]
#[path = "scratchpad_tests.rs"]
mod tests;
