//! Whether the database is still where it was opened.
//!
//! SQLite keeps on writing to a file that was removed or replaced under it, and tells nobody:
//! all that is acknowledged from then on goes with the process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The file that was opened. Looked for before each commit, by SQLite's own thread.
#[derive(Debug)]
pub(super) struct DatabaseFile {
    path: PathBuf,
    identity: Identity,
    /// It was looked for, and was not in its place.
    missed: AtomicBool,
}

impl DatabaseFile {
    /// The file that is there now. Waits for the disk.
    ///
    /// # Errors
    /// Those of the file system.
    pub(super) fn find(path: &Path) -> io::Result<Self> {
        Ok(Self {
            identity: identity(path)?,
            path: path.to_owned(),
            missed: AtomicBool::new(false),
        })
    }

    /// What it and its write-ahead log take up.
    pub(super) async fn bytes(&self) -> u64 {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        let mut bytes = 0;
        for path in [self.path.as_path(), Path::new(&log)] {
            // There is no log where nothing was written yet.
            bytes += tokio::fs::metadata(path).await.map_or(0, |it| it.len());
        }
        bytes
    }

    /// Whether it is in its place. Waits for the disk.
    pub(super) fn is_there(&self) -> bool {
        let is_there = identity(&self.path).is_ok_and(|now| now == self.identity);
        if !is_there {
            self.missed.store(true, Ordering::Relaxed);
        }
        is_there
    }

    /// Whether it was missed since this was asked last.
    pub(super) fn was_missed(&self) -> bool {
        self.missed.swap(false, Ordering::Relaxed)
    }
}

#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = ();

#[cfg(unix)]
fn identity(path: &Path) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    let is = fs::metadata(path)?;
    Ok((is.dev(), is.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<Identity> {
    fs::metadata(path).map(drop)
}
