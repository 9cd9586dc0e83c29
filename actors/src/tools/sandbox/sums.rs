//! What the commands of a session, and those of all sessions, use together. Each supervisor
//! knows its own tree alone; the service adds them up, and has the largest ended where a sum is
//! too much.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::limits::{Sum, SumLimits};
use super::processes::{self, Usage};

/// How often they are measured.
const LOOK: Duration = Duration::from_millis(250);

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
    /// Where its supervisor is told why it has to end.
    tells: UnixStream,
}

/// A command that is counted until this is dropped.
#[derive(Debug)]
pub(super) struct Counting {
    sums: Sums,
    id: u64,
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.sums.going().commands.remove(&self.id);
    }
}

impl Sums {
    fn going(&self) -> MutexGuard<'_, Going> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a command with its session's others.
    pub(super) fn count(
        &self,
        limits: SumLimits,
        session: PathBuf,
        supervisor: i32,
        tells: UnixStream,
    ) -> Counting {
        let mut going = self.going();
        let id = going.next;
        going.next += 1;
        let counted = Counted {
            session,
            supervisor,
            tells,
        };
        going.commands.insert(id, counted);
        if !going.measured {
            going.measured = true;
            let sums = self.clone();
            thread::spawn(move || sums.measure(limits));
        }
        Counting {
            sums: self.clone(),
            id,
        }
    }

    fn measure(&self, limits: SumLimits) {
        loop {
            thread::sleep(LOOK);
            let going: Vec<(u64, PathBuf, i32)> = {
                let mut going = self.going();
                if going.commands.is_empty() {
                    going.measured = false;
                    return;
                }
                let commands = going.commands.iter();
                commands
                    .map(|(id, one)| (*id, one.session.clone(), one.supervisor))
                    .collect()
            };
            let trees = processes::usage_of(going.iter().map(|(_, _, supervisor)| *supervisor));
            let used: Vec<Used> = going
                .into_iter()
                .zip(trees)
                .map(|((id, session, _), usage)| Used { id, session, usage })
                .collect();
            for (id, why) in too_much(&limits, &used) {
                if let Some(counted) = self.going().commands.get_mut(&id) {
                    // It may be gone by now.
                    let _ = counted.tells.write_all(format!("{why}\n").as_bytes());
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Used {
    id: u64,
    session: PathBuf,
    usage: Usage,
}

/// Which commands have to end, and why: of each sum that is too much the one that uses most.
fn too_much(limits: &SumLimits, used: &[Used]) -> Vec<(u64, String)> {
    let mut sessions: BTreeMap<&PathBuf, Vec<&Used>> = BTreeMap::new();
    for one in used {
        sessions.entry(&one.session).or_default().push(one);
    }
    let all = (limits.all, "all conversations", used.iter().collect());
    sessions
        .into_values()
        .map(|of_session| (limits.session, "this conversation", of_session))
        .chain([all])
        .filter_map(|(most, whose, used)| largest(most, whose, &used))
        .collect()
}

fn largest(most: Sum, whose: &str, used: &[&Used]) -> Option<(u64, String)> {
    let memory: u64 = used.iter().map(|one| one.usage.resident_bytes).sum();
    let threads: u64 = used.iter().map(|one| one.usage.threads).sum();
    let (by, what): (fn(&&&Used) -> u64, String) = if memory > most.memory_bytes {
        let most = most.memory_bytes >> 20;
        (
            |one| one.usage.resident_bytes,
            format!("{most} MB of memory"),
        )
    } else if threads > most.processes {
        (
            |one| one.usage.threads,
            format!("{} processes", most.processes),
        )
    } else {
        return None;
    };
    let largest = used.iter().max_by_key(by)?;
    Some((
        largest.id,
        format!(
            "the commands of {whose} used more than their {what} together, and this one used most"
        ),
    ))
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
        let used = |id, session: &str, resident_bytes, threads| Used {
            id,
            session: PathBuf::from(session),
            usage: Usage {
                threads,
                resident_bytes,
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
