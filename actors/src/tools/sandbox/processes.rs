//! A tree of processes, as `/proc` shows it, and its end.
//!
//! The supervisor is a subreaper: whoever loses their parent becomes its child, so that nobody
//! leaves the tree by a double fork or a session of their own.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use itertools::Itertools as _;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

use super::Sum;
use super::root::PROC;

/// How long an end may take before it is given up: a process that the kernel holds dies later.
const PATIENCE: Duration = Duration::from_secs(10);

/// A tree with more is looked at from above, in one pass: it may grow faster than it is asked.
const MOST_ASKED: usize = 4096;

/// A process of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    parent: i32,
    /// The real user.
    user: u32,
    /// `Z`: dead, and nobody asked for its end yet. `T`: it stands.
    state: char,
    threads: u64,
    /// What only it and those with whom it shares it hold in memory. Programs and files that are
    /// mapped are the page cache's: the kernel takes it back, and our own starter maps much.
    memory_bytes: u64,
}

impl Process {
    /// None where it is gone.
    fn read(of: &Path) -> Option<Self> {
        let status = |of: &Path| {
            let bytes = fs::read(of.join("status")).ok()?;
            // A process names itself as it likes, and hides behind no byte that is no text.
            Self::parse(&String::from_utf8_lossy(&bytes))
        };
        let mut process = status(of)?;
        if process.state == 'Z' && process.lives() {
            // What it holds, the threads say that go on.
            let threads = fs::read_dir(of.join("task")).ok()?.flatten();
            let held = threads.filter_map(|thread| status(&thread.path()));
            process.memory_bytes = held.map(|it| it.memory_bytes).max().unwrap_or(0);
        }
        Some(process)
    }

    /// One whose first thread has ended goes on with the others.
    fn lives(&self) -> bool {
        self.threads > 1 || !matches!(self.state, 'Z' | 'X')
    }

    /// From a `status` file, where a name has no line's end in it.
    fn parse(status: &str) -> Option<Self> {
        let words = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_ascii_whitespace().next()
        };
        let kilobytes = |name| words(name).and_then(|word| word.parse::<u64>().ok());
        // The kernel's own threads have none.
        let resident = ["RssAnon:", "RssShmem:"].map(|name| kilobytes(name).unwrap_or(0));
        Some(Self {
            pid: words("Pid:")?.parse().ok()?,
            parent: words("PPid:")?.parse().ok()?,
            user: words("Uid:")?.parse().ok()?,
            state: words("State:")?.chars().next()?,
            threads: words("Threads:")?.parse().ok()?,
            memory_bytes: resident.iter().sum::<u64>() << 10,
        })
    }
}

/// Everyone who descends from this process and lives.
pub(super) fn descendants() -> Vec<Process> {
    descendants_of(getpid().as_raw_nonzero().get())
}

/// Everyone who descends from it and lives. Each is asked for its children, where the kernel was
/// built to say: the whole machine is looked through otherwise, of which a command's tree is little.
pub(super) fn descendants_of(root: i32) -> Vec<Process> {
    let Some(first) = children(root) else {
        return tree_of(root, &all());
    };
    let mut found = BTreeMap::new();
    let mut open = first;
    while let Some(pid) = open.pop() {
        if found.len() > MOST_ASKED {
            return tree_of(root, &all());
        }
        if found.contains_key(&pid) {
            continue;
        }
        if let Some(process) = Process::read(&Path::new(PROC).join(pid.to_string())) {
            open.extend(children(pid).unwrap_or_default());
            found.insert(pid, process);
        }
    }
    found.into_values().filter(Process::lives).collect()
}

/// The children of all of its threads. None where the kernel does not say, or it is gone.
fn children(pid: i32) -> Option<Vec<i32>> {
    let threads = fs::read_dir(Path::new(PROC).join(pid.to_string()).join("task")).ok()?;
    let said = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    said.map(|all| all.split_ascii_whitespace().flat_map(str::parse).collect())
        .reduce(|all: Vec<i32>, more| [all, more].concat())
}

/// What these use together.
pub(super) fn sum(processes: &[Process]) -> Sum {
    Sum {
        memory_bytes: processes.iter().map(|one| one.memory_bytes).sum(),
        processes: processes.iter().map(|one| one.threads).sum(),
    }
}

/// Everyone on this machine.
fn all() -> Vec<Process> {
    let entries = fs::read_dir(PROC).into_iter().flatten().flatten();
    let is_process = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let first = name.as_encoded_bytes().first();
        first.is_some_and(u8::is_ascii_digit)
    };
    entries
        .filter(is_process)
        .filter_map(|entry| Process::read(&entry.path()))
        .collect()
}

/// Those of `all` who descend from one of them, and live.
fn tree_of(root: i32, all: &[Process]) -> Vec<Process> {
    let mut children = all.iter().into_group_map_by(|process| process.parent);
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            open.push(child.pid);
            found.push(*child);
        }
    }
    found.retain(Process::lives);
    found
}

/// Ends everyone who descends from this process, as far as a look at `/proc` shows them, which is
/// not of one moment.
pub(super) fn end_all() {
    end_until(|| kill_all().is_empty());
}

/// The same, taking their ends: by that it is known that none is left.
pub(super) fn end_and_reap_all() {
    end_until(|| {
        reap() || {
            kill_all();
            reap()
        }
    });
}

fn end_until(is_over: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(1);
    while !is_over() && Instant::now() < until {
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Kills all who are left, and tells who was. They are stopped first: who is killed one by one
/// while the others go on making more is never all killed.
fn kill_all() -> Vec<Process> {
    for _ in 0..50 {
        let mut moving = descendants();
        moving.retain(|process| process.state != 'T');
        if moving.is_empty() {
            break;
        }
        signal_each(&moving, Signal::STOP);
    }
    let left = descendants();
    signal_each(&left, Signal::KILL);
    left
}

fn signal_each(processes: &[Process], signal: Signal) {
    let pids = processes.iter().map(|process| process.pid);
    for pid in pids.filter_map(Pid::from_raw) {
        // One that is gone by now is as good.
        let _ = kill_process(pid, signal);
    }
}

/// From here on who loses their parent is a child of this process.
pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(getpid()))?)
}

/// Takes the ends of children that nobody asked for. Tells whether there is no child any more:
/// then there is no descendant either.
fn reap() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => return false,
            Err(error) => return error == rustix::io::Errno::CHILD,
        }
    }
}

/// How many threads a user has on this machine: what `RLIMIT_NPROC` counts.
pub(super) fn threads_of_user(user: u32) -> u64 {
    let all = all().into_iter().filter(|process| process.user == user);
    all.map(|process| process.threads).sum()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::thread;

    use super::*;

    #[test]
    fn a_name_cannot_pass_for_numbers() {
        let status = "Name:\tPid:\t9\\nPid:\t8\nState:\tR (running)\nPid:\t7\nPPid:\t3\n\
            Uid:\t5\t6\t6\t6\nVmRSS:\t 900 kB\nRssAnon:\t 12 kB\nRssFile:\t 880 kB\n\
            RssShmem:\t 8 kB\nThreads:\t4\n";
        let process = Process {
            pid: 7,
            parent: 3,
            user: 5,
            state: 'R',
            threads: 4,
            memory_bytes: 20 << 10,
        };
        assert_eq!(Process::parse(status), Some(process));
        assert_eq!(Process::parse(""), None);
    }

    #[test]
    fn a_tree_has_all_generations_and_no_dead() {
        let process = |pid, parent, state| Process {
            pid,
            parent,
            state,
            user: 0,
            threads: 1,
            memory_bytes: 1,
        };
        let all = [
            process(1, 0, 'S'),
            process(2, 1, 'R'),
            process(3, 2, 'Z'),
            process(4, 3, 'T'),
            process(5, 1, 'S'),
        ];
        let mut pids: Vec<i32> = tree_of(2, &all).iter().map(|p| p.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [4]);
        assert_eq!(tree_of(1, &all).len(), 3);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn one_whose_first_thread_has_ended_is_counted_and_ended() {
        let program = "import ctypes, threading, time\n\
            held = bytearray(b'x' * 40_000_000)\n\
            threading.Thread(target=lambda: time.sleep(1000)).start()\n\
            ctypes.CDLL(None).syscall(60, 0)";
        let mut child = Command::new("python3")
            .args(["-c", program])
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let own = getpid().as_raw_nonzero().get();
        let begun = Instant::now();
        let found = loop {
            let all = descendants_of(own);
            let it = all.into_iter().find(|it| it.pid == pid);
            match it.filter(|it| it.state == 'Z') {
                Some(found) => break found,
                None => assert!(begun.elapsed() < PATIENCE, "its first thread goes on"),
            }
            thread::sleep(Duration::from_millis(1));
        };
        assert!(found.memory_bytes > 40_000_000, "{found:?}");
        signal_each(&[found], Signal::KILL);
        child.wait().unwrap();
        assert!(descendants_of(own).iter().all(|it| it.pid != pid));
    }

    #[test]
    fn who_a_process_says_are_its_children_are_those_who_call_it_their_parent() {
        // The last of them is of another thread, and a grandchild.
        let start = || {
            let mut shell = Command::new("sh");
            shell
                .args(["-c", "sleep 1000 & wait"])
                .stdout(Stdio::null());
            shell.spawn().unwrap()
        };
        let begun = [thread::spawn(start).join().unwrap(), start()];
        let own = getpid().as_raw_nonzero().get();
        for mut shell in begun {
            let pid = i32::try_from(shell.id()).unwrap();
            let begun = Instant::now();
            let sleeper = loop {
                if let [one] = descendants_of(pid)[..] {
                    break one;
                }
                assert!(begun.elapsed() < PATIENCE, "the shell starts nothing");
                thread::sleep(Duration::from_millis(1));
            };
            assert_eq!(sleeper.parent, pid);
            assert_eq!(tree_of(pid, &all()).len(), 1);
            let whole = descendants_of(own);
            assert!(
                [pid, sleeper.pid]
                    .iter()
                    .all(|pid| whole.iter().any(|one| one.pid == *pid))
            );
            signal_each(&[sleeper], Signal::KILL);
            shell.wait().unwrap();
        }
    }
}
