//! How much one command may use; and what the commands of a session, and those of all sessions, may
//! and do use together. Each supervisor knows its own tree alone; the service adds them up, and has
//! the largest ended where a sum is too much.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use itertools::Itertools as _;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::processes;
use crate::tools::workspace::WorkspaceLimits;

/// How often they are measured.
const LOOK: Duration = Duration::from_millis(250);

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

/// The commands that go. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct Sums(Arc<Mutex<Going>>);

#[derive(Debug, Default)]
struct Going {
    commands: BTreeMap<u64, Counted>,
    next: u64,
    /// Whether a thread measures them. It ends with the last of them.
    measured: bool,
}

#[derive(Debug)]
struct Counted {
    session: PathBuf,
    supervisor: i32,
    /// Where its supervisor is told why it has to end, once.
    tells: Option<UnixStream>,
}

/// A command that is counted until this is dropped.
#[derive(Debug)]
pub(super) struct Counting(Sums, u64);

impl Drop for Counting {
    fn drop(&mut self) {
        self.0.0.lock().commands.remove(&self.1);
    }
}

impl Sums {
    /// Counts a command with its session's others.
    pub(super) fn count(
        &self,
        limits: SumLimits,
        session: PathBuf,
        supervisor: i32,
        tells: UnixStream,
    ) -> Counting {
        let mut going = self.0.lock();
        let id = going.next;
        going.next += 1;
        let counted = Counted {
            session,
            supervisor,
            tells: Some(tells),
        };
        going.commands.insert(id, counted);
        let sums = self.clone();
        if !std::mem::replace(&mut going.measured, true) {
            thread::spawn(move || sums.measure(limits));
        }
        Counting(self.clone(), id)
    }

    fn measure(&self, limits: SumLimits) {
        loop {
            thread::sleep(LOOK);
            let stay: Vec<_> = {
                let mut going = self.0.lock();
                if going.commands.is_empty() {
                    going.measured = false;
                    return;
                }
                // Nobody else has to go for one that is on its way out.
                let stay = going.commands.iter().filter(|(_, one)| one.tells.is_some());
                stay.map(|(id, one)| (*id, one.session.clone(), one.supervisor))
                    .collect()
            };
            let used = stay.into_iter().map(|(id, session, supervisor)| Used {
                id,
                session,
                usage: processes::sum(&processes::descendants_of(supervisor)),
            });
            let used: Vec<Used> = used.collect();
            for (id, why) in too_much(&limits, &used) {
                let mut going = self.0.lock();
                let counted = going.commands.get_mut(&id);
                if let Some(mut tells) = counted.and_then(|counted| counted.tells.take()) {
                    // It may be gone by now.
                    let _ = tells.write_all(format!("{why}\n").as_bytes());
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Used {
    id: u64,
    session: PathBuf,
    usage: Sum,
}

/// Which commands have to end, and why: of each sum that is too much the one that uses most.
fn too_much(limits: &SumLimits, used: &[Used]) -> Vec<(u64, String)> {
    let sessions = used.iter().into_group_map_by(|one| &one.session);
    let all = (limits.all, "all conversations", used.iter().collect());
    sessions
        .into_values()
        .map(|of_session| (limits.session, "this conversation", of_session))
        .chain([all])
        .filter_map(|(most, whose, used)| largest(most, whose, &used))
        .collect()
}

fn largest(most: Sum, whose: &str, used: &[&Used]) -> Option<(u64, String)> {
    let sum = |by: fn(&Used) -> u64| used.iter().map(|one| by(one)).sum::<u64>();
    let memory: fn(&Used) -> u64 = |one| one.usage.memory_bytes;
    let processes: fn(&Used) -> u64 = |one| one.usage.processes;
    let (by, what) = if sum(memory) > most.memory_bytes {
        (memory, format!("{} MB of memory", most.memory_bytes >> 20))
    } else if sum(processes) > most.processes {
        (processes, format!("{} processes", most.processes))
    } else {
        return None;
    };
    let largest = used.iter().max_by_key(|one| by(one))?;
    Some((largest.id, together(whose, &what)))
}

/// Why a command has to end that is within its own limits.
pub(super) fn together(whose: &str, what: &str) -> String {
    format!("the commands of {whose} used more than their {what} together, and this one used most")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_sum_that_is_too_much_the_largest_ends() {
        let limits = SumLimits {
            session: Sum {
                memory_bytes: 100,
                processes: 10,
            },
            all: Sum {
                memory_bytes: 150,
                processes: 12,
            },
        };
        let used = |id, session: &str, memory_bytes, processes| Used {
            id,
            session: PathBuf::from(session),
            usage: Sum {
                memory_bytes,
                processes,
            },
        };
        let ended = |used: &[Used]| -> Vec<u64> {
            let ended = too_much(&limits, used);
            ended.into_iter().map(|(id, _)| id).collect()
        };
        assert!(ended(&[used(1, "a", 60, 5), used(2, "a", 40, 5)]).is_empty());
        assert_eq!(ended(&[used(1, "a", 60, 5), used(2, "a", 41, 5)]), [1]);
        assert_eq!(ended(&[used(1, "a", 60, 5), used(2, "a", 4, 6)]), [2]);
        assert_eq!(ended(&[used(1, "a", 60, 5), used(2, "b", 91, 5)]), [2]);
        assert_eq!(ended(&[used(1, "a", 60, 7), used(2, "b", 9, 6)]), [1]);
    }
}
