//! What the tool has changed, and what it takes to undo that: kept outside of the workspace, in
//! a directory of the session's own that no tool reaches, bounded in number and bytes.
//!
//! A change is written down before it is made. One that a crash cut off is among the changes
//! and cannot be undone, since the file isn't as it would have left it.

mod fingerprint;
mod kept;
mod log;
mod moving;
mod record;
mod undo;

pub use self::undo::{ChangeError, changes, undo};

pub(super) use self::fingerprint::{Measure, fingerprint, fingerprint_of_content, measure};
pub(super) use self::log::ChangeLog;
pub(super) use self::record::Origin;

use std::path::{Path, PathBuf};

/// The directory, beside the workspaces, with what is kept of each session's changes.
const DIRECTORY: &str = ".changes";

/// Where a session's changes are kept. It goes when the session is gone for good.
pub fn changes_dir(workspace: &Path) -> PathBuf {
    let sessions = workspace.parent().unwrap_or(workspace);
    let session = workspace.file_name().unwrap_or_default();
    sessions.join(DIRECTORY).join(session)
}

#[cfg(test)]
mod tests;
