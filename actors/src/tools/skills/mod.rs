//! Skills: folders with a `SKILL.md` (the Agent Skills format). Their names and descriptions
//! stand in the system prompt; the text itself is read, and the files beside it, when the model asks
//! for them by `skill`.

use std::fs::DirEntry;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use ignore::WalkBuilder;
use itertools::Itertools as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::protocol::powers::{PowerKind, Powers};
use crate::protocol::tool::{Effect, ToolSpec};
use crate::tools::arguments::{nearest, read};
use crate::tools::output::{bounded_for, shortened, shown, visible};
use crate::tools::schema::spec_of;
use crate::tools::trust::folders;
use crate::tools::{Tool, ToolContext, ToolResult, blocking};

/// The tool's name.
pub const NAME: &str = "skill";

const DESCRIPTION: &str = "Loads a skill: instructions for a kind of work. Call it first when a \
    skill of the system prompt fits the task, then do what it says.";

/// The file that makes a folder a skill.
const FILE: &str = "SKILL.md";

const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1024;

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

    fn for_powers(self: Arc<Self>, powers: &Powers) -> Option<Arc<dyn Tool>> {
        if powers.has(PowerKind::Skills) {
            return Some(self);
        }
        let skills = self.skills.iter();
        let granted = skills.filter(|skill| powers.has_named(PowerKind::Skills, &skill.name));
        let granted: Vec<Skill> = granted.cloned().collect();
        (!granted.is_empty()).then(|| Arc::new(Self::new(&granted)) as Arc<dyn Tool>)
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
            load(&folder, file.as_deref()).map_err(|reason| refusal!("skill {name}: {reason}"))
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

/// A skill as the model is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    /// On one line.
    pub description: String,
    pub folder: PathBuf,
}

/// All skills, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillScan {
    pub skills: Vec<Skill>,
    /// What is wrong, one sentence each.
    pub problems: Vec<String>,
}

/// The front matter, as far as it matters here: skills made for other agents say more in it.
#[derive(Debug, Deserialize)]
struct FrontMatter {
    name: String,
    description: String,
}

/// Reads the folder, which need not exist. Blocks.
pub fn scan(dir: &Path) -> SkillScan {
    let mut found = SkillScan::default();
    let is_folder = |entry: &DirEntry| Ok(entry.path().is_dir());
    let (names, too_many) = match folders("NAVI_SKILLS_DIR", dir, is_folder) {
        Ok(found) => found,
        Err(problem) => (Vec::new(), Some(problem)),
    };
    found.problems.extend(too_many);
    for name in names {
        match skill_in(dir, &name) {
            Ok(skill) => found.skills.push(skill),
            Err(reason) => found.problems.push(format!(
                "skill {} is left out: {reason}",
                visible(&dir.join(&name).to_string_lossy())
            )),
        }
    }
    found
}

fn skill_in(dir: &Path, name: &str) -> Result<Skill, String> {
    let folder = dir.join(name);
    let text = text_of(&folder, FILE, MAX_FILE)?;
    let (front, _) = split(&text)?;
    let front: FrontMatter = serde_saphyr::from_str(front).map_err(|error| {
        let error = error.to_string();
        let first = error.lines().next().unwrap_or_default();
        format!("{FILE}: {}", shown(first))
    })?;
    refuse_if!(
        !is_name(&front.name),
        "{FILE}: field `name`: {:?} must have small letters, digits and single hyphens only, at most {MAX_NAME}",
        shown(&front.name)
    );
    refuse_if!(
        front.name != name,
        "{FILE}: field `name`: it is {:?}, but the folder is called {:?}; give both one name",
        front.name,
        shown(name)
    );
    let description = visible(&front.description.split_whitespace().join(" "));
    refuse_if!(
        description.is_empty() || description.chars().count() > MAX_DESCRIPTION,
        "{FILE}: field `description`: say in 1 to {MAX_DESCRIPTION} characters what it is for and when to use it"
    );
    Ok(Skill {
        name: front.name,
        description,
        folder,
    })
}

/// The front matter, and what comes after it.
fn split(text: &str) -> Result<(&str, &str), String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let missing = || {
        format!(
            "{FILE} must begin with a line `---`, then name: and description:, then another line `---`"
        )
    };
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| line.trim_end() == "---");
    let start = first.ok_or_else(missing)?.len();
    let mut at = start;
    for line in lines {
        if line.trim_end() == "---" {
            return Ok((&text[start..at], text[at + line.len()..].trim()));
        }
        at += line.len();
    }
    Err(missing())
}

/// A text inside of a folder, and nowhere else: links lead no further than it. Blocks.
fn text_of(folder: &Path, file: &str, limit: u64) -> Result<String, String> {
    let shown = shown(file);
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => format!("there is no {shown}"),
        ErrorKind::InvalidData => format!("{shown} is no text"),
        _ => format!("{shown}: {error}"),
    };
    let dir = Dir::open_ambient_dir(folder, ambient_authority()).map_err(failed)?;
    // Opening a pipe would wait for a writer.
    refuse_if!(
        !dir.metadata(file).map_err(failed)?.is_file(),
        "{shown} is no regular file"
    );
    let mut text = String::new();
    dir.open(file)
        .and_then(|opened| opened.take(limit + 1).read_to_string(&mut text))
        .map_err(failed)?;
    refuse_if!(
        text.len() as u64 > limit,
        "{shown} is larger than {limit} bytes"
    );
    Ok(text)
}

fn is_name(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(is_plain);
    name.len() <= MAX_NAME && name.split('-').all(is_word)
}

#[cfg(test)]
mod tests;
