//! Files of sessions on disk: how they come in, how they are used, how they go.
//!
//! What was sent in lies outside of the workspaces, under names of our own, where no tool
//! reaches it: `.files/SESSION/FILE`, beside it its text (`.text`) and an image of our making
//! (`.view`). The tools have a copy in the session's workspace. The store says which files there
//! are; a file without its row is nothing.

mod attach;
mod incoming;
pub mod janitor;
mod shelf;
mod tool_images;
mod views;

#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use infer::MatcherType;
use tokio::io::AsyncReadExt as _;
use tokio::sync::Semaphore;

pub use self::incoming::{Upload, Whose};
use self::shelf::Shelf;
pub use self::tool_images::KeptImages;
use crate::domain::files::MAX_FILES;
use crate::homes::Homes;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::file::SessionFile;
use crate::protocol::ids::{FileId, SessionId};
use crate::root::store_error;
use crate::services::now;
use crate::store::{FileQuota, Store, StoreError, StoredFile};

/// How many uploads may be on their way at once.
const UPLOADS_AT_ONCE: usize = 8;
/// How many uploads are looked at at once.
const READ_AT_ONCE: usize = 2;
/// The largest image of our own making.
const MAX_VIEW_BYTES: u64 = 8 * 1024 * 1024;

/// What may be sent in, and how long it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    pub file_bytes: u64,
    /// Of one upload.
    pub upload_files: usize,
    /// Of one session.
    pub session_files: u64,
    pub session_bytes: u64,
    /// After its last use.
    pub keep: Duration,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self {
            file_bytes: 200 * 1024 * 1024,
            upload_files: MAX_FILES,
            session_files: 200,
            session_bytes: 2 * 1024 * 1024 * 1024,
            keep: Duration::from_secs(24 * 3600),
        }
    }
}

/// See the module. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SessionFiles {
    store: Store,
    shelf: Arc<Shelf>,
    homes: Homes,
    limits: FileLimits,
    uploads: Arc<Semaphore>,
    readers: Arc<Semaphore>,
}

/// A file on its way to somebody.
#[derive(Debug)]
pub struct Download {
    /// The sender's name for it.
    pub name: String,
    pub bytes: u64,
    pub content: tokio::fs::File,
}

/// An image of our own making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlineImage {
    pub media_type: &'static str,
    pub bytes: Vec<u8>,
}

impl InlineImage {
    /// None where it is none that a browser shows.
    pub(crate) fn from_base64(base64: &str) -> Option<Self> {
        let bytes = STANDARD.decode(base64).ok()?;
        let kind = infer::get(&bytes).filter(|it| it.matcher_type() == MatcherType::Image)?;
        Some(Self {
            media_type: kind.mime_type(),
            bytes,
        })
    }
}

impl SessionFiles {
    /// Files beside the sessions' workspaces.
    #[must_use]
    pub fn new(store: Store, homes: impl Into<Homes>, limits: FileLimits) -> Self {
        let homes = homes.into();
        Self {
            store,
            shelf: Arc::new(Shelf::new(homes.dir())),
            homes,
            limits,
            uploads: Arc::new(Semaphore::new(UPLOADS_AT_ONCE)),
            readers: Arc::new(Semaphore::new(READ_AT_ONCE)),
        }
    }

    /// The session's files, oldest first.
    ///
    /// # Errors
    /// What the store says.
    pub async fn list(&self, session: SessionId) -> Result<Vec<SessionFile>, NaviError> {
        let files = self.store.files(session).await;
        let files = files.map_err(|error| store_error(&error))?;
        Ok(files.into_iter().map(|file| self.shown(file)).collect())
    }

    /// Opens a file to be sent to its user, which is a use of it.
    ///
    /// # Errors
    /// `file_not_found`; what the store says.
    pub async fn open(&self, session: SessionId, file: FileId) -> Result<Download, NaviError> {
        let known = self.used(session, file).await?;
        let path = self.shelf.content(session, file);
        let opened = tokio::fs::File::open(&path).await;
        let content = opened.map_err(|error| lost(file, &error))?;
        let metadata = content.metadata().await;
        Ok(Download {
            name: known.file.name,
            bytes: metadata.map_err(|error| lost(file, &error))?.len(),
            content,
        })
    }

    /// The image of our own making that stands for a file.
    ///
    /// # Errors
    /// `file_not_found`, also where the file is no image; what the store says.
    pub async fn image(&self, session: SessionId, file: FileId) -> Result<InlineImage, NaviError> {
        let known = self.find(session, file).await?;
        if !known.file.image {
            return Err(NaviError::new(
                ErrorCode::FileNotFound,
                "this file is no image that can be shown; download it instead",
            ));
        }
        let bytes = self.view(session, file).await?;
        let media_type = shown_type(&bytes).ok_or_else(|| {
            tracing::error!(%file, "an image of our own making is none");
            unreadable()
        })?;
        Ok(InlineImage { media_type, bytes })
    }

    /// Deletes a file, for good: nobody reads anything of it from here on.
    ///
    /// # Errors
    /// `file_not_found`; what the store says.
    pub async fn delete(&self, session: SessionId, file: FileId) -> Result<(), NaviError> {
        let deleted = self.store.delete_file(session, file).await;
        let deleted = deleted.map_err(|error| store_error(&error))?;
        let Some(deleted) = deleted else {
            return Err(not_found());
        };
        let removed = self.remove(session, file, &deleted.file.path).await;
        removed.map_err(|error| store_error(&error))
    }

    /// Removes what there is of a file on the disk, its copy in the workspace with it.
    async fn remove(&self, session: SessionId, file: FileId, path: &str) -> Result<(), StoreError> {
        self.shelf.remove(session, file).await;
        if let Some(workspace) = self.workspace(session).await? {
            self.shelf.take_back(workspace, path).await;
        }
        Ok(())
    }

    /// Where the session's tools have its files; none where it is gone.
    async fn workspace(&self, session: SessionId) -> Result<Option<PathBuf>, StoreError> {
        let owners = self.store.owners_of(&[session]).await?;
        let owner = owners.first().map(|(_, owner)| *owner);
        Ok(owner.map(|owner| self.homes.workspace(owner, session)))
    }

    /// Puts a file where the session's tools find it.
    async fn lend(&self, session: SessionId, file: FileId, path: &str) -> io::Result<()> {
        let workspace = self.workspace(session).await.map_err(io::Error::other)?;
        let workspace = workspace.ok_or(io::ErrorKind::NotFound)?;
        self.shelf.lend(workspace, session, file, path).await
    }

    /// Notes that a call of a tool used the files that its arguments name.
    pub async fn used_by_call(&self, session: SessionId, arguments: &serde_json::Value) {
        let paths = crate::domain::files::named_paths(&arguments.to_string());
        if paths.is_empty() {
            return;
        }
        let noted = async {
            let files = self.store.files_at(session, &paths).await?;
            let ids: Vec<FileId> = files.iter().map(|known| known.file.file_id).collect();
            self.store.use_files(session, &ids, now()).await
        };
        if let Err(error) = noted.await {
            tracing::warn!(%error, "the use of a file could not be noted");
        }
    }

    fn quota(&self) -> FileQuota {
        FileQuota {
            files: self.limits.session_files,
            bytes: self.limits.session_bytes,
        }
    }

    fn shown(&self, stored: StoredFile) -> SessionFile {
        let keep = TimeDelta::from_std(self.limits.keep).unwrap_or(TimeDelta::MAX);
        SessionFile {
            source: stored.source,
            text: stored.has_text,
            problem: stored.problem.as_ref().map(ToString::to_string),
            phrase: stored.problem,
            created_at: stored.created_at,
            last_used_at: stored.last_used_at,
            expires_at: stored
                .last_used_at
                .checked_add_signed(keep)
                .unwrap_or(stored.last_used_at),
            file: stored.file,
        }
    }

    async fn find(&self, session: SessionId, file: FileId) -> Result<StoredFile, NaviError> {
        let known = self.store.file(session, file).await;
        known
            .map_err(|error| store_error(&error))?
            .ok_or_else(not_found)
    }

    /// A file that is there from here on for as long as files are kept.
    async fn used(&self, session: SessionId, file: FileId) -> Result<StoredFile, NaviError> {
        let used = self.store.use_files(session, &[file], now()).await;
        if used.map_err(|error| store_error(&error))?.is_empty() {
            return Err(not_found());
        }
        self.find(session, file).await
    }

    async fn view(&self, session: SessionId, file: FileId) -> Result<Vec<u8>, NaviError> {
        let path = self.shelf.view(session, file);
        let read = async {
            let mut bytes = Vec::new();
            tokio::fs::File::open(&path)
                .await?
                .take(MAX_VIEW_BYTES)
                .read_to_end(&mut bytes)
                .await?;
            Ok(bytes)
        };
        read.await
            .map_err(|error: std::io::Error| lost(file, &error))
    }
}

/// The type of an image of our own making; none for anything else.
fn shown_type(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if bytes.starts_with(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else {
        None
    }
}

fn not_found() -> NaviError {
    NaviError::new(
        ErrorCode::FileNotFound,
        "this session has no such file; it may have been deleted, or not used for long",
    )
}

/// The store has the file and the disk has not.
fn lost(file: FileId, error: &std::io::Error) -> NaviError {
    tracing::error!(%file, %error, "a stored file cannot be read");
    unreadable()
}

fn unreadable() -> NaviError {
    NaviError::new(
        ErrorCode::Internal,
        "the file cannot be read from disk; see Navi's log, and upload it again",
    )
}

/// The disk said no.
fn not_stored(error: &std::io::Error) -> NaviError {
    tracing::error!(%error, "an upload could not be stored");
    let message = match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            "there is no room left on Navi's disk; free some, and try again"
        }
        _ => "the file could not be stored; see Navi's log",
    };
    NaviError::new(ErrorCode::Internal, message)
}
