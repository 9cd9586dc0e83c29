//! What can be wrong with an installation, each with its one remedy: the banner shows a few
//! of these, `navi doctor` all.

mod certificate;
mod database;
mod look;
mod machine;
mod models;

use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use self::look::{Report, look};
pub(crate) use self::machine::sandbox;
pub(crate) use self::models::{check as models, probe};

/// How a thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    Fine,
    Warning,
    Broken,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) level: Level,
    /// What was found.
    pub(crate) detail: String,
    /// What to do about it; none where it is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<String>,
}

impl Check {
    pub(crate) fn fine(name: &'static str, detail: impl Into<String>) -> Self {
        Self {
            name,
            level: Level::Fine,
            detail: detail.into(),
            remedy: None,
        }
    }

    pub(crate) fn warning(
        name: &'static str,
        detail: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            name,
            level: Level::Warning,
            detail: detail.into(),
            remedy: Some(remedy.into()),
        }
    }

    pub(crate) fn broken(
        name: &'static str,
        detail: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Broken,
            ..Self::warning(name, detail, remedy)
        }
    }

    /// The line that a person reads, with its remedy below.
    pub(crate) fn text(&self) -> String {
        let mark = match self.level {
            Level::Fine => '✓',
            Level::Warning => '!',
            Level::Broken => '✗',
        };
        let line = format!("{mark} {:<10} {}", self.name, self.detail);
        match &self.remedy {
            Some(remedy) => format!("{line}\n             → {remedy}"),
            None => line,
        }
    }
}

/// The profiles and the persona, with what was refused.
pub(crate) fn profiles(names: &[String], warnings: &[String]) -> Check {
    let detail = names.join(", ");
    if warnings.is_empty() {
        Check::fine("profiles", detail)
    } else {
        Check::warning(
            "profiles",
            format!("{detail}; {}", warnings.join("; ")),
            "correct the file; a running Navi reads it again by itself",
        )
    }
}

/// Settings that work and are doubtful; none where there are none.
pub(crate) fn settings(warnings: &[String]) -> Check {
    if warnings.is_empty() {
        Check::fine("settings", "all valid; `navi config` shows them")
    } else {
        Check::warning(
            "settings",
            warnings.join("; "),
            "`navi config` shows where each setting came from",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_stands_with_its_remedy() {
        let text = Check::warning("sandbox", "no Landlock", "use a newer kernel").text();
        assert_eq!(
            text,
            "! sandbox    no Landlock\n             → use a newer kernel"
        );
    }
}
