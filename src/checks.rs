//! What can be wrong with an installation, each with its one remedy: the banner shows a few
//! of these, `navi doctor` all.

mod certificate;
mod database;
mod look;
mod machine;
mod models;

use navi_actors::domain::redact::redacted;
use navi_actors::protocol::phrase::{CheckName, Phrase, PhraseCode};
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
    pub(crate) name: CheckName,
    pub(crate) level: Level,
    /// What was found.
    pub(crate) detail: String,
    /// What to do about it; none where it is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<String>,
    /// Both as codes.
    pub(crate) phrases: CheckPhrases,
}

/// What a check says, for a page that has words of its own for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct CheckPhrases {
    /// One after the other.
    pub(crate) detail: Vec<Phrase>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remedy: Option<Phrase>,
}

impl Check {
    pub(crate) fn fine(name: CheckName, detail: impl Into<Phrase>) -> Self {
        Self::new(name, Level::Fine, vec![detail.into()], None)
    }

    pub(crate) fn warning(
        name: CheckName,
        detail: impl Into<Phrase>,
        remedy: impl Into<Phrase>,
    ) -> Self {
        Self::new(
            name,
            Level::Warning,
            vec![detail.into()],
            Some(remedy.into()),
        )
    }

    pub(crate) fn new(
        name: CheckName,
        level: Level,
        detail: Vec<Phrase>,
        remedy: Option<Phrase>,
    ) -> Self {
        let told: Vec<String> = detail.iter().map(ToString::to_string).collect();
        Self {
            name,
            level,
            detail: told.join("; "),
            remedy: remedy.as_ref().map(ToString::to_string),
            phrases: CheckPhrases { detail, remedy },
        }
    }

    pub(crate) fn broken(
        name: CheckName,
        detail: impl Into<Phrase>,
        remedy: impl Into<Phrase>,
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
        let line = format!("{mark} {:<10} {}", self.name.english(), self.detail);
        match &self.remedy {
            Some(remedy) => format!("{line}\n             → {remedy}"),
            None => line,
        }
    }
}

/// The profiles and the persona, with what was refused.
pub(crate) fn profiles(names: &[String], warnings: &[Phrase]) -> Check {
    let names = Phrase::plain(names.join(", "));
    if warnings.is_empty() {
        return Check::fine(CheckName::Profiles, names);
    }
    Check::new(
        CheckName::Profiles,
        Level::Warning,
        [&[names], warnings].concat(),
        Some(PhraseCode::CorrectFile.into()),
    )
}

/// Settings that work and are doubtful; none where there are none.
pub(crate) fn settings(warnings: &[Phrase]) -> Check {
    if warnings.is_empty() {
        return Check::fine(CheckName::Settings, PhraseCode::AllValid);
    }
    Check::new(
        CheckName::Settings,
        Level::Warning,
        warnings.to_vec(),
        Some(PhraseCode::SettingsFrom.into()),
    )
}

/// Settings that nothing can be begun with.
pub(crate) fn wrong_settings(problems: &[String]) -> Check {
    let told = problems.iter().map(|it| Phrase::plain(redacted(it)));
    Check::new(
        CheckName::Settings,
        Level::Broken,
        told.collect(),
        Some(PhraseCode::CorrectAndLook.into()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_stands_with_its_remedy() {
        let text = Check::warning(
            CheckName::Sandbox,
            Phrase::plain("no Landlock"),
            Phrase::plain("use a newer kernel"),
        )
        .text();
        assert_eq!(
            text,
            "! sandbox    no Landlock\n             → use a newer kernel"
        );
    }
}
