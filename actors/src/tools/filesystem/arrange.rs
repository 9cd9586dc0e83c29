//! `move` and `delete`: whole files and directories.

use std::path::Path;

use super::FileResult;
use super::changes::{ChangeLog, Measure, Origin, standing};
use super::place::{Reach, Spot};
use crate::protocol::change::ChangeAction;
use crate::tools::ToolError;
use crate::tools::output::{counted, human_size};

/// The spot that a move goes to: into a directory, where the path names one that is there.
pub(super) fn destination(reach: &Reach, from: &Spot, to: &str) -> Result<Spot, ToolError> {
    let spot = reach.spot(to)?;
    let is_there = spot.path.is_root()
        || spot.root.parent(&spot.path)?.is_some_and(|parent| {
            let name = spot.path.prefix().file_name().unwrap_or_default();
            parent.symlink_metadata(name).is_ok_and(|it| it.is_dir())
        });
    let path = if is_there || spot.path.names_directory() {
        let name = from.path.prefix().file_name().unwrap_or_default();
        spot.path.at(&spot.path.prefix().join(name))
    } else {
        spot.path
    };
    let same_root = spot.root.outside == from.root.outside;
    if same_root && path.prefix() == from.path.prefix() {
        return Err(ToolError(format!(
            "`{}` is there already; there is nothing to move",
            path.shown()
        )));
    }
    if same_root && path.prefix().starts_with(from.path.prefix()) {
        return Err(ToolError(format!(
            "`{}` cannot be moved into itself; choose another path",
            from.path.shown()
        )));
    }
    Ok(Spot {
        root: spot.root,
        path,
    })
}

pub(super) fn relocate(
    reach: &Reach,
    from: &Spot,
    to: &str,
    log: &ChangeLog,
    origin: &Origin<'_>,
) -> FileResult {
    standing(from)?;
    let to = destination(reach, from, to)?;
    log.relocate(ChangeAction::Move, from, &to, origin)?;
    Ok(format!(
        "moved `{}` to `{}`",
        from.path.shown(),
        to.path.shown()
    ))
}

pub(super) fn delete(spot: &Spot, log: &ChangeLog, origin: &Origin<'_>) -> FileResult {
    let (_, _, metadata) = standing(spot)?;
    let measured = log.take_away(ChangeAction::Delete, spot, origin)?;
    Ok(format!(
        "deleted `{}` ({}); the user can undo this",
        spot.path.shown(),
        kind(metadata.is_dir(), measured)
    ))
}

/// How much goes, in words.
pub(super) fn kind(is_directory: bool, measured: Measure) -> String {
    let size = human_size(measured.bytes);
    if is_directory {
        let inside = measured.entries.saturating_sub(1);
        format!("a directory with {}, {size}", counted(inside, "entry"))
    } else {
        size
    }
}

/// The name of a path's directory, in words, for a rule about what lies in it.
pub(super) fn directory_of(spot: &Spot) -> String {
    let parent = spot.path.prefix().parent().unwrap_or(Path::new(""));
    spot.path.at(parent).shown()
}
