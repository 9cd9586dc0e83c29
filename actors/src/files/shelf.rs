//! Where files lie, and how they get there: whole or not at all.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use cap_std::fs::{Dir, OpenOptions};
use uuid::Uuid;

use crate::background::on_files;
use crate::domain::files::{FILES_DIR, text_path};
use crate::homes::make_workspace;
use crate::protocol::ids::{FileId, SessionId};
use crate::tools::workspace;

/// The place in the sessions' directory where files lie. No session has such an id.
const FILES: &str = ".files";
/// The place in it for files on their way in.
const INCOMING: &str = ".incoming";
const TEXT: &str = "text";
const VIEW: &str = "view";

/// A file that is removed with this, unless it was moved to its place.
#[derive(Debug)]
pub(super) struct Draft(PathBuf);

impl Draft {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Gone already where it was moved. One call, too short to be worth another thread.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Shelf {
    root: PathBuf,
}

impl Shelf {
    pub(super) fn new(sessions_dir: &Path) -> Self {
        Self {
            root: sessions_dir.join(FILES),
        }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn incoming_dir(&self) -> PathBuf {
        self.root.join(INCOMING)
    }

    /// A new file on its way in, for none but us.
    pub(super) async fn draft(&self) -> io::Result<(Draft, File)> {
        let dir = self.incoming_dir();
        make_private(&dir).await?;
        let draft = Draft(dir.join(Uuid::new_v4().simple().to_string()));
        // Goes there, so that it is removed behind the making of it where nobody waits any more.
        let made = on_files(move || {
            let mut options = File::options();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let file = options.open(draft.path())?;
            Ok((draft, file))
        });
        made.await
    }

    /// The same, with all that it holds, which survives a power cut.
    pub(super) async fn written(&self, bytes: Bytes) -> io::Result<Draft> {
        let (draft, mut file) = self.draft().await?;
        on_files(move || {
            file.write_all(&bytes)?;
            file.sync_all()
        })
        .await?;
        Ok(draft)
    }

    pub(super) fn of_session(&self, session: SessionId) -> PathBuf {
        self.root.join(session.to_string())
    }

    pub(super) fn content(&self, session: SessionId, file: FileId) -> PathBuf {
        self.of_session(session).join(file.to_string())
    }

    pub(super) fn text(&self, session: SessionId, file: FileId) -> PathBuf {
        self.content(session, file).with_extension(TEXT)
    }

    pub(super) fn view(&self, session: SessionId, file: FileId) -> PathBuf {
        self.content(session, file).with_extension(VIEW)
    }

    /// The file that a name on the shelf belongs to.
    pub(super) fn file_of(name: &str) -> Option<FileId> {
        name.split('.').next()?.parse().ok()
    }

    /// Makes a session's place on the shelf.
    pub(super) async fn make_room(&self, session: SessionId) -> io::Result<()> {
        make_private(&self.of_session(session)).await
    }

    /// Moves a finished file to its place.
    pub(super) async fn place(&self, from: &Draft, to: &Path) -> io::Result<()> {
        tokio::fs::rename(from.path(), to).await
    }

    /// Has what was moved there survive a power cut.
    pub(super) async fn settle(&self, session: SessionId) -> io::Result<()> {
        let dir = tokio::fs::File::open(self.of_session(session)).await?;
        dir.sync_all().await
    }

    /// Removes all that is kept of a file. What cannot be removed is left to the janitor.
    pub(super) async fn remove(&self, session: SessionId, file: FileId) {
        for place in [
            self.content(session, file),
            self.text(session, file),
            self.view(session, file),
        ] {
            remove_file(&place).await;
        }
    }

    /// Removes the copy of a file in the workspace.
    pub(super) async fn take_back(&self, workspace: PathBuf, path: &str) {
        let path = path.to_owned();
        let removed = tokio::task::spawn_blocking(move || remove_copies(&workspace, &path)).await;
        if let Ok(Err(error)) = removed {
            tracing::warn!(%error, "a file's copy in the workspace could not be removed");
        }
    }

    /// Copies a file, and its text where it has one of its own, into the workspace.
    pub(super) async fn lend(
        &self,
        workspace: PathBuf,
        session: SessionId,
        file: FileId,
        path: &str,
    ) -> io::Result<()> {
        let (content, text) = (self.content(session, file), self.text(session, file));
        let path = path.to_owned();
        let lent = on_files(move || {
            make_workspace(&workspace)?;
            let root = workspace::open(&workspace)?;
            match root.create_dir(FILES_DIR) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            copy_in(&root, &content, &path)?;
            if text.try_exists()? {
                copy_in(&root, &text, &text_path(&path))?;
            }
            Ok(())
        });
        lent.await
    }
}

/// Copies a file to a path of the workspace, unless something stands there already: what the
/// tools made of it stays. Never through a link, and seen whole or not at all.
fn copy_in(root: &Dir, from: &Path, to: &str) -> io::Result<()> {
    if root.symlink_metadata(to).is_ok() {
        return Ok(());
    }
    let draft = format!("{FILES_DIR}/.{}", Uuid::new_v4().simple());
    let mut source = std::fs::File::open(from)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let copied = (|| {
        let mut target = root.open_with(&draft, &options)?.into_std();
        // Shares the blocks where the file system can.
        io::copy(&mut source, &mut target)?;
        root.rename(&draft, root, to)
    })();
    if copied.is_err() {
        // It may not have been made at all.
        let _ = root.remove_file(&draft);
    }
    copied
}

fn remove_copies(workspace: &Path, path: &str) -> io::Result<()> {
    let root = match workspace::open(workspace) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    for path in [path.to_owned(), text_path(path)] {
        match root.remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

pub(super) async fn remove_file(path: &Path) {
    match tokio::fs::remove_file(path).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, "a stored file could not be removed");
        }
        _ => {}
    }
}

/// A directory for nobody but Navi.
async fn make_private(dir: &Path) -> io::Result<()> {
    let mut builder = tokio::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    builder.mode(0o700);
    builder.create(dir).await
}
