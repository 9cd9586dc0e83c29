//! Which calls of the kernel a command is refused (seccomp).

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter, sock_filter,
};

use super::policy::Policy;

/// The last call that was weighed: newer ones do not exist for commands. So do those of x32,
/// which have numbers of their own, far above.
const LAST_KNOWN: u32 = 469;

const SUID_AND_SGID: [u64; 2] = [0o4000, 0o2000];

/// From here on these hold.
pub(super) fn deny(filters: &[BpfProgram]) -> seccompiler::Result<()> {
    filters.iter().try_for_each(|filter| apply_filter(filter))
}

/// What holds a command is no error of its own making: it gets `EPERM`, or `ENOSYS` where
/// programs know a way around a call that is missing.
pub(super) fn filters(policy: &Policy) -> Result<[BpfProgram; 3], Box<dyn std::error::Error>> {
    Ok([
        filter(forbidden(policy)?, libc::EPERM)?,
        filter(whole(MISSING).collect(), libc::ENOSYS)?,
        newer_than_known(),
    ])
}

/// For a process that starts no other.
pub(super) fn no_programs() -> Result<BpfProgram, Box<dyn std::error::Error>> {
    let starting = whole([libc::SYS_execve, libc::SYS_execveat]);
    filter(starting.collect(), libc::EPERM)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn filter(rules: Rules, errno: i32) -> Result<BpfProgram, Box<dyn std::error::Error>> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let errno = SeccompAction::Errno(u32::try_from(errno)?);
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, errno, arch)?.try_into()?)
}

fn condition(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

/// A rule of one condition on an argument.
fn when(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![condition(argument, operator, value)?])
}

/// A rule for each of these values of an argument.
fn any_of(
    argument: u8,
    operator: fn(u64) -> SeccompCmpOp,
    values: impl IntoIterator<Item = u64>,
) -> Result<Vec<SeccompRule>, BackendError> {
    let rules = values.into_iter();
    rules
        .map(|value| when(argument, operator(value), value))
        .collect()
}

/// Calls that are refused whatever their arguments are.
fn whole(calls: impl IntoIterator<Item = i64>) -> impl Iterator<Item = (i64, Vec<SeccompRule>)> {
    calls.into_iter().map(|call| (call, Vec::new()))
}

fn forbidden(policy: &Policy) -> Result<Rules, BackendError> {
    let mut rules: Rules = whole(ALWAYS).collect();
    #[cfg(target_arch = "x86_64")]
    rules.extend(whole(ALWAYS_X86));
    let equal = |_: u64| SeccompCmpOp::Eq;
    // Typing into the terminal that it shares, for the shell that comes after it.
    let mut requests = vec![libc::TIOCSTI, TIOCLINUX];
    if policy.deny_signals {
        rules.extend(whole(SIGNALS));
        // The kernel signals whoever was made the owner of a file.
        requests.extend([FIOSETOWN, SIOCSPGRP]);
        let owning = [libc::F_SETOWN as u64, F_SETOWN_EX];
        rules.insert(libc::SYS_fcntl, any_of(1, equal, owning)?);
    }
    rules.insert(libc::SYS_ioctl, any_of(1, equal, requests)?);
    // A pair of connected sockets reaches nobody else. One of datagrams could be connected to
    // another address later.
    rules.insert(
        libc::SYS_socketpair,
        vec![
            when(0, SeccompCmpOp::Ne, libc::AF_UNIX as u64)?,
            when(1, SeccompCmpOp::MaskedEq(0xf), libc::SOCK_DGRAM as u64)?,
            when(1, SeccompCmpOp::MaskedEq(0xf), libc::SOCK_RAW as u64)?,
        ],
    );
    let namespaces = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    let namespaces = namespaces.map(|flag| flag as u64);
    let bits = SeccompCmpOp::MaskedEq;
    rules.insert(libc::SYS_clone, any_of(0, bits, namespaces)?);
    // A program that would run with its owner's rights for whoever starts it.
    let mut modes = vec![
        (libc::SYS_fchmod, 1),
        (libc::SYS_fchmodat, 2),
        (SYS_FCHMODAT2, 2),
        (libc::SYS_mknodat, 2),
        (libc::SYS_mkdirat, 2),
    ];
    // Where they make no file, their mode is whatever stands there.
    let mut opening = vec![(libc::SYS_openat, 2)];
    #[cfg(target_arch = "x86_64")]
    {
        modes.extend([
            (libc::SYS_chmod, 1),
            (libc::SYS_creat, 1),
            (libc::SYS_mknod, 1),
            (libc::SYS_mkdir, 1),
        ]);
        opening.push((libc::SYS_open, 1));
    }
    for (call, mode) in modes {
        rules.insert(call, any_of(mode, bits, SUID_AND_SGID)?);
    }
    if !policy.namespaces {
        // The pace of other programs of its user, which it could see there.
        for (call, target) in PACE {
            rules.insert(call, vec![when(target, SeccompCmpOp::Ne, 0)?]);
        }
    }
    if policy.deny_truncate {
        rules.insert(libc::SYS_truncate, Vec::new());
    }
    for (call, flags) in opening {
        let mut refused = Vec::new();
        if policy.deny_truncate {
            // Emptying a file without opening it for writing, which is all that is held.
            for access in [libc::O_RDONLY as u64, libc::O_ACCMODE as u64] {
                let both = bits((libc::O_ACCMODE | libc::O_TRUNC) as u64);
                refused.push(when(flags, both, libc::O_TRUNC as u64 | access)?);
            }
        }
        for making in [libc::O_CREAT as u64, TMPFILE] {
            for mode in SUID_AND_SGID {
                refused.push(SeccompRule::new(vec![
                    condition(flags, bits(making), making)?,
                    condition(flags + 1, bits(mode), mode)?,
                ])?);
            }
        }
        rules.insert(call, refused);
    }
    // Its own limits, and not those of its user's other programs.
    rules.insert(libc::SYS_prlimit64, vec![when(0, SeccompCmpOp::Ne, 0)?]);
    Ok(rules)
}

/// Programs do without these.
const MISSING: [i64; 7] = [
    // Its flags stand in memory, where no filter sees them; so do those of openat2.
    libc::SYS_clone3,
    libc::SYS_openat2,
    // Memory without an owner that the limits would count it for.
    libc::SYS_memfd_create,
    SYS_MEMFD_SECRET,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Built by hand: a comparison of the call's number itself is not in the library's language.
fn newer_than_known() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_GREATER: u16 = 0x25;
    const RETURN: u16 = 0x06;
    const ERRNO: u32 = 0x0005_0000;
    const ALLOW: u32 = 0x7fff_0000;
    const ENOSYS: u32 = 38;
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        instruction(LOAD_WORD, 0, 0, 0),
        instruction(JUMP_IF_GREATER, 0, 1, LAST_KNOWN),
        instruction(RETURN, 0, 0, ERRNO | ENOSYS),
        instruction(RETURN, 0, 0, ALLOW),
    ]
}

const TIOCLINUX: u64 = 0x541c;
const FIOSETOWN: u64 = 0x8901;
const SIOCSPGRP: u64 = 0x8902;
const F_SETOWN_EX: u64 = 15;
/// `O_TMPFILE` without `O_DIRECTORY`, which stands in it.
const TMPFILE: u64 = 0x40_0000;
// Newer than the C library's list on some systems; the numbers are the same on every machine.
const SYS_MEMFD_SECRET: i64 = 447;
const SYS_FCHMODAT2: i64 = 452;
const SYS_QUOTACTL_FD: i64 = 443;
const SYS_SETXATTRAT: i64 = 463;
const SYS_REMOVEXATTRAT: i64 = 466;
const SYS_OPEN_TREE_ATTR: i64 = 467;
const SYS_FILE_SETATTR: i64 = 469;

/// With the argument that says whose pace is meant: 0 for its own.
const PACE: [(i64, u8); 6] = [
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setaffinity, 0),
];

const SIGNALS: [i64; 6] = [
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
];

const ALWAYS: [i64; 83] = [
    // The network, and every other program's sockets.
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    // Other programs' memory, files and ends.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // What programs of one user share beside files.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Another view of the file system.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    SYS_OPEN_TREE_ATTR,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_quotactl,
    SYS_QUOTACTL_FD,
    // Owners and attributes of files, which Landlock does not hold.
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SYS_SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_personality,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    // The machine's name and clock.
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
];

#[cfg(target_arch = "x86_64")]
const ALWAYS_X86: [i64; 7] = [
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS__sysctl,
];
