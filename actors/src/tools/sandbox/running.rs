//! A command under way, as the service holds it.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

#[cfg(target_os = "linux")]
use super::SumLimits;
#[cfg(target_os = "linux")]
use super::sums::{Counting, Sums};
use super::{Job, SUBCOMMAND, Streams};

/// As much as a report has.
const REPORT_BYTES: u64 = 16 * 1024;

/// How long a supervisor may take to end everyone.
const END_PATIENCE: Duration = Duration::from_secs(12);

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
}

/// A command and all that it started. Dropping it closes the supervisor's socket, which ends
/// them all.
#[derive(Debug)]
pub struct Running {
    socket: UnixStream,
    /// Standard output, or both streams as one. At its end when everyone who wrote to it is gone.
    pub output: pipe::Receiver,
    /// Standard error, where it is apart.
    pub errors: Option<pipe::Receiver>,
    supervisor: Child,
    #[cfg(target_os = "linux")]
    counting: Option<Counting>,
}

impl Running {
    pub(super) async fn start(program: &Path, job: &Job, streams: Streams) -> io::Result<Self> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (output, writer) = io::pipe()?;
        let (errors, error_writer) = match streams {
            Streams::Merged => (None, writer.try_clone()?),
            Streams::Apart => {
                let (errors, writer) = io::pipe()?;
                (Some(errors), writer)
            }
        };
        let supervisor = Command::new(program)
            .args([SUBCOMMAND, "supervise"])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(OwnedFd::from(writer)))
            .stderr(Stdio::from(OwnedFd::from(error_writer)))
            .spawn()?;
        let mut running = Self {
            socket: UnixStream::from_std(ours)?,
            output: pipe::Receiver::from_owned_fd(output.into())?,
            errors: errors
                .map(|errors| pipe::Receiver::from_owned_fd(errors.into()))
                .transpose()?,
            supervisor,
            #[cfg(target_os = "linux")]
            counting: None,
        };
        let mut line = serde_json::to_vec(job)?;
        line.push(b'\n');
        running.socket.write_all(&line).await?;
        Ok(running)
    }

    /// Counts what it uses with what its session's other commands use.
    #[cfg(target_os = "linux")]
    pub(super) fn count(
        &mut self,
        sums: &Sums,
        limits: SumLimits,
        session: PathBuf,
    ) -> io::Result<()> {
        let Some(pid) = self.pid().and_then(|pid| i32::try_from(pid).ok()) else {
            // It is over already.
            return Ok(());
        };
        let tells = StdUnixStream::from(self.socket.as_fd().try_clone_to_owned()?);
        self.counting = Some(sums.count(limits, session, pid, tells));
        Ok(())
    }

    /// The supervisor's process.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.supervisor.id()
    }

    /// Ends it and all that it started, and waits until they are gone.
    pub async fn end(&mut self) -> Report {
        // An error means that the supervisor is gone.
        let _ = self.socket.shutdown().await;
        let gone = tokio::time::timeout(END_PATIENCE, self.ended()).await;
        gone.unwrap_or_else(|_| Report::failed("it does not end".to_owned()))
    }

    /// The same, for this reason.
    pub async fn end_because(&mut self, why: String) -> Report {
        Report {
            cut: Some(why),
            ..self.end().await
        }
    }

    /// Waits for the end. Its output is to be read first, or the pipe may be full for ever.
    pub async fn ended(&mut self) -> Report {
        let mut text = String::new();
        let mut report = (&mut self.socket).take(REPORT_BYTES);
        let report = match report.read_to_string(&mut text).await {
            Ok(_) => serde_json::from_str(text.trim_end()).ok(),
            Err(_) => None,
        };
        // It ends right after its report.
        let _ = self.supervisor.wait().await;
        #[cfg(target_os = "linux")]
        {
            self.counting = None;
        }
        report.unwrap_or_else(|| Report::failed("the sandbox ended without a word".to_owned()))
    }
}
