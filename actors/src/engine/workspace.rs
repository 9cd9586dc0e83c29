//! What a door asks of a session's workspace: what stands in it, and a file of it.

use std::path::{Path, PathBuf};

use super::Engine;
use crate::documents;
use crate::files::{Download, InlineImage};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::{SessionId, UserId};
use crate::protocol::workspace::WorkspaceListing;
use crate::tools::ToolError;
use crate::tools::workspace::{InnerPath, browse, read_whole};

/// The largest file that an image is made of.
const MAX_IMAGE_BYTES: u64 = 50 * 1024 * 1024;

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
        self.in_workspace(user, session, move |workspace| {
            browse::entries(workspace, &path)
        })
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
                let file = browse::file(workspace, &path)?;
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
                read_whole(browse::file(workspace, &path)?, &path, MAX_IMAGE_BYTES)
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

    async fn in_workspace<T: Send + 'static>(
        &self,
        user: UserId,
        session: SessionId,
        work: impl FnOnce(&Path) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, NaviError> {
        let found = self
            .on_files(user, session, move |_, workspace: PathBuf| {
                Ok(work(&workspace))
            })
            .await?;
        found.map_err(|error| NaviError::new(ErrorCode::FileNotFound, error.0))
    }
}

fn no_path(error: &ToolError) -> NaviError {
    NaviError::new(ErrorCode::InvalidField, format!("path: {}", error.0))
}
