//! What a session's user looks at in the workspace: the same ways in as the tools have.

use std::path::Path;

use cap_std::fs::{File, FileType};
use chrono::DateTime;

use super::path::InnerPath;
use super::reach::Reach;
use super::walk::Rules;
use crate::protocol::workspace::{EntryKind, WorkspaceEntry, WorkspaceListing};
use crate::tools::ToolError;

/// As many entries as a listing has.
const MAX_ENTRIES: usize = 2_000;

/// A directory's entries, by name. A workspace that nothing was written to is empty.
pub(crate) fn entries(workspace: &Path, path: &InnerPath) -> Result<WorkspaceListing, ToolError> {
    let mut entries = Vec::new();
    if path.is_root() && !workspace.exists() {
        return Ok(WorkspaceListing {
            entries,
            complete: true,
        });
    }
    let spot = Reach::inside(workspace).open(path.clone())?;
    refuse_if!(
        !spot.root.is_directory(path)?,
        "`{path}` is a file, and no directory"
    );
    let mut left_out = false;
    let outcome = spot.root.walk(path, Rules::Everything, 1, |entry| {
        left_out |= entries.len() == MAX_ENTRIES;
        if left_out {
            return;
        }
        let metadata = entry.metadata();
        let modified = metadata.as_ref().and_then(|it| it.modified().ok());
        entries.push(WorkspaceEntry {
            path: entry.path.to_string_lossy().into_owned(),
            kind: kind_of(entry.file_type),
            bytes: if entry.file_type.is_file() {
                entry.size()
            } else {
                0
            },
            modified_at: modified.map(|at| DateTime::from(at.into_std())),
        });
    })?;
    Ok(WorkspaceListing {
        entries,
        complete: !left_out && !outcome.incomplete,
    })
}

/// A regular file, open for reading.
pub(crate) fn file(workspace: &Path, path: &InnerPath) -> Result<File, ToolError> {
    let spot = Reach::inside(workspace).open(path.clone())?;
    spot.root.open_file(path)
}

fn kind_of(file_type: FileType) -> EntryKind {
    if file_type.is_file() {
        EntryKind::File
    } else if file_type.is_dir() {
        EntryKind::Directory
    } else if file_type.is_symlink() {
        EntryKind::Link
    } else {
        EntryKind::Other
    }
}
