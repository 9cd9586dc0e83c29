//! Whether the database is still where it was opened.
//!
//! SQLite keeps on writing to a file that was removed or replaced under it, and tells nobody:
//! all that is acknowledged from then on goes with the process.

use std::io;
use std::path::{Path, PathBuf};

use sea_orm::DbErr;

/// The file that was opened. Looked for in each write transaction.
#[derive(Debug)]
pub(super) struct DatabaseFile {
    path: PathBuf,
    identity: Identity,
}

impl DatabaseFile {
    /// The file of a database that was just opened.
    ///
    /// # Errors
    /// Those of the file system.
    pub(super) async fn find(path: &Path) -> io::Result<Self> {
        Ok(Self {
            identity: identity(path).await?,
            path: path.to_owned(),
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

    /// # Errors
    /// Where another file is in its place, or none.
    pub(super) async fn check(&self) -> Result<(), DbErr> {
        if identity(&self.path)
            .await
            .is_ok_and(|now| now == self.identity)
        {
            return Ok(());
        }
        Err(DbErr::Custom(format!(
            "{} was removed or replaced while navi runs; put it back, or start navi again",
            self.path.display()
        )))
    }
}

#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = ();

#[cfg(unix)]
async fn identity(path: &Path) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    let is = tokio::fs::metadata(path).await?;
    Ok((is.dev(), is.ino()))
}

#[cfg(not(unix))]
async fn identity(path: &Path) -> io::Result<Identity> {
    tokio::fs::metadata(path).await.map(drop)
}
