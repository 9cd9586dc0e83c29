//! What is powerful and everybody's: an admin says which people may use it.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumIter, IntoEnumIterator, IntoStaticStr, VariantNames};

/// The longest name of one host, server, tool or skill.
const MAX_NAME_CHARS: usize = 100;

/// The kinds of what is granted.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    EnumIter,
    IntoStaticStr,
    VariantNames,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PowerKind {
    /// Commands on the machine, as the sandbox holds them.
    Terminal,
    /// Files beside the workspace: `FS_ALLOWED_PATHS`.
    OutsideFiles,
    /// What `web_fetch` may reach of the machine's own network.
    LocalNetwork,
    /// Searches with the installation's key.
    WebSearch,
    HomeAssistant,
    /// Hosts of `SSH_HOSTS_FILE`, by name.
    Ssh,
    /// MCP servers, by name.
    Mcp,
    /// The user's own tools, by name.
    UserTools,
    /// Skills, by name.
    Skills,
}

impl PowerKind {
    /// Its word on the wire.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether single ones of it can be granted.
    pub const fn has_names(self) -> bool {
        matches!(self, Self::Ssh | Self::Mcp | Self::UserTools | Self::Skills)
    }
}

/// One thing that is granted: a kind, or one of its names: `terminal`, `ssh`, `mcp:notes`.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend(
    "pattern" = r"^(terminal|outside_files|local_network|web_search|home_assistant|(ssh|mcp|user_tools|skills)(:[A-Za-z0-9._-]{1,100})?)$"
))]
pub struct Power(String);

impl Power {
    /// All of a kind.
    pub fn of(kind: PowerKind) -> Self {
        Self(kind.name().to_owned())
    }

    /// One of a kind.
    pub fn named(kind: PowerKind, name: &str) -> Self {
        Self(format!("{}:{name}", kind.name()))
    }

    /// Its words on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Power {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, name) = match text.split_once(':') {
            Some((kind, name)) => (kind, Some(name)),
            None => (text, None),
        };
        let mut kinds = PowerKind::iter();
        let Some(kind) = kinds.find(|it| it.name() == kind) else {
            let all = PowerKind::VARIANTS.join(", ");
            return Err(format!("\"{text}\" is nothing to grant; there are {all}"));
        };
        let Some(name) = name else {
            return Ok(Self::of(kind));
        };
        if !kind.has_names() {
            let kind = kind.name();
            return Err(format!(
                "\"{kind}\" is granted whole: leave out what follows it"
            ));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(is_plain) {
            return Err(format!(
                "\"{text}\": a name has 1 to {MAX_NAME_CHARS} letters, digits, dots, hyphens and underscores"
            ));
        }
        Ok(Self::named(kind, name))
    }
}

impl TryFrom<String> for Power {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Power> for String {
    fn from(power: Power) -> Self {
        power.0
    }
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What somebody was granted. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Powers {
    /// An admin's, and those of whoever is alone on their machine.
    All,
    Granted(Arc<BTreeSet<Power>>),
}

impl Powers {
    /// All of a kind.
    pub fn has(&self, kind: PowerKind) -> bool {
        self.holds(|granted| granted.contains(&Power::of(kind)))
    }

    /// One of a kind.
    pub fn has_named(&self, kind: PowerKind, name: &str) -> bool {
        self.holds(|granted| {
            granted.contains(&Power::of(kind)) || granted.contains(&Power::named(kind, name))
        })
    }

    fn holds(&self, is_so: impl FnOnce(&BTreeSet<Power>) -> bool) -> bool {
        match self {
            Self::All => true,
            Self::Granted(granted) => is_so(granted),
        }
    }
}

impl FromIterator<Power> for Powers {
    fn from_iter<I: IntoIterator<Item = Power>>(powers: I) -> Self {
        Self::Granted(Arc::new(powers.into_iter().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_is_that_and_no_more() {
        let powers: Powers = ["terminal", "mcp:notes", "ssh"]
            .map(|text| text.parse().unwrap())
            .into_iter()
            .collect();
        assert!(powers.has(PowerKind::Terminal) && powers.has(PowerKind::Ssh));
        assert!(powers.has_named(PowerKind::Ssh, "nas"));
        assert!(powers.has_named(PowerKind::Mcp, "notes"));
        assert!(!powers.has(PowerKind::Mcp));
        assert!(!powers.has_named(PowerKind::Mcp, "notes2"));
        assert!(!powers.has_named(PowerKind::UserTools, "notes"));
        for kind in PowerKind::iter() {
            assert!(Powers::All.has(kind));
            assert_eq!(Power::of(kind).as_str().parse(), Ok(Power::of(kind)));
        }
    }

    #[test]
    fn what_cannot_be_granted_says_why() {
        for text in [
            "",
            "root",
            "terminal:",
            "terminal:ls",
            "mcp:",
            "mcp:a b",
            "ssh:a:b",
        ] {
            assert!(text.parse::<Power>().is_err(), "{text}");
        }
        assert!("mcp:".parse::<Power>().unwrap_err().contains("1 to 100"));
        assert!("root".parse::<Power>().unwrap_err().contains("terminal"));
    }
}
