//! The command's parent inside: it starts the command, waits for it, takes the ends of everyone
//! who lost theirs, and says how the command ended.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::process::{Pid, WaitOptions, wait};

use super::Job;
use super::policy::JOB;
use super::running::Report;
use crate::programs::SPARING_ALLOCATOR;

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
