//! People, and how far what they come in with goes.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumIter, IntoEnumIterator, IntoStaticStr, VariantNames};

use super::ids::UserId;

/// What a person is to this installation. The later has all that the earlier has.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum UserRole {
    /// Looks at what is theirs, and changes nothing.
    Guest,
    /// Has conversations, files and a memory of their own.
    User,
    /// Manages the service and its people, and reads nothing of theirs.
    Admin,
}

/// What a token is good for. A browser's login is good for all of it.
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
pub enum Scope {
    /// Looks at conversations, and at how the service stands.
    Read,
    /// Begins, changes and stops conversations and their runs.
    Run,
    /// Answers requests for consent, and changes what is asked about.
    Consent,
    /// Files of conversations, up and down.
    Files,
    /// What is remembered.
    Memory,
    /// The account itself, its keys, and what its person manages.
    Admin,
}

impl Scope {
    /// Its word on the wire.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::iter().find(|it| it.name() == text);
        known.ok_or_else(|| {
            let names = Self::VARIANTS.join(", ");
            format!("\"{text}\" is no scope; there are {names}")
        })
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scopes(u8);

impl Scopes {
    /// Every one.
    pub const ALL: Self = Self(0b11_1111);
    /// What a token has whose maker named none: all but the answer to a request for consent.
    pub const USUAL: Self = Self(0b11_1011);

    /// Whether this one is among them.
    pub const fn has(self, scope: Scope) -> bool {
        self.0 & bit(scope) != 0
    }

    /// Whether all of `other` is among them.
    pub const fn include(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Those that are in it, in their order.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::iter().filter(move |scope| self.has(*scope))
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

const fn bit(scope: Scope) -> u8 {
    1 << scope as u8
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |all, scope| all | bit(scope)))
    }
}

/// Separated by commas.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Scope::name).collect();
        f.write_str(&names.join(","))
    }
}

/// Separated by commas.
impl FromStr for Scopes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = text
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        names.map(Scope::from_str).collect()
    }
}

/// A person, as they were called then.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct PersonRef {
    pub id: UserId,
    pub name: String,
}

/// What the record has lines of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recorded {
    SignedIn,
    SignInFailed,
    SignedOut,
    /// The provider of sign-on ended what it had begun.
    SignedOutByProvider,
    /// A browser or all of them, by `about`.
    DeviceSignedOut,
    /// Who somebody is to a provider of sign-on, or to a proxy, lets them in from now on.
    IdentityLinked,
    IdentityUnlinked,
    PasswordChanged,
    RecoveryCodesMade,
    PasskeyMade,
    PasskeyRemoved,
    TokenMade,
    TokenRemoved,
    Invited,
    InvitationRemoved,
    /// Somebody has an account now.
    Joined,
    RoleChanged,
    /// What is powerful, to a person or to all users.
    PowersGranted,
    /// How much of what all share one person has.
    LimitsChanged,
    /// What a provider said would have left no admin.
    RoleKept,
    PersonRemoved,
    /// Allowed or forbidden for all.
    ToolAllowed,
    ToolForbidden,
    /// Those of `about`, by their keys.
    SettingsChanged,
    /// A server of tools, by the page or the API: added, changed, put back, taken out.
    McpServerWritten,
    McpServerRemoved,
    /// It was started, or talked to, without being kept.
    McpServerTried,
    /// A conversation, with somebody or by a link.
    Shared,
    ShareEnded,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_told_and_read_by_name() {
        assert_eq!(Scopes::ALL.iter().count(), Scope::iter().len());
        assert_eq!(
            "run, read".parse(),
            Ok::<Scopes, String>([Scope::Read, Scope::Run].into_iter().collect())
        );
        assert_eq!(Scopes::USUAL.to_string(), "read,run,files,memory,admin");
        assert!(!Scopes::USUAL.has(Scope::Consent));
        assert!(Scopes::ALL.include(Scopes::USUAL) && !Scopes::USUAL.include(Scopes::ALL));
        assert!(
            "read,write"
                .parse::<Scopes>()
                .unwrap_err()
                .contains("write")
        );
    }
}
