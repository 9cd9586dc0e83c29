//! Which calls of the kernel a command is refused (seccomp). They are written by their names, which
//! the library knows the numbers of.

use std::error::Error;

use seccompiler::{BpfProgram, TargetArch, apply_filter, compile_from_json, sock_filter};
use serde::Serialize;
use serde_json::{Value, json};

use super::Job;

/// The last call that was weighed, and that the library knows: newer ones do not exist for
/// commands. So do those of x32, which have numbers of their own, far above.
const LAST_KNOWN: u32 = 462;

const SUID_AND_SGID: [u32; 2] = [0o4000, 0o2000];

/// From here on these hold.
pub(super) fn deny(filters: &[BpfProgram]) -> seccompiler::Result<()> {
    filters.iter().try_for_each(|filter| apply_filter(filter))
}

/// What holds a command is no error of its own making: it gets `EPERM`, or where programs know a
/// way around `ENOSYS`, or what a file system says that lacks the call.
pub(super) fn filters(job: &Job) -> Result<[BpfProgram; 4], String> {
    let filter = |rules: &[Value], errno| {
        filter(rules, errno)
            .map_err(|error| format!("cannot make the filters of system calls: {error}"))
    };
    Ok([
        filter(&forbidden(job), libc::EPERM)?,
        filter(&whole(&MISSING), libc::ENOSYS)?,
        filter(&whole(&[AT_ONCE]), libc::EOPNOTSUPP)?,
        newer_than_known(),
    ])
}

fn filter(rules: &[Value], errno: i32) -> Result<BpfProgram, Box<dyn Error>> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = json!({
        "mismatch_action": "allow",
        "match_action": {"errno": errno},
        "filter": rules,
    });
    let filters = json!({ "filter": filter }).to_string();
    let made = compile_from_json(filters.as_bytes(), arch)?.remove("filter");
    made.ok_or_else(|| "none was made".into())
}

/// Refuses a call where all of these are so.
fn rule<const N: usize>(call: &str, conditions: [Value; N]) -> Value {
    let conditions = Value::from(Vec::from(conditions));
    json!({"syscall": call, "args": conditions})
}

fn when(argument: u8, operator: impl Serialize, value: impl Serialize) -> Value {
    json!({"index": argument, "type": "dword", "op": operator, "val": value})
}

fn when_masked(argument: u8, mask: i32, value: i32) -> Value {
    when(argument, json!({ "masked_eq": mask }), value)
}

fn when_set(argument: u8, bits: impl Serialize + Copy) -> Value {
    when(argument, json!({ "masked_eq": bits }), bits)
}

/// Calls that are refused whatever their arguments are.
fn whole(calls: &[&str]) -> Vec<Value> {
    let calls = calls.iter().flat_map(|names| names.split_whitespace());
    calls.map(|call| json!({"syscall": call})).collect()
}

fn forbidden(job: &Job) -> Vec<Value> {
    let mut rules = whole(&ALWAYS);
    if job.order.program.is_empty() {
        rules.extend(whole(&["execve execveat"]));
    }
    // Typing into the terminal that it shares, for the shell that comes after it.
    let mut requests = vec![libc::TIOCSTI, libc::TIOCLINUX];
    if job.deny_signals {
        rules.extend(whole(&[SIGNALS]));
        // The kernel signals whoever was made the owner of a file.
        requests.extend([FIOSETOWN, SIOCSPGRP]);
        let owning = [libc::F_SETOWN, F_SETOWN_EX];
        rules.extend(owning.map(|owning| rule("fcntl", [when(1, "eq", owning)])));
    }
    let requests = requests.into_iter();
    rules.extend(requests.map(|request| rule("ioctl", [when(1, "eq", request)])));
    // A pair of connected sockets reaches nobody else. One of datagrams could be connected to
    // another address later.
    rules.push(rule("socketpair", [when(0, "ne", libc::AF_UNIX)]));
    let kinds = [libc::SOCK_DGRAM, libc::SOCK_RAW];
    rules.extend(kinds.map(|kind| rule("socketpair", [when_masked(1, 0xf, kind)])));
    rules.extend(NAMESPACES.map(|one| rule("clone", [when_set(0, one)])));
    // A program that would run with its owner's rights for whoever starts it.
    for (call, mode) in MODES {
        rules.extend(SUID_AND_SGID.map(|bit| rule(call, [when_set(mode, bit)])));
    }
    if !job.namespaces {
        // The pace of other programs of its user, which it could see there.
        rules.extend(PACE.map(|(call, target)| rule(call, [when(target, "ne", 0)])));
    }
    if job.deny_truncate {
        rules.extend(whole(&["truncate"]));
    }
    // Where they make no file, their mode is whatever stands there.
    for (call, flags) in [("openat", 2), ("open", 1)] {
        if job.deny_truncate {
            // Emptying a file without opening it for writing, which is all that is held.
            let both = libc::O_ACCMODE | libc::O_TRUNC;
            let accesses = [libc::O_RDONLY, libc::O_ACCMODE].map(|access| libc::O_TRUNC | access);
            rules.extend(accesses.map(|access| rule(call, [when_masked(flags, both, access)])));
        }
        for making in [libc::O_CREAT, TMPFILE] {
            let making = when_set(flags, making);
            let with = |bit| rule(call, [making.clone(), when_set(flags + 1, bit)]);
            rules.extend(SUID_AND_SGID.map(with));
        }
    }
    // Its own limits, and not those of its user's other programs.
    rules.push(rule("prlimit64", [when(0, "ne", 0)]));
    if !cfg!(target_arch = "x86_64") {
        rules.retain(|rule| !X86_ALONE.split(' ').any(|call| rule["syscall"] == call));
    }
    rules
}

/// Built by hand: a comparison of the call's number itself is not in the library's language.
fn newer_than_known() -> BpfProgram {
    let instruction = |code: u32, jf, k| sock_filter {
        code: code as u16,
        jt: 0,
        jf,
        k,
    };
    let refused = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
    vec![
        // The call's number.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K, 1, LAST_KNOWN),
        instruction(libc::BPF_RET | libc::BPF_K, 0, refused),
        instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

const FIOSETOWN: libc::Ioctl = 0x8901;
const SIOCSPGRP: libc::Ioctl = 0x8902;
const F_SETOWN_EX: i32 = 15;
/// `O_TMPFILE` without `O_DIRECTORY`, which stands in it.
const TMPFILE: i32 = 0x40_0000;

const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Calls that set a mode, with the argument that has it.
const MODES: [(&str, u8); 9] = [
    ("chmod", 1),
    ("creat", 1),
    ("fchmod", 1),
    ("fchmodat", 2),
    ("fchmodat2", 2),
    ("mkdir", 1),
    ("mkdirat", 2),
    ("mknod", 1),
    ("mknodat", 2),
];

/// With the argument that says whose pace is meant: 0 for its own.
const PACE: [(&str, u8); 6] = [
    ("setpriority", 1),
    ("ioprio_set", 1),
    ("sched_setparam", 0),
    ("sched_setscheduler", 0),
    ("sched_setattr", 0),
    ("sched_setaffinity", 0),
];

const SIGNALS: &str = "kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal";

/// Programs do without these.
const MISSING: [&str; 3] = [
    // Its flags stand in memory, where no filter sees them; so do those of openat2.
    "clone3 openat2",
    // Memory without an owner that the limits would count it for.
    "memfd_create memfd_secret",
    "io_uring_setup io_uring_enter io_uring_register",
];

/// Takes a whole disk between two looks at it. Many file systems do without; who wants a file's
/// place beforehand writes zeros then.
const AT_ONCE: &str = "fallocate";

const ALWAYS: [&str; 8] = [
    // The network, and every other program's sockets.
    "socket connect bind listen accept accept4",
    // Other programs' memory, files and ends.
    "ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp move_pages \
     migrate_pages",
    // What programs of one user share beside files.
    "shmget shmat shmctl msgget msgsnd msgrcv msgctl semget semop semtimedop semctl mq_open \
     mq_unlink keyctl add_key request_key",
    // Another view of the file system.
    "mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick \
     mount_setattr unshare setns name_to_handle_at open_by_handle_at fanotify_init fanotify_mark \
     quotactl quotactl_fd",
    // Owners and attributes of files, which Landlock does not hold.
    "chown lchown fchownat setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr",
    // The kernel itself.
    "bpf perf_event_open userfaultfd kexec_load kexec_file_load init_module finit_module \
     delete_module reboot swapon swapoff acct syslog personality vhangup lookup_dcookie nfsservctl",
    // The machine's name and clock.
    "sethostname setdomainname settimeofday clock_settime clock_adjtime adjtimex",
    // What programs of another time needed.
    "iopl ioperm modify_ldt uselib _sysctl",
];

/// What other machines do not have.
const X86_ALONE: &str =
    "_sysctl chmod chown creat ioperm iopl lchown mkdir mknod modify_ldt open uselib";
