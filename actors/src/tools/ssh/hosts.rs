//! The hosts file: which machines there are, and how to reach each.
//!
//! A JSON object, a name to each host (SPEC section 15, `SSH_HOSTS_FILE`):
//!
//! ```json
//! {"web1": {"host": "192.0.2.10", "user": "deploy", "key": "~/.ssh/id_ed25519"}}
//! ```

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::domain::unseen::is_moving;
use crate::tools::output::shortened;

/// As many hosts as a file has.
const MAX_HOSTS: usize = 500;
/// As many bytes as a file has.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// As much of a wrong value as an error shows.
const SHOWN_BYTES: usize = 60;
const SSH_PORT: u16 = 22;

/// A machine that the tool may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// What the model calls it.
    pub name: String,
    /// A DNS name or an address.
    pub address: String,
    pub port: u16,
    pub user: String,
    /// The private key's file.
    pub key: Option<PathBuf>,
    /// Whether the ssh agent is asked to sign.
    pub agent: bool,
    /// What the machine is for, as the model is told.
    pub description: String,
}

impl Host {
    /// As known_hosts files name it: with the port where it is not 22.
    #[must_use]
    pub fn known_as(&self) -> String {
        let address = self.address.to_ascii_lowercase();
        if self.port == SSH_PORT {
            address
        } else {
            format!("[{address}]:{}", self.port)
        }
    }

    /// For a person: `deploy@192.0.2.10`, with the port where it is not 22.
    #[must_use]
    pub fn login(&self) -> String {
        format!("{}@{}", self.user, self.known_as())
    }
}

/// The hosts of a file, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(Vec<Host>);

impl Hosts {
    /// Reads and checks a hosts file. `home` is what `~/` stands for; other relative paths of
    /// keys start at the file's own directory.
    ///
    /// # Errors
    /// What is wrong, with the file and the line.
    pub fn read(path: &Path, home: Option<&Path>) -> Result<Self, String> {
        let shown = path.display();
        let mut text = String::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text))
            .map_err(|error| format!("{shown} cannot be read: {error}"))?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(format!("{shown} has more than {MAX_FILE_BYTES} bytes"));
        }
        let Entries(entries) = serde_json::from_str(&text).map_err(|error| {
            let reason = error.to_string();
            // The position stands in front already.
            let reason = reason.split(" at line ").next().unwrap_or_default();
            format!("{shown}:{}: {reason}", error.line().max(1))
        })?;
        let beside = path.parent().unwrap_or(Path::new(""));
        let hosts = entries.into_iter().map(|(name, entry)| {
            let key = entry.key.map(|key| match (key.0.strip_prefix("~/"), home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => beside.join(key.0),
            });
            Host {
                name,
                address: entry.host.0,
                port: entry.port.map_or(SSH_PORT, |port| port.0),
                user: entry.user.0,
                agent: entry.agent.unwrap_or(key.is_none()),
                key,
                description: entry.description.map(|text| text.0).unwrap_or_default(),
            }
        });
        Ok(Self(hosts.collect()))
    }

    /// The host of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Host> {
        self.0.iter().find(|host| host.name == name)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Host> {
        self.0.iter()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Host> for Hosts {
    fn from_iter<I: IntoIterator<Item = Host>>(hosts: I) -> Self {
        Self(hosts.into_iter().collect())
    }
}

/// A host as the file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(alias = "hostname")]
    host: Address,
    port: Option<Port>,
    #[serde(alias = "username")]
    user: User,
    #[serde(alias = "key_file", alias = "identity_file")]
    key: Option<KeyPath>,
    agent: Option<bool>,
    description: Option<Description>,
    #[serde(rename = "password")]
    _password: Option<NoPassword>,
}

/// What other programs have in such files. It is refused, and told in words of its own.
struct NoPassword;

impl<'de> Deserialize<'de> for NoPassword {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer)?;
        Err(D::Error::custom(
            "passwords are not supported: take `password` out, and name a private key's file in `key`, or set `agent` to true",
        ))
    }
}

/// The whole file. Checked while it is read, so that an error knows its line.
struct Entries(Vec<(String, Entry)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a host to each name, as in {\"web1\": {\"host\": \"192.0.2.10\", \"user\": \"deploy\"}}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
        let mut entries: Vec<(String, Entry)> = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            if entries.iter().any(|(other, _)| *other == name) {
                return Err(A::Error::custom(format!(
                    "the host `{name}` stands here twice"
                )));
            }
            if entries.len() >= MAX_HOSTS {
                return Err(A::Error::custom(format!("more than {MAX_HOSTS} hosts")));
            }
            entries.push((name, map.next_value()?));
        }
        Ok(Entries(entries))
    }
}

/// A text of the file that has to pass a check.
macro_rules! checked {
    ($name:ident, $check:expr) => {
        struct $name(String);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                let check: fn(&str) -> Option<&'static str> = $check;
                match check(&text) {
                    None => Ok(Self(text)),
                    // What stands in the wrong place may be a secret: not all of it is shown.
                    Some(wanted) => Err(D::Error::custom(format!(
                        "`{}` is no {wanted}",
                        shortened(&text, SHOWN_BYTES)
                    ))),
                }
            }
        }
    };
}

/// None where the text is good, else what it should be.
fn unless(good: bool, wanted: &'static str) -> Option<&'static str> {
    (!good).then_some(wanted)
}

checked!(Name, |text| unless(
    (1..=64).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)),
    "name of a host: up to 64 letters, digits, `.`, `_` and `-`, the first a letter or a digit"
));
checked!(Address, |text| unless(
    (1..=253).contains(&text.len())
        && !text.starts_with('-')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-:%".contains(c)),
    "host: a DNS name or an address, without user and port"
));
checked!(User, |text| unless(
    (1..=64).contains(&text.len())
        && !text.starts_with('-')
        && text.chars().all(|c| !c.is_control() && !c.is_whitespace()),
    "user"
));
checked!(KeyPath, |text| unless(
    (1..=1_024).contains(&text.len()) && !text.chars().any(is_moving),
    "path of a private key's file"
));
checked!(Description, |text| unless(
    text.len() <= 200 && !text.chars().any(is_moving),
    "description: one line of up to 200 bytes"
));

struct Port(u16);

impl<'de> Deserialize<'de> for Port {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        u16::try_from(number)
            .ok()
            .filter(|port| *port > 0)
            .map(Self)
            .ok_or_else(|| D::Error::custom(format!("{number} is no port: 1 to 65535")))
    }
}

#[cfg(test)]
#[path = "hosts_tests.rs"]
mod tests;
