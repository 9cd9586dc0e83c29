//! `skill`: the text of a skill, and the files beside it.

use std::path::Path;

use async_trait::async_trait;
use ignore::WalkBuilder;
use itertools::Itertools as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::scan::{FILE, Skill, split, text_of};
use crate::protocol::tool::{Effect, ToolSpec};
use crate::tools::arguments::{nearest, read};
use crate::tools::output::{bounded_for, shortened, shown, visible};
use crate::tools::schema::spec_of;
use crate::tools::{Tool, ToolContext, ToolError, ToolResult, blocking};

/// The tool's name.
pub const NAME: &str = "skill";

const DESCRIPTION: &str = "Loads a skill: instructions for a kind of work. Call it first when a \
    skill of the system prompt fits the task, then do what it says.";

/// What all skills may come to in the system prompt.
const PROMPT_BYTES: usize = 8 * 1024;

/// As much of one description as stands there.
const DESCRIPTION_BYTES: usize = 400;

const MAX_FILE: u64 = 256 * 1024;
const MAX_LISTED: usize = 100;
const MAX_DEPTH: usize = 5;

#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    /// Name of the skill, as listed in the system prompt.
    #[schemars(length(min = 1, max = 64))]
    name: String,
    /// A file of the skill's folder to read instead, as in references/style.md.
    #[schemars(length(min = 1, max = 500))]
    file: Option<String>,
}

/// See the module.
#[derive(Debug)]
pub struct SkillTool {
    spec: ToolSpec,
    prompt: String,
    skills: Vec<Skill>,
}

impl SkillTool {
    /// The tool over these skills.
    pub fn new(skills: &[Skill]) -> Self {
        let mut spec = spec_of::<Arguments>(NAME, DESCRIPTION, Effect::Read, 10_000);
        if let Some(first) = skills.first() {
            spec.parameters["examples"] = json!([{"name": first.name}]);
        }
        Self {
            spec,
            prompt: prompt(skills),
            skills: skills.to_vec(),
        }
    }
}

fn prompt(skills: &[Skill]) -> String {
    let mut text = "## Skills\nInstructions for kinds of work. When one fits the task, call `skill` with its name before you begin, and follow what it says.".to_owned();
    for (index, skill) in skills.iter().enumerate() {
        let line = format!(
            "\n- {}: {}",
            skill.name,
            shortened(&skill.description, DESCRIPTION_BYTES)
        );
        if text.len() + line.len() > PROMPT_BYTES {
            let more = skills[index..].iter().map(|skill| &skill.name).join(", ");
            let more = shortened(&more, PROMPT_BYTES / 4);
            text.push_str(&format!("\n- and, without a word about them: {more}"));
            break;
        }
        text.push_str(&line);
    }
    text
}

#[async_trait]
impl Tool for SkillTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prompt(&self) -> Option<&str> {
        Some(&self.prompt)
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        let Arguments { name, file } = read(args)?;
        let Some(skill) = self.skills.iter().find(|skill| skill.name == name) else {
            let shown = shown(&name);
            let mut names = self.skills.iter().map(|skill| skill.name.as_str());
            if let Some(near) = nearest(&name, names.clone()) {
                refuse!("there is no skill `{shown}`; did you mean `{near}`?");
            }
            let names = names.join(", ");
            refuse!("there is no skill `{shown}`; the skills are {names}");
        };
        let folder = skill.folder.clone();
        let loading = blocking(NAME, move || {
            load(&folder, file.as_deref())
                .map_err(|reason| ToolError(format!("skill {name}: {reason}")))
        });
        let text = loading.await?;
        Ok(bounded_for(text, &context).await?.into())
    }
}

fn load(folder: &Path, file: Option<&str>) -> Result<String, String> {
    if let Some(file) = file {
        return text_of(folder, file, MAX_FILE);
    }
    let text = text_of(folder, FILE, MAX_FILE)?;
    let (_, body) = split(&text)?;
    let mut text = body.to_owned();
    let files = files(folder);
    if !files.is_empty() {
        text.push_str(&format!(
            "\n\n[Files of this skill, to read with `file`; the folder is {}]",
            visible(&folder.to_string_lossy())
        ));
        for file in files {
            text.push_str(&format!("\n- {}", visible(&file)));
        }
    }
    Ok(text)
}

/// The other files of the folder, in order, as far as there is room to tell them. Links and
/// hidden files are passed over.
fn files(folder: &Path) -> Vec<String> {
    let entries = WalkBuilder::new(folder)
        .standard_filters(false)
        .hidden(true)
        .max_depth(Some(MAX_DEPTH))
        .sort_by_file_name(Ord::cmp)
        .build()
        .flatten();
    let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let paths = files.filter_map(|file| {
        let path = file.path().strip_prefix(folder).ok()?;
        Some(path.to_string_lossy().into_owned())
    });
    let paths = paths.filter(|path| path != FILE).take(MAX_LISTED);
    paths.sorted().collect()
}
