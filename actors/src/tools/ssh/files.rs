//! The workspace's side of a transfer: files of it are opened by a directory handle that cannot
//! be left, whatever the path says and whatever is swapped meanwhile.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, PermissionsExt as _};
use cap_tempfile::TempFile;
use ring::digest::{Context, SHA256};
use tokio::sync::mpsc;

use super::blocking;
use crate::domain::unseen::is_moving;
use crate::tools::output::{human_size, shortened};
use crate::tools::{ToolError, workspace};

/// As many bytes as a path has.
const MAX_PATH_BYTES: usize = 1_024;
/// As many names as a path has.
const MAX_LEVELS: usize = 32;
/// As many bytes as are read at once.
pub(super) const PIECE_BYTES: usize = 128 * 1024;
/// As many pieces as wait between the disk and the network.
const PIECES: usize = 8;

/// A path inside of the workspace: relative, without `.` and `..`. Links are the handle's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LocalPath(PathBuf);

impl LocalPath {
    pub(super) fn parse(text: &str) -> Result<Self, ToolError> {
        let refuse = |reason: &str| {
            Err(ToolError(format!(
                "the path `{}` {reason}; give a path inside of the workspace, such as logs/today.txt",
                shortened(text, 120)
            )))
        };
        if text.len() > MAX_PATH_BYTES {
            return refuse("is too long");
        }
        if text.chars().any(is_moving) {
            return refuse("has control characters");
        }
        if text.starts_with(['/', '~']) {
            return refuse("leads out of the workspace");
        }
        let mut path = PathBuf::new();
        for name in text.split('/') {
            match name {
                "" | "." => {}
                ".." => return refuse("leads out of the workspace"),
                name => path.push(name),
            }
        }
        if path.as_os_str().is_empty() || text.ends_with('/') {
            return refuse("names no file");
        }
        if path.components().count() > MAX_LEVELS {
            return refuse("goes through too many directories");
        }
        Ok(Self(path))
    }

    pub(super) fn shown(&self) -> String {
        self.0.display().to_string()
    }

    /// The last part of the path.
    pub(super) fn name(&self) -> String {
        self.0
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    fn fault(&self, error: &io::Error) -> ToolError {
        let shown = self.shown();
        ToolError(match error.kind() {
            io::ErrorKind::NotFound => {
                format!("`{shown}` does not exist in the workspace; list it with filesystem")
            }
            _ => format!("`{shown}` cannot be opened in the workspace: {error}"),
        })
    }
}

/// A file that is to be sent.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) file: std::fs::File,
    pub(super) size_bytes: u64,
    /// Whether its owner may run it.
    pub(super) executable: bool,
    path: LocalPath,
}

/// Opens a regular file of the workspace. Blocks.
pub(super) fn open(workspace: &Path, path: &LocalPath, limit: u64) -> Result<Source, ToolError> {
    let file = workspace::open_in_workspace(workspace, &path.shown())?;
    let metadata = file.metadata().map_err(|error| path.fault(&error))?;
    if metadata.len() > limit {
        return Err(too_large(&path.shown(), metadata.len(), limit));
    }
    Ok(Source {
        file: file.into_std(),
        size_bytes: metadata.len(),
        executable: metadata.permissions().mode() & 0o100 != 0,
        path: path.clone(),
    })
}

impl Source {
    /// SHA-256 of what the file has, in hexadecimal. Blocks.
    pub(super) fn digest(self) -> Result<String, ToolError> {
        let mut context = Context::new(&SHA256);
        let mut buffer = vec![0; PIECE_BYTES];
        let mut file = self.file.take(self.size_bytes);
        loop {
            let count = file
                .read(&mut buffer)
                .map_err(|error| self.path.fault(&error))?;
            if count == 0 {
                return Ok(hex::encode(context.finish()));
            }
            context.update(&buffer[..count]);
        }
    }
}

/// A file that is being received. It stands under its name once it is whole, and not before:
/// dropped earlier, it was never there.
#[derive(Debug)]
pub(super) struct Sink {
    /// The file's pieces, and none for that it is whole: it may take its place.
    sender: mpsc::Sender<Option<Bytes>>,
    writer: tokio::task::JoinHandle<io::Result<()>>,
    path: LocalPath,
}

/// Opens the place for a file of the workspace, with the directories on the way. Blocks.
pub(super) fn create(workspace: &Path, path: &LocalPath) -> Result<Sink, ToolError> {
    let root = Dir::open_ambient_dir(workspace, ambient_authority())
        .map_err(|error| ToolError(format!("the workspace cannot be opened: {error}")))?;
    let directory = match path.0.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => root
            .create_dir_all(parent)
            .and_then(|()| root.open_dir(parent))
            .map_err(|error| path.fault(&error))?,
        _ => root,
    };
    let name = path.name();
    match directory.symlink_metadata(&name) {
        Ok(metadata) if !metadata.is_file() => {
            return Err(ToolError(format!(
                "`{}` is there already and is no regular file (a directory, a link or a device); choose another path",
                path.shown()
            )));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(path.fault(&error)),
    }
    let (sender, mut receiver) = mpsc::channel::<Option<Bytes>>(PIECES);
    let writer = tokio::task::spawn_blocking(move || {
        let mut file = TempFile::new(&directory)?;
        while let Some(incoming) = receiver.blocking_recv() {
            match incoming {
                Some(piece) => file.write_all(&piece)?,
                // Replaces a link that was put there meanwhile, and does not follow it.
                None => return file.replace(&name),
            }
        }
        Err(io::ErrorKind::Interrupted.into())
    });
    Ok(Sink {
        sender,
        writer,
        path: path.clone(),
    })
}

impl Sink {
    /// Whether the piece was taken. Where not, [`Sink::finish`] says why.
    pub(super) async fn put(&self, piece: Bytes) -> bool {
        self.sender.send(Some(piece)).await.is_ok()
    }

    /// The file is whole.
    pub(super) async fn finish(self) -> Result<(), ToolError> {
        let _ = self.sender.send(None).await;
        match self.writer.await {
            Ok(written) => written.map_err(|error| self.path.fault(&error)),
            Err(_) => Err(ToolError(format!(
                "`{}` was not written",
                self.path.shown()
            ))),
        }
    }
}

pub(super) fn too_large(shown: &str, size: u64, limit: u64) -> ToolError {
    ToolError(format!(
        "`{shown}` has {}, and files of at most {} are transferred; pack it or take a part of it",
        human_size(size),
        human_size(limit)
    ))
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
