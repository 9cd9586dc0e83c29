//! What stands in `TOOLS_DIR`, read again whenever something may have changed, and what each tool
//! there says of itself: `tool.toml`, or the same as `tool.json`.

use std::collections::BTreeMap;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::folder::{self, Listing};
use crate::protocol::tool::Effect;
use crate::tools::output::shortened;
use crate::tools::schema::{MAX_BYTES, as_told, validator};
use crate::tools::trust::folders;

/// The names of the file, of which a folder has one.
const FILES: [&str; 2] = ["tool.toml", "tool.json"];

const MAX_NAME: usize = 48;
const MAX_DESCRIPTION: usize = 1000;
const MAX_ARGS: usize = 64;
const DEFAULT_TIME: u64 = 30;
const MAX_TIME: u64 = 3600;
const MAX_MANIFEST: usize = 64 * 1024;
const SHOWN_BYTES: usize = 60;

/// A folder of `TOOLS_DIR`.
#[derive(Clone, Debug)]
pub struct ScannedTool {
    /// The folder's name, which a good tool has too; its beginning, where it is none for a tool.
    pub name: String,
    pub folder: PathBuf,
    /// Its manifest and the hash of everything in it, or what is wrong with it.
    pub found: Result<(Arc<Manifest>, String), String>,
    listing: Option<Listing>,
}

/// All of them, by name.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    pub tools: Vec<ScannedTool>,
    /// What is wrong with the folder of folders.
    pub problem: Option<String>,
}

/// Reads `TOOLS_DIR`. What did not change, as far as the file system tells, is not read again.
#[derive(Clone, Debug)]
pub struct Scanner {
    dir: PathBuf,
    before: BTreeMap<String, ScannedTool>,
}

impl Scanner {
    /// A scanner of a folder, which need not exist.
    pub fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            before: BTreeMap::new(),
        }
    }

    /// Reads everything as it is now. Blocks.
    pub fn scan(&mut self) -> Scan {
        // A link is told for what it is; files beside the folders are nobody's business.
        let is_folder = |entry: &DirEntry| Ok(!entry.file_type()?.is_file());
        let (names, problem) = match folders("TOOLS_DIR", &self.dir, is_folder) {
            Ok(found) => found,
            Err(problem) => {
                return Scan {
                    tools: self.before.values().cloned().collect(),
                    problem: Some(format!("{problem}; what was read from it before stays")),
                };
            }
        };
        let mut before = std::mem::take(&mut self.before);
        for name in names {
            let tool = self.look(&name, before.remove(&name));
            self.before.insert(name, tool);
        }
        Scan {
            tools: self.before.values().cloned().collect(),
            problem,
        }
    }

    fn look(&self, name: &str, known: Option<ScannedTool>) -> ScannedTool {
        let folder = self.dir.join(name);
        let listing = folder::list(&folder);
        if let (Some(known), Ok(listing)) = (known, &listing)
            && known.listing.as_ref() == Some(listing)
        {
            return known;
        }
        let found = listing.as_ref().map_err(Clone::clone);
        ScannedTool {
            name: shortened(name, SHOWN_BYTES),
            found: found.and_then(|listing| read(&folder, name, listing)),
            folder,
            listing: listing.ok(),
        }
    }
}

fn read(folder: &Path, name: &str, listing: &Listing) -> Result<(Arc<Manifest>, String), String> {
    let [toml, json] = FILES;
    let file = match FILES.map(|file| listing.contains_key(file)) {
        [true, false] => toml,
        [false, true] => json,
        [true, true] => refuse!("it has both {toml} and {json}; keep one"),
        [false, false] => refuse!("it has no manifest; add a {toml}"),
    };
    // Of what is read now, so that manifest and hash are of one state.
    let content = folder::read(folder)?;
    let of_file = |error: String| format!("{file}: {error}");
    let bytes = content.files.get(file).map(|file| file.bytes.as_slice());
    let bytes = bytes.unwrap_or_default();
    if bytes.len() > MAX_MANIFEST {
        return Err(of_file(format!("larger than {MAX_MANIFEST} bytes")));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| of_file(error.to_string()))?;
    let manifest = Manifest::parse(file, text, name).map_err(of_file)?;
    let wanted = &manifest.executable;
    match content.files.get(wanted) {
        None => Err(of_file(format!(
            "field `executable`: there is no file {wanted:?} in the folder (is it built?)"
        ))),
        Some(file) if !file.is_executable => {
            Err(format!("{wanted} cannot be executed; run chmod +x on it"))
        }
        Some(_) => Ok((Arc::new(manifest), content.sha256)),
    }
}

/// A manifest that is good.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub name: String,
    pub description: String,
    pub effect: Effect,
    #[serde(default = "default_time")]
    pub time_limit_seconds: u64,
    /// From the folder, and inside of it.
    pub executable: String,
    /// What it is always called with.
    #[serde(default)]
    pub args: Vec<String>,
    /// As the model is told it.
    #[serde(default)]
    pub parameters: Map<String, Value>,
}

fn default_time() -> u64 {
    DEFAULT_TIME
}

impl Manifest {
    /// Reads the manifest of the folder of this name.
    fn parse(file: &str, text: &str, folder: &str) -> Result<Self, String> {
        let mut written: Self = if file.ends_with(".json") {
            serde_json::from_str(text).map_err(|error| error.to_string())?
        } else {
            toml::from_str(text).map_err(|error| error.message().to_owned())?
        };
        refuse_if!(
            !is_name(&written.name),
            "field `name`: {:?} must begin with a small letter and have small letters, digits and _ only, at most {MAX_NAME}",
            written.name
        );
        refuse_if!(
            written.name != folder,
            "field `name`: it is {:?}, but the folder is called {:?}; give both one name",
            written.name,
            shortened(folder, SHOWN_BYTES)
        );
        written.description = written.description.trim().to_owned();
        refuse_if!(
            written.description.is_empty() || written.description.len() > MAX_DESCRIPTION,
            "field `description`: say in 1 to {MAX_DESCRIPTION} bytes what the tool does and when to call it"
        );
        let executable = written.executable.as_str();
        let executable = executable.strip_prefix("./").unwrap_or(executable);
        refuse_if!(
            !is_inside(executable),
            "field `executable`: {:?} must be a file of this folder, as in \"run.sh\"",
            written.executable
        );
        written.executable = executable.to_owned();
        refuse_if!(
            written.args.len() > MAX_ARGS || written.args.iter().any(|arg| arg.contains('\0')),
            "field `args`: at most {MAX_ARGS}, none with a NUL in it"
        );
        refuse_if!(
            !(1..=MAX_TIME).contains(&written.time_limit_seconds),
            "field `time_limit_seconds`: {} must be from 1 to {MAX_TIME}",
            written.time_limit_seconds
        );
        written.parameters = as_told(written.parameters);
        let parameters = Value::Object(written.parameters.clone());
        let size = parameters.to_string().len();
        refuse_if!(
            size > MAX_BYTES,
            "field `parameters`: no good JSON Schema: it has {size} bytes; the most is {MAX_BYTES}, since it stands in every prompt"
        );
        validator(&parameters)
            .map_err(|problem| format!("field `parameters`: no good JSON Schema: {problem}"))?;
        Ok(written)
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.starts_with("mcp__")
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// A plain relative path that stays where it begins.
fn is_inside(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.all(|part| !matches!(part, "" | "." | "..")) && !path.contains('\0')
}
