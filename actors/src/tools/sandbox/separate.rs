//! The process that leaves the machine's namespaces: from here on nothing of the command sees
//! the processes, the mounts, the System V objects or the network of anybody else.
//!
//! Where the service is no root this takes a user namespace, in which its user stays itself. The
//! next process ([`super::confine`]) is the first of the new process namespace: the kernel ends
//! everyone in there with it.

use std::{fs, io};

use nix::sched::{CloneFlags, unshare};
use rustix::process::{getgid, getuid};
use rustix::thread::{CapabilitySet, CapabilitySets};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::confine::die_with_parent;
use super::running::Report;
use super::{init, ourselves};

/// What it takes to mount, and to give everything up afterwards.
const NEEDED: CapabilitySet = CapabilitySet::SYS_ADMIN.union(CapabilitySet::SETPCAP);

/// Carries out the job of the environment in namespaces of its own, and ends with its exit
/// code.
pub(super) fn separate_and_confine() -> Result<u8, String> {
    die_with_parent()?;
    leave()?;
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
fn go_on() -> io::Result<Report> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let _entered = runtime.enter();
    // The keys for these reach the command by themselves, where there is a terminal.
    let _interrupt = signal(SignalKind::interrupt())?;
    let _quit = signal(SignalKind::quit())?;
    let next = ourselves("confine").spawn()?;
    Ok(init::wait_for(&next))
}
