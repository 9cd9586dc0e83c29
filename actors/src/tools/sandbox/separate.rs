//! The process that leaves the machine's namespaces: from here on nothing of the command sees
//! the processes, the mounts, the System V objects or the network of anybody else.
//!
//! Where the service is no root this takes a user namespace, in which its user stays itself. The
//! next process ([`super::confine`]) is the first of the new process namespace: the kernel ends
//! everyone in there with it. Whether the machine gives all that is tried, not read from its
//! settings.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use nix::sched::{CloneFlags, unshare};
use rustix::process::{getgid, getuid};
use rustix::thread::{CapabilitySet, CapabilitySets};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::confine::die_with_parent;
use super::policy::{JOB, Job, readable};
use super::running::Report;
use super::{FAILED_WORDS, HOLDS, SUBCOMMAND, init, is_absent, ourselves};
use crate::protocol::phrase::{Phrase, PhraseCode};

const NONE: &str = "the kernel gives no namespaces";

/// How long a look may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What it takes to mount, and to give everything up afterwards.
const NEEDED: CapabilitySet = CapabilitySet::SYS_ADMIN.union(CapabilitySet::SETPCAP);

/// Carries out the job of the environment in namespaces of its own, and ends with its exit
/// code.
pub(super) fn separate_and_confine() -> Result<u8, String> {
    die_with_parent()?;
    leave()?;
    // One thread: the kernel makes no second one for a process whose children live in another
    // namespace.
    let go_on = || -> io::Result<Report> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let _entered = runtime.enter();
        // The keys for these reach the command by themselves, where there is a terminal.
        let _interrupt = signal(SignalKind::interrupt())?;
        let _quit = signal(SignalKind::quit())?;
        let next = ourselves("confine").spawn()?;
        Ok(init::wait_for(&next))
    };
    let report = go_on().map_err(|error| format!("cannot go on in the namespaces: {error}"))?;
    Ok(report.exit_code())
}

fn leave() -> Result<(), String> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let mut namespaces = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    if user != 0 {
        namespaces |= CloneFlags::CLONE_NEWUSER;
    }
    unshare(namespaces).map_err(|error| format!("{NONE}: {error}"))?;
    if user != 0 {
        fs::write("/proc/self/setgroups", "deny")
            .and_then(|()| fs::write("/proc/self/uid_map", format!("{user} {user} 1")))
            .and_then(|()| fs::write("/proc/self/gid_map", format!("{group} {group} 1")))
            .map_err(|error| format!("the kernel gives no user namespace: {error}"))?;
        hand_down().map_err(|error| format!("the user namespace is worth nothing: {error}"))?;
    }
    Ok(())
}

/// A user that is no root loses its capabilities with the next program, unless they are ambient.
fn hand_down() -> rustix::io::Result<()> {
    let own = rustix::thread::capabilities(None)?;
    let sets = CapabilitySets {
        inheritable: NEEDED,
        ..own
    };
    rustix::thread::set_capabilities(None, sets)?;
    NEEDED.iter().try_for_each(|capability| {
        rustix::thread::configure_capability_in_ambient_set(capability, true)
    })
}

/// Whether this program gets namespaces and a file system of its own. It is tried once in a
/// process: that takes two programs, and the kernel says the same the next time.
pub(super) fn namespaces(program: &Path) -> Result<(), String> {
    static TRIED: OnceLock<Result<(), String>> = OnceLock::new();
    TRIED.get_or_init(|| try_namespaces(program)).clone()
}

/// Why there are none, as it is told.
pub(super) fn told(why: &str) -> Phrase {
    let error = why.strip_prefix(NONE).map(|rest| rest.strip_prefix(": "));
    match error {
        Some(None) => PhraseCode::NoNamespaces.into(),
        Some(Some(error)) => {
            Phrase::new(PhraseCode::NoNamespacesFor, [("error", error.to_owned())])
        }
        None => Phrase::plain(why),
    }
}

fn try_namespaces(program: &Path) -> Result<(), String> {
    refuse_if!(is_absent("FAILPOINT_NO_NAMESPACES"), "{NONE}");
    // The program of a test is no Navi.
    refuse_if!(cfg!(test), "not in a test");
    // It starts nothing.
    let mut job = Job {
        namespaces: true,
        ..Job::closed()
    };
    job.order.read = readable(&[]);
    let tried = serde_json::to_string(&job)
        .map_err(io::Error::from)
        .and_then(|job| output_of(program, &job))
        .map_err(|error| format!("the sandbox cannot be tried: {error}"))?;
    if String::from_utf8_lossy(&tried.stdout).trim() == HOLDS {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&tried.stderr);
    let why = why.trim().trim_start_matches(FAILED_WORDS);
    refuse!("{}", if why.is_empty() { NONE } else { why })
}

fn output_of(program: &Path, job: &str) -> io::Result<Output> {
    let mut child = Command::new(program)
        .args([SUBCOMMAND, "enter-namespaces"])
        .env_clear()
        .env(JOB, job)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let began = Instant::now();
    while child.try_wait()?.is_none() {
        if began.elapsed() > PATIENCE {
            child.kill()?;
        }
        thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output()
}
