//! What decides of settings beside the file, and what came of all of it: never shown.

use std::collections::BTreeMap;
use std::fmt;

use config::Config;

use super::Overrides;
use super::keys::{self, Key};
use super::layers::{Environment, Layer};

/// As the program was started.
#[derive(Clone)]
pub(super) struct Sources {
    pub(super) overrides: Overrides,
    pub(super) environment: Environment,
}

impl Sources {
    pub(super) fn new(overrides: &Overrides, environment: &Environment) -> Self {
        Self {
            overrides: overrides.clone(),
            environment: environment.clone(),
        }
    }

    pub(super) fn command_line(&self) -> Layer {
        let bind = self.overrides.bind.clone();
        let data_dir = self.overrides.data_dir.as_ref();
        let data_dir = data_dir.map(|dir| dir.display().to_string());
        let given = [
            bind.map(|bind| (&keys::BIND, bind)),
            data_dir.map(|dir| (&keys::DATA_DIR, dir)),
        ];
        Layer::of("command line", given.into_iter().flatten())
    }

    /// Whether the environment says what this is.
    pub(super) fn sets(&self, key: &Key) -> bool {
        let set = self.environment.get(std::ffi::OsStr::new(key.variable));
        set.is_some_and(|text| !text.to_string_lossy().trim().is_empty())
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources")
            .field("overrides", &self.overrides)
            .finish_non_exhaustive()
    }
}

/// Each setting that has a value as it is written, secrets too.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Texts(BTreeMap<&'static str, String>);

impl Texts {
    pub(super) fn of(config: &Config) -> Self {
        let set = keys::ALL.iter().filter_map(|key| {
            let text = config.get_string(key.path).ok()?.trim().to_owned();
            (!text.is_empty()).then_some((key.path, text))
        });
        Self(set.collect())
    }

    pub(super) fn get(&self, key: &Key) -> Option<&str> {
        self.0.get(key.path).map(String::as_str)
    }

    /// Takes over how a setting is elsewhere.
    pub(super) fn take(&mut self, key: &Key, from: &Self) {
        match from.0.get(key.path) {
            Some(text) => self.0.insert(key.path, text.clone()),
            None => self.0.remove(key.path),
        };
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}
