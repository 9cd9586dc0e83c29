//! What the tool has changed, and what it takes to undo that: kept outside of the workspace, in
//! a directory of the session's own that no tool reaches, bounded in number and bytes. The list of
//! changes, and taking one back, are for the session's owner and not for the model.
//!
//! A change is written down before it is made. One that a crash cut off is among the changes
//! and cannot be undone, since the file isn't as it would have left it.

mod differences;
mod entries;
mod kept;
mod log;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

pub(crate) use self::differences::changes_of_file;
pub(super) use self::entries::{Measure, fingerprint, fingerprint_of_content, measure};
pub(super) use self::kept::Origin;
use self::kept::{Inverse, Kept, Record};
pub(super) use self::log::ChangeLog;
use self::log::remove_made;
use super::write::{Rewrite, look};
use crate::protocol::change::{Change, ChangeAction};
use crate::protocol::ids::ChangeId;
use crate::tools::workspace::{FileAccess, Reach, Spot};
use crate::tools::{ToolError, ToolResult};

/// The directory, beside the workspaces, with what is kept of each session's changes.
const DIRECTORY: &str = ".changes";

/// Where a session's changes are kept. It goes when the session is gone for good.
pub fn changes_dir(workspace: &Path) -> PathBuf {
    let sessions = workspace.parent().unwrap_or(workspace);
    let session = workspace.file_name().unwrap_or_default();
    sessions.join(DIRECTORY).join(session)
}

/// Why a change was not taken back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    #[error("this session has no such change; the oldest are dropped when there are too many")]
    NotFound,
    /// The files are not as the change left them, or what it takes is not there any more.
    #[error("{0}")]
    Conflict(String),
    #[error("the session's changes cannot be read; see Navi's log")]
    Unreadable,
}

impl From<ToolError> for ChangeError {
    fn from(error: ToolError) -> Self {
        Self::Conflict(error.0)
    }
}

/// Of the directory that is kept for the session.
impl From<io::Error> for ChangeError {
    fn from(error: io::Error) -> Self {
        tracing::error!(%error, "a session's changes cannot be read");
        Self::Unreadable
    }
}

/// A session's changes, newest first, each with whether it can be undone now.
///
/// # Errors
/// [`ChangeError::Unreadable`].
pub fn changes(access: &Arc<FileAccess>, workspace: &Path) -> Result<Vec<Change>, ChangeError> {
    let Some(kept) = Kept::find(&changes_dir(workspace))? else {
        return Ok(Vec::new());
    };
    let reach = Reach::new(access, workspace, CancellationToken::new());
    let records = kept.load()?;
    let told = |record: &Record| record.told(check(&reach, &kept, record));
    Ok(records.all.iter().rev().map(told).collect())
}

/// Takes a change back, where everything is still as it left it. Gives back the change that
/// this is.
///
/// # Errors
/// As [`ChangeError`] says. Nothing is changed then.
pub fn undo(
    access: &Arc<FileAccess>,
    workspace: &Path,
    id: ChangeId,
) -> Result<Change, ChangeError> {
    let reach = Reach::new(access, workspace, CancellationToken::new());
    let origin = Origin {
        undoes: Some(id),
        ..Origin::default()
    };
    let log = ChangeLog::open(&reach, ChangeAction::Undo, origin)?;
    let records = log.kept.load()?;
    let record = records.all.iter().find(|record| record.id == id);
    let record = record.ok_or(ChangeError::NotFound)?;
    check(&reach, &log.kept, record)
        .map_err(|why| ChangeError::Conflict(format!("this cannot be undone: {why}")))?;
    take_back(&reach, &log, record)?;
    let records = log.kept.load()?;
    let mut undoing = records.all.iter().rev();
    let undoing = undoing.find(|record| record.origin.undoes == Some(id));
    let undoing = undoing.ok_or(ChangeError::NotFound)?;
    Ok(undoing.told(check(&reach, &log.kept, undoing)))
}

/// Whether a change can be taken back: it was not, what it takes is there, and the files are as the
/// change left them. Otherwise what is in the way.
fn check(reach: &Reach, kept: &Kept, record: &Record) -> ToolResult<()> {
    refuse_if!(record.undone_by.is_some(), "it was undone already");
    let at = || reach.stored(&record.place);
    match &record.inverse {
        Inverse::Nothing { why } => refuse!("{why}"),
        Inverse::Restore { .. } | Inverse::PutBack if !kept.has(record.id) => {
            refuse!("the copy that was kept of it is gone")
        }
        Inverse::Restore { expects } => {
            let at = at()?;
            // What may not be read is not written either.
            look(&at)?;
            is_as_left(&at, expects)
        }
        Inverse::Remove { expects, .. } => is_as_left(&at()?, expects),
        Inverse::MoveBack { expects, .. } => {
            is_as_left(&reach.stored(record.end())?, expects)?;
            is_free(&at()?)
        }
        Inverse::PutBack => is_free(&at()?),
    }
}

fn is_as_left(Spot { root, path }: &Spot, expects: &str) -> ToolResult<()> {
    let Ok((at, _)) = root.standing(path) else {
        refuse!("`{path}` is not there any more");
    };
    refuse_if!(
        fingerprint(&at).ok().as_deref() != Some(expects),
        "`{path}` has changed since"
    );
    Ok(())
}

fn is_free(Spot { root, path }: &Spot) -> ToolResult<()> {
    match root.location(path)?.map(|at| at.metadata()) {
        // Its directory is made again.
        None | Some(Ok(None)) => Ok(()),
        _ => refuse!("there is something else at `{path}` now"),
    }
}

/// Does what [`check`] found possible. The checks are made again by what is done, so that a
/// change by someone else in between is an error and no loss.
fn take_back(reach: &Reach, log: &ChangeLog, record: &Record) -> ToolResult<()> {
    let at = reach.stored(&record.place)?;
    match &record.inverse {
        Inverse::Restore { .. } => {
            let before = look(&at)?;
            let name = record.id.to_string();
            let after = log.kept.read(&name, reach.limits.read_bytes);
            let after =
                after.map_err(|_| refusal!("the copy that was kept of it cannot be read"))?;
            let rewrite = Rewrite { before, after };
            log.write(&at, &rewrite)
        }
        Inverse::Remove { made, .. } => {
            log.take_away(&at)?;
            remove_made(&at, made);
            Ok(())
        }
        Inverse::MoveBack { made, .. } => {
            let to = reach.stored(record.end())?;
            log.relocate(&to, &at)?;
            remove_made(&to, made);
            Ok(())
        }
        Inverse::PutBack => log.put_back(&at, record.id),
        Inverse::Nothing { why } => Err(ToolError(why.clone())),
    }
}

#[cfg(test)]
mod tests;
