//! Which host keys are trusted: those that were accepted before, and the one that a person is
//! shown, and approves, before the first call to a host.
//!
//! Those that were accepted stand in OpenSSH's known_hosts format (sshd(8), "SSH_KNOWN_HOSTS FILE
//! FORMAT"): plain and hashed names, patterns, `@revoked`. Certificate authorities are not looked
//! at: host certificates are not asked for.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hashlink::LruCache;
use itertools::Itertools as _;
use parking_lot::Mutex;
use ring::hmac;
use russh::keys::ssh_key::known_hosts::{self, HostPatterns, Marker};
use russh::keys::ssh_key::public::KeyData;
use russh::keys::{Algorithm, HashAlg, PublicKey};
use wildmatch::WildMatch;

use super::NAME;
use super::connection::{self, Times};
use super::hosts::Host;
use crate::protocol::ids::{CallId, SessionId, UserId};
use crate::tools::trust::{make_dir, read_all};
use crate::tools::workspace::if_there;
use crate::tools::{ToolContext, ToolError, ToolResult, blocking};

/// As many bytes as a file has.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// As many calls as wait for an answer at once. The oldest is forgotten, and asks again.
const MAX_OFFERS: usize = 256;

/// A host's key for a person: `SHA256:… (ssh-ed25519)`.
pub(super) fn shown(key: &KeyData) -> String {
    format!("{} ({})", fingerprint(key), key.algorithm().as_str())
}

/// As in `SHA256:…`.
fn fingerprint(key: &KeyData) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

/// What known_hosts files say of a host's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyStatus {
    Known,
    /// No key is known that could be compared.
    Unknown,
    /// Another key is known, from this file and line.
    Changed(String),
    Revoked(String),
}

impl KeyStatus {
    /// The refusal of a host whose key is not the known one.
    pub(super) fn refusal(&self, host: &Host, key: &KeyData) -> Option<ToolError> {
        let (name, key) = (&host.name, shown(key));
        match self {
            Self::Known | Self::Unknown => None,
            Self::Revoked(place) => Some(refusal!(
                "refused: the key, {key}, of the host `{name}` is marked as revoked in {place}; tell the user"
            )),
            Self::Changed(place) => Some(refusal!(
                "refused: the host `{name}` shows another key, {key}, than the one known from {place}. Somebody may be in between, or the host was set up anew. Tell the user; only after checking may they remove that line"
            )),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Trust {
    known: Arc<KnownHosts>,
    offers: Arc<Mutex<Offers>>,
    /// What a person approves counts for them alone.
    is_personal: bool,
}

/// The key that was shown last for each call, and the host: an approval is bound to it.
type Offers = LruCache<(SessionId, CallId), (String, KeyData)>;

impl Trust {
    pub(super) fn new(own: PathBuf, more: Option<PathBuf>) -> Self {
        Self {
            known: Arc::new(KnownHosts {
                own,
                more,
                adding: Mutex::default(),
            }),
            offers: Arc::new(Mutex::new(LruCache::new(MAX_OFFERS))),
            is_personal: false,
        }
    }

    /// The same, for those whose approval counts for nobody else.
    pub(super) fn personal(&self) -> Self {
        Self {
            known: Arc::clone(&self.known),
            offers: Arc::clone(&self.offers),
            is_personal: true,
        }
    }

    /// Forgets what a person approved for themselves. Blocks.
    pub(super) fn forget(&self, user: UserId) {
        if let Err(error) = if_there(fs::remove_file(self.known.of_person(user))) {
            tracing::warn!(%error, "the hosts' keys that a person approved cannot be deleted");
        }
    }

    fn person(&self, context: &ToolContext) -> Option<UserId> {
        self.is_personal.then_some(context.user_id)
    }

    /// The host's key where a person has to be asked about it, learnt from the host where none is
    /// known; and what an approval is bound to, which is the key where it was asked about.
    pub(super) async fn offer(
        &self,
        host: &Host,
        context: &ToolContext,
        times: Times,
    ) -> ToolResult<(Option<KeyData>, String)> {
        let known = self.known(host, context).await?;
        if !known.is_empty() {
            // Where this very call was asked about it, its approval still holds: another call
            // may have been approved in between.
            let offered = self.offered(host, context);
            let offered = offered.filter(|key| known.status(key) == KeyStatus::Known);
            let binding = offered.map_or_else(|| "known".to_owned(), |key| fingerprint(&key));
            return Ok((None, binding));
        }
        let (key, status) = connection::learn(host, known, times).await?;
        if let Some(refusal) = status.refusal(host, &key) {
            return Err(refusal);
        }
        let (call, shown) = (context.call_id.clone(), (host.name.clone(), key.clone()));
        self.offers.lock().insert((context.session_id, call), shown);
        let binding = fingerprint(&key);
        Ok((Some(key), binding))
    }

    /// What the host's key is held against when the call runs. A call that nobody was asked
    /// about trusts no new key.
    pub(super) async fn check(&self, host: &Host, context: &ToolContext) -> ToolResult<Known> {
        let mut known = self.known(host, context).await?;
        if context.approved {
            known.approved = self.offered(host, context);
        }
        Ok(known)
    }

    /// Stores a key that was trusted because it was approved.
    pub(super) async fn keep(
        &self,
        host: &Host,
        key: KeyData,
        context: &ToolContext,
    ) -> ToolResult<()> {
        tracing::info!(
            host = host.name,
            session_id = %context.session_id,
            fingerprint = fingerprint(&key),
            "a new host's key was approved"
        );
        let (known, host) = (Arc::clone(&self.known), host.clone());
        let person = self.person(context);
        blocking(NAME, move || known.add(&host, &key, person)).await
    }

    async fn known(&self, host: &Host, context: &ToolContext) -> ToolResult<Known> {
        let (known, host) = (Arc::clone(&self.known), host.clone());
        let person = self.person(context);
        blocking(NAME, move || known.of(&host, person)).await
    }

    fn offered(&self, host: &Host, context: &ToolContext) -> Option<KeyData> {
        let offers = self.offers.lock();
        let shown = offers.peek(&(context.session_id, context.call_id.clone()));
        let (_, key) = shown.filter(|(name, _)| *name == host.name)?;
        Some(key.clone())
    }
}

/// Where known keys are kept.
#[derive(Debug)]
struct KnownHosts {
    /// Navi's own: new keys are added to it.
    own: PathBuf,
    /// Read, never written.
    more: Option<PathBuf>,
    /// Two calls that add at once would write into each other's line.
    adding: Mutex<()>,
}

impl KnownHosts {
    /// Where stands what one person approved for themselves: beside what holds for all.
    fn of_person(&self, user: UserId) -> PathBuf {
        let mut directory = self.own.clone().into_os_string();
        directory.push(".d");
        PathBuf::from(directory).join(user.to_string())
    }

    /// What is known of this host, and to this person beside all. Blocks for as long as reading
    /// three small files takes.
    fn of(&self, host: &Host, person: Option<UserId>) -> ToolResult<Known> {
        let mut entries = Vec::new();
        let personal = person.map(|user| self.of_person(user));
        let files = [Some(&self.own), self.more.as_ref(), personal.as_ref()];
        for file in files.into_iter().flatten() {
            let text = read(file).map_err(|error| {
                refusal!(
                    "the known hosts file {} cannot be read: {error}; the user has to correct it",
                    file.display()
                )
            })?;
            entries.extend(entries_for(&host.known_as(), &text, file));
        }
        Ok(Known {
            entries,
            approved: None,
        })
    }

    /// Adds a key that a person has approved. Blocks.
    fn add(&self, host: &Host, key: &KeyData, person: Option<UserId>) -> ToolResult<()> {
        let _adding = self.adding.lock();
        if self.of(host, person)?.status(key) == KeyStatus::Known {
            return Ok(());
        }
        let file = person.map_or_else(|| self.own.clone(), |user| self.of_person(user));
        let added = PublicKey::from(key.clone())
            .to_openssh()
            .map_err(io::Error::other)
            .and_then(|key| append(&file, &format!("{} {key}\n", host.known_as())));
        added.map_err(|error| {
            refusal!(
                "the key of `{}` cannot be stored in {}: {error}; the user has to correct it",
                host.name,
                file.display()
            )
        })
    }
}

/// What is known of one host.
#[derive(Debug)]
pub(super) struct Known {
    entries: Vec<Entry>,
    /// A key that counts although it is not known: a person was asked about it.
    approved: Option<KeyData>,
}

impl Known {
    /// Whether a key that stands so is trusted.
    pub(super) fn is_trusted(&self, key: &KeyData, status: &KeyStatus) -> bool {
        match status {
            KeyStatus::Known => true,
            KeyStatus::Unknown => self.approved.as_ref() == Some(key),
            KeyStatus::Changed(_) | KeyStatus::Revoked(_) => false,
        }
    }

    /// How this key stands. A host with a known key that then comes with one of another kind
    /// counts as changed: a key of another kind is what somebody in between would show. A known
    /// RSA key says nothing, since none can be checked here (see `identity`).
    pub(super) fn status(&self, key: &KeyData) -> KeyStatus {
        let mut revoked = self.entries.iter().filter(|entry| entry.revoked);
        if let Some(entry) = revoked.find(|entry| entry.key == *key) {
            return KeyStatus::Revoked(entry.place.clone());
        }
        if self.known().any(|entry| entry.key == *key) {
            return KeyStatus::Known;
        }
        match self.known().find(|entry| entry.is_comparable()) {
            Some(entry) => KeyStatus::Changed(entry.place.clone()),
            None => KeyStatus::Unknown,
        }
    }

    /// Whether any key is known that a server's could be compared with.
    fn is_empty(&self) -> bool {
        !self.known().any(Entry::is_comparable)
    }

    /// The kinds of the known keys: a server is asked for one of these first.
    pub(super) fn algorithms(&self) -> impl Iterator<Item = Algorithm> {
        self.known().map(|entry| entry.key.algorithm())
    }

    fn known(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| !entry.revoked)
    }
}

/// A line that is about the host.
#[derive(Debug)]
struct Entry {
    /// Its file and line, counted from 1.
    place: String,
    revoked: bool,
    key: KeyData,
}

impl Entry {
    fn is_comparable(&self) -> bool {
        self.key.is_ed25519() || self.key.is_ecdsa()
    }
}

/// Lines that cannot be read are passed over, as OpenSSH does: one bad line does not make the
/// others unknown.
fn entries_for(known_as: &str, text: &str, file: &Path) -> Vec<Entry> {
    let about_the_host = |(index, line): (usize, &str)| {
        // The parser wants a single space between two words.
        let line = line.split_ascii_whitespace().join(" ");
        let entry: known_hosts::Entry = line.parse().ok()?;
        if line.starts_with('#')
            || entry.marker() == Some(&Marker::CertAuthority)
            || !is_named(known_as, entry.host_patterns())
        {
            return None;
        }
        Some(Entry {
            place: format!("{}, line {}", file.display(), index + 1),
            revoked: entry.marker() == Some(&Marker::Revoked),
            key: entry.public_key().key_data().clone(),
        })
    };
    let lines = text.lines().enumerate();
    lines.filter_map(about_the_host).collect()
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
    let is_like = |pattern: &str| WildMatch::new(&pattern.to_ascii_lowercase()).matches(known_as);
    let (negated, plain): (Vec<&str>, Vec<&str>) = patterns
        .iter()
        .map(String::as_str)
        .partition(|pattern| pattern.starts_with('!'));
    plain.into_iter().any(is_like) && !negated.into_iter().any(|pattern| is_like(&pattern[1..]))
}

/// A file's text; nothing where there is none.
fn read(path: &Path) -> io::Result<String> {
    let Some(file) = if_there(fs::File::open(path))? else {
        return Ok(String::new());
    };
    // A comment may be in any encoding.
    let bytes = read_all(file, MAX_FILE_BYTES)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn append(path: &Path, line: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        make_dir(directory, 0o700)?;
    }
    let ends_open = read(path)?.ends_with(|c| c != '\n');
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).mode(0o600).open(path)?;
    let end = if ends_open { "\n" } else { "" };
    // In one write, so that nobody reads half of it.
    file.write_all(format!("{end}{line}").as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
#[path = "known_hosts_tests.rs"]
mod tests;
