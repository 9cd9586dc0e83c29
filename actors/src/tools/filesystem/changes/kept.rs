//! The session's private directory: its changes as they are stored, and the copies that are kept
//! for them.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use cap_tempfile::TempFile;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::entries::remove;
use crate::protocol::change::{Change, ChangeAction};
use crate::protocol::ids::{CallId, ChangeId, RunId};
use crate::tools::ToolResult;
use crate::tools::trust::make_dir;
use crate::tools::workspace::{InnerPath, Location, if_there};

/// As many changes of a session as are listed.
const MAX_RECORDS: usize = 200;
/// The list of changes.
const LIST: &str = "changes.json";
/// As many bytes as that list has: far more than the changes that it may hold come to.
const MAX_LIST_BYTES: u64 = 4 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct Kept(Dir);

impl Kept {
    /// Opens the directory and makes it where it is not there.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        make_dir(path, 0o700)?;
        Dir::open_ambient_dir(path, ambient_authority()).map(Self)
    }

    /// Opens the directory; none where it is not there.
    pub(super) fn find(path: &Path) -> io::Result<Option<Self>> {
        if_there(Dir::open_ambient_dir(path, ambient_authority()).map(Self))
    }

    /// The list. One that cannot be understood is set aside: changes go on without the old ones.
    pub(super) fn load(&self) -> io::Result<Records> {
        let Some(text) = if_there(self.read(LIST, MAX_LIST_BYTES))? else {
            return Ok(Records::default());
        };
        match serde_json::from_slice(&text) {
            Ok(records) => Ok(records),
            Err(error) => {
                tracing::error!(%error, "a session's list of changes cannot be understood, and is set aside");
                let aside = format!("{LIST}.{}", ChangeId::new());
                self.0.rename(LIST, &self.0, aside)?;
                Ok(Records::default())
            }
        }
    }

    pub(super) fn store(&self, records: &Records) -> io::Result<()> {
        self.write(LIST, &serde_json::to_vec(records)?)
    }

    /// Keeps a content under a name: the list, or what belongs to a change.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut file = TempFile::new(&self.0)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.replace(name)
    }

    /// What is kept under a name, and no more than this of it.
    pub(super) fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.0.open(name)?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn has(&self, id: ChangeId) -> bool {
        self.0.symlink_metadata(id.to_string()).is_ok()
    }

    /// The place of what is kept for a change.
    pub(super) fn place(&self, id: ChangeId) -> io::Result<Location> {
        Ok(Location {
            directory: self.0.try_clone()?,
            name: id.to_string().into(),
        })
    }

    /// Lets go of what is kept for a change.
    pub(super) fn drop_copy(&self, id: ChangeId) {
        let removed = self.place(id).and_then(|place| remove(&place));
        if let Err(error) = if_there(removed) {
            tracing::warn!(%error, "a copy that was kept of a file could not be removed");
        }
    }
}

/// Who makes a change.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Origin {
    pub(crate) run_id: Option<RunId>,
    pub(crate) call_id: Option<CallId>,
    /// The change that is taken back.
    pub(crate) undoes: Option<ChangeId>,
}

/// A change, and how to take it back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: ChangeId,
    pub(super) action: ChangeAction,
    pub(super) place: InnerPath,
    /// Where a move went.
    pub(super) to: Option<InnerPath>,
    pub(super) at: DateTime<Utc>,
    #[serde(flatten)]
    pub(super) origin: Origin,
    pub(super) undone_by: Option<ChangeId>,
    pub(super) inverse: Inverse,
    /// How large the copy is that is kept for it.
    pub(super) kept_bytes: u64,
}

/// What takes a change back. `expects` is the fingerprint of what the change left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Inverse {
    /// Put the kept content in place of what stands there now.
    Restore { expects: String },
    /// Take away what was made, and the directories that were made for it.
    Remove { expects: String, made: Vec<PathBuf> },
    /// Move it back to where it was.
    MoveBack { expects: String, made: Vec<PathBuf> },
    /// Put what was taken away back to where it was.
    PutBack,
    /// Nothing does.
    Nothing { why: String },
}

impl Record {
    /// Where what it changed is now: a move's end.
    pub(super) fn end(&self) -> &InnerPath {
        self.to.as_ref().unwrap_or(&self.place)
    }

    /// The change as its owner sees it: whether it can be taken back, or why not.
    pub(super) fn told(&self, can_be: ToolResult<()>) -> Change {
        let why_not = can_be.err().map(|why| why.0);
        Change {
            id: self.id,
            action: self.action,
            path: self.place.to_string(),
            to: self.to.as_ref().map(InnerPath::to_string),
            at: self.at,
            run_id: self.origin.run_id,
            call_id: self.origin.call_id.clone(),
            undoes: self.origin.undoes,
            undoable: why_not.is_none(),
            why_not,
        }
    }
}

/// All changes of a session that are listed, oldest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Records {
    pub(super) all: Vec<Record>,
}

impl Records {
    /// Drops the oldest so that there are no more than may be, of no more bytes than may be
    /// kept. Gives back those whose copies are to go.
    pub(super) fn bound(&mut self, max_bytes: u64) -> Vec<ChangeId> {
        let surplus = self.all.len().saturating_sub(MAX_RECORDS);
        let mut gone: Vec<ChangeId> = self.all.drain(..surplus).map(|record| record.id).collect();
        let mut bytes: u64 = self.all.iter().map(|record| record.kept_bytes).sum();
        for record in &mut self.all {
            if bytes <= max_bytes {
                break;
            }
            if record.kept_bytes > 0 {
                bytes -= record.kept_bytes;
                record.kept_bytes = 0;
                record.inverse = Inverse::Nothing {
                    why: "its copy was dropped to make room for newer ones".to_owned(),
                };
                gone.push(record.id);
            }
        }
        gone
    }
}
