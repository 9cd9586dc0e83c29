//! The supervisor: it starts the process that becomes the command, keeps everyone who descends
//! from it within the limits, and ends them all when the command ends, or when whoever asked
//! for it goes.

use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use rustix::process::{WaitOptions, wait};
use tokio::signal::unix::{SignalKind, signal};

use super::running::Report;
use super::{FAILED, Job, Limits, SUBCOMMAND, processes};

/// How often the tree is measured.
const LOOK: Duration = Duration::from_millis(100);

/// This very program, even where its file was replaced meanwhile.
const OURSELVES: &str = "/proc/self/exe";

/// Why the tree is ended before its time; the first reason stays.
type Cut = Arc<OnceLock<String>>;

/// Carries out the job that comes as one line of JSON over the socket on standard input, writes
/// a report there, and ends with the exit code of the command. The socket's end ends the tree.
pub(super) fn for_service() -> u8 {
    // Away from the terminal of the service: its keys are not for us.
    let _ = rustix::process::setsid();
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned() else {
        return FAILED;
    };
    let socket = UnixStream::from(socket);
    let Ok(mut reports) = socket.try_clone() else {
        return FAILED;
    };
    let mut asked = BufReader::new(socket);
    let mut line = String::new();
    let job = match asked
        .read_line(&mut line)
        .map(|_| serde_json::from_str(&line))
    {
        Ok(Ok(job)) => job,
        _ => return FAILED,
    };
    let cut = Cut::default();
    let asked_to_end = Arc::clone(&cut);
    thread::spawn(move || {
        // Nothing more is ever said: this waits for the other side to go.
        let _ = asked.read(&mut [0]);
        end_early(&asked_to_end, "it was stopped");
    });
    let report = carry_out(job, &cut, true);
    if let Ok(mut line) = serde_json::to_vec(&report) {
        line.push(b'\n');
        // The service may be gone.
        let _ = reports.write_all(&line);
    }
    report
        .code
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(FAILED)
}

/// Carries out a job in this process, with its own standard input and output, for
/// `navi sandbox`.
#[must_use]
pub fn in_foreground(job: Job) -> Report {
    carry_out(job, &Cut::default(), false)
}

fn carry_out(job: Job, cut: &Cut, apart: bool) -> Report {
    let limits = job.policy.inside.then_some(job.limits);
    let me = rustix::process::getpid();
    if let Err(error) = rustix::process::set_child_subreaper(Some(me)) {
        return Report::failed(format!("orphans cannot be kept: {error}"));
    }
    let own = match start(job, apart) {
        Ok(own) => own,
        Err(error) => return Report::failed(format!("the sandbox cannot be started: {error}")),
    };
    if cut.get().is_some() {
        // It was asked to end before there was anything to end.
        processes::end_all(|| true);
    }
    let heeds = Arc::clone(cut);
    thread::spawn(move || heed_signals(&heeds));
    if let Some(limits) = limits {
        let cut = Arc::clone(cut);
        thread::spawn(move || keep_within(limits, &cut));
    }
    let mut report = Report::default();
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == own => {
                report.code = status.exit_status();
                report.signal = status.terminating_signal();
                break;
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    // Whoever it left behind.
    processes::end_all(processes::reap);
    report.cut = cut.get().cloned();
    report
}

fn start(job: Job, apart: bool) -> io::Result<i32> {
    let policy = serde_json::to_string(&job.policy)?;
    let mut command = Command::new(OURSELVES);
    command
        .arg0("navi-sandbox")
        .args([SUBCOMMAND, "confine", &policy])
        .env_clear()
        .envs(&job.environment);
    match (&job.input, apart) {
        (Some(_), _) => command.stdin(Stdio::piped()),
        (None, true) => command.stdin(Stdio::null()),
        (None, false) => command.stdin(Stdio::inherit()),
    };
    let mut child = command.spawn()?;
    if let (Some(input), Some(mut stdin)) = (job.input, child.stdin.take()) {
        thread::spawn(move || {
            // It may end without reading it all.
            let _ = stdin.write_all(input.as_bytes());
        });
    }
    // Its end is awaited among everyone's.
    Ok(i32::try_from(child.id()).unwrap_or_default())
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
        let (Ok(mut end), Ok(mut hangup), Ok(mut interrupt), Ok(mut quit)) = (
            signal(SignalKind::terminate()),
            signal(SignalKind::hangup()),
            signal(SignalKind::interrupt()),
            signal(SignalKind::quit()),
        ) else {
            return;
        };
        loop {
            tokio::select! {
                _ = end.recv() => break,
                _ = hangup.recv() => break,
                _ = interrupt.recv() => {}
                _ = quit.recv() => {}
            }
        }
        end_early(cut, "it was ended by a signal");
    });
}

/// Ends a tree that takes more than it may: the kernel's own limits are each process's.
fn keep_within(limits: Limits, cut: &Cut) {
    loop {
        thread::sleep(LOOK);
        let used = processes::usage();
        if used.resident_bytes > limits.memory_bytes {
            let most = limits.memory_bytes >> 20;
            end_early(cut, &format!("it used more than its {most} MB of memory"));
        }
        if used.threads > limits.processes {
            let most = limits.processes;
            end_early(cut, &format!("it started more than its {most} processes"));
        }
    }
}
