//! A command under way, as the service holds it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use super::sums::Counting;
use super::{FAILED, Job, SUBCOMMAND, SandboxConfig, Streams};
use crate::programs::{self, Bounds, Cut, Tail};

/// As much as a report has.
const REPORT_BYTES: u64 = 16 * 1024;

/// How long a supervisor may take to end everyone.
const END_PATIENCE: Duration = Duration::from_secs(12);

/// What shells add to the number of a signal that ended a program.
const BY_SIGNAL: i32 = 128;

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Its exit code, where it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why the supervisor ended it, or that it could not be started.
    pub cut: Option<String>,
}

impl Report {
    pub(super) fn failed(why: String) -> Self {
        Self {
            cut: Some(why),
            ..Self::default()
        }
    }

    /// As shells tell it.
    pub fn exit_code(&self) -> u8 {
        let by_signal = self.signal.map(|signal| BY_SIGNAL + signal);
        let code = self.code.or(by_signal);
        code.and_then(|code| u8::try_from(code).ok())
            .unwrap_or(FAILED)
    }
}

/// A command and all that it started. Dropping it closes the supervisor's socket, which ends
/// them all.
#[derive(Debug)]
pub struct Running {
    socket: UnixStream,
    /// Standard output, or both streams as one. At its end when everyone who wrote to it is gone.
    pub output: pipe::Receiver,
    /// Standard error, where it is apart.
    errors: Option<pipe::Receiver>,
    supervisor: Child,
    _counting: Option<Counting>,
}

impl Running {
    pub(super) async fn start(config: &SandboxConfig, job: &Job) -> io::Result<Self> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (output, writer) = io::pipe()?;
        let (errors, error_writer) = match job.order.streams {
            Streams::Merged => (None, writer.try_clone()?),
            Streams::Apart => {
                let (errors, writer) = io::pipe()?;
                let errors = pipe::Receiver::from_owned_fd(errors.into())?;
                (Some(errors), writer)
            }
        };
        let supervisor = Command::new(&config.program)
            .args([SUBCOMMAND, "supervise"])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(OwnedFd::from(writer)))
            .stderr(Stdio::from(OwnedFd::from(error_writer)))
            .spawn()?;
        let mut line = serde_json::to_vec(job)?;
        line.push(b'\n');
        let tells = ours.try_clone()?;
        let mut socket = UnixStream::from_std(ours)?;
        socket.write_all(&line).await?;
        // None where it is over already.
        let pid = supervisor.id().and_then(|pid| i32::try_from(pid).ok());
        let session = job.order.scratch.clone();
        Ok(Self {
            socket,
            output: pipe::Receiver::from_owned_fd(output.into())?,
            errors,
            supervisor,
            _counting: pid.map(|pid| config.sums.count(config.sum_limits, session, pid, tells)),
        })
    }

    /// Shows its output to its end, within bounds: beyond them it is ended. Gives back the last
    /// of its errors, too.
    pub async fn read(
        mut self,
        bounds: Bounds,
        show: impl FnMut(&[u8]) -> usize,
    ) -> (Report, Option<Cut>, Tail) {
        let errors = self.errors.take();
        let (tail, read) = programs::follow(&mut self.output, errors, bounds, show).await;
        let report = match read {
            Ok(()) => self.ended().await,
            Err(_) => self.end().await,
        };
        (report, read.err(), tail)
    }

    /// Ends it and all that it started, and waits until they are gone.
    pub async fn end(mut self) -> Report {
        // An error means that the supervisor is gone.
        let _ = self.socket.shutdown().await;
        let gone = tokio::time::timeout(END_PATIENCE, self.ended()).await;
        gone.unwrap_or_else(|_| Report::failed("it does not end".to_owned()))
    }

    /// Waits for the end. Its output is to be read first, or the pipe may be full for ever.
    pub async fn ended(mut self) -> Report {
        let report = report_from(&mut self.socket).await;
        // It ends right after its report.
        let _ = self.supervisor.wait().await;
        report.unwrap_or_else(|| Report::failed("the sandbox ended without a word".to_owned()))
    }
}

/// What the supervisor says last. It may go while something is on its way to it: that is an error
/// here, after all that it said.
async fn report_from(socket: &mut UnixStream) -> Option<Report> {
    let mut said = Vec::new();
    let _ = socket.take(REPORT_BYTES).read_to_end(&mut said).await;
    serde_json::from_slice(&said).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_report_is_read_although_its_author_was_told_more() {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let report = Report::failed("it used too much".to_owned());
        let line = serde_json::to_string(&report).unwrap();
        theirs.write_all(line.as_bytes()).await.unwrap();
        ours.write_all(b"too much\n").await.unwrap();
        drop(theirs);
        assert_eq!(report_from(&mut ours).await, Some(report));
    }
}
