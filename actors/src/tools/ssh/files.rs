//! The workspace's side of a transfer.

use std::io::{self, Read as _, Write as _};
use std::path::Path;

use bytes::Bytes;
use cap_std::fs::PermissionsExt as _;
use cap_tempfile::TempFile;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use crate::tools::output::human_size;
use crate::tools::trust::hash_all;
use crate::tools::workspace::{InnerPath, Location, OrFault as _, Reach, Spot};
use crate::tools::{ToolError, ToolResult};

/// As many bytes as are read at once.
pub(super) const PIECE_BYTES: usize = 128 * 1024;
/// As many pieces as wait between the disk and the network.
const PIECES: usize = 8;

/// A file that is to be sent.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) file: std::fs::File,
    pub(super) size_bytes: u64,
    /// Whether its owner may run it.
    pub(super) executable: bool,
    path: InnerPath,
}

/// Opens a regular file of the workspace. Blocks.
pub(super) fn open(workspace: &Path, path: &InnerPath, limit: u64) -> ToolResult<Source> {
    let Spot { root, path } = Reach::inside(workspace).open(path.clone())?;
    let file = root.open_file(&path)?;
    let metadata = file.metadata().or_fault(&path)?;
    if metadata.len() > limit {
        return Err(too_large(&path.to_string(), metadata.len(), limit));
    }
    Ok(Source {
        file: file.into_std(),
        size_bytes: metadata.len(),
        executable: metadata.permissions().mode() & 0o100 != 0,
        path,
    })
}

impl Source {
    /// SHA-256 of what the file has, in hexadecimal. Blocks.
    pub(super) fn digest(self) -> ToolResult<String> {
        let mut hash = Sha256::new();
        hash_all(&mut hash, self.file.take(self.size_bytes)).or_fault(&self.path)?;
        Ok(hex::encode(hash.finalize()))
    }
}

/// A file that is being received. It stands under its name once it is whole, and not before:
/// dropped earlier, it was never there.
#[derive(Debug)]
pub(super) struct Sink {
    /// The file's pieces, and none for that it is whole: it may take its place.
    sender: mpsc::Sender<Option<Bytes>>,
    writer: tokio::task::JoinHandle<io::Result<()>>,
    path: InnerPath,
}

/// Opens the place for a file of the workspace, with the directories on the way. Blocks.
pub(super) fn create(workspace: &Path, path: &InnerPath) -> ToolResult<Sink> {
    let Spot { root, path } = Reach::inside(workspace).open(path.clone())?;
    root.create_parents(&path)?;
    let at = root.target(&path)?.ok_or_else(|| root.missing(&path))?;
    let Location { directory, name } = at;
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
        path,
    })
}

impl Sink {
    /// Whether the piece was taken. Where not, [`Sink::finish`] says why.
    pub(super) async fn put(&self, piece: Bytes) -> bool {
        self.sender.send(Some(piece)).await.is_ok()
    }

    /// The file is whole.
    pub(super) async fn finish(self) -> ToolResult<()> {
        let _ = self.sender.send(None).await;
        match self.writer.await {
            Ok(written) => written.or_fault(&self.path),
            Err(_) => refuse!("`{}` was not written", self.path),
        }
    }
}

pub(super) fn too_large(shown: &str, size: u64, limit: u64) -> ToolError {
    refusal!(
        "`{shown}` has {}, and files of at most {} are transferred; pack it or take a part of it",
        human_size(size),
        human_size(limit)
    )
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
