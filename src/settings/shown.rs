//! Settings as they are shown: without what is secret in them.

use config::Config;
use navi_actors::domain::redact::{HIDDEN, redacted};
use schemars::JsonSchema;
use serde::Serialize;

use super::described::description;
use super::layers::Layer;
use super::page::FileOnly;
use super::{Secret, Settings, keys, read};

/// One line of `navi config`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ShownValue {
    /// `section.key` in a file.
    pub(crate) key: &'static str,
    /// The environment variable that sets it too.
    pub(crate) variable: &'static str,
    /// What it is for.
    pub(crate) description: String,
    /// Whether its value is hidden.
    pub(crate) secret: bool,
    /// Null where unset; `[hidden]` for a secret.
    pub(crate) value: Option<String>,
    /// `default`, `environment`, `command line`, or a file's path.
    pub(crate) origin: String,
    /// Whether the file sets it, be it that something else wins over that; left out where not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) in_file: bool,
    /// Why it is changed in the file alone; left out where the page may change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file_only: Option<FileOnly>,
    /// What it will be at the next start; left out where that is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<PendingValue>,
}

/// What a setting will be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct PendingValue {
    /// As the setting's.
    pub(crate) value: Option<String>,
    pub(crate) origin: String,
}

/// The values of all secret settings.
pub(super) fn secrets(config: &Config) -> Vec<Secret> {
    let secret = keys::ALL.iter().filter(|key| key.secret);
    secret
        .filter_map(|key| config.get_string(key.path).ok())
        .map(Secret::new)
        .collect()
}

/// Each setting as `navi config` prints it.
pub(super) fn shown(config: &Config, file: Option<&Layer>, settings: &Settings) -> Vec<ShownValue> {
    keys::ALL
        .iter()
        .copied()
        .map(|key| {
            let set = config
                .get_string(key.path)
                .ok()
                .filter(|text| !text.is_empty());
            let value = match set {
                Some(_) if key.secret => Some(HIDDEN.to_owned()),
                // It may have been set without its scheme, and with a password.
                Some(_) if *key == keys::OLLAMA_HOST => {
                    Some(redacted(&settings.model.ollama_host).into_owned())
                }
                None if *key == keys::DATA_DIR => Some(settings.data_dir.display().to_string()),
                set => set.map(|text| redacted(&text).into_owned()),
            };
            ShownValue {
                key: key.path,
                variable: key.variable,
                description: description(key.variable),
                secret: key.secret,
                value,
                origin: read::origin(config, key),
                in_file: file.is_some_and(|file| file.get(key).is_some()),
                file_only: key.file_only,
                pending: None,
            }
        })
        .collect()
}
