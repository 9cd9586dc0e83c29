//! A path inside the workspace: the one place that says which paths are taken, what they may
//! lead to, and how they are opened. Every tool that opens a file of the workspace opens it here.
//!
//! Every path is opened relative to a directory handle that cannot be left: not by `..`, not by
//! an absolute path, not by a link, and not by swapping one for the other in the middle. A hard
//! link is a way out that no path shows: a file of the workspace that has a name elsewhere too
//! is neither read nor changed (no sandboxed command can make such a link, since the sandbox
//! lets none be made to a file beyond the workspace, but someone else may have).

mod closed;
mod fault;
mod path;
mod reach;
mod root;
mod walk;

pub(crate) use self::fault::{OrFault, fault, if_there};
pub(crate) use self::path::InnerPath;
pub use self::reach::FileAccess;
#[cfg(test)]
pub(crate) use self::reach::Limits;
pub(crate) use self::reach::{Reach, Spot};
pub(crate) use self::root::{Location, Root, open, open_nonblocking, read_whole};
pub(crate) use self::walk::{Entry, MAX_DEPTH, Rules};

use serde::{Deserialize, Serialize};

/// What a workspace may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceLimits {
    /// Of all files together.
    pub bytes: u64,
    /// Files and directories.
    pub entries: u64,
}

impl WorkspaceLimits {
    /// For who counts nothing.
    pub(crate) const NONE: Self = Self {
        bytes: u64::MAX,
        entries: u64::MAX,
    };
}

impl Default for WorkspaceLimits {
    fn default() -> Self {
        Self {
            bytes: 4 << 30,
            entries: 100_000,
        }
    }
}
