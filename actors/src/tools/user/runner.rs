//! How a tool's program is run: the seam between user tools and the sandbox.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use crate::protocol::tool::Effect;

/// As much of standard error as is kept: its end.
const STDERR_TAIL: usize = 4 * 1024;

/// A program that another thread of ours was just writing is busy for a moment.
const BUSY_TRIES: u32 = 10;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// How long output is waited for when the program has ended: it is in the pipe by then.
const LINGER: Duration = Duration::from_millis(500);

/// A program to run, with everything that it gets.
#[derive(Clone, Debug)]
pub struct Job {
    /// Absolute.
    pub program: PathBuf,
    pub args: Vec<String>,
    /// Where it runs, and may write.
    pub cwd: PathBuf,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    pub stdin: Vec<u8>,
    /// What it must be able to read beside the system's own programs and `cwd`.
    pub readable: Vec<PathBuf>,
    /// What it declares that it does.
    pub effect: Effect,
    pub limits: JobLimits,
}

/// How far a job may go.
#[derive(Clone, Copy, Debug)]
pub struct JobLimits {
    pub time: Duration,
    /// More than this on standard output ends it.
    pub stdout_bytes: usize,
}

/// How a job ended.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// None where a signal or a limit ended it.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    /// The end of standard error.
    pub stderr: Vec<u8>,
    pub timed_out: bool,
    pub flooded: bool,
}

/// Runs programs. Dropping the future ends the program and whatever it started.
#[async_trait]
pub trait Runner: Send + Sync + Debug + 'static {
    /// Whether a program that declares this effect is held to it, or to changing the session's
    /// folder at most: to its job's folders, and without a network where it has none.
    fn holds(&self, effect: Effect) -> bool;

    /// Runs a job to its end.
    ///
    /// # Errors
    /// It could not be started.
    async fn run(&self, job: Job) -> io::Result<Ended>;
}

/// Runs a program as a child in a process group of its own, with a time limit and bounded
/// output, and with nothing to hold it: it may do whatever its owner may.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainRunner;

#[async_trait]
impl Runner for PlainRunner {
    fn holds(&self, _: Effect) -> bool {
        false
    }

    async fn run(&self, job: Job) -> io::Result<Ended> {
        let mut child = spawn(&job).await?;
        let _group = GroupGuard::new(child.id());
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut ended = Ended::default();
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        let how = {
            let most = job.limits.stdout_bytes;
            let streams = async {
                let read = async {
                    let flooded = read_up_to(stdout, &mut out, most).await;
                    if flooded { Err(Flooded) } else { Ok(()) }
                };
                let tail = async {
                    keep_tail(stderr, &mut errors).await;
                    Ok(())
                };
                let feed = async {
                    if let Some(mut stdin) = stdin {
                        // A program may answer without reading what it was sent.
                        let _ = stdin.write_all(&job.stdin).await;
                    }
                    Ok(())
                };
                tokio::try_join!(read, tail, feed).map(|_| ())
            };
            tokio::pin!(streams);
            let limit = tokio::time::Instant::now() + job.limits.time;
            tokio::select! {
                told = &mut streams => match told {
                    Err(Flooded) => How::Flooded,
                    Ok(()) => match tokio::time::timeout_at(limit, child.wait()).await {
                        Ok(status) => How::Exited(status?),
                        Err(_) => How::TimedOut,
                    },
                },
                // What it started may hold its streams open for ever: its own end counts.
                status = child.wait() => {
                    let status = status?;
                    match tokio::time::timeout(LINGER, &mut streams).await {
                        Ok(Err(Flooded)) => How::Flooded,
                        Ok(Ok(())) | Err(_) => How::Exited(status),
                    }
                }
                () = tokio::time::sleep_until(limit) => How::TimedOut,
            }
        };
        match how {
            How::Exited(status) => ended.code = status.code(),
            How::Flooded => ended.flooded = true,
            How::TimedOut => ended.timed_out = true,
        }
        ended.stdout = out;
        ended.stderr = errors;
        Ok(ended)
    }
}

/// It wrote more than its limit.
pub(super) struct Flooded;

enum How {
    Exited(std::process::ExitStatus),
    Flooded,
    TimedOut,
}

async fn spawn(job: &Job) -> io::Result<Child> {
    let mut command = Command::new(&job.program);
    command
        .args(&job.args)
        .current_dir(&job.cwd)
        .env_clear()
        .envs(job.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let mut tries = 0;
    loop {
        match command.spawn() {
            Err(error)
                if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES =>
            {
                tries += 1;
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            spawned => return spawned,
        }
    }
}

/// Tells whether there was more than the limit.
pub(super) async fn read_up_to(
    stream: Option<impl AsyncRead + Unpin>,
    into: &mut Vec<u8>,
    limit: usize,
) -> bool {
    let Some(stream) = stream else { return false };
    // A stream that breaks off has ended.
    let _ = stream.take(limit as u64 + 1).read_to_end(into).await;
    let flooded = into.len() > limit;
    into.truncate(limit);
    flooded
}

/// Reads to the end and keeps the last of it.
pub(super) async fn keep_tail(stream: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) {
    let Some(mut stream) = stream else { return };
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        into.extend_from_slice(&buffer[..count]);
        let too_much = into.len().saturating_sub(STDERR_TAIL);
        into.drain(..too_much);
    }
}

/// Ends a process group when it goes: the program, and what it started and left behind.
#[derive(Debug)]
pub(crate) struct GroupGuard(Option<i32>);

/// The groups that live, for an end of the service that drops nothing.
static LIVING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
/// As many as are kept: more than limits elsewhere let there be.
const MAX_LIVING: usize = 4096;

fn living() -> MutexGuard<'static, BTreeSet<i32>> {
    LIVING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GroupGuard {
    /// Of the process that leads the group; none where it is gone already.
    pub(crate) fn new(leader: Option<u32>) -> Self {
        let group = leader.and_then(|id| i32::try_from(id).ok());
        let mut living = living();
        if living.len() < MAX_LIVING {
            living.extend(group);
        }
        Self(group)
    }
}

impl Drop for GroupGuard {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            kill(group);
            living().remove(&group);
        }
    }
}

/// Ends every process group that a guard holds, right before an end of the service at which
/// nothing is dropped.
pub fn end_groups() {
    for group in std::mem::take(&mut *living()) {
        kill(group);
    }
}

fn kill(group: i32) {
    if let Some(group) = Pid::from_raw(group) {
        // It is gone already, as a rule.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::os::unix::process::CommandExt as _;

    use super::*;

    #[test]
    fn a_group_is_known_while_it_lives_and_ends_with_its_guard() {
        let mut command = std::process::Command::new("sleep");
        let mut child = command.arg("300").process_group(0).spawn().unwrap();
        let group = i32::try_from(child.id()).unwrap();
        let guard = GroupGuard::new(Some(child.id()));
        assert!(living().contains(&group));
        drop(guard);
        assert!(!living().contains(&group));
        assert!(!child.wait().unwrap().success());
    }
}
