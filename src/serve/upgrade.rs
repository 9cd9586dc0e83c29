//! An upgrade in place: on SIGUSR2 this process stops at a safe point and becomes the program
//! that stands at its path by then, with the same process id and the same listening socket. A
//! connection that comes meanwhile waits in the socket's queue and is not refused.
//!
//! The socket is handed over as systemd hands sockets to services (`LISTEN_FDS`,
//! `sd_listen_fds(3)`), so Navi can be started by one of its socket units as well. It keeps its
//! number on the way, told in `LISTEN_FDS_FIRST_FD`: what stands at 3 here may be what a thread
//! of the runtime polls, and a thread that loses it panics before the next program is there.

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use command_fds::CommandFdExt as _;
use listenfd::ListenFd;
use nix::sys::signal::{SigSet, Signal};
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info, warn};

/// A program that can take over says its version within this.
const TRIAL_LIMIT: Duration = Duration::from_secs(10);

/// Takes SIGUSR2 away from its default, which ends the process: one that comes before
/// [`Requests`] are listened to asks for what is under way. To be called while there is one
/// thread: the others, and the programs that they start, take over what it blocks.
///
/// # Errors
/// Those of the system.
pub(crate) fn brace() -> anyhow::Result<()> {
    let take = || -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        // It stays registered without whoever listens.
        drop(runtime.block_on(async { signal(SignalKind::user_defined2()) })?);
        Ok(SigSet::from(Signal::SIGUSR2).thread_unblock()?)
    };
    take().context("the system does not let navi take the signal of upgrades, SIGUSR2")
}

/// The socket that was handed to this process, if one was.
pub(super) fn inherited() -> Option<TcpListener> {
    let listener = ListenFd::from_env().take_tcp_listener(0).ok().flatten()?;
    listener.set_nonblocking(true).ok()?;
    Some(listener)
}

/// What the next program is given.
#[derive(Debug)]
pub(super) struct Heirloom {
    listener: TcpListener,
    /// As it stood when this process began: the file there may be another one by now.
    program: PathBuf,
}

impl Heirloom {
    pub(super) fn of(listener: &TcpListener) -> anyhow::Result<Self> {
        Ok(Self {
            listener: listener.try_clone()?,
            program: program()?,
        })
    }

    /// Becomes the next program. Comes back only where that fails.
    pub(super) fn hand_over(self) -> anyhow::Error {
        let mut command = Command::new(&self.program);
        command
            .args(std::env::args_os().skip(1))
            .env("LISTEN_FDS", "1")
            .env("LISTEN_PID", std::process::id().to_string())
            .env("LISTEN_FDS_FIRST_FD", self.listener.as_raw_fd().to_string())
            .preserved_fds(vec![self.listener.into()]);
        // The next program begins with the default again; it unblocks the signal when it is ready.
        if let Err(error) = SigSet::from(Signal::SIGUSR2).thread_block() {
            return anyhow!(error)
                .context("SIGUSR2 cannot be held back; start navi again, runs go on then");
        }
        let error = command.exec();
        anyhow!(error).context(format!(
            "{} could not take over; start it again, runs go on then",
            self.program.display()
        ))
    }
}

fn program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("the program's own file is not known")
}

/// SIGUSR2 as it comes. Where it cannot be had, there is no upgrade in place.
pub(super) struct Requests(Option<(tokio::signal::unix::Signal, PathBuf)>);

impl Requests {
    pub(super) fn new() -> Self {
        let (Ok(signals), Ok(program)) = (signal(SignalKind::user_defined2()), program()) else {
            warn!("this process cannot be upgraded in place");
            return Self(None);
        };
        Self(Some((signals, program)))
    }

    /// Ends with a request where a program stands ready that can take over.
    pub(super) async fn next(&mut self) {
        let Some((signals, program)) = &mut self.0 else {
            return std::future::pending().await;
        };
        while signals.recv().await.is_some() {
            match trial(program).await {
                Ok(version) => {
                    info!(version, "a program stands ready to take over");
                    return;
                }
                Err(error) => error!(%error, "no upgrade: this program goes on"),
            }
        }
        std::future::pending::<()>().await;
    }
}

/// Whether the file at the path is a program that starts: its version.
async fn trial(program: &Path) -> anyhow::Result<String> {
    let arguments: [OsString; 1] = ["--version".into()];
    let output = tokio::process::Command::new(program)
        .args(arguments)
        // Its environment is open to other programs of this user.
        .env_clear()
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(TRIAL_LIMIT, output)
        .await
        .with_context(|| format!("{} does not say its version", program.display()))?
        .with_context(|| format!("{} cannot be run", program.display()))?;
    if !output.status.success() {
        return Err(anyhow!(
            "{} fails to start: {}",
            program.display(),
            output.status
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
