//! The supervisor: it starts the process that becomes the command, keeps everyone who descends
//! from it within the limits, and ends them all when the command ends, or when whoever asked
//! for it goes.

use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::signal::unix::{SignalKind, signal};

use super::disk::Disk;
use super::policy::POLICY;
use super::running::Report;
use super::{FAILED, Job, Limits, SUBCOMMAND, init, processes};
use crate::programs::SPARING_ALLOCATOR;

/// How often the tree is measured.
const LOOK: Duration = Duration::from_millis(100);

/// This very program, even where its file was replaced meanwhile.
pub(super) const OURSELVES: &str = "/proc/self/exe";

/// As much as is said of a command's end.
const REPORT_BYTES: usize = 256;

/// Why the tree is ended before its time; the first reason stays.
type Cut = Arc<OnceLock<String>>;

/// Carries out the job that comes as one line of JSON over the socket on standard input, writes
/// a report there, and ends with the exit code of the command. The socket's end ends the tree.
pub(super) fn for_service() -> u8 {
    // Away from the terminal of the service: its keys are not for us.
    let _ = rustix::process::setsid();
    let Ok((job, mut asked, mut reports)) = asked_for() else {
        return FAILED;
    };
    let cut = Cut::default();
    let asked_to_end = Arc::clone(&cut);
    thread::spawn(move || {
        // Why it has to end; nothing where the other side goes.
        let mut why = String::new();
        let _ = asked.read_line(&mut why);
        let why = if why.is_empty() {
            "it was stopped"
        } else {
            why.trim_end()
        };
        end_early(&asked_to_end, why);
    });
    let report = carry_out(job, &cut);
    if let Ok(mut line) = serde_json::to_vec(&report) {
        line.push(b'\n');
        // The service may be gone.
        let _ = reports.write_all(&line);
    }
    report.exit_code()
}

/// The job, where more is asked, and where its report goes.
fn asked_for() -> io::Result<(Job, impl BufRead, impl Write)> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let reports = socket.try_clone()?;
    let mut asked = BufReader::new(socket);
    let mut line = String::new();
    asked.read_line(&mut line)?;
    Ok((serde_json::from_str(&line)?, asked, reports))
}

/// Carries out a job in this process, with its own standard input and output, for
/// `navi sandbox`.
pub fn in_foreground(job: Job) -> Report {
    carry_out(job, &Cut::default())
}

fn carry_out(mut job: Job, cut: &Cut) -> Report {
    let limits = job.policy.inside.then_some(job.policy.limits);
    let disk = limits.map(|limits| {
        let disk = Disk::new(job.policy.write.clone(), limits.workspace);
        job.policy.limits.file_bytes = disk.file_bytes(limits.file_bytes);
        Arc::new(Mutex::new(disk))
    });
    let group = job.group.clone();
    let me = rustix::process::getpid();
    if let Err(error) = rustix::process::set_child_subreaper(Some(me)) {
        return Report::failed(format!("orphans cannot be kept: {error}"));
    }
    let (own, said) = match start(job) {
        Ok(started) => started,
        Err(error) => return Report::failed(format!("the sandbox cannot be started: {error}")),
    };
    if cut.get().is_some() {
        // It was asked to end before there was anything to end.
        processes::end_all(|| true);
    }
    let heeds = Arc::clone(cut);
    thread::spawn(move || heed_signals(&heeds));
    if let Some((limits, disk)) = limits.zip(disk.clone()) {
        let cut = Arc::clone(cut);
        thread::spawn(move || keep_within(limits, &disk, &cut));
    }
    let ended = init::wait_for(own);
    // Whoever it left behind.
    processes::end_all(processes::reap);
    let mut report = said.and_then(report_of).unwrap_or(ended);
    let by_kernel = group.and_then(|group| group.close());
    // What was quicker than the next look.
    let at_last = || disk.and_then(|disk| disk.lock().too_much_at_once());
    report.cut = cut.get().cloned().or(by_kernel).or_else(at_last);
    report
}

/// Starts the first process inside, and gives back its number and where it says how the command
/// ended.
fn start(job: Job) -> io::Result<(i32, Option<UnixStream>)> {
    let policy = serde_json::to_string(&job.policy)?;
    let role = if job.policy.namespaces {
        "enter-namespaces"
    } else {
        "confine"
    };
    let mut command = Command::new(OURSELVES);
    command
        .arg0("navi-sandbox")
        .args([SUBCOMMAND, role])
        .env_clear()
        .envs(&job.environment)
        .envs([SPARING_ALLOCATOR])
        .env(POLICY, policy);
    let said = if job.policy.over_socket {
        let (ours, theirs) = UnixStream::pair()?;
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        let mut input = ours.try_clone()?;
        thread::spawn(move || {
            // It may end without reading it all.
            let _ = input.write_all(job.input.unwrap_or_default().as_bytes());
            let _ = input.shutdown(Shutdown::Write);
        });
        Some(ours)
    } else {
        command.stdin(Stdio::inherit());
        None
    };
    let child = match job.group {
        Some(group) => group.start(|| command.spawn())?,
        None => command.spawn()?,
    };
    // Its end is awaited among everyone's.
    Ok((i32::try_from(child.id()).unwrap_or_default(), said))
}

/// What was said of the command's end; none where it could not be started, or was ended.
fn report_of(mut socket: UnixStream) -> Option<Report> {
    // Whoever could still say anything is gone.
    socket.set_nonblocking(true).ok()?;
    let mut said = [0; REPORT_BYTES];
    let length = socket.read(&mut said).ok()?;
    serde_json::from_slice(&said[..length]).ok()
}

fn end_early(cut: &Cut, why: &str) {
    let _ = cut.set(why.to_owned());
    processes::end_all(|| true);
}

/// An end by a signal is an end of the whole tree. The key for an interrupt reaches the command
/// by itself, where there is a terminal.
fn heed_signals(cut: &Cut) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    else {
        return;
    };
    runtime.block_on(async {
        let (Ok(mut end), Ok(mut hangup), Ok(_interrupt), Ok(_quit)) = (
            signal(SignalKind::terminate()),
            signal(SignalKind::hangup()),
            signal(SignalKind::interrupt()),
            signal(SignalKind::quit()),
        ) else {
            return;
        };
        tokio::select! {
            _ = end.recv() => {}
            _ = hangup.recv() => {}
        }
        end_early(cut, "it was ended by a signal");
    });
}

/// Ends a tree that takes more than it may: the kernel's own limits are each process's.
fn keep_within(limits: Limits, disk: &Mutex<Disk>, cut: &Cut) {
    loop {
        thread::sleep(LOOK);
        let used = processes::sum(&processes::descendants());
        if used.memory_bytes > limits.memory_bytes {
            let most = limits.memory_bytes >> 20;
            end_early(cut, &format!("it used more than its {most} MB of memory"));
        }
        if used.processes > limits.processes {
            let most = limits.processes;
            end_early(cut, &format!("it started more than its {most} processes"));
        }
        if let Some(why) = disk.lock().too_much() {
            end_early(cut, &why);
        }
    }
}
