//! Parents that start a program and wait for its end among those of everyone who lost their own.
//!
//! The command's, inside, says how the command ended. The keeper stands between the service and a
//! program that serves on its standard input and output, and ends it, with everyone who descends
//! from it, soon after the service is gone.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, wait};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

use super::policy::JOB;
use super::running::Report;
use super::{FAILED, Job, processes};
use crate::programs::SPARING_ALLOCATOR;

/// How long a program that is sent nothing any more may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// What lets root look into the memory and the environment of any process, and so of the service,
/// which closes its own to everybody else.
const OVER_OTHERS: [CapabilitySet; 3] = [
    CapabilitySet::SYS_PTRACE,
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::PERFMON,
];

/// What the command reads, with the socket on which it came and how it ended is told.
pub(super) type Sent = (Vec<u8>, UnixStream);

/// Reads what was sent, before anything is given up; none where the command has the standard
/// input that there is.
pub(super) fn sent(job: &Job) -> Result<Option<Sent>, String> {
    let read = || -> io::Result<Sent> {
        let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let mut bytes = Vec::new();
        // Its length is whoever sends it who bounds.
        socket.read_to_end(&mut bytes)?;
        Ok((bytes, socket))
    };
    let sent = job.over_socket.then(read).transpose();
    sent.map_err(|error| format!("cannot read what the command is given: {error}"))
}

/// Starts the command, and waits for its end.
pub(super) fn run(job: &Job, sent: Option<Sent>) -> Result<u8, String> {
    let mut command = Command::new(&job.order.program);
    command
        .args(&job.order.args)
        .current_dir(&job.order.directory)
        .env_remove(JOB)
        .env_remove(SPARING_ALLOCATOR.0)
        .stdin(match &sent {
            Some((bytes, _)) if bytes.is_empty() => Stdio::null(),
            Some(_) => Stdio::piped(),
            None => Stdio::inherit(),
        });
    let mut child = command.spawn().map_err(|error| why_not(job, &error))?;
    let (bytes, socket) = sent.unzip();
    if let (Some(mut stdin), Some(bytes)) = (child.stdin.take(), bytes) {
        thread::spawn(move || {
            // It may end without reading it all.
            let _ = stdin.write_all(&bytes);
        });
    }
    let report = wait_for(&child);
    if let (Some(mut socket), Ok(line)) = (socket, serde_json::to_vec(&report)) {
        // The supervisor may be gone.
        let _ = socket.write_all(&line);
    }
    Ok(report.exit_code())
}

/// Waits for the end of a child among those of everyone else.
pub(super) fn wait_for(child: &Child) -> Report {
    let own = Pid::from_child(child);
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == own => {
                return Report {
                    code: status.exit_status(),
                    signal: status.terminating_signal(),
                    cut: None,
                };
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Report::default(),
        }
    }
}

fn why_not(job: &Job, error: &io::Error) -> String {
    let (program, directory) = (&job.order.program, job.order.directory.display());
    match (error.kind(), &job.user) {
        (io::ErrorKind::NotFound, _) => {
            format!("there is no program {program}, or no directory {directory}")
        }
        (io::ErrorKind::PermissionDenied, Some(user)) if !job.namespaces => format!(
            "cannot run {program} in {directory}: {error}; the user {} has to be able to pass the folders above it: let others pass them with chmod o+x, or move them, such as with NAVI_DATA_DIR",
            user.name
        ),
        _ => format!("cannot run {program} in {directory}: {error}"),
    }
}

/// The keeper: starts the program, hands on what it is sent, and ends with its exit code. What it
/// says goes to the service without a stop here.
pub(super) fn keep(words: &[String]) -> u8 {
    let Some((program, args)) = words.split_first() else {
        return FAILED;
    };
    for right in OVER_OTHERS {
        // Who is not root has none, and an older kernel has fewer.
        let _ = remove_capability_from_bounding_set(right);
    }
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped());
    let started = processes::adopt_orphans().and_then(|()| command.spawn());
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            // The service tells it, and nothing can be done where it is gone.
            let _ = writeln!(io::stderr(), "`{program}` could not be started: {error}");
            return FAILED;
        }
    };
    if let Some(mut input) = child.stdin.take() {
        thread::spawn(move || {
            let mut sent = io::stdin().lock();
            let _ = io::copy(&mut sent, &mut input);
            drop(input);
            // It may have closed its input and go on: that is not the service's end.
            let _ = io::copy(&mut sent, &mut io::sink());
            thread::sleep(GRACE);
            processes::end_all();
        });
    }
    let report = wait_for(&child);
    // Whoever it left behind.
    processes::end_and_reap_all();
    report.exit_code()
}
