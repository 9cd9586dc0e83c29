//! Tasks: what a person says to Navi, and how to see whether she did it.
//!
//! They are data (`eval/tasks/*.toml`, or a folder of the user's), so that one can be added
//! without Rust. `docs/eval.md` describes the file.

mod read;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path};
use std::time::Duration;

use anyhow::bail;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use self::read::{built_in, of_folder};
use crate::checks::Check;
use crate::cli::Cli;

/// How many model calls a task may cost where it does not say.
const MAX_MODEL_CALLS: u64 = 40;

/// Settings that a task may change. None of them is about where something is.
const SETTINGS: [&str; 6] = [
    "OLLAMA_NUM_CTX",
    "OLLAMA_THINK",
    "CONTEXT_COMPRESSION_ENABLED",
    "CONTEXT_COMPRESSION_THRESHOLD",
    "CONTEXT_KEEP_RECENT",
    "CONTEXT_SUMMARY_TEMPERATURE",
];

/// The tasks that the command line asks for.
///
/// # Errors
/// A file of tasks that is wrong; a name or an area that none has.
pub(crate) fn chosen(cli: &Cli) -> anyhow::Result<Vec<Task>> {
    let all = match &cli.folder {
        Some(dir) => of_folder(dir)?,
        None => built_in()?,
    };
    for name in &cli.task {
        if !all.iter().any(|task| task.name == *name) {
            bail!("there is no task {name:?}; --list shows them");
        }
    }
    for area in &cli.area {
        if !all.iter().any(|task| task.area == *area) {
            let mut areas: Vec<&str> = all.iter().map(|task| task.area.as_str()).collect();
            areas.sort_unstable();
            areas.dedup();
            bail!("there is no area {area:?}; there are {}", areas.join(", "));
        }
    }
    let is_in = |list: &[String], name: &String| list.is_empty() || list.contains(name);
    let chosen: Vec<Task> = all
        .into_iter()
        .filter(|task| is_in(&cli.area, &task.area) && is_in(&cli.task, &task.name))
        .collect();
    if chosen.is_empty() {
        bail!("no task is in one of these areas and has one of these names");
    }
    Ok(chosen)
}

/// A file of tasks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskFile {
    area: String,
    #[serde(rename = "task")]
    tasks: Vec<Task>,
}

/// One task.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Task {
    pub(crate) name: String,
    /// Its file's.
    #[serde(skip)]
    pub(crate) area: String,
    /// The profile of its sessions; the default one where it names none.
    pub(crate) profile: Option<String>,
    /// Settings that differ for this task, by their variables.
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, String>,
    /// What lies in the workspace of each of its sessions, by path.
    #[serde(default)]
    pub(crate) files: BTreeMap<WorkspacePath, String>,
    /// Conversations that its user had earlier.
    #[serde(default)]
    pub(crate) past: Vec<Past>,
    /// What the user says, one turn after the other.
    pub(crate) say: Vec<Say>,
    /// A limit of its own, in minutes, where the usual one is too short.
    minutes: Option<u32>,
    /// The most model calls.
    max_model_calls: Option<u64>,
    pub(crate) checks: Vec<Check>,
}

impl Task {
    /// How long it may take, where tasks usually may take `usual`.
    pub(crate) fn time_limit(&self, usual: Duration) -> Duration {
        self.minutes.map_or(usual, |minutes| {
            usual.max(Duration::from_secs(u64::from(minutes) * 60))
        })
    }

    /// The most model calls, of whatever kind.
    pub(crate) fn max_model_calls(&self) -> u64 {
        self.max_model_calls.unwrap_or(MAX_MODEL_CALLS)
    }

    /// What makes no sense, as field and reason.
    fn problem(&self) -> Option<String> {
        let wrong = |field: &str, reason: &str| Some(format!("field `{field}`: {reason}"));
        let is_plain = |text: &str| {
            (1..=64).contains(&text.len())
                && text
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        };
        if !is_plain(&self.name) {
            return wrong("name", "1 to 64 of a-z, 0-9 and _ are expected");
        }
        if !is_plain(&self.area) {
            return wrong("area", "1 to 64 of a-z, 0-9 and _ are expected");
        }
        if self.say.is_empty() || self.say.iter().any(|say| say.text.trim().is_empty()) {
            return wrong(
                "say",
                "at least one text is expected, and none that is empty",
            );
        }
        if self.checks.is_empty() {
            return wrong("checks", "at least one is expected");
        }
        if self.minutes.is_some_and(|m| !(1..=120).contains(&m)) {
            return wrong("minutes", "a number from 1 to 120 is expected");
        }
        if self.max_model_calls == Some(0) {
            return wrong("max_model_calls", "at least 1 is expected");
        }
        if self.past.iter().any(|past| past.hours_ago == 0) {
            return wrong("past.hours_ago", "at least 1 is expected");
        }
        let other = self
            .settings
            .keys()
            .find(|variable| !SETTINGS.contains(&variable.as_str()));
        other.and_then(|variable| {
            let known = SETTINGS.join(", ");
            wrong(
                "settings",
                &format!("a task cannot change {variable}; it can change {known}"),
            )
        })
    }
}

/// A turn of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Say {
    pub(crate) text: String,
    /// Whether it is said in a session of its own, which later turns go on with.
    pub(crate) new_session: bool,
}

impl<'de> Deserialize<'de> for Say {
    /// A text, or a table with more than a text.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            text: String,
            #[serde(default)]
            new_session: bool,
        }
        struct SayVisitor;
        impl<'de> Visitor<'de> for SayVisitor {
            type Value = Say;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or a table with `text` and `new_session`")
            }

            fn visit_str<E>(self, text: &str) -> Result<Say, E> {
                Ok(Say {
                    text: text.to_owned(),
                    new_session: false,
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Say, A::Error> {
                let Table { text, new_session } =
                    Table::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Say { text, new_session })
            }
        }
        deserializer.deserialize_any(SayVisitor)
    }
}

/// A conversation that ended some hours ago: one exchange in a session of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Past {
    pub(crate) hours_ago: u32,
    pub(crate) user: String,
    pub(crate) assistant: String,
}

/// A path inside of a session's workspace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct WorkspacePath(String);

impl WorkspacePath {
    pub(crate) fn in_dir(&self, dir: &Path) -> std::path::PathBuf {
        dir.join(&self.0)
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for WorkspacePath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut parts = Path::new(&text).components();
        let is_inside = parts.all(|part| matches!(part, Component::Normal(_)));
        if is_inside && !text.is_empty() {
            Ok(Self(text))
        } else {
            Err(format!(
                "{text:?} is no path inside of the workspace, such as notes/plan.md"
            ))
        }
    }
}
