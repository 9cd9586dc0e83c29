//! Where settings come from: the built-in file, one of the user's, the environment, the
//! command line. Each is a flat map of key to text, and later ones win.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use config::{Config, ConfigError, File, FileFormat, Map, Source, Value, ValueKind};

use super::FILE_NAME;
use super::keys::{self, Key};

/// The process's environment, or a test's.
pub(crate) type Environment = BTreeMap<OsString, OsString>;

/// The built-in defaults, commented for the person who looks for a key.
pub(crate) const DEFAULTS: &str = include_str!("../../config/default.toml");

/// One source of settings.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    /// As `navi config` prints it. None: the built-in default.
    origin: Option<String>,
    values: BTreeMap<&'static str, String>,
}

impl Source for Layer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
        Ok(self
            .values
            .iter()
            .map(|(path, text)| {
                let value = Value::new(self.origin.as_ref(), ValueKind::String(text.clone()));
                ((*path).to_owned(), value)
            })
            .collect())
    }
}

impl Layer {
    /// A layer of the given values; empty ones count as unset.
    pub(crate) fn of(
        origin: &str,
        values: impl IntoIterator<Item = (&'static Key, String)>,
    ) -> Self {
        Self {
            origin: Some(origin.to_owned()),
            values: values
                .into_iter()
                .filter(|(_, text)| !text.trim().is_empty())
                .map(|(key, text)| (key.path, text))
                .collect(),
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&str> {
        self.values.get(key.path).map(String::as_str)
    }

    /// The file that it was read from.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.origin.as_ref().map(PathBuf::from)
    }

    /// The environment's part. Problems are added to `problems`.
    pub(crate) fn environment(environment: &Environment, problems: &mut Vec<String>) -> Self {
        let mut values = Vec::new();
        for key in keys::ALL.iter().copied() {
            let Some(raw) = environment.get(std::ffi::OsStr::new(key.variable)) else {
                continue;
            };
            match raw.to_str() {
                Some(text) => values.push((key, text.to_owned())),
                None => problems.push(format!("{} is not UTF-8 text", key.variable)),
            }
        }
        Self::of("environment", values)
    }

    /// A file's text. Problems are added to `problems`, unknown keys among them.
    pub(crate) fn file(path: &Path, text: &str, problems: &mut Vec<String>) -> Self {
        let name = path.display().to_string();
        match leaves(text) {
            Ok(leaves) => Self::from_leaves(&name, leaves, problems),
            Err(error) => {
                let error = without_source(&error.to_string());
                problems.push(format!("{name} is not valid TOML: {error}"));
                Self::of(&name, [])
            }
        }
    }

    /// The built-in defaults.
    pub(crate) fn defaults(problems: &mut Vec<String>) -> Self {
        Self {
            origin: None,
            ..Self::file(Path::new("config/default.toml"), DEFAULTS, problems)
        }
    }

    fn from_leaves(
        name: &str,
        leaves: BTreeMap<String, String>,
        problems: &mut Vec<String>,
    ) -> Self {
        let mut values = Vec::new();
        for (path, text) in leaves {
            if let Some(key) = keys::ALL.iter().copied().find(|key| key.path == path) {
                values.push((key, text));
            } else {
                let hint = keys::nearest(&path).map_or_else(
                    || "; `navi config` lists all keys".to_owned(),
                    |near| format!("; did you mean `{near}`?"),
                );
                problems.push(format!("{name}: there is no setting `{path}`{hint}"));
            }
        }
        Self::of(name, values)
    }
}

/// Where the user's file may be.
pub(super) struct FilePlace<'a> {
    pub(super) named: Option<&'a Path>,
    pub(super) data_dir: Option<&'a Path>,
}

impl FilePlace<'_> {
    /// The file that was named, or the first that exists.
    pub(super) fn read(&self, problems: &mut Vec<String>) -> Option<Layer> {
        let candidates: Vec<PathBuf> = match self.named {
            Some(path) => vec![path.to_owned()],
            None => [
                self.data_dir.map(Path::to_owned),
                directories::ProjectDirs::from("", "", "navi")
                    .map(|dirs| dirs.config_dir().to_owned()),
            ]
            .into_iter()
            .flatten()
            .map(|dir| dir.join(FILE_NAME))
            .collect(),
        };
        for path in candidates {
            match std::fs::read_to_string(&path) {
                Ok(text) => return Some(self.layer(&path, &text, problems)),
                Err(error) if is_absent(&error) && self.named.is_none() => {}
                Err(error) => {
                    problems.push(format!("cannot read {}: {error}", path.display()));
                    return None;
                }
            }
        }
        None
    }

    pub(super) fn layer(&self, path: &Path, text: &str, problems: &mut Vec<String>) -> Layer {
        let layer = Layer::file(path, text, problems);
        if self.named.is_none()
            && path.parent() == self.data_dir
            && layer.get(&keys::DATA_DIR).is_some()
        {
            problems.push(format!(
                "{} is in the data directory and cannot move it: set NAVI_DATA_DIR instead of server.data_dir",
                path.display()
            ));
        }
        layer
    }
}

/// A data directory that is no directory is told later, for what it is.
fn is_absent(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

/// What a TOML parser says, without the line of the text that it shows: there may be a key in it.
pub(super) fn without_source(error: &str) -> String {
    let is_said = |line: &&str| {
        let line = line.trim_start();
        let line = line.trim_start_matches(|c: char| c.is_ascii_digit());
        !line.trim_start().starts_with('|')
    };
    let said: Vec<&str> = error.lines().filter(is_said).map(str::trim).collect();
    said.join(": ")
}

/// All values of a TOML text by their dotted keys.
pub(super) fn leaves(text: &str) -> Result<BTreeMap<String, String>, ConfigError> {
    let parsed = Config::builder()
        .add_source(File::from_str(text, FileFormat::Toml))
        .build()?;
    let mut found = BTreeMap::new();
    collect_leaves("", parsed.cache, &mut found);
    Ok(found)
}

fn collect_leaves(path: &str, value: Value, found: &mut BTreeMap<String, String>) {
    match value.kind {
        ValueKind::Table(table) => {
            for (name, value) in table {
                let path = if path.is_empty() {
                    name
                } else {
                    format!("{path}.{name}")
                };
                collect_leaves(&path, value, found);
            }
        }
        ValueKind::Array(items) => {
            let texts: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
            found.insert(path.to_owned(), texts.join(","));
        }
        ValueKind::Nil
        | ValueKind::Boolean(_)
        | ValueKind::I64(_)
        | ValueKind::I128(_)
        | ValueKind::U64(_)
        | ValueKind::U128(_)
        | ValueKind::Float(_)
        | ValueKind::String(_) => {
            found.insert(path.to_owned(), value.to_string());
        }
    }
}
