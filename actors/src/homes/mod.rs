//! Where sessions' workspaces lie: each in the directory of its person, their home. On one's own
//! machine that is the sessions' directory itself, so that its one user has them side by side
//! there; where people sign in it is a directory in that one for each of them.
//!
//! What is kept of a workspace beside it (its changes, and the place where it waits to be deleted
//! for good) lies in the same home.

mod means;
mod settling;
mod usage;

#[cfg(test)]
mod homes_tests;

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

pub use self::means::PersonMeans;
use crate::engine::TRASH;
use crate::protocol::ids::{SessionId, UserId};
use crate::store::LOCAL_USER;
use crate::tools::filesystem::changes_dir;
use crate::tools::terminal::remove_all;

/// The mode of a home: whoever has no business there may pass, where the directories above let
/// them, and see nothing.
const MODE: u32 = 0o711;

/// See the module.
#[derive(Clone, Debug)]
pub struct Homes {
    dir: PathBuf,
    /// Whose home the directory itself is.
    whole: Option<UserId>,
}

/// On one's own machine.
impl From<PathBuf> for Homes {
    fn from(dir: PathBuf) -> Self {
        Self {
            dir,
            whole: Some(LOCAL_USER),
        }
    }
}

impl Homes {
    /// Where people sign in.
    #[must_use]
    pub fn of_each(dir: PathBuf) -> Self {
        Self { dir, whole: None }
    }

    /// The directory with all of them.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// A person's home. It need not exist.
    #[must_use]
    pub fn of(&self, person: UserId) -> PathBuf {
        match self.whole == Some(person) {
            true => self.dir.clone(),
            false => self.dir.join(person.to_string()),
        }
    }

    /// The workspace of a session of theirs.
    #[must_use]
    pub fn workspace(&self, owner: UserId, session: SessionId) -> PathBuf {
        self.of(owner).join(session.to_string())
    }

    /// Where it waits once the session was deleted.
    pub(crate) fn trash(&self, owner: UserId, session: SessionId) -> PathBuf {
        trash_in(&self.of(owner), &session.to_string())
    }

    /// Removes what is left of somebody's home.
    ///
    /// # Errors
    /// What the disk says.
    pub(crate) fn remove(&self, person: UserId) -> io::Result<()> {
        if self.whole == Some(person) {
            // What lies there is removed with its sessions; others have it for theirs, too.
            return Ok(());
        }
        remove_all(&self.of(person))
    }
}

/// Where the workspace of this name waits to be deleted for good.
pub(crate) fn trash_in(home: &Path, name: &str) -> PathBuf {
    home.join(TRASH).join(name)
}

/// Everything in a home that has a workspace's name.
fn places_in(home: &Path, name: &str) -> [PathBuf; 3] {
    let workspace = home.join(name);
    let (changes, trash) = (changes_dir(&workspace), trash_in(home, name));
    [workspace, changes, trash]
}

/// Makes a workspace where there is none.
pub(crate) fn make_workspace(workspace: &Path) -> io::Result<()> {
    workspace.parent().map_or(Ok(()), make)?;
    std::fs::create_dir_all(workspace)
}

/// The same for who must not be kept waiting by the disk.
pub(crate) async fn ensure_workspace(workspace: &Path) -> io::Result<()> {
    let workspace = workspace.to_owned();
    let made = tokio::task::spawn_blocking(move || make_workspace(&workspace)).await;
    made.map_err(io::Error::other)?
}

/// Makes a home, or a directory of it.
fn make(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(MODE).create(dir)
}
