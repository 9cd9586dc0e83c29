//! The process that starts the command: it gives up everything that the command must not have,
//! one after the other, and then starts it, waits for it, and takes the ends of whom it left
//! behind. Any step that fails ends it: a command runs confined or not at all.

use std::fmt::Display;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
    path_beneath_rules,
};
use rustix::fs::Mode;
use rustix::process::{Gid, Resource, Rlimit, Signal, Uid, setrlimit, setsid};
use rustix::thread::{CapabilitySet, CapabilitySets, remove_capability_from_bounding_set};
use seccompiler::BpfProgram;

use super::policy::{DEVICES, JOB};
use super::user::{self, SandboxUser};
use super::{HOLDS, Job, Limits, init, processes, root, syscalls};
use crate::background::stand_behind;

/// The newest rules that were tried out with this program. An older kernel has fewer.
const RULES: ABI = ABI::V6;

/// Carries out the job of the environment, and ends with the exit code of its command. A job
/// without a program only says whether it would hold.
pub(super) fn confine_and_run() -> Result<u8, String> {
    let job = std::env::var(JOB).unwrap_or_default();
    let job = serde_json::from_str::<Job>(&job)
        .map_err(|error| format!("its orders make no sense: {error}"))?;
    let sent = init::sent(&job)?;
    confine(&job)?;
    if job.order.program.is_empty() {
        // Nobody may listen.
        let _ = writeln!(std::io::stdout(), "{HOLDS}");
        return Ok(0);
    }
    init::run(&job, sent)
}

fn confine(job: &Job) -> Result<(), String> {
    if job.over_socket {
        setsid().map_err(|error| failed("leave the terminal", error))?;
    }
    if !job.is_inside() {
        return die_with_parent();
    }
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    let user = job.user.as_ref();
    let others = match user {
        // In a user namespace, the kernel counts what runs in it and nothing else.
        None if job.namespaces => 0,
        None => processes::threads_of_user(rustix::process::getuid().as_raw()),
        // All that the user runs, and here it can still be seen.
        Some(user) => processes::threads_of_user(user.uid),
    };
    if let Some(user) = user.filter(|_| job.over_socket) {
        for folder in &job.writable() {
            user::give(folder, user, &job.former)
                .map_err(|error| failed(&format!("give {} away", folder.display()), error))?;
        }
    }
    if job.namespaces {
        root::enter(job).map_err(|error| failed("make a file system for the command", error))?;
    }
    // While it has the right to open them: what the rules hold on to are open directories.
    let rules = job.landlock.then(|| rules(job)).transpose()?;
    give_up_rights(user)?;
    let filters = syscalls::filters(job)?;
    // Next to nothing is allocated from here on: the command's memory may be less than this
    // program's allocator asks for at a time.
    limit(&job.order.limits, others)?;
    // After the change of user, which takes it back.
    die_with_parent()?;
    hold(rules, &filters)
}

/// From here on this very process, which has one thread, reaches nothing of the machine but the
/// files that it has open: no other file, no network, no program, no right.
///
/// # Errors
/// What of that the kernel refuses.
pub fn seal() -> Result<(), String> {
    let job = Job {
        landlock: landlock_version().is_some(),
        user: user::wanted(None).ok().flatten(),
        ..Job::closed()
    };
    let rules = job.landlock.then(|| rules(&job)).transpose()?;
    give_up_rights(job.user.as_ref())?;
    hold(rules, &syscalls::filters(&job)?)
}

fn give_up_rights(user: Option<&SandboxUser>) -> Result<(), String> {
    for capability in CapabilitySet::all().iter() {
        // Who has none may not say so.
        let _ = remove_capability_from_bounding_set(capability);
    }
    if let Some(user) = user {
        let no_groups: [Gid; 0] = [];
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        // This process has one thread.
        rustix::thread::set_thread_groups(&no_groups)
            .and_then(|()| rustix::thread::set_thread_res_gid(gid, gid, gid))
            .and_then(|()| rustix::thread::set_thread_res_uid(uid, uid, uid))
            .map_err(|error| failed(&format!("become the user {}", user.name), error))?;
        let now = (rustix::process::getuid(), rustix::process::geteuid());
        refuse_if!(now != (uid, uid), "did not become the user {}", user.name);
    }
    // A command that stays root is root of nothing but its files.
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    rustix::thread::clear_ambient_capability_set()
        .and_then(|()| rustix::thread::set_capabilities(None, sets))
        .map_err(|error| failed("give up its capabilities", error))
}

fn hold(rules: Option<RulesetCreated>, filters: &[BpfProgram]) -> Result<(), String> {
    rustix::thread::set_no_new_privs(true).map_err(|error| failed("give up privileges", error))?;
    if let Some(rules) = rules {
        let status = rules.restrict_self();
        let status = status.map_err(|error| failed("be held by Landlock", error))?;
        refuse_if!(
            status.ruleset == RulesetStatus::NotEnforced,
            "the kernel does not enforce Landlock"
        );
    }
    syscalls::deny(filters).map_err(|error| failed("be held by seccomp", error))
}

fn failed(what: &str, error: impl Display) -> String {
    format!("cannot {what}: {error}")
}

/// Ends this process with the one that started it.
pub(super) fn die_with_parent() -> Result<(), String> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| failed("be tied to the supervisor", error))?;
    // It may have died just before. The first process of a namespace sees none.
    match rustix::process::getppid() {
        Some(parent) if parent.is_init() => Err("the supervisor is gone".to_owned()),
        _ => Ok(()),
    }
}

/// What the command may do with which files; nothing with any other, and nothing with the
/// network.
fn rules(job: &Job) -> Result<RulesetCreated, String> {
    let held = |error: landlock::RulesetError| failed("make Landlock's rules", error);
    let read = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir;
    let write = AccessFs::from_all(RULES) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let proc = job.namespaces.then_some(Path::new(root::PROC));
    let read_from = job.order.read.iter().map(PathBuf::as_path).chain(proc);
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(RULES))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(RULES)))
        .and_then(|rules| rules.scope(Scope::from_all(RULES)))
        .and_then(Ruleset::create)
        // Of these, a machine has some and not others.
        .and_then(|rules| rules.add_rules(path_beneath_rules(read_from, read)))
        .and_then(|rules| rules.add_rules(path_beneath_rules(DEVICES.split(' '), device)))
        .map_err(held)?;
    let mut folders = job.writable();
    if job.namespaces {
        folders.push(PathBuf::from(root::SHARED_MEMORY));
    }
    folders.iter().try_fold(rules, |rules, folder: &PathBuf| {
        let open = PathFd::new(folder)
            .map_err(|error| failed(&format!("open {}", folder.display()), error))?;
        rules.add_rule(PathBeneath::new(open, write)).map_err(held)
    })
}

/// `others`: threads outside of here that the kernel counts, too.
fn limit(limits: &Limits, others: u64) -> Result<(), String> {
    let mut all = vec![
        (Resource::Core, 0),
        (Resource::Data, limits.memory_bytes),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nofile, limits.open_files),
        (Resource::Nproc, others + limits.processes),
        (Resource::Memlock, 64 << 10),
        (Resource::Msgqueue, 0),
        (Resource::Nice, 0),
        (Resource::Rtprio, 0),
    ];
    all.extend(limits.cpu.map(|cpu| (Resource::Cpu, cpu.as_secs().max(1))));
    for (resource, most) in all {
        let hard = rustix::process::getrlimit(resource).maximum;
        let most = hard.map_or(most, |hard| most.min(hard));
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        setrlimit(resource, limit).map_err(|error| failed("set its limits", error))?;
    }
    // Where the processor is short, the service goes first, and with it everybody's page.
    stand_behind().map_err(|error| failed("stand behind the service", error))?;
    Ok(())
}

/// The newest version of Landlock that both this kernel and this program know.
pub(super) fn landlock_version() -> Option<u32> {
    let is_known = |abi: &ABI| {
        let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let mut rules = rules.handle_access(AccessFs::from_all(*abi));
        if *abi >= ABI::V4 {
            rules = rules.and_then(|rules| rules.handle_access(AccessNet::from_all(*abi)));
        }
        if *abi >= ABI::V6 {
            rules = rules.and_then(|rules| rules.scope(Scope::from_all(*abi)));
        }
        rules.and_then(Ruleset::create).is_ok()
    };
    let newest = (1..=RULES as i32).rev().map(ABI::from).find(is_known);
    newest.map(|abi| abi as u32)
}
