//! `move` and `delete`: whole files and directories.

use std::path::Path;

use super::FileResult;
use super::changes::{ChangeLog, Measure};
use crate::tools::ToolError;
use crate::tools::output::{counted, human_size};
use crate::tools::workspace::{OrFault as _, Reach, Spot};

/// The spot that a move goes to: into a directory, where the path names one that is there.
pub(super) fn destination(reach: &Reach, from: &Spot, to: &str) -> Result<Spot, ToolError> {
    let Spot { root, path } = reach.spot(to)?;
    let existing = root.location(&path)?.map(|at| at.metadata());
    let existing = existing.transpose().or_fault(&path)?.flatten();
    let is_directory = existing.is_some_and(|it| it.is_dir());
    let path = if path.names_directory() || is_directory {
        let name = from.path.prefix().file_name().unwrap_or_default();
        path.at(&path.prefix().join(name))
    } else {
        path
    };
    if path.root() == from.path.root() {
        refuse_if!(
            path.prefix() == from.path.prefix(),
            "`{path}` is there already; there is nothing to move"
        );
        refuse_if!(
            path.prefix().starts_with(from.path.prefix()),
            "`{}` cannot be moved into itself; choose another path",
            from.path
        );
    }
    Ok(Spot { root, path })
}

pub(super) fn relocate(log: &ChangeLog, reach: &Reach, from: &Spot, to: &str) -> FileResult {
    from.root.standing(&from.path)?;
    let to = destination(reach, from, to)?;
    log.relocate(from, &to)?;
    Ok(format!("moved `{}` to `{}`", from.path, to.path))
}

pub(super) fn delete(log: &ChangeLog, spot: &Spot) -> FileResult {
    let (_, metadata) = spot.root.standing(&spot.path)?;
    let measured = log.take_away(spot)?;
    Ok(format!(
        "deleted `{}` ({}); the user can undo this",
        spot.path,
        kind(metadata.is_dir(), measured)
    ))
}

/// How much goes, in words.
fn kind(is_directory: bool, measured: Measure) -> String {
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
    spot.path.shown_as(parent)
}
