//! The session's private directory: its list of changes, and the copies that are kept for them.

use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use cap_tempfile::TempFile;

use super::moving::remove;
use super::record::Records;
use crate::protocol::ids::ChangeId;
use crate::tools::workspace::{Location, if_there};

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
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)?;
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
