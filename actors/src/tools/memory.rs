//! `memory_search`, `memory_save`, `memory_forget`: what Navi remembers of its user across
//! conversations.

use std::sync::Arc;

use async_trait::async_trait;
use itertools::Itertools as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::read;
use super::output::{counted, shortened};
use super::schema::spec_of;
use super::{Proposal, SavedByTool, Tool, ToolContext, ToolError, ToolOutput, ToolResult};
use crate::domain::memory::{CATEGORIES, FactName, UNCONFIRMED, is_confirmed, search, value};
use crate::protocol::approval::Detail;
use crate::protocol::memory::Fact;
use crate::protocol::phrase::{Label, Phrase, PhraseCode};
use crate::protocol::powers::Powers;
use crate::protocol::tool::{Effect, ToolSpec};

const SEARCH: &str = "Finds facts that were remembered about the user in earlier conversations, by \
    words of them (name, sister, city, printer). An empty query lists the newest.";
const SAVE: &str = "Remembers a lasting fact about the user for all later conversations: who they \
    are, their people, places, work, preferences, projects, devices. Not for notes of this task, \
    and not for passwords or health unless the user asks for it. The same category and key \
    replaces the old value.";
const FORGET: &str = "Forgets a remembered fact about the user for good. Only when the user asks \
    for it in so many words.";

/// What is said first of a fact that outside text may have put into the model's mouth.
const OUTSIDE: &str = "This conversation has read text from outside, so the user is shown this fact as \
    unconfirmed.\n";

/// The most facts that a search shows.
const SHOWN: usize = 20;
/// As many names of facts as a search that found nothing shows.
const NAMES_SHOWN: usize = 30;
/// As much of a query as a result repeats.
const QUERY_BYTES: usize = 80;
const TIME_LIMIT_MS: u64 = 10_000;

/// What to look for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({"query": "sister birthday"}))]
struct SearchArgs {
    /// Words to look for.
    #[schemars(length(max = 500))]
    query: String,
}

/// What to remember.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({"category": "people", "key": "sister_name", "value": "Olena"}))]
struct SaveArgs {
    /// What kind of fact it is.
    #[schemars(length(min = 1, max = 60))]
    category: String,
    /// Two or three English words in snake_case that name the fact.
    #[schemars(length(min = 1, max = 60))]
    key: String,
    /// The fact itself in a few words, in the user's language. Never only yes, no or true.
    #[schemars(length(min = 1, max = 500))]
    value: String,
}

/// What to forget.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({"category": "people", "key": "sister_name"}))]
struct ForgetArgs {
    /// The fact's category, as memory_search shows it.
    #[schemars(length(min = 1, max = 60))]
    category: String,
    /// The fact's key, as memory_search shows it.
    #[schemars(length(min = 1, max = 60))]
    key: String,
}

tool!(
    /// Looks into the memory.
    MemorySearch,
    SEARCH_SPEC = spec_of::<SearchArgs>("memory_search", SEARCH, Effect::Read, TIME_LIMIT_MS)
);
tool!(
    /// Adds to the memory.
    MemorySave,
    SAVE_SPEC = {
        let mut spec = spec_of::<SaveArgs>("memory_save", SAVE, Effect::Write, TIME_LIMIT_MS);
        // The usual ones; any other will do too.
        let names = CATEGORIES.map(|(name, _)| name).join(", ");
        spec.parameters["properties"]["category"]["description"] = json!(format!(
            "What kind of fact it is: {names}, or another word."
        ));
        spec
    }
);
tool!(
    /// Takes from the memory.
    MemoryForget,
    FORGET_SPEC = spec_of::<ForgetArgs>("memory_forget", FORGET, Effect::Write, TIME_LIMIT_MS)
);

#[async_trait]
impl Tool for MemorySearch {
    fn spec(&self) -> &ToolSpec {
        &SEARCH_SPEC
    }

    fn needs_workspace(&self) -> bool {
        false
    }

    fn for_powers(self: Arc<Self>, _: &Powers) -> Option<Arc<dyn Tool>> {
        Some(self)
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        let SearchArgs { query } = read(args)?;
        let facts = context.memory.facts().await?;
        Ok(render(&facts, &query))
    }
}

#[async_trait]
impl Tool for MemorySave {
    fn spec(&self) -> &ToolSpec {
        &SAVE_SPEC
    }

    fn for_powers(self: Arc<Self>, _: &Powers) -> Option<Arc<dyn Tool>> {
        Some(self)
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        let args: SaveArgs = read(args)?;
        let name = FactName::new(&args.category, &args.key)?;
        let stored = value(&args.value)?;
        let (confidence, first) = match context.untrusted {
            true => (UNCONFIRMED, OUTSIDE),
            false => (1.0, ""),
        };
        let memory = &context.memory;
        let saving = memory.save(name.clone(), stored.clone(), confidence);
        let mut outside = false;
        let told = match saving.await? {
            SavedByTool::Known(known) if known == stored => {
                return Ok(format!("this was known already: {name}: {known}").into());
            }
            SavedByTool::Known(known) => {
                refuse!(
                    "not changed: {name} is known as: {known}; ask the user whether it is {stored} now"
                );
            }
            SavedByTool::Created => format!("remembered: {name}: {stored}"),
            SavedByTool::Replaced { former } => {
                outside = !is_confirmed(&former);
                format!("remembered: {name}: {stored} (it was: {})", former.value)
            }
        };
        Ok(ToolOutput {
            text: format!("{first}{told}"),
            outside,
            ..ToolOutput::default()
        })
    }
}

#[async_trait]
impl Tool for MemoryForget {
    fn spec(&self) -> &ToolSpec {
        &FORGET_SPEC
    }

    fn for_powers(self: Arc<Self>, _: &Powers) -> Option<Arc<dyn Tool>> {
        Some(self)
    }

    // SPEC section 9.
    fn by_word(&self, _: &Value) -> Option<Phrase> {
        Some(PhraseCode::DoesNotComeBack.into())
    }

    async fn proposal(&self, args: &Value, context: &ToolContext) -> ToolResult<Proposal> {
        let args: ForgetArgs = read(args.clone())?;
        let name = FactName::new(&args.category, &args.key)?;
        let facts = context.memory.facts().await?;
        let known = facts.iter().find(|fact| FactName::of(fact) == name);
        let known = known.ok_or_else(|| unknown(&name))?;
        Ok(Proposal {
            summary: Phrase::new(PhraseCode::Forget, [("fact", name.to_string())]),
            details: vec![Detail::text(Label::Remembered, &known.value)],
            // Each is for the user to decide.
            rule: None,
            binding: known.value.clone(),
        })
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        let args: ForgetArgs = read(args)?;
        let name = FactName::new(&args.category, &args.key)?;
        if context.memory.forget(name.clone()).await? {
            Ok(format!("forgotten: {name}").into())
        } else {
            Err(unknown(&name))
        }
    }
}

fn unknown(name: &FactName) -> ToolError {
    refusal!("there is no fact {name}; look for its name with memory_search")
}

fn render(facts: &[Fact], query: &str) -> ToolOutput {
    let mut found = search(facts, query);
    if facts.is_empty() {
        return "nothing is remembered about the user yet".to_owned().into();
    }
    if found.is_empty() {
        let mut others = search(facts, "");
        others.truncate(NAMES_SHOWN);
        let text = format!(
            "nothing is remembered about \"{}\"; what there is: {}",
            shortened(query, QUERY_BYTES),
            others.iter().map(|fact| FactName::of(fact)).join(", ")
        );
        return told(text, &others);
    }
    let count = found.len();
    found.truncate(SHOWN);
    let mut text = format!("{}:", counted(count, "fact"));
    for fact in &found {
        text.push_str(&format!("\n{}: {}", FactName::of(fact), fact.value));
        if !is_confirmed(fact) {
            text.push_str(" (unconfirmed)");
        }
    }
    if count > SHOWN {
        text.push_str(&format!("\nand {} more; use more words", count - SHOWN));
    }
    told(text, &found)
}

/// What nobody confirmed may be in the words of a page that a session had read: a result with
/// any of it is from outside.
fn told(text: String, facts: &[&Fact]) -> ToolOutput {
    ToolOutput {
        text,
        outside: !facts.iter().copied().all(is_confirmed),
        ..ToolOutput::default()
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
