//! The servers' file as the page changes it: one entry at a time, checked by its reader, and never
//! over somebody else's change.

pub(crate) mod draft;
mod text;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};

use navi_actors::protocol::error::{ErrorCode, NaviError, invalid};
use navi_actors::tools::mcp::{self, MAX_BYTES, MAX_NAME, ServerConfig};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tracing::error;

use self::draft::{Fields, McpDraft, McpEntry, as_written};
use self::text::{Entry, ServersText};
use crate::whole_file;

/// As many servers that were taken out can be put back.
const MAX_REMOVED: usize = 8;
/// As many are tried at once.
const TRIALS: usize = 2;
/// What may stand for a variable that is not set: in an address, or as a whole one.
const PLACEHOLDERS: [&str; 2] = ["1", "http://1"];

/// See the module.
#[derive(Debug)]
pub(crate) struct McpServersFile {
    path: PathBuf,
    /// Those that were taken out last. Held while the file is changed, so that one change sees the other.
    removed: Mutex<VecDeque<Entry>>,
    /// Versions are hashes of what may be secret: nobody can tell by one what it is of.
    versions: RandomState,
    trials: Semaphore,
}

impl McpServersFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            removed: Mutex::default(),
            versions: RandomState::new(),
            trials: Semaphore::new(TRIALS),
        }
    }

    /// A server as it stands there. Blocks.
    ///
    /// # Errors
    /// `not_found`; `change_conflict` where the file cannot be read.
    pub(crate) fn entry(&self, name: &str) -> Result<McpEntry, NaviError> {
        let entry = self
            .text()?
            .entry(name)
            .map_err(|reason| self.unusable(&reason))?;
        let entry = entry.ok_or_else(|| not_found(name))?;
        let version = self.version(&entry.text);
        Ok(McpEntry::of(name, &self.path, version, &entry.value))
    }

    /// The versions of all, by name; none where the file cannot be read. Blocks.
    pub(crate) fn versions(&self) -> HashMap<String, String> {
        let Ok(text) = self.text() else {
            return HashMap::new();
        };
        let texts = text.texts();
        texts
            .map(|(name, text)| (name, self.version(&text)))
            .collect()
    }

    /// Writes a server, new or changed. Blocks.
    ///
    /// # Errors
    /// `invalid_field` with what is wrong; `change_conflict` where it is another by now.
    pub(crate) fn write(&self, name: &str, draft: &McpDraft) -> Result<(), NaviError> {
        let _one_at_a_time = self.removed.lock();
        let (text, fields) = self.drafted(name, draft)?;
        text.set(name, fields)
            .map_err(|reason| self.unusable(&reason))?;
        self.put(&text)
    }

    /// The server that this would be. Blocks.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(crate) fn config(&self, name: &str, draft: &McpDraft) -> Result<ServerConfig, NaviError> {
        let switched_on = McpDraft {
            disabled: false,
            ..draft.clone()
        };
        let (_, fields) = self.drafted(name, &switched_on)?;
        let config = mcp::read_server(name, as_written(&fields), &variable).map_err(invalid)?;
        config.ok_or_else(|| not_found(name))
    }

    /// Takes a server out. Blocks.
    ///
    /// # Errors
    /// `not_found`; `change_conflict` where it is not the one that was seen.
    pub(crate) fn remove(&self, name: &str, version: &str) -> Result<(), NaviError> {
        let mut removed = self.removed.lock();
        let text = self.text()?;
        let entry = text.entry(name).map_err(|reason| self.unusable(&reason))?;
        let entry = entry.ok_or_else(|| not_found(name))?;
        if self.version(&entry.text) != version {
            return Err(conflict(format!(
                "{name} was changed meanwhile; look at it again"
            )));
        }
        text.remove(name).map_err(|reason| self.unusable(&reason))?;
        self.save(&text)?;
        removed.retain(|known| mcp::plain(&known.name) != name);
        removed.push_front(entry);
        removed.truncate(MAX_REMOVED);
        Ok(())
    }

    /// Puts back what was taken out, by whoever has leave for it. Blocks.
    ///
    /// # Errors
    /// `not_found` where it is not known any more; what `leave` is not there for; `change_conflict`
    /// where another one has its name; `invalid_field` where there are too many by now.
    pub(crate) fn restore(
        &self,
        name: &str,
        leave: Result<(), NaviError>,
    ) -> Result<(), NaviError> {
        let mut removed = self.removed.lock();
        let is_it = |known: &Entry| mcp::plain(&known.name) == name;
        let at = removed.iter().position(is_it);
        let Some((at, entry)) = at.and_then(|at| Some((at, removed.get(at)?))) else {
            return Err(not_found(name));
        };
        leave?;
        let text = self.text()?;
        if text
            .entry(name)
            .map_err(|reason| self.unusable(&reason))?
            .is_some()
        {
            return Err(taken(name));
        }
        text.put_back(&entry.name, entry.value.clone());
        match mcp::read_server(&entry.name, entry.value.clone(), &variable) {
            Ok(_) => self.put(&text)?,
            // What was left out before may be so again.
            Err(_) => self.save(&text)?,
        }
        removed.remove(at);
        Ok(())
    }

    /// Leave to try a server out.
    ///
    /// # Errors
    /// `rate_limited` while others are tried.
    pub(crate) fn trial(&self) -> Result<SemaphorePermit<'_>, NaviError> {
        self.trials.try_acquire().map_err(|_| {
            let busy = "other servers are being tried; try it again when they have answered";
            NaviError::new(ErrorCode::RateLimited, busy)
        })
    }

    /// The file's text now, and what the draft makes of the server in it.
    fn drafted(&self, name: &str, draft: &McpDraft) -> Result<(ServersText, Fields), NaviError> {
        if mcp::plain(name) != name || !(1..=MAX_NAME).contains(&name.len()) {
            return Err(invalid(format!(
                "the name must have 1 to {MAX_NAME} letters, digits, - or _"
            )));
        }
        let text = self.text()?;
        let entry = text.entry(name).map_err(|reason| self.unusable(&reason))?;
        let version = entry.as_ref().map(|entry| self.version(&entry.text));
        if version != draft.before {
            return Err(match (&version, &draft.before) {
                (Some(_), None) => taken(name),
                (None, _) => conflict(format!("{name} was removed meanwhile; add it anew")),
                (Some(_), Some(_)) => conflict(format!(
                    "{name} was changed meanwhile; look at it again before you write it"
                )),
            });
        }
        let fields = draft
            .fields(entry.as_ref().map(|entry| &entry.value), &variable)
            .map_err(invalid)?;
        let switched_on = fields
            .iter()
            .filter(|(field, _)| *field != "disabled")
            .cloned();
        let written = as_written(&switched_on.collect::<Vec<_>>());
        let mut read = mcp::read_server(name, written.clone(), &variable);
        if draft.disabled {
            // The variables that it needs may be set when it is switched on.
            for placeholder in PLACEHOLDERS {
                read = read.or_else(|_| {
                    let or_placeholder = |name: &str| variable(name).or(Some(placeholder.into()));
                    mcp::read_server(name, written.clone(), &or_placeholder)
                });
            }
        }
        read.map_err(invalid)?;
        Ok((text, fields))
    }

    /// Saves it where the reader finds nothing wrong in it that was not before: of too many servers,
    /// another one may be left out.
    fn put(&self, text: &ServersText) -> Result<(), NaviError> {
        let before = mcp::parse(&self.text()?.whole(), variable).problems;
        let problems = mcp::parse(&text.whole(), variable).problems;
        match problems.into_iter().find(|it| !before.contains(it)) {
            Some(problem) => Err(invalid(problem)),
            None => self.save(text),
        }
    }

    fn save(&self, text: &ServersText) -> Result<(), NaviError> {
        let text = text.whole();
        if text.len() as u64 > MAX_BYTES {
            return Err(invalid(format!(
                "the file would be larger than {MAX_BYTES} bytes"
            )));
        }
        whole_file::replace(&self.path, &text).map_err(|error| {
            error!(%error, file = %self.path.display(), "the file of MCP servers could not be written");
            let path = self.path.display();
            NaviError::new(ErrorCode::Internal, format!("{path} cannot be written to: {error}"))
        })
    }

    fn text(&self) -> Result<ServersText, NaviError> {
        let text = read(&self.path).map_err(|error| self.unusable(&error.to_string()))?;
        ServersText::parse(text.as_deref()).map_err(|reason| self.unusable(&reason))
    }

    fn version(&self, text: &str) -> String {
        format!("{:016x}", self.versions.hash_one(text))
    }

    fn unusable(&self, reason: &str) -> NaviError {
        conflict(format!(
            "{}: {reason}; mend it by hand first",
            self.path.display()
        ))
    }
}

fn read(path: &Path) -> std::io::Result<Option<String>> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Ok(file) if !file.is_file() => return Err(std::io::Error::other("it is no regular file")),
        Ok(file) if file.len() > MAX_BYTES => {
            let too_large = format!("it is larger than {MAX_BYTES} bytes");
            return Err(std::io::Error::other(too_large));
        }
        _ => {}
    }
    std::fs::read_to_string(path).map(Some)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn conflict(reason: String) -> NaviError {
    NaviError::new(ErrorCode::ChangeConflict, reason)
}

fn taken(name: &str) -> NaviError {
    conflict(format!(
        "there is a server {name} already; change that one, or choose another name"
    ))
}

fn not_found(name: &str) -> NaviError {
    NaviError::new(
        ErrorCode::NotFound,
        format!("there is no MCP server {name:?} in the file"),
    )
}
