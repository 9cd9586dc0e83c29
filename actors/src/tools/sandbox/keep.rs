//! The keeper: it stands between the service and a program that serves on its standard input
//! and output, and ends it, with everyone who descends from it, soon after the service is gone.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

use super::{FAILED, init, processes};

/// How long a program that is sent nothing any more may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// What lets root look into the memory and the environment of any process, and so of the service,
/// which closes its own to everybody else.
const OVER_OTHERS: [CapabilitySet; 3] = [
    CapabilitySet::SYS_PTRACE,
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::PERFMON,
];

/// Starts the program, hands on what it is sent, and ends with its exit code. What it says goes
/// to the service without a stop here.
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
            processes::end_all(|| true);
        });
    }
    let report = init::wait_for(&child);
    // Whoever it left behind.
    processes::end_all(processes::reap);
    report.exit_code()
}
