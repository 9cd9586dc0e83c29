//! The process that leaves the machine's namespaces: from here on nothing of the command sees
//! the processes, the mounts, the System V objects or the network of anybody else.
//!
//! Where the service is no root this takes a user namespace, in which its user stays itself. The
//! next process ([`super::confine`]) is the first of the new process namespace: the kernel ends
//! everyone in there with it.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use rustix::process::{getgid, getuid};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};
use tokio::signal::unix::{SignalKind, signal};

use super::SUBCOMMAND;
use super::confine::die_with_parent;
use super::running::Report;
use super::supervise::OURSELVES;

/// What it takes to mount, and to give everything up afterwards.
const NEEDED: CapabilitySet = CapabilitySet::SYS_ADMIN.union(CapabilitySet::SETPCAP);

/// Carries out the policy of the environment in namespaces of its own, and ends with its exit
/// code.
pub(super) fn separate_and_confine() -> Result<u8, String> {
    die_with_parent()?;
    leave()?;
    let ended = go_on()?;
    let report = Report {
        code: ended.code(),
        signal: ended.signal(),
        cut: None,
    };
    Ok(report.exit_code())
}

fn leave() -> Result<(), String> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let mut namespaces = UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWNET
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    if user != 0 {
        namespaces |= UnshareFlags::NEWUSER;
    }
    unshare(namespaces).map_err(|error| format!("the kernel gives no namespaces: {error}"))?;
    if user != 0 {
        fs::write("/proc/self/setgroups", "deny")
            .and_then(|()| fs::write("/proc/self/uid_map", format!("{user} {user} 1")))
            .and_then(|()| fs::write("/proc/self/gid_map", format!("{group} {group} 1")))
            .map_err(|error| format!("the kernel gives no user namespace: {error}"))?;
        hand_down().map_err(|error| format!("the user namespace is worth nothing: {error}"))?;
    }
    Ok(())
}

#[expect(
    deprecated,
    reason = "unsafe only where file descriptors are unshared, which they are not"
)]
fn unshare(namespaces: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(namespaces)
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

/// One thread: the kernel makes no second one for a process whose children live in another
/// namespace.
fn go_on() -> Result<ExitStatus, String> {
    let failed = |error: std::io::Error| format!("cannot go on in the namespaces: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    runtime.block_on(async {
        // The keys for these reach the command by themselves, where there is a terminal.
        let _interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let _quit = signal(SignalKind::quit()).map_err(failed)?;
        tokio::process::Command::new(OURSELVES)
            .arg0("navi-sandbox")
            .args([SUBCOMMAND, "confine"])
            .status()
            .await
            .map_err(failed)
    })
}
