//! The hosts file: which machines there are, and how to reach each.
//!
//! A JSON object, a name to each host (SPEC section 15, `SSH_HOSTS_FILE`):
//!
//! ```json
//! {"web1": {"host": "192.0.2.10", "user": "deploy", "key": "~/.ssh/id_ed25519"}}
//! ```

use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{self, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::domain::unseen::is_moving;
use crate::tools::output::shortened;
use crate::tools::trust::read_all;

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
    pub fn known_as(&self) -> String {
        let address = self.address.to_ascii_lowercase();
        if self.port == SSH_PORT {
            address
        } else {
            format!("[{address}]:{}", self.port)
        }
    }

    /// For a person: `deploy@192.0.2.10`, with the port where it is not 22.
    pub fn login(&self) -> String {
        format!("{}@{}", self.user, self.known_as())
    }
}

/// Reads and checks a hosts file. `home` is what `~/` stands for; other relative paths of
/// keys start at the file's own directory.
///
/// # Errors
/// What is wrong, with the file and the line.
pub fn read(path: &Path, home: Option<&Path>) -> Result<Vec<Host>, String> {
    let shown = path.display();
    let text = std::fs::File::open(path).and_then(|file| read_all(file, MAX_FILE_BYTES));
    let text = text.map_err(|error| format!("{shown} cannot be read: {error}"))?;
    let mut json = serde_json::Deserializer::from_slice(&text);
    let entries = json.deserialize_map(Entries);
    let entries = entries.and_then(|entries| json.end().map(|()| entries));
    let entries = entries.map_err(|error| {
        let reason = error.to_string();
        // The position stands in front already.
        let reason = reason.split(" at line ").next().unwrap_or_default();
        format!("{shown}:{}: {reason}", error.line().max(1))
    })?;
    let beside = path.parent().unwrap_or(Path::new(""));
    let hosts = entries.into_iter().map(|(name, entry)| {
        let key = entry.key.map(|key| match (key.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => beside.join(key),
        });
        Host {
            name,
            address: entry.host,
            port: entry.port.unwrap_or(SSH_PORT),
            user: entry.user,
            agent: entry.agent.unwrap_or(key.is_none()),
            key,
            description: entry.description.unwrap_or_default(),
        }
    });
    Ok(hosts.collect())
}

/// A host as the file has it. Checked while it is read, so that an error knows its line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(alias = "hostname", deserialize_with = "address")]
    host: String,
    #[serde(default, deserialize_with = "port")]
    port: Option<u16>,
    #[serde(alias = "username", deserialize_with = "user")]
    user: String,
    #[serde(default, alias = "key_file", alias = "identity_file")]
    #[serde(deserialize_with = "key_path")]
    key: Option<String>,
    agent: Option<bool>,
    #[serde(default, deserialize_with = "description")]
    description: Option<String>,
    #[serde(default, rename = "password", deserialize_with = "no_password")]
    _password: (),
}

/// The text, where it is what is wanted. What stands in the wrong place may be a secret: not all
/// of it is shown.
fn checked<E: de::Error>(text: String, is_good: bool, wanted: &str) -> Result<String, E> {
    if is_good {
        return Ok(text);
    }
    let shown = shortened(&text, SHOWN_BYTES);
    Err(E::custom(format!("`{shown}` is no {wanted}")))
}

fn is_plain(text: &str, signs: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_alphanumeric() || signs.contains(c))
}

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    let is_good =
        (1..=253).contains(&text.len()) && !text.starts_with('-') && is_plain(&text, "._-:%");
    let wanted = "host: a DNS name or an address, without user and port";
    checked(text, is_good, wanted)
}

fn port<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u16>, D::Error> {
    let in_range = |number: i64| match u16::try_from(number) {
        Ok(port @ 1..) => Ok(port),
        _ => Err(D::Error::custom(format!("{number} is no port: 1 to 65535"))),
    };
    Option::deserialize(from)?.map(in_range).transpose()
}

fn user<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    let is_good = (1..=64).contains(&text.len())
        && !text.starts_with('-')
        && text.chars().all(|c| !c.is_control() && !c.is_whitespace());
    checked(text, is_good, "user")
}

fn key_path<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let check = |text: String| {
        let is_good = (1..=1_024).contains(&text.len()) && !text.chars().any(is_moving);
        checked(text, is_good, "path of a private key's file")
    };
    Option::deserialize(from)?.map(check).transpose()
}

fn description<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let check = |text: String| {
        let is_good = text.len() <= 200 && !text.chars().any(is_moving);
        checked(text, is_good, "description: one line of up to 200 bytes")
    };
    Option::deserialize(from)?.map(check).transpose()
}

/// What other programs have in such files. It is refused, and told in words of its own.
fn no_password<'de, D: Deserializer<'de>>(from: D) -> Result<(), D::Error> {
    match Option::<IgnoredAny>::deserialize(from)? {
        None => Ok(()),
        Some(_) => Err(D::Error::custom(
            "passwords are not supported: take `password` out, and name a private key's file in `key`, or set `agent` to true",
        )),
    }
}

/// The whole file.
struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(String, Entry)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a host to each name, as in {\"web1\": {\"host\": \"192.0.2.10\", \"user\": \"deploy\"}}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries: Self::Value = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let is_good = (1..=64).contains(&name.len())
                && name.starts_with(|c: char| c.is_ascii_alphanumeric())
                && is_plain(&name, "._-");
            let wanted = "name of a host: up to 64 letters, digits, `.`, `_` and `-`, the first a letter or a digit";
            let name = checked(name, is_good, wanted)?;
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
        Ok(entries)
    }
}

#[cfg(test)]
#[path = "hosts_tests.rs"]
mod tests;
