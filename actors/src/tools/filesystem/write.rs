//! `write`: a whole file, at once or not at all. What [`put`] does is what every change to a
//! file's content comes down to.

use std::io::{self, Write as _};

use cap_fs_ext::FollowSymlinks;
use cap_std::fs::Permissions;
use cap_tempfile::TempFile;

use super::FileResult;
use super::changes::{ChangeLog, Origin};
use super::diff::difference;
use super::fault::fault;
use super::path::InnerPath;
use super::place::Spot;
use super::root::{Root, Target, open_nonblocking, read_whole};
use crate::protocol::change::ChangeAction;
use crate::tools::ToolError;
use crate::tools::output::{counted, human_size};

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

pub(super) fn write(
    spot: &Spot,
    content: &str,
    log: &ChangeLog,
    origin: &Origin<'_>,
) -> FileResult {
    let Spot { root, path } = spot;
    let shown = path.shown();
    root.check_stop()?;
    let before = look(root, path)?;
    check(root, &shown, &before, content.as_bytes())?;
    let size = format!(
        "{}, {}",
        counted(content.lines().count(), "line"),
        human_size(content.len() as u64)
    );
    if before == Before::Content(content.as_bytes().to_vec()) {
        return Ok(format!(
            "`{shown}` has exactly this content already ({size}); nothing was changed"
        ));
    }
    log.write(
        ChangeAction::Write,
        spot,
        &before,
        content.as_bytes(),
        origin,
    )?;
    Ok(match &before {
        Before::Absent => format!("created `{shown}` ({size})"),
        before => {
            let mut text = format!(
                "replaced all of `{shown}` ({size}; before: {}); to change only a part, use edit",
                human_size(before.size())
            );
            let changed = difference(before.bytes(), content.as_bytes());
            // Beside the workspace a write tells nothing of what stood there: that is text from
            // outside.
            let tells = spot.root.outside.is_none();
            if let (Before::Content(_), Some(changed), true) = (before, changed, tells) {
                text.push_str(":\n");
                text.push_str(&changed);
            }
            text
        }
    })
}

/// What stands at a path that is to be written. Nothing is made by looking.
pub(super) fn look(root: &Root, path: &InnerPath) -> Result<Before, ToolError> {
    match root.find_target(path)? {
        None => Ok(Before::Absent),
        Some(target) => content_of(root, &path.shown(), &target),
    }
}

/// What stands at a target.
pub(super) fn content_of(root: &Root, shown: &str, target: &Target) -> Result<Before, ToolError> {
    let Some(existing) = &target.existing else {
        return Ok(Before::Absent);
    };
    if existing.len() > root.limits.read_bytes {
        return Ok(Before::Large(existing.len()));
    }
    let name = target.name.as_ref();
    let file = open_nonblocking(&target.directory, name, FollowSymlinks::No)
        .map_err(|error| fault(shown, &error))?;
    let metadata = file.metadata().map_err(|error| fault(shown, &error))?;
    root.check_readable(shown, &metadata)?;
    read_whole(file, shown, root.limits.read_bytes).map(Before::Content)
}

/// Refuses content that is too large for a file, or for the workspace.
pub(super) fn check(
    root: &Root,
    shown: &str,
    before: &Before,
    after: &[u8],
) -> Result<(), ToolError> {
    let size = after.len() as u64;
    if size > root.limits.write_bytes {
        return Err(ToolError(format!(
            "`{shown}` would have {}, and {} is the limit of a file; split it into several files",
            human_size(size),
            human_size(root.limits.write_bytes)
        )));
    }
    let growth = size.saturating_sub(before.size());
    root.check_room(growth, usize::from(*before == Before::Absent))
}

/// Puts the content in the target's place, where `before` is still what stands there. A reader
/// sees the old file or the new one, never a part, and a file that was swapped for a link
/// meanwhile is replaced, not followed.
pub(super) fn put(
    root: &Root,
    shown: &str,
    target: &Target,
    before: &Before,
    content: &[u8],
    permissions: Option<Permissions>,
) -> Result<(), ToolError> {
    let prepare = || -> io::Result<TempFile<'_>> {
        let mut file = TempFile::new(&target.directory)?;
        file.write_all(content)?;
        let existing = target.existing.as_ref();
        if let Some(permissions) = permissions.or(existing.map(|it| it.permissions())) {
            file.as_file().set_permissions(permissions)?;
        }
        file.as_file().sync_all()?;
        Ok(file)
    };
    let file = prepare().map_err(|error| fault(shown, &error))?;
    root.check_stop()?;
    // Someone else may have written since: an editor, a program that runs.
    let now = Target {
        directory: target
            .directory
            .try_clone()
            .map_err(|error| fault(shown, &error))?,
        name: target.name.clone(),
        existing: target.directory.symlink_metadata(&target.name).ok(),
    };
    if content_of(root, shown, &now)? != *before {
        return Err(ToolError(format!(
            "`{shown}` was changed by someone else meanwhile, and stays as they left it; read it again"
        )));
    }
    file.replace(&target.name)
        .map_err(|error| fault(shown, &error))
}
