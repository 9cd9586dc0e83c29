//! What a user tool says of itself: `tool.toml`, or the same as `tool.json`.

use std::time::Duration;

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
#[derive(Clone, Debug)]
pub struct Manifest {
    pub name: String,
    pub description: String,
    pub effect: Effect,
    pub time_limit: Duration,
    /// From the folder, and inside of it.
    pub executable: String,
    /// What it is always called with.
    pub args: Vec<String>,
    /// As the model is told it.
    pub parameters: Value,
    pub(super) validator: Validator,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    description: String,
    effect: Effect,
    executable: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default = "default_time")]
    time_limit_seconds: u64,
    #[serde(default)]
    parameters: Map<String, Value>,
}

fn default_time() -> u64 {
    DEFAULT_TIME
}

impl Manifest {
    /// Reads the manifest of the folder of this name.
    pub(super) fn parse(file: &str, text: &str, folder: &str) -> Result<Self, String> {
        let written: Written = if file.ends_with(".json") {
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
        let description = written.description.trim();
        refuse_if!(
            description.is_empty() || description.len() > MAX_DESCRIPTION,
            "field `description`: say in 1 to {MAX_DESCRIPTION} bytes what the tool does and when to call it"
        );
        let executable = written.executable.as_str();
        let executable = executable.strip_prefix("./").unwrap_or(executable);
        refuse_if!(
            !is_inside(executable),
            "field `executable`: {:?} must be a file of this folder, as in \"run.sh\"",
            written.executable
        );
        refuse_if!(
            written.args.len() > MAX_ARGS || written.args.iter().any(|arg| arg.contains('\0')),
            "field `args`: at most {MAX_ARGS}, none with a NUL in it"
        );
        refuse_if!(
            !(1..=MAX_TIME).contains(&written.time_limit_seconds),
            "field `time_limit_seconds`: {} must be from 1 to {MAX_TIME}",
            written.time_limit_seconds
        );
        let parameters = as_told(written.parameters);
        let validator = validator(&parameters)
            .map_err(|problem| format!("field `parameters`: no good JSON Schema: {problem}"))?;
        Ok(Self {
            name: written.name,
            description: description.to_owned(),
            effect: written.effect,
            time_limit: Duration::from_secs(written.time_limit_seconds),
            executable: executable.to_owned(),
            args: written.args,
            parameters,
            validator,
        })
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
