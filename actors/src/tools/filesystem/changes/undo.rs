//! The list of a session's changes, and taking one back. Both are for its owner, not for the
//! model.

use std::io;
use std::path::Path;
use std::sync::Arc;

use cap_std::fs::{Permissions, PermissionsExt as _};
use tokio_util::sync::CancellationToken;

use super::super::write::{Before, Rewrite, look};
use super::changes_dir;
use super::fingerprint::{fingerprint, fingerprint_of_content};
use super::kept::Kept;
use super::log::{ChangeLog, Origin, remove_made};
use super::record::{Inverse, Record};
use crate::protocol::change::{Change, ChangeAction};
use crate::protocol::ids::ChangeId;
use crate::tools::ToolError;
use crate::tools::workspace::{FileAccess, InnerPath, Reach, Spot};

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
    let told = records.all.iter().rev().map(|record| {
        let why_not = refusal(record, &kept).or_else(|| check(&reach, record).err());
        record.told(why_not)
    });
    Ok(told.collect())
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
    let log = ChangeLog::open(&reach, origin)?;
    let kept = Kept::find(&changes_dir(workspace))?.ok_or(ChangeError::NotFound)?;
    let records = kept.load()?;
    let record = records.all.iter().find(|record| record.id == id);
    let record = record.ok_or(ChangeError::NotFound)?;
    if let Some(why) = refusal(record, &kept).or_else(|| check(&reach, record).err()) {
        return Err(ChangeError::Conflict(format!(
            "this cannot be undone: {why}"
        )));
    }
    take_back(&reach, &log, &kept, record)?;
    let records = kept.load()?;
    let mut undoing = records.all.iter().rev();
    let undoing = undoing.find(|record| record.undoes == Some(id));
    let undoing = undoing.ok_or(ChangeError::NotFound)?;
    Ok(undoing.told(refusal(undoing, &kept)))
}

/// Why a change cannot be taken back, whatever the files are like.
fn refusal(record: &Record, kept: &Kept) -> Option<String> {
    if record.undone_by.is_some() {
        return Some("it was undone already".to_owned());
    }
    match &record.inverse {
        Inverse::Nothing { why } => Some(why.clone()),
        Inverse::Restore { .. } | Inverse::PutBack if !kept.has(record.id) => {
            Some("the copy that was kept of it is gone".to_owned())
        }
        _ => None,
    }
}

/// Whether the files are as the change left them; otherwise what is in the way.
fn check(reach: &Reach, record: &Record) -> Result<(), String> {
    let spot = |path: &InnerPath| reach.stored(path).map_err(|error| error.0);
    let at = spot(&record.place)?;
    match &record.inverse {
        Inverse::Restore { expects, .. } => match look(&at) {
            Ok(Before::Content(bytes)) if fingerprint_of_content(&bytes) == *expects => Ok(()),
            Ok(Before::Absent) => Err(gone(&at)),
            Ok(_) => Err(changed_since(&at)),
            Err(error) => Err(error.0),
        },
        Inverse::Remove { expects, .. } => is_as_left(&at, expects),
        Inverse::MoveBack { expects, .. } => {
            let to = record.to.as_ref().ok_or(NOWHERE)?;
            is_as_left(&spot(to)?, expects)?;
            is_free(&at)
        }
        Inverse::PutBack => is_free(&at),
        Inverse::Nothing { why } => Err(why.clone()),
    }
}

fn is_as_left(spot: &Spot, expects: &str) -> Result<(), String> {
    let (at, _) = spot.root.standing(&spot.path).map_err(|_| gone(spot))?;
    match fingerprint(&at) {
        Ok(now) if now == expects => Ok(()),
        _ => Err(changed_since(spot)),
    }
}

fn is_free(spot: &Spot) -> Result<(), String> {
    let at = spot.root.location(&spot.path).map_err(|error| error.0)?;
    match at.map(|at| at.metadata()) {
        // Its directory is made again.
        None | Some(Ok(None)) => Ok(()),
        _ => Err(format!("there is something else at `{}` now", spot.path)),
    }
}

/// Does what [`check`] found possible. The checks are made again by what is done, so that a
/// change by someone else in between is an error and no loss.
fn take_back(
    reach: &Reach,
    log: &ChangeLog,
    kept: &Kept,
    record: &Record,
) -> Result<(), ToolError> {
    let at = reach.stored(&record.place)?;
    match &record.inverse {
        Inverse::Restore { mode, .. } => {
            let before = look(&at)?;
            let content = kept
                .content(record.id, reach.limits.read_bytes)
                .map_err(|_| ToolError("the copy that was kept of it cannot be read".to_owned()))?;
            let rewrite = Rewrite {
                before,
                after: content,
                permissions: Some(Permissions::from_mode(*mode)),
            };
            log.write(ChangeAction::Undo, &at, &rewrite)
        }
        Inverse::Remove { made, .. } => {
            log.take_away(ChangeAction::Undo, &at)?;
            remove_made(&at, made);
            Ok(())
        }
        Inverse::MoveBack { made, .. } => {
            let to = record.to.as_ref();
            let to = reach.stored(to.ok_or_else(|| ToolError(NOWHERE.to_owned()))?)?;
            log.relocate(ChangeAction::Undo, &to, &at)?;
            remove_made(&to, made);
            Ok(())
        }
        Inverse::PutBack => log.put_back(&at, record.id),
        Inverse::Nothing { why } => Err(ToolError(why.clone())),
    }
}

const NOWHERE: &str = "it does not say where it went";

fn changed_since(spot: &Spot) -> String {
    format!("`{}` has changed since", spot.path)
}

fn gone(spot: &Spot) -> String {
    format!("`{}` is not there any more", spot.path)
}
