//! Control groups (version 2), where the service has one to itself that it may change, as with
//! `Delegate=yes` in a unit of systemd. The kernel then holds each command, those of a session
//! and all together to their memory and processes at every moment, where measuring
//! ([`super::sums`]) sees them a few times a second.
//!
//! A group that has groups below it may hold no process: the service moves to `service` there,
//! and commands run in `commands/SESSION/NUMBER`.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Sum;
use super::sums::together;
use crate::tools::workspace::if_there;

const SERVICE: &str = "service";
const COMMANDS: &str = "commands";

/// How often a group that still holds a dying process is tried to be removed, and how long after.
const REMOVE_TRIES: u32 = 50;
const REMOVE_PAUSE: Duration = Duration::from_millis(10);

/// What was delegated to this process.
static TAKEN_OVER: OnceLock<Groups> = OnceLock::new();

#[derive(Debug)]
struct Groups {
    service: PathBuf,
    commands: PathBuf,
    /// What all commands may use together.
    all: Sum,
}

/// Takes over the group that this process is in, for the rest of its life, and holds all commands
/// together to `all`.
///
/// # Errors
/// Why it cannot be used: none of version 2, somebody else in it, not ours to change.
pub fn take_over(all: Sum) -> Result<(), String> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own_group(&mounts, &own).ok_or("there are no control groups of version 2")?;
    let groups = Groups::below(&own, all).map_err(|error| {
        let own = own.display();
        format!("the control group {own} cannot be used: {error}")
    })?;
    let _ = TAKEN_OVER.set(groups);
    Ok(())
}

/// A group for one more command of the session that this folder is named after. None where none
/// was taken over, or the kernel has no room: then the command is measured alone.
pub(super) fn for_command(session: &Path, sum: Sum, command: Sum) -> Option<Group> {
    let made = TAKEN_OVER.get()?.make(session, sum, command);
    made.inspect_err(|error| tracing::warn!(%error, "a command has no control group"))
        .ok()
}

impl Groups {
    fn below(own: &Path, all: Sum) -> io::Result<Self> {
        // Where the program before an upgrade went.
        let top = own.parent().filter(|_| own.ends_with(SERVICE));
        let top = top.unwrap_or(own);
        let groups = Self {
            service: top.join(SERVICE),
            commands: top.join(COMMANDS),
            all,
        };
        if top == own {
            let members = fs::read_to_string(own.join("cgroup.procs"))?;
            if members.trim() != std::process::id().to_string() {
                return Err(io::Error::other("it holds other programs, too"));
            }
        }
        let taken = || {
            fs::create_dir_all(&groups.service)?;
            enter(&groups.service)?;
            hand_down(top)?;
            fs::create_dir_all(&groups.commands)?;
            limit(&groups.commands, all)?;
            hand_down(&groups.commands)
        };
        taken().inspect_err(|_| {
            // As if nothing had been tried.
            let _ = enter(own).and_then(|()| fs::remove_dir(&groups.service));
        })?;
        // What supervisors left that were killed. The kernel keeps those with processes.
        for session in folders(&groups.commands) {
            for command in folders(&session) {
                let _ = fs::remove_dir(command);
            }
            let _ = fs::remove_dir(session);
        }
        Ok(groups)
    }

    /// Makes a group for one more command of a session.
    fn make(&self, session: &Path, sum: Sum, command: Sum) -> io::Result<Group> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = session.file_name().unwrap_or_default();
        let session = self.commands.join(name);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = session.join(format!("{}-{number}", std::process::id()));
        let made = || {
            fs::create_dir_all(&session)?;
            limit(&session, sum)?;
            hand_down(&session)?;
            fs::create_dir(&path)
        };
        // The session's last command may just have taken its group along.
        made().or_else(|_| made())?;
        let group = Group {
            path,
            service: self.service.clone(),
            memory_bytes: [command, sum, self.all].map(|sum| sum.memory_bytes),
        };
        put(&group.path, "memory.oom.group", "1")
            .and_then(|()| limit(&group.path, command))
            .inspect_err(|_| group.remove())?;
        Ok(group)
    }
}

/// The group of one command, as it goes to its supervisor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Group {
    path: PathBuf,
    service: PathBuf,
    /// What the command, its session and all sessions may have.
    memory_bytes: [u64; 3],
}

impl Group {
    /// Starts something that is in the group from its first instruction on.
    pub(super) fn start<T>(&self, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        enter(&self.path)?;
        let started = start();
        enter(&self.service)?;
        started
    }

    /// Ends whoever is left in it, and removes it. Says why, where it was the kernel that ended
    /// the command.
    pub(super) fn close(&self) -> Option<String> {
        // Everyone has been ended; before Linux 5.14 there is no such file.
        let _ = put(&self.path, "cgroup.kill", "1");
        let killed = count(&self.path, "memory.events", "oom_kill ") > 0;
        let is_full = |group: &Path| count(group, "memory.events.local", "oom ") > 0;
        let whose = [None, Some("this conversation"), Some("all conversations")];
        let mut groups = self.path.ancestors().zip(self.memory_bytes).zip(whose);
        let full = groups.find(|((group, _), _)| killed && is_full(group));
        let why = full.map(|((_, bytes), whose)| {
            let memory = format!("{} MB of memory", bytes >> 20);
            whose.map_or_else(
                || format!("it used more than its {memory}"),
                |whose| together(whose, &memory),
            )
        });
        self.remove();
        why
    }

    fn remove(&self) {
        for _ in 0..REMOVE_TRIES {
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    thread::sleep(REMOVE_PAUSE);
                }
                _ => break,
            }
        }
        // The session's others keep it.
        let _ = self.path.parent().map(fs::remove_dir);
    }
}

/// The group of version 2 that a process is in, by its `/proc/PID/mounts` and `/proc/PID/cgroup`.
fn own_group(mounts: &str, own: &str) -> Option<PathBuf> {
    let mount = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let place = fields.next()?;
        (fields.next()? == "cgroup2").then_some(place)
    })?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(mount).join(path))
}

/// Moves this process, all of its threads.
fn enter(group: &Path) -> io::Result<()> {
    put(group, "cgroup.procs", "0")
}

/// How often something happened in a group, by one of its files.
fn count(group: &Path, file: &str, event: &str) -> u64 {
    let events = fs::read_to_string(group.join(file)).unwrap_or_default();
    let found = events.lines().find_map(|line| line.strip_prefix(event));
    found.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Lets the groups below have limits of their own.
fn hand_down(group: &Path) -> io::Result<()> {
    put(group, "cgroup.subtree_control", "+memory +pids")
}

/// Writes to a file that the kernel made.
fn put(group: &Path, file: &str, value: &str) -> io::Result<()> {
    let mut file = fs::File::options().write(true).open(group.join(file))?;
    file.write_all(value.as_bytes())
}

fn limit(group: &Path, most: Sum) -> io::Result<()> {
    put(group, "memory.max", &most.memory_bytes.to_string())?;
    // One more than there may be: who measures sees it, and says why the command ends.
    let processes = most.processes.saturating_add(1);
    put(group, "pids.max", &processes.to_string())?;
    // A kernel that does not swap has no such file.
    if_there(put(group, "memory.swap.max", "0")).map(|_| ())
}

fn folders(of: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(of).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_wherever_it_is_mounted() {
        let own = "8:pids:/\n0::/system.slice/navi.service\n";
        let mounts = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
        let found = own_group(mounts, own);
        let there = Path::new("/sys/fs/cgroup/system.slice/navi.service");
        assert_eq!(found.as_deref(), Some(there));
        assert_eq!(
            own_group("cgroup /sys/fs/cgroup/memory cgroup rw 0 0\n", own),
            None
        );
        assert_eq!(own_group(mounts, "8:pids:/\n"), None);
    }
}
