//! The supervisor: it starts the process that becomes the command, keeps everyone who descends
//! from it within the limits, and ends them all when the command ends, or when whoever asked
//! for it goes.

use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::disk::Disk;
use super::policy::JOB;
use super::running::Report;
use super::{FAILED, Job, Limits, init, ourselves, processes};
use crate::background::let_session_stand_behind;
use crate::programs::SPARING_ALLOCATOR;

/// How often the tree is measured.
const LOOK: Duration = Duration::from_millis(100);

/// As much as is said of a command's end.
const REPORT_BYTES: usize = 256;

/// Why this process's tree is ended before its time; the first reason stays.
static CUT: OnceLock<String> = OnceLock::new();

/// Carries out the job that comes as one line of JSON over the socket on standard input, writes
/// a report there, and ends with the exit code of the command. The socket's end ends the tree.
pub(super) fn for_service() -> u8 {
    // Away from the terminal of the service: its keys are not for us.
    let _ = rustix::process::setsid();
    let Ok((job, mut asked, mut reports)) = asked_for() else {
        return FAILED;
    };
    thread::spawn(move || {
        // Why it has to end; nothing where the other side goes.
        let mut why = String::new();
        let _ = asked.read_line(&mut why);
        end_early(match why.trim_end() {
            "" => "it was stopped",
            why => why,
        });
    });
    let report = carry_out(job);
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

/// Carries out a job in this process, with its own standard output, and with its standard input
/// where that is no socket: for `navi sandbox`, too. One in the life of a process.
pub fn carry_out(mut job: Job) -> Report {
    let limits = job.is_inside().then_some(job.order.limits);
    let disk = limits.map(|limits| {
        let disk = Disk::new(job.writable(), limits.workspace);
        job.order.limits.file_bytes = disk.file_bytes(limits.file_bytes);
        Arc::new(Mutex::new(disk))
    });
    let group = job.group.clone();
    if let Err(error) = processes::adopt_orphans() {
        return Report::failed(format!("orphans cannot be kept: {error}"));
    }
    let (first, said) = match start(job) {
        Ok(started) => started,
        Err(error) => return Report::failed(format!("the sandbox cannot be started: {error}")),
    };
    if CUT.get().is_some() {
        // It was asked to end before there was anything to end.
        processes::end_all();
    }
    thread::spawn(heed_signals);
    if let Some((limits, disk)) = limits.zip(disk.clone()) {
        thread::spawn(move || keep_within(limits, &disk));
    }
    let ended = init::wait_for(&first);
    // Whoever it left behind.
    processes::end_and_reap_all();
    // What was said of the command's end; nothing where it could not be started, or was ended.
    let said = said.and_then(|mut socket| {
        // Whoever could still say anything is gone.
        socket.set_nonblocking(true).ok()?;
        let mut said = [0; REPORT_BYTES];
        let length = socket.read(&mut said).ok()?;
        serde_json::from_slice(&said[..length]).ok()
    });
    let mut report = said.unwrap_or(ended);
    let by_kernel = group.and_then(|group| group.close());
    // What was quicker than the next look.
    let at_last = || disk.and_then(|disk| disk.lock().too_much_at_once());
    report.cut = CUT.get().cloned().or(by_kernel).or_else(at_last);
    report
}

/// Starts the first process inside, and gives back where it says how the command ended, too.
fn start(mut job: Job) -> io::Result<(Child, Option<UnixStream>)> {
    let environment = std::mem::take(&mut job.order.environment);
    let input = job.order.input.take().unwrap_or_default();
    let mut command = ourselves(match job.namespaces {
        true => "enter-namespaces",
        false => "confine",
    });
    command
        .env_clear()
        .envs(environment)
        .envs([SPARING_ALLOCATOR])
        .env(JOB, serde_json::to_string(&job)?);
    let said = if job.over_socket {
        let (ours, theirs) = UnixStream::pair()?;
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        let mut sends = ours.try_clone()?;
        thread::spawn(move || {
            // It may end without reading it all.
            let _ = sends.write_all(input.as_bytes());
            let _ = sends.shutdown(Shutdown::Write);
        });
        Some(ours)
    } else {
        // It has the standard input that there is.
        None
    };
    let child = match job.group {
        Some(group) => group.start(|| command.spawn())?,
        None => command.spawn()?,
    };
    Ok((child, said))
}

fn end_early(why: &str) {
    let _ = CUT.set(why.to_owned());
    processes::end_all();
}

/// An end by a signal is an end of the whole tree. The key for an interrupt reaches the command
/// by itself, where there is a terminal.
fn heed_signals() -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut end = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let _interrupt = signal(SignalKind::interrupt())?;
        let _quit = signal(SignalKind::quit())?;
        tokio::select! {
            _ = end.recv() => {}
            _ = hangup.recv() => {}
        }
        end_early("it was ended by a signal");
        Ok(())
    })
}

/// Ends a tree that takes more than it may: the kernel's own limits are each process's.
fn keep_within(limits: Limits, disk: &Mutex<Disk>) {
    loop {
        thread::sleep(LOOK);
        let all = processes::descendants();
        // Again each time: who begins a session of their own begins with a full share.
        let pids = all.iter().map(|process| process.pid);
        pids.for_each(let_session_stand_behind);
        let used = processes::sum(&all);
        if used.memory_bytes > limits.memory_bytes {
            let most = limits.memory_bytes >> 20;
            end_early(&format!("it used more than its {most} MB of memory"));
        }
        if used.processes > limits.processes {
            let most = limits.processes;
            end_early(&format!("it started more than its {most} processes"));
        }
        if let Some(why) = disk.lock().too_much() {
            end_early(&why);
        }
    }
}
