//! `write`, `move` and `delete`: a whole file, at once or not at all; the last two for directories,
//! too. What [`put`] does is what every change to a file's content comes down to.

use std::io::{self, Write as _};
use std::path::Path;

use cap_tempfile::TempFile;

use super::changes::{ChangeLog, Measure};
use super::text::difference;
use crate::tools::ToolResult;
use crate::tools::output::{counted, human_size};
use crate::tools::workspace::{Location, OrFault as _, Reach, Spot, read_whole};

/// What stands at a path before it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Absent,
    Content(Vec<u8>),
    /// More than is taken in: it can be replaced, but not put back.
    Large(u64),
}

impl Before {
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Absent => 0,
            Self::Content(bytes) => bytes.len() as u64,
            Self::Large(size) => *size,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Content(bytes) => bytes,
            Self::Absent | Self::Large(_) => &[],
        }
    }
}

/// A file's content, and what comes in its place.
#[derive(Clone, Debug)]
pub(super) struct Rewrite {
    pub(super) before: Before,
    pub(super) after: Vec<u8>,
}

impl Rewrite {
    /// Refuses content that is too large for a file, or for the workspace.
    pub(super) fn checked(
        Spot { root, path }: &Spot,
        before: Before,
        after: Vec<u8>,
    ) -> ToolResult<Self> {
        let size = after.len() as u64;
        refuse_if!(
            size > root.limits.write_bytes,
            "`{path}` would have {}, and {} is the limit of a file; split it into several files",
            human_size(size),
            human_size(root.limits.write_bytes)
        );
        let growth = size.saturating_sub(before.size());
        root.check_room(growth, usize::from(before == Before::Absent))?;
        Ok(Self { before, after })
    }

    /// Whether nothing would change.
    pub(super) fn is_same(&self) -> bool {
        matches!(&self.before, Before::Content(before) if *before == self.after)
    }
}

pub(super) fn write(log: &ChangeLog, spot: &Spot, content: &str) -> ToolResult<String> {
    let path = &spot.path;
    spot.root.check_stop()?;
    let rewrite = Rewrite::checked(spot, look(spot)?, content.as_bytes().to_vec())?;
    let size = format!(
        "{}, {}",
        counted(content.lines().count(), "line"),
        human_size(content.len() as u64)
    );
    if rewrite.is_same() {
        return Ok(format!(
            "`{path}` has exactly this content already ({size}); nothing was changed"
        ));
    }
    log.write(spot, &rewrite)?;
    if rewrite.before == Before::Absent {
        return Ok(format!("created `{path}` ({size})"));
    }
    let mut text = format!(
        "replaced all of `{path}` ({size}; before: {}); to change only a part, use edit",
        human_size(rewrite.before.size())
    );
    // Beside the workspace a write tells nothing of what stood there: that is text from outside.
    if let Before::Content(before) = &rewrite.before
        && let Some(changed) = difference(before, &rewrite.after)
        && path.in_workspace()
    {
        text.push_str(":\n");
        text.push_str(&changed);
    }
    Ok(text)
}

/// What stands at a path that is to be written. Nothing is made by looking.
pub(super) fn look(spot: &Spot) -> ToolResult<Before> {
    match spot.root.target(&spot.path)? {
        Some(at) => content_of(spot, &at),
        None => Ok(Before::Absent),
    }
}

/// The content of what stands at a place.
fn content_of(Spot { root, path }: &Spot, at: &Location) -> ToolResult<Before> {
    let Some(existing) = at.metadata().or_fault(path)? else {
        return Ok(Before::Absent);
    };
    if existing.len() > root.limits.read_bytes {
        return Ok(Before::Large(existing.len()));
    }
    let file = at.open().or_fault(path)?;
    root.check_readable(path, &file.metadata().or_fault(path)?)?;
    read_whole(file, path, root.limits.read_bytes).map(Before::Content)
}

/// Puts the content in its place, where `before` is still what stands there, with the permissions
/// that the file has. A reader sees the old file or the new one, never a part, and a file that was
/// swapped for a link meanwhile is replaced, not followed.
pub(super) fn put(spot: &Spot, at: &Location, rewrite: &Rewrite) -> ToolResult<()> {
    let prepare = || -> io::Result<TempFile<'_>> {
        let mut file = TempFile::new(&at.directory)?;
        file.write_all(&rewrite.after)?;
        if let Some(existing) = at.metadata()? {
            file.as_file().set_permissions(existing.permissions())?;
        }
        file.as_file().sync_all()?;
        Ok(file)
    };
    let path = &spot.path;
    let file = prepare().or_fault(path)?;
    spot.root.check_stop()?;
    // Someone else may have written since: an editor, a program that runs.
    refuse_if!(
        content_of(spot, at)? != rewrite.before,
        "`{path}` was changed by someone else meanwhile, and stays as they left it; read it again"
    );
    file.replace(&at.name).or_fault(path)
}

/// The spot that a move goes to: into a directory, where the path names one that is there.
pub(super) fn destination(reach: &Reach, from: &Spot, to: &str) -> ToolResult<Spot> {
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

pub(super) fn relocate(
    log: &ChangeLog,
    reach: &Reach,
    from: &Spot,
    to: &str,
) -> ToolResult<String> {
    from.root.standing(&from.path)?;
    let to = destination(reach, from, to)?;
    log.relocate(from, &to)?;
    Ok(format!("moved `{}` to `{}`", from.path, to.path))
}

pub(super) fn delete(log: &ChangeLog, spot: &Spot) -> ToolResult<String> {
    let (_, metadata) = spot.root.standing(&spot.path)?;
    let measured = log.take_away(spot)?;
    Ok(format!(
        "deleted `{}` ({}); the user can undo this",
        spot.path,
        kind(metadata.is_dir(), measured)
    ))
}

/// The same where there is no room to keep what goes: room is to be made.
pub(super) fn delete_for_good(log: &ChangeLog, spot: &Spot) -> ToolResult<String> {
    let (_, metadata) = spot.root.standing(&spot.path)?;
    let measured = log.remove(spot)?;
    Ok(format!(
        "deleted `{}` ({}) for good, as there is no room to keep it",
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
