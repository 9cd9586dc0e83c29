//! A server that is a program of this machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rmcp::RoleClient;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio_util::task::AbortOnDropHandle;

use crate::tools::sandbox::SUBCOMMAND;
use crate::tools::user::GroupGuard;

/// The longest message of a server. More is thrown away as it comes.
const MAX_MESSAGE: usize = 8 * 1024 * 1024;

/// As much of what it writes to standard error as is kept for an error: its end.
const STDERR_TAIL: usize = 2 * 1024;

/// What a program gets of Navi's environment. The rest may hold secrets: what it needs of that
/// is for its configuration to name.
const INHERITED: [&str; 9] = [
    "HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER",
];

/// Navi's own program, which keeps servers' programs; none where nothing keeps them.
static KEEPER: OnceLock<PathBuf> = OnceLock::new();

/// Has the programs of servers started by this program's
/// [`carry_out`](crate::tools::sandbox::carry_out), which ends them when this process is killed.
pub fn keep_by(program: PathBuf) {
    if cfg!(target_os = "linux") {
        // The first word holds: there is one service in a process.
        let _ = KEEPER.set(program);
    }
}

/// The program. Goes with everything that it started when this is dropped.
#[derive(Debug)]
pub(super) struct Program {
    child: Child,
    _group: GroupGuard,
    said: Arc<Mutex<Vec<u8>>>,
    _reading: Option<AbortOnDropHandle<()>>,
}

/// What a server is talked to by.
pub(super) type Pipes = AsyncRwTransport<RoleClient, ChildStdout, ChildStdin>;

impl Program {
    /// Starts it.
    pub(super) fn start(
        command: &str,
        args: &[String],
        env: &BTreeMap<String, String>,
        cwd: Option<&PathBuf>,
    ) -> Result<(Self, Pipes), String> {
        let inherited = INHERITED
            .iter()
            .filter_map(|name| Some((*name, std::env::var_os(name)?)));
        let mut building = match KEEPER.get() {
            Some(keeper) => {
                let mut kept = Command::new(keeper);
                kept.args([SUBCOMMAND, "keep", command]);
                kept
            }
            None => Command::new(command),
        };
        building
            .args(args)
            .env_clear()
            .envs(inherited)
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(cwd) = cwd {
            building.current_dir(cwd);
        }
        let mut child = building
            .spawn()
            .map_err(|error| format!("`{command}` could not be started: {error}"))?;
        let group = GroupGuard::new(child.id());
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("`{command}` could not be talked to"));
        };
        let said = Arc::new(Mutex::new(Vec::new()));
        let reading = child.stderr.take().map(|stderr| {
            AbortOnDropHandle::new(tokio::spawn(keep_tail(stderr, Arc::clone(&said))))
        });
        let pipes = AsyncRwTransport::new(stdout, stdin).with_max_line_length(MAX_MESSAGE);
        let program = Self {
            child,
            _group: group,
            said,
            _reading: reading,
        };
        Ok((program, pipes))
    }

    /// Gives it a moment to end by itself: what talked to it has let go of its input.
    pub(super) async fn end(mut self, grace: std::time::Duration) {
        // It is killed with the group where it does not.
        let _ = tokio::time::timeout(grace, self.child.wait()).await;
    }

    /// The last that it wrote to standard error.
    pub(super) fn said(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&said).trim().to_owned()
    }
}

async fn keep_tail(mut stderr: ChildStderr, said: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(&buffer[..count]);
        let too_much = said.len().saturating_sub(STDERR_TAIL);
        said.drain(..too_much);
    }
}
