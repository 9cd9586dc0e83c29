//! At the start, each session's workspace is brought to the home of its person: those of an
//! installation that had one user, or had people before they had homes, when people sign in; and
//! the machine's user's back, when nobody does any more.
//!
//! Each is moved by one rename on the same file system, so a start that is cut off leaves every
//! workspace at one place or at the other, and the next start goes on.

use std::io;
use std::path::{Path, PathBuf};

use super::{Homes, make, places_in};
use crate::protocol::ids::{SessionId, UserId};
use crate::store::{LOCAL_USER, Store, StoreError};

/// So many sessions are looked up at once.
const AT_ONCE: usize = 500;

/// Why the workspaces are not where they are looked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettleError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{} cannot be moved to {}: {error}", from.display(), to.display())]
    Move {
        from: PathBuf,
        to: PathBuf,
        error: io::Error,
    },
}

/// Something of a session's, where it is and where it belongs.
struct Move {
    from: PathBuf,
    to: PathBuf,
}

impl Homes {
    /// See the module. To be called before anything uses a workspace.
    ///
    /// # Errors
    /// Where something cannot be moved: nothing may be begun that would not find its files.
    pub(crate) async fn settle(&self, store: &Store) -> Result<(), SettleError> {
        // There where people signed in before.
        let of_local = self.dir.join(LOCAL_USER.to_string());
        let people = store.holders_of_files().await?;
        let is_whole = |person: &UserId| self.whole == Some(*person);
        if people.iter().all(is_whole) && !of_local.exists() {
            // One's own machine, as it always was.
            return Ok(());
        }
        let mut moved = 0;
        for home in [self.dir.clone(), of_local] {
            let at = home.clone();
            let named = tokio::task::spawn_blocking(move || sessions_in(&at)).await;
            for sessions in named.unwrap_or_default().chunks(AT_ONCE) {
                let owners = store.owners_of(sessions).await?;
                let moves = owners.into_iter().flat_map(|(session, owner)| {
                    let name = session.to_string();
                    let places = places_in(&home, &name).into_iter();
                    places.zip(places_in(&self.of(owner), &name))
                });
                let moves: Vec<Move> = moves
                    .filter(|(from, to)| from != to)
                    .map(|(from, to)| Move { from, to })
                    .collect();
                let done = tokio::task::spawn_blocking(move || carry_out(moves)).await;
                moved += done.unwrap_or_else(|panicked| {
                    tracing::error!(%panicked, "workspaces could not be moved");
                    Ok(0)
                })?;
            }
        }
        if moved > 0 {
            tracing::info!(moved, "workspaces were moved to the homes of their people");
        }
        Ok(())
    }
}

/// The sessions of which something may lie there.
fn sessions_in(home: &Path) -> Vec<SessionId> {
    let folders = places_in(home, "-");
    let folders = folders.iter().filter_map(|place| place.parent());
    let entries = folders.flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten());
    let mut sessions: Vec<SessionId> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let session: SessionId = name.to_str()?.parse().ok()?;
            (session.to_string().as_str() == name).then_some(session)
        })
        .collect();
    sessions.sort_unstable();
    sessions.dedup();
    sessions
}

/// Gives back how many there were.
fn carry_out(moves: Vec<Move>) -> Result<u64, SettleError> {
    let mut moved = 0;
    for Move { from, to } in moves {
        let home = to.parent().map_or(Ok(()), make);
        match home.and_then(|()| std::fs::rename(&from, &to)) {
            Ok(()) => moved += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // An older program made it anew after the first was moved. Nothing is lost: what
            // stands where it belongs is used, and the other one stays where it is.
            Err(error) if is_there(&error) => {
                tracing::warn!(from = %from.display(), to = %to.display(), "a workspace is there twice");
            }
            Err(error) => return Err(SettleError::Move { from, to, error }),
        }
    }
    Ok(moved)
}

fn is_there(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, NotADirectory};
    matches!(
        error.kind(),
        AlreadyExists | DirectoryNotEmpty | NotADirectory
    )
}
