//! `write`: a whole file, at once or not at all.

use std::io::{self, Write as _};
use std::path::Path;

use cap_tempfile::TempFile;

use super::fault::fault;
use super::path::WorkspacePath;
use super::workspace::{Target, Workspace};
use crate::tools::output::{counted, human_size};
use crate::tools::{ToolError, ToolResult};

pub(super) fn write(workspace: &Workspace, path: &WorkspacePath, content: &str) -> ToolResult {
    let shown = path.shown();
    check_size(workspace, &shown, content)?;
    workspace.check_stop()?;
    workspace.check_names_file(path)?;
    if let Some(parent) = path.prefix().parent() {
        create_parents(workspace, &shown, parent)?;
    }
    let target = workspace.target(path)?;
    let before = target.existing.as_ref().map(|metadata| metadata.len());
    let growth = (content.len() as u64).saturating_sub(before.unwrap_or(0));
    workspace.check_room(growth, usize::from(before.is_none()))?;
    put(workspace, &shown, &target, content)?;
    let size = format!(
        "{}, {}",
        counted(content.lines().count(), "line"),
        human_size(content.len() as u64)
    );
    Ok(match before {
        None => format!("created `{shown}` ({size})"),
        Some(before) => format!(
            "replaced all of `{shown}` ({size}; before: {}); to change only a part, use edit",
            human_size(before)
        ),
    })
}

pub(super) fn check_size(
    workspace: &Workspace,
    shown: &str,
    content: &str,
) -> Result<(), ToolError> {
    let size = content.len() as u64;
    if size > workspace.limits.write_bytes {
        return Err(ToolError(format!(
            "`{shown}` would have {}, and {} is the limit of a file; split it into several files",
            human_size(size),
            human_size(workspace.limits.write_bytes)
        )));
    }
    Ok(())
}

fn create_parents(workspace: &Workspace, shown: &str, parent: &Path) -> Result<(), ToolError> {
    if parent.as_os_str().is_empty() || workspace.root.is_dir(parent) {
        return Ok(());
    }
    workspace.check_room(0, parent.components().count())?;
    workspace
        .root
        .create_dir_all(parent)
        .map_err(|error| fault(shown, &error))
}

/// Puts the content in the target's place. A reader sees the old file or the new one, never a
/// part, and a file that was swapped for a link meanwhile is replaced, not followed.
pub(super) fn put(
    workspace: &Workspace,
    shown: &str,
    target: &Target,
    content: &str,
) -> Result<(), ToolError> {
    let replace = || -> io::Result<()> {
        let mut file = TempFile::new(&target.directory)?;
        file.write_all(content.as_bytes())?;
        if let Some(existing) = &target.existing {
            file.as_file().set_permissions(existing.permissions())?;
        }
        file.as_file().sync_all()?;
        if workspace.stop.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        file.replace(&target.name)
    };
    replace().map_err(|error| match workspace.check_stop() {
        Err(stopped) => stopped,
        Ok(()) => fault(shown, &error),
    })
}
