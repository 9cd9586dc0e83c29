//! What this machine has to hold a command: tried, not read from its settings.

use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use super::policy::{JOB, Job};
use super::{SUBCOMMAND, is_absent, policy};

const NONE: &str = "the kernel gives no namespaces";

/// How long a look may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whether this program gets namespaces and a file system of its own. It is tried once in a
/// process: that takes two programs, and the kernel says the same the next time.
pub(super) fn namespaces(program: &Path) -> Result<(), String> {
    static TRIED: OnceLock<Result<(), String>> = OnceLock::new();
    TRIED.get_or_init(|| try_namespaces(program)).clone()
}

fn try_namespaces(program: &Path) -> Result<(), String> {
    refuse_if!(is_absent("FAILPOINT_NO_NAMESPACES"), "{NONE}");
    // The program of a test is no Navi.
    refuse_if!(cfg!(test), "not in a test");
    // It starts nothing.
    let mut job = Job {
        namespaces: true,
        ..Job::closed()
    };
    job.order.read = policy::readable(&[]);
    let tried = serde_json::to_string(&job)
        .map_err(io::Error::from)
        .and_then(|job| output_of(program, &job))
        .map_err(|error| format!("the sandbox cannot be tried: {error}"))?;
    if String::from_utf8_lossy(&tried.stdout).trim() == super::HOLDS {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&tried.stderr);
    let why = why.trim().trim_start_matches(super::FAILED_WORDS);
    refuse!("{}", if why.is_empty() { NONE } else { why })
}

fn output_of(program: &Path, job: &str) -> io::Result<Output> {
    let mut child = Command::new(program)
        .args([SUBCOMMAND, "enter-namespaces"])
        .env_clear()
        .env(JOB, job)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let began = Instant::now();
    while child.try_wait()?.is_none() {
        if began.elapsed() > PATIENCE {
            child.kill()?;
        }
        thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output()
}
