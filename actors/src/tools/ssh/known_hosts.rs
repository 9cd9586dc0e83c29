//! Host keys that were accepted before, in OpenSSH's known_hosts format (sshd(8), "SSH_KNOWN_HOSTS
//! FILE FORMAT"): plain and hashed names, patterns, `@revoked`. Certificate authorities are not
//! looked at: host certificates are not asked for.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ring::hmac;
use russh::keys::ssh_key::known_hosts::{self, HostPatterns, Marker};
use russh::keys::{HashAlg, PublicKey};

use super::hosts::Host;
use crate::tools::ToolError;

/// As many bytes as a file has.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// The key that a server proved to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostKey {
    /// As in `ssh-ed25519`.
    pub(super) algorithm: String,
    /// As in `SHA256:…`.
    pub(super) fingerprint: String,
    /// Its kind and the key, as a line of a file has them.
    openssh: String,
}

impl HostKey {
    pub(super) fn of(key: &PublicKey) -> Option<Self> {
        // Without a comment.
        let key = PublicKey::from(key.key_data().clone());
        Some(Self {
            algorithm: key.algorithm().as_str().to_owned(),
            fingerprint: key.fingerprint(HashAlg::Sha256).to_string(),
            openssh: key.to_openssh().ok()?,
        })
    }

    /// For a person: `SHA256:… (ssh-ed25519)`.
    pub(super) fn shown(&self) -> String {
        format!("{} ({})", self.fingerprint, self.algorithm)
    }
}

/// What known_hosts files say of a host's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyStatus {
    Known,
    /// No key is known that could be compared.
    Unknown,
    /// Another key is known.
    Changed(FileLine),
    Revoked(FileLine),
}

/// A line of a file, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileLine {
    pub(super) file: PathBuf,
    pub(super) line: usize,
}

/// Where known keys are kept.
#[derive(Debug)]
pub(super) struct KnownHosts {
    /// Navi's own: new keys are added to it.
    own: PathBuf,
    /// Read, never written.
    more: Option<PathBuf>,
    /// Two calls that add at once would write into each other's line.
    adding: Mutex<()>,
}

impl KnownHosts {
    pub(super) fn new(own: PathBuf, more: Option<PathBuf>) -> Self {
        Self {
            own,
            more,
            adding: Mutex::new(()),
        }
    }

    /// What is known of this host. Blocks for as long as reading two small files takes.
    pub(super) fn of(&self, host: &Host) -> Result<Known, ToolError> {
        let mut entries = Vec::new();
        for file in [Some(&self.own), self.more.as_ref()].into_iter().flatten() {
            let text = read(file).map_err(|error| {
                ToolError(format!(
                    "the known hosts file {} cannot be read: {error}; the user has to correct it",
                    file.display()
                ))
            })?;
            entries.extend(entries_for(&host.known_as(), &text, file));
        }
        Ok(Known { entries })
    }

    /// Adds a key that a person has approved. Blocks.
    pub(super) fn add(&self, host: &Host, key: &HostKey) -> Result<(), ToolError> {
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        if self.of(host)?.status(key) == KeyStatus::Known {
            return Ok(());
        }
        let line = format!("{} {}\n", host.known_as(), key.openssh);
        append(&self.own, &line).map_err(|error| {
            ToolError(format!(
                "the key of `{}` cannot be stored in {}: {error}; the user has to correct it",
                host.name,
                self.own.display()
            ))
        })
    }
}

/// The entries of one host.
#[derive(Debug)]
pub(super) struct Known {
    entries: Vec<Entry>,
}

impl Known {
    /// How this key stands. A host with a known key that then comes with one of another kind
    /// counts as changed: a key of another kind is what somebody in between would show. A known
    /// RSA key says nothing, since none can be checked here (see `identity::rsa`).
    pub(super) fn status(&self, key: &HostKey) -> KeyStatus {
        let is_same = |entry: &&Entry| entry.key == *key;
        if let Some(entry) = self.entries.iter().filter(|e| e.revoked).find(is_same) {
            return KeyStatus::Revoked(entry.place.clone());
        }
        let known = || self.entries.iter().filter(|entry| !entry.revoked);
        if known().any(|entry| is_same(&entry)) {
            return KeyStatus::Known;
        }
        match known().find(|entry| entry.is_comparable()) {
            Some(entry) => KeyStatus::Changed(entry.place.clone()),
            None => KeyStatus::Unknown,
        }
    }

    /// Whether any key is known that a server's could be compared with.
    pub(super) fn is_empty(&self) -> bool {
        !self
            .entries
            .iter()
            .any(|entry| !entry.revoked && entry.is_comparable())
    }

    /// The kinds of the known keys: a server is asked for one of these first.
    pub(super) fn algorithms(&self) -> impl Iterator<Item = &str> {
        self.entries
            .iter()
            .filter(|entry| !entry.revoked)
            .map(|entry| entry.key.algorithm.as_str())
    }
}

/// A line that is about the host.
#[derive(Debug)]
struct Entry {
    place: FileLine,
    revoked: bool,
    key: HostKey,
}

impl Entry {
    fn is_comparable(&self) -> bool {
        let algorithm = &self.key.algorithm;
        algorithm == "ssh-ed25519" || algorithm.starts_with("ecdsa-sha2-")
    }
}

/// Lines that cannot be read are passed over, as OpenSSH does: one bad line does not make the
/// others unknown.
fn entries_for(known_as: &str, text: &str, file: &Path) -> Vec<Entry> {
    let about_the_host = |(index, line): (usize, &str)| {
        // The parser wants a single space between two words.
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let entry: known_hosts::Entry = words.join(" ").parse().ok()?;
        if words[0].starts_with('#')
            || entry.marker() == Some(&Marker::CertAuthority)
            || !is_named(known_as, entry.host_patterns())
        {
            return None;
        }
        Some(Entry {
            place: FileLine {
                file: file.to_owned(),
                line: index + 1,
            },
            revoked: entry.marker() == Some(&Marker::Revoked),
            key: HostKey::of(entry.public_key())?,
        })
    };
    text.lines()
        .enumerate()
        .filter_map(about_the_host)
        .collect()
}

/// Whether the first field of a line is about the host.
fn is_named(known_as: &str, names: &HostPatterns) -> bool {
    let patterns = match names {
        HostPatterns::Patterns(patterns) => patterns,
        HostPatterns::HashedName { salt, hash } => {
            let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, salt);
            return hmac::verify(&key, known_as.as_bytes(), hash).is_ok();
        }
    };
    let is_like =
        |pattern: &str| matches(pattern.to_ascii_lowercase().as_bytes(), known_as.as_bytes());
    let (negated, plain): (Vec<&str>, Vec<&str>) = patterns
        .iter()
        .map(String::as_str)
        .partition(|pattern| pattern.starts_with('!'));
    plain.into_iter().any(is_like) && !negated.into_iter().any(|pattern| is_like(&pattern[1..]))
}

/// `*` is any text, `?` any one byte.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where the last star stood, and how much of the text it has taken.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == b'?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

/// A file's text; nothing where there is none.
fn read(path: &Path) -> io::Result<String> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other(format!(
            "it has more than {MAX_FILE_BYTES} bytes"
        )));
    }
    // A comment may be in any encoding.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn append(path: &Path, line: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(directory)?;
    }
    let ends_open = read(path)?.ends_with(|c| c != '\n');
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    let line = if ends_open {
        format!("\n{line}")
    } else {
        line.to_owned()
    };
    file.write_all(line.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
#[path = "known_hosts_tests.rs"]
mod tests;
