//! Files from this machine's disk, sent in as the page sends them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use navi_actors::domain::files::MAX_FILES;
use navi_actors::protocol::command::FileRef;
use navi_actors::protocol::file::FileList;
use navi_actors::protocol::ids::SessionId;
use reqwest::Method;
use reqwest::multipart::{Form, Part};

use crate::client::{Client, ClientError};

/// How long an upload may take.
const TIME_LIMIT: Duration = Duration::from_secs(10 * 60);

/// Why a file is not sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("{} cannot be read: {error}", .path.display())]
    Unreadable {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("{} is no file", .0.display())]
    NoFile(PathBuf),
    #[error("a message takes {MAX_FILES} files at the most; these are {0}")]
    TooMany(usize),
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Looks whether these are files, before anything is done.
pub(super) async fn look(paths: &[PathBuf]) -> Result<(), FileError> {
    if paths.len() > MAX_FILES {
        return Err(FileError::TooMany(paths.len()));
    }
    for path in paths {
        let found = tokio::fs::metadata(path).await;
        let found = found.map_err(|error| unreadable(path, error))?;
        if !found.is_file() {
            return Err(FileError::NoFile(path.clone()));
        }
    }
    Ok(())
}

/// Sends files to a session, all of them or none.
pub(super) async fn send(
    client: &Client,
    session: SessionId,
    paths: &[PathBuf],
) -> Result<Vec<FileRef>, FileError> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    look(paths).await?;
    let mut form = Form::new();
    for path in paths {
        let part = Part::file(path).await;
        let part = part.map_err(|error| unreadable(path, error))?;
        form = form.part("file", part);
    }
    let request = client.request(Method::POST, &format!("/sessions/{session}/files"))?;
    let request = request.timeout(TIME_LIMIT).multipart(form);
    let response = client.response(request).await?;
    let stored: FileList = response
        .json()
        .await
        .map_err(|error| ClientError::Unreadable(error.to_string()))?;
    let files = stored.files.into_iter();
    Ok(files
        .map(|stored| FileRef {
            name: stored.file.name,
            path: stored.file.path,
        })
        .collect())
}

fn unreadable(path: &Path, error: std::io::Error) -> FileError {
    FileError::Unreadable {
        path: path.to_owned(),
        error,
    }
}
