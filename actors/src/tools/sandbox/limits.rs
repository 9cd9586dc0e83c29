//! How much commands may use: one, those of a session, and all.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::tools::workspace::WorkspaceLimits;

/// How much one command and all that it starts may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Of the whole tree, in memory; and of each process, in what it may write to.
    pub memory_bytes: u64,
    /// Processes and threads of the whole tree.
    pub processes: u64,
    /// Of one file that it writes.
    pub file_bytes: u64,
    /// Of the workspace and the directory for temporary files together.
    pub workspace: WorkspaceLimits,
    /// Of one process.
    pub open_files: u64,
    /// Processor time of one process.
    pub cpu: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 2 << 30,
            processes: 256,
            file_bytes: 1 << 30,
            workspace: WorkspaceLimits::default(),
            open_files: 1024,
            cpu: None,
        }
    }
}

/// How much commands may use together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SumLimits {
    pub session: Sum,
    pub all: Sum,
}

/// What commands use together, or may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    pub memory_bytes: u64,
    pub processes: u64,
}

impl Default for SumLimits {
    fn default() -> Self {
        Self {
            session: Sum {
                memory_bytes: 4 << 30,
                processes: 512,
            },
            all: Sum {
                memory_bytes: machine_memory() / 2,
                processes: 2048,
            },
        }
    }
}

/// All of this machine's memory, in bytes; as much as can be said where it does not say.
pub fn machine_memory() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = info
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    total.map_or(u64::MAX, |kilobytes| kilobytes << 10)
}
