//! Reads each setting as its type and gathers everything that is wrong, so that a person
//! corrects a configuration once and not error by error.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use config::{Config, ValueKind};
use navi_actors::domain::redact::{HIDDEN, redacted};

use super::keys::Key;

/// Where the values of `config/default.toml` come from, as a person reads it.
const DEFAULT_ORIGIN: &str = "default";

/// Reads values and remembers what was wrong.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    config: &'a Config,
    /// The user's settings file.
    file: Option<PathBuf>,
    problems: Vec<String>,
    /// Settings that are none, with what was expected.
    wrong: Vec<(&'static str, String)>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(config: &'a Config, file: Option<PathBuf>, problems: Vec<String>) -> Self {
        Self {
            config,
            file,
            problems,
            wrong: Vec::new(),
        }
    }

    /// What was wrong, and which settings with what was expected of them.
    pub(crate) fn into_problems(self) -> (Vec<String>, Vec<(&'static str, String)>) {
        (self.problems, self.wrong)
    }

    /// A problem that no single value shows.
    pub(crate) fn problem(&mut self, text: String) {
        self.problems.push(text);
    }

    /// The user's settings file, whether or not anything in it holds.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        std::path::absolute(self.file.as_ref()?).ok()
    }

    /// The text of a setting; none where it is unset.
    pub(crate) fn text(&self, key: &Key) -> Option<String> {
        self.config
            .get_string(key.path)
            .ok()
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    }

    /// Whether anyone has set it, so that its value is not the built-in one.
    pub(crate) fn is_set(&self, key: &Key) -> bool {
        origin(self.config, key) != DEFAULT_ORIGIN
    }

    /// A setting that may be unset. `None` is also the answer to a wrong one, which is
    /// among the problems then.
    pub(crate) fn optional<T>(
        &mut self,
        key: &Key,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(key)?;
        parse(&text)
            .map_err(|expected| self.wrong(key, &text, &expected))
            .ok()
    }

    /// A setting that always has a value.
    pub(crate) fn required<T>(
        &mut self,
        key: &Key,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        if self.text(key).is_none() {
            self.problem(format!("{} has no value", names(key)));
        }
        self.optional(key, parse)
    }

    fn wrong(&mut self, key: &Key, text: &str, expected: &str) {
        // Some write a password into an address, or a key into its query.
        let hidden = key.secret || text.contains(['@', '?']);
        let shown = if hidden { HIDDEN } else { text };
        let origin = origin(self.config, key);
        let expected = redacted(expected);
        self.wrong.push((key.path, expected.to_string()));
        self.problem(format!(
            "{} is \"{shown}\" (from {origin}): expected {}",
            names(key),
            expected
        ));
    }
}

/// Where a value came from, as a person reads it. Deserialising a value drops its origin,
/// so it is looked up in the merged tree itself.
pub(crate) fn origin(config: &Config, key: &Key) -> String {
    key.path
        .split('.')
        .try_fold(&config.cache, |value, name| match &value.kind {
            ValueKind::Table(table) => table.get(name),
            _ => None,
        })
        .and_then(|value| value.origin().map(str::to_owned))
        .unwrap_or_else(|| DEFAULT_ORIGIN.to_owned())
}

/// Both names of a setting.
fn names(key: &Key) -> String {
    format!("{} ({})", key.variable, key.path)
}

/// `true`, `1`, `yes`, `on` and their opposites, in any case.
pub(crate) fn boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err("true or false (or yes/no, on/off, 1/0)".to_owned()),
    }
}

/// A number within a range.
pub(crate) fn number<T>(allowed: RangeInclusive<T>) -> impl FnOnce(&str) -> Result<T, String>
where
    T: FromStr + PartialOrd + Display,
{
    move |text| {
        text.parse()
            .ok()
            .filter(|number| allowed.contains(number))
            .ok_or_else(|| format!("a number from {} to {}", allowed.start(), allowed.end()))
    }
}

/// Seconds, with or without a fraction: over 0, up to a day.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    text.parse::<f64>()
        .ok()
        .filter(|seconds| *seconds >= 0.001 && *seconds <= 86_400.0)
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "seconds: a number over 0, up to 86400".to_owned())
}

/// One of a few words, in any case.
pub(crate) fn choice<T: Copy>(words: &[(&str, T)]) -> impl FnOnce(&str) -> Result<T, String> {
    move |text| {
        words
            .iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(text))
            .map(|(_, value)| *value)
            .ok_or_else(|| {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                format!("one of {}", words.join(", "))
            })
    }
}

/// Any text.
#[expect(clippy::unnecessary_wraps, reason = "it stands where parsers stand")]
pub(crate) fn any(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// A path; a relative one is inside `base`, and `~/` is the home directory.
pub(crate) fn path_in(base: &Path) -> impl FnOnce(&str) -> Result<PathBuf, String> {
    move |text| Ok(base.join(expand_home(text)))
}

fn expand_home(text: &str) -> PathBuf {
    match (text.strip_prefix("~/"), directories::BaseDirs::new()) {
        (Some(rest), Some(base)) => base.home_dir().join(rest),
        _ => PathBuf::from(text),
    }
}
