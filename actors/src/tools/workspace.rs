//! A session's workspace, as every tool sees it.

use serde::{Deserialize, Serialize};

/// What a workspace may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceLimits {
    /// Of all files together.
    pub bytes: u64,
    /// Files and directories.
    pub entries: u64,
}

impl Default for WorkspaceLimits {
    fn default() -> Self {
        Self {
            bytes: 4 << 30,
            entries: 100_000,
        }
    }
}
