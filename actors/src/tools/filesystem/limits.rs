//! How much one call may do, and the workspace may hold.

use super::access::FileAccess;
use crate::tools::workspace::WorkspaceLimits;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Of a file that is written or edited.
    pub(super) write_bytes: u64,
    /// Of a file that is taken in whole.
    pub(super) read_bytes: u64,
    /// Counted before a call that adds to it.
    pub(super) workspace: WorkspaceLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            write_bytes: 4 << 20,
            read_bytes: 16 << 20,
            workspace: WorkspaceLimits::default(),
        }
    }
}

impl Limits {
    /// As the settings say.
    pub(super) fn of(access: &FileAccess) -> Self {
        Self {
            workspace: access.workspace,
            ..Self::default()
        }
    }
}
