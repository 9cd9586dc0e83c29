//! What a user tool says of itself: `tool.toml`, or the same as `tool.json`.

use jsonschema::Validator;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::protocol::tool::Effect;
use crate::tools::extension_schema::{as_told, validator};

/// The names of the file, of which a folder has one.
pub(super) const FILES: [&str; 2] = ["tool.toml", "tool.json"];

const MAX_NAME: usize = 48;
const MAX_DESCRIPTION: usize = 1000;
const MAX_ARGS: usize = 64;
const DEFAULT_TIME: u64 = 30;
const MAX_TIME: u64 = 3600;

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
    #[serde(skip)]
    pub(super) validator: Option<Validator>,
}

fn default_time() -> u64 {
    DEFAULT_TIME
}

impl Manifest {
    /// Reads the manifest of the folder of this name.
    pub(super) fn parse(file: &str, text: &str, folder: &str) -> Result<Self, String> {
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
            "field `name`: it is {:?}, but the folder is called {folder:?}; give both one name",
            written.name
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
        let validator = validator(&Value::Object(written.parameters.clone()));
        written.validator = validator
            .map(Some)
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
