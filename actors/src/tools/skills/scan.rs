//! What stands in the folder of skills, and what is wrong with it.

use std::fs::DirEntry;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use itertools::Itertools as _;
use serde::Deserialize;

use crate::tools::extension_folders::folders;
use crate::tools::output::{shown, visible};

/// The file that makes a folder a skill.
pub(super) const FILE: &str = "SKILL.md";

const MAX_BYTES: u64 = 256 * 1024;
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1024;

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
        match read(dir, &name) {
            Ok(skill) => found.skills.push(skill),
            Err(reason) => found.problems.push(format!(
                "skill {} is left out: {reason}",
                visible(&dir.join(&name).to_string_lossy())
            )),
        }
    }
    found
}

fn read(dir: &Path, name: &str) -> Result<Skill, String> {
    let folder = dir.join(name);
    let text = text_of(&folder, FILE, MAX_BYTES)?;
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
pub(super) fn split(text: &str) -> Result<(&str, &str), String> {
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
pub(super) fn text_of(folder: &Path, file: &str, limit: u64) -> Result<String, String> {
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
