//! What a door asks of a session's workspace: what stands in it, and a file of it.

use std::path::{Path, PathBuf};

use chrono::DateTime;

use super::Engine;
use crate::documents;
use crate::files::{Download, InlineImage};
use crate::protocol::change::FileHistory;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::{SessionId, UserId};
use crate::protocol::workspace::{EntryKind, WorkspaceEntry, WorkspaceListing};
use crate::root::OpenSession;
use crate::tools::ToolError;
use crate::tools::filesystem;
use crate::tools::workspace::{Entry, InnerPath, Reach, Rules, read_whole};

/// The largest file that an image is made of.
const MAX_IMAGE_BYTES: u64 = 50 * 1024 * 1024;
/// As many entries as a listing has.
const MAX_ENTRIES: usize = 2_000;

impl Engine {
    /// What a directory of the session's workspace has; without a path, the workspace itself.
    ///
    /// # Errors
    /// `session_not_found`; `invalid_field` where this is no path of a workspace;
    /// `file_not_found` where there is no such directory.
    pub async fn workspace(
        &self,
        user: UserId,
        session: SessionId,
        path: &str,
    ) -> Result<WorkspaceListing, NaviError> {
        let path = InnerPath::parse(if path.is_empty() { "." } else { path })
            .map_err(|error| no_path(&error))?;
        self.in_workspace(user, session, move |workspace| entries(workspace, &path))
            .await
    }

    /// A file of the session's workspace, for its user to keep.
    ///
    /// # Errors
    /// As [`workspace`](Self::workspace); `file_not_found` where there is no such file, or none
    /// that may be read.
    pub async fn workspace_file(
        &self,
        user: UserId,
        session: SessionId,
        path: &str,
    ) -> Result<Download, NaviError> {
        let path = InnerPath::file(path).map_err(|error| no_path(&error))?;
        let name = path.name();
        let (content, bytes) = self
            .in_workspace(user, session, move |workspace| {
                let spot = Reach::inside(workspace).open(path)?;
                let file = spot.root.open_file(&spot.path)?;
                let bytes = file.metadata().map(|metadata| metadata.len());
                Ok((file.into_std(), bytes.unwrap_or(0)))
            })
            .await?;
        Ok(Download {
            name,
            bytes,
            content: tokio::fs::File::from_std(content),
        })
    }

    /// The image that Navi makes of a file of the session's workspace, to be shown.
    ///
    /// # Errors
    /// As [`workspace_file`](Self::workspace_file); `file_not_found` also where it is no image.
    pub async fn workspace_image(
        &self,
        user: UserId,
        session: SessionId,
        path: &str,
    ) -> Result<InlineImage, NaviError> {
        let path = InnerPath::file(path).map_err(|error| no_path(&error))?;
        let permit = documents::permit().await;
        let bytes = self
            .in_workspace(user, session, move |workspace| {
                let spot = Reach::inside(workspace).open(path)?;
                let file = spot.root.open_file(&spot.path)?;
                read_whole(file, &spot.path, MAX_IMAGE_BYTES)
            })
            .await?;
        let image = permit.image(bytes).await.map_err(|problem| {
            let message = format!("this file cannot be shown: {problem}; download it instead");
            NaviError::new(ErrorCode::FileNotFound, message)
        })?;
        Ok(InlineImage {
            media_type: image.media_type,
            bytes: image.bytes,
        })
    }

    /// What was changed in a file of the session's workspace, newest first.
    ///
    /// # Errors
    /// As [`workspace`](Self::workspace) where this is no path of a file.
    pub async fn workspace_changes(
        &self,
        user: UserId,
        session: SessionId,
        path: &str,
    ) -> Result<FileHistory, NaviError> {
        let path = InnerPath::file(path).map_err(|error| no_path(&error))?;
        let open = OpenSession::as_participant(user, session);
        let changes = self.on_files(open, move |access, workspace| {
            filesystem::changes_of_file(&access, &workspace, &path)
        });
        Ok(FileHistory {
            changes: changes.await?,
        })
    }

    async fn in_workspace<T: Send + 'static>(
        &self,
        user: UserId,
        session: SessionId,
        work: impl FnOnce(&Path) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, NaviError> {
        let open = OpenSession::as_participant(user, session);
        let found = self
            .on_files(open, move |_, workspace: PathBuf| Ok(work(&workspace)))
            .await?;
        found.map_err(|error| NaviError::new(ErrorCode::FileNotFound, error.0))
    }
}

fn no_path(error: &ToolError) -> NaviError {
    NaviError::new(ErrorCode::InvalidField, format!("path: {}", error.0))
}

/// A directory's entries, by name. A workspace that nothing was written to is empty.
fn entries(workspace: &Path, path: &InnerPath) -> Result<WorkspaceListing, ToolError> {
    let mut entries = Vec::new();
    if path.is_root() && !workspace.exists() {
        return Ok(WorkspaceListing {
            entries,
            complete: true,
        });
    }
    let spot = Reach::inside(workspace).open(path.clone())?;
    if !spot.root.is_directory(path)? {
        return Err(ToolError(format!("`{path}` is a file, and no directory")));
    }
    let mut left_out = false;
    let outcome = spot.root.walk(path, Rules::Everything, 1, |entry| {
        left_out |= entries.len() == MAX_ENTRIES;
        if left_out {
            return;
        }
        let metadata = entry.metadata();
        let modified = metadata.as_ref().and_then(|it| it.modified().ok());
        entries.push(WorkspaceEntry {
            path: entry.path.to_string_lossy().into_owned(),
            kind: kind_of(entry),
            bytes: if entry.file_type.is_file() {
                entry.size()
            } else {
                0
            },
            modified_at: modified.map(|at| DateTime::from(at.into_std())),
        });
    })?;
    Ok(WorkspaceListing {
        entries,
        complete: !left_out && !outcome.incomplete,
    })
}

fn kind_of(entry: &Entry<'_>) -> EntryKind {
    let file_type = entry.file_type;
    if file_type.is_file() {
        EntryKind::File
    } else if file_type.is_dir() {
        EntryKind::Directory
    } else if file_type.is_symlink() {
        EntryKind::Link
    } else {
        EntryKind::Other
    }
}
