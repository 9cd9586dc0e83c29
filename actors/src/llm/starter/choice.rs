//! Which model the starter answers with (`STARTER_MODEL`).

use std::path::PathBuf;

use super::models::{STARTER_MODELS, StarterModel};

/// A model by its name, a file, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StarterChoice {
    Off,
    Named(&'static StarterModel),
    /// Any GGUF file of the llama or qwen2 architecture.
    File(PathBuf),
}

/// A setting that names no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} is no starter model; use {names}, a path to a GGUF file, or off")]
pub struct UnknownChoice {
    value: String,
    names: String,
}

impl StarterChoice {
    /// Reads the setting. A path is told from a misspelt name by its slash or its ending.
    pub fn parse(value: &str) -> Result<Self, UnknownChoice> {
        if value == "off" {
            return Ok(Self::Off);
        }
        if let Some(model) = StarterModel::named(value) {
            return Ok(Self::Named(model));
        }
        if value.contains(['/', '\\']) || value.ends_with(".gguf") {
            return Ok(Self::File(PathBuf::from(value)));
        }
        let names: Vec<&str> = STARTER_MODELS.iter().map(|model| model.name).collect();
        Err(UnknownChoice {
            value: value.to_owned(),
            names: names.join(", "),
        })
    }

    /// What requests call it: its name, or the file's path.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        match self {
            Self::Off => None,
            Self::Named(model) => Some(model.name.to_owned()),
            Self::File(path) => Some(path.display().to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_is_a_name_a_path_or_off() {
        let name = |value| StarterChoice::parse(value).map(|choice| choice.name());
        assert_eq!(name("off"), Ok(None));
        assert_eq!(name("smollm2-135m"), Ok(Some("smollm2-135m".to_owned())));
        assert_eq!(name("/a/b.gguf"), Ok(Some("/a/b.gguf".to_owned())));
        assert_eq!(name("b.gguf"), Ok(Some("b.gguf".to_owned())));
        let error = StarterChoice::parse("smollm").map_err(|error| error.to_string());
        assert_eq!(
            error,
            Err("\"smollm\" is no starter model; use smollm2-135m, qwen2.5-1.5b, a path to a GGUF file, or off".to_owned())
        );
    }
}
