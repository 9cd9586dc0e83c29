//! The list of a session's changes, and taking one back. Both are for its owner, not for the
//! model.

use std::io;
use std::path::Path;
use std::sync::Arc;

use cap_std::fs::{Permissions, PermissionsExt as _};
use tokio_util::sync::CancellationToken;

use super::super::access::FileAccess;
use super::super::limits::Limits;
use super::super::place::{Reach, Spot};
use super::super::write::{Before, look};
use super::changes_dir;
use super::fingerprint::{fingerprint, fingerprint_of_content};
use super::kept::Kept;
use super::log::{ChangeLog, Origin, remove_made, standing};
use super::record::{Inverse, Record, RootedPath};
use crate::protocol::change::{Change, ChangeAction};
use crate::protocol::ids::ChangeId;
use crate::tools::ToolError;

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

/// A session's changes, newest first, each with whether it can be undone now.
///
/// # Errors
/// [`ChangeError::Unreadable`].
pub fn changes(access: &Arc<FileAccess>, workspace: &Path) -> Result<Vec<Change>, ChangeError> {
    let Some(kept) = Kept::find(&changes_dir(workspace)).map_err(|error| unreadable(&error))?
    else {
        return Ok(Vec::new());
    };
    let records = kept.load().map_err(|error| unreadable(&error))?;
    let reach = reach(access, workspace);
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
    let reach = reach(access, workspace);
    let log = ChangeLog::open(workspace, &reach.stop).map_err(conflict)?;
    let directory = changes_dir(workspace);
    let kept = Kept::find(&directory)
        .map_err(|error| unreadable(&error))?
        .ok_or(ChangeError::NotFound)?;
    let records = kept.load().map_err(|error| unreadable(&error))?;
    let record = records.find(id).ok_or(ChangeError::NotFound)?;
    if let Some(why) = refusal(record, &kept) {
        return Err(ChangeError::Conflict(format!(
            "this cannot be undone: {why}"
        )));
    }
    check(&reach, record)
        .map_err(|why| ChangeError::Conflict(format!("this cannot be undone: {why}")))?;
    take_back(&reach, &log, &kept, record).map_err(conflict)?;
    let records = kept.load().map_err(|error| unreadable(&error))?;
    let undoing = records
        .all
        .iter()
        .rev()
        .find(|record| record.undoes == Some(id))
        .ok_or(ChangeError::NotFound)?;
    Ok(undoing.told(refusal(undoing, &kept)))
}

/// Why a change cannot be taken back, whatever the files are like.
fn refusal(record: &Record, kept: &Kept) -> Option<String> {
    if record.undone_by.is_some() {
        return Some("it was undone already".to_owned());
    }
    match &record.inverse {
        Inverse::Nothing { why } => Some(why.clone()),
        inverse if inverse.keeps() && !kept.has(record.id) => {
            Some("the copy that was kept of it is gone".to_owned())
        }
        _ => None,
    }
}

/// Whether the files are as the change left them; otherwise what is in the way.
fn check(reach: &Reach, record: &Record) -> Result<(), String> {
    let spot = |place: &RootedPath| {
        reach
            .stored(&place.root, &place.path)
            .map_err(|error| error.0)
    };
    let at = spot(&record.place)?;
    match &record.inverse {
        Inverse::Restore { expects, .. } => match look(&at.root, &at.path) {
            Ok(Before::Content(bytes)) if fingerprint_of_content(&bytes) == *expects => Ok(()),
            Ok(Before::Absent) => Err(gone(&at)),
            Ok(_) => Err(changed_since(&at)),
            Err(error) => Err(error.0),
        },
        Inverse::Remove { expects, .. } => is_as_left(&at, expects),
        Inverse::MoveBack { expects, .. } => {
            let Some(to) = &record.to else {
                return Err("it does not say where it went".to_owned());
            };
            is_as_left(&spot(to)?, expects)?;
            is_free(&at)
        }
        Inverse::PutBack => is_free(&at),
        Inverse::Nothing { why } => Err(why.clone()),
    }
}

fn is_as_left(spot: &Spot, expects: &str) -> Result<(), String> {
    let (directory, name, _) = standing(spot).map_err(|_| gone(spot))?;
    match fingerprint(&directory, &name) {
        Ok(now) if now == expects => Ok(()),
        _ => Err(changed_since(spot)),
    }
}

fn is_free(spot: &Spot) -> Result<(), String> {
    let Spot { root, path } = spot;
    let directory = root.parent(path).map_err(|error| error.0)?;
    let name = path.prefix().file_name().unwrap_or_default();
    match directory.map(|directory| directory.symlink_metadata(name)) {
        // Its directory is made again.
        None => Ok(()),
        Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => Err(format!("there is something else at `{}` now", path.shown())),
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
    let at = reach.stored(&record.place.root, &record.place.path)?;
    let origin = Origin {
        undoes: Some(record.id),
        ..Origin::default()
    };
    match &record.inverse {
        Inverse::Restore { mode, .. } => {
            let before = look(&at.root, &at.path)?;
            let content = kept
                .content(record.id, reach.limits.read_bytes)
                .map_err(|_| ToolError("the copy that was kept of it cannot be read".to_owned()))?;
            let permissions = Permissions::from_mode(*mode);
            let contents = (&before, content.as_slice());
            log.write_with(
                ChangeAction::Undo,
                &at,
                contents,
                Some(&permissions),
                &origin,
            )?;
        }
        Inverse::Remove { made, .. } => {
            log.take_away(ChangeAction::Undo, &at, &origin)?;
            remove_made(&at, made);
        }
        Inverse::MoveBack { made, .. } => {
            let Some(to) = &record.to else {
                return Err(ToolError("it does not say where it went".to_owned()));
            };
            let to = reach.stored(&to.root, &to.path)?;
            log.relocate(ChangeAction::Undo, &to, &at, &origin)?;
            remove_made(&to, made);
        }
        Inverse::PutBack => {
            log.put_back(&at, record.id, &origin)?;
        }
        Inverse::Nothing { why } => return Err(ToolError(why.clone())),
    }
    Ok(())
}

fn reach(access: &Arc<FileAccess>, workspace: &Path) -> Reach {
    Reach {
        access: Arc::clone(access),
        workspace: workspace.to_owned(),
        limits: Limits::of(access),
        stop: CancellationToken::new(),
    }
}

fn changed_since(spot: &Spot) -> String {
    format!("`{}` has changed since", spot.path.shown())
}

fn gone(spot: &Spot) -> String {
    format!("`{}` is not there any more", spot.path.shown())
}

fn conflict(error: ToolError) -> ChangeError {
    ChangeError::Conflict(error.0)
}

fn unreadable(error: &io::Error) -> ChangeError {
    tracing::error!(%error, "a session's changes cannot be read");
    ChangeError::Unreadable
}
