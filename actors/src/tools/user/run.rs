//! How a tool's program is run: in the sandbox, or with nothing to hold it.

use std::io;
use std::path::PathBuf;

use tokio::process::Command;

use crate::programs::{self, Bounds, Ended};
use crate::protocol::tool::Effect;
use crate::tools::sandbox::{FAILED, FAILED_WORDS, Fence, Order, Sandbox, Streams};

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
    pub stdin: String,
    /// What it must be able to read beside the system's own programs and `cwd`.
    pub readable: Vec<PathBuf>,
    /// What it declares that it does.
    pub effect: Effect,
    pub bounds: Bounds,
}

/// Runs programs. What may use a network, or anything, runs with nothing to hold it, and asks;
/// it ends with everything that it started all the same. Without a sandbox's supervisor that is
/// its process group.
#[derive(Clone, Debug)]
pub struct Runner(Option<Sandbox>);

impl Runner {
    pub fn new(sandbox: Option<Sandbox>) -> Self {
        Self(sandbox.filter(|_| cfg!(target_os = "linux")))
    }

    /// Whether a program that declares this effect is held to it, or to changing the session's
    /// folder at most: to its job's folders, and without a network where it has none.
    pub fn holds(&self, effect: Effect) -> bool {
        let sandbox = self.0.as_ref();
        effect <= Effect::Write && sandbox.is_some_and(|sandbox| sandbox.available().is_ok())
    }

    /// Runs a job to its end. Dropping the future ends the program and whatever it started.
    ///
    /// # Errors
    /// It could not be started.
    pub async fn run(&self, job: Job) -> io::Result<Ended> {
        let Some(sandbox) = &self.0 else {
            let mut command = Command::new(job.program);
            command
                .args(job.args)
                .current_dir(job.cwd)
                .env_clear()
                .envs(job.env);
            return programs::run(command, job.stdin.as_bytes(), job.bounds).await;
        };
        let name = job.cwd.file_name().unwrap_or_default().to_string_lossy();
        let order = Order {
            program: job.program.to_string_lossy().into_owned(),
            args: job.args,
            directory: job.cwd.clone(),
            scratch: sandbox.scratch_of(&name),
            workspace: job.cwd,
            read: job.readable,
            environment: job.env.into_iter().collect(),
            input: Some(job.stdin),
            streams: Streams::Apart,
            fence: if self.holds(job.effect) {
                Fence::Inside
            } else {
                Fence::Lifted
            },
            limits: sandbox.config.limits,
        };
        let running = sandbox.start(order).await?;
        let mut stdout = Vec::new();
        let show = |bytes: &[u8]| {
            stdout.extend_from_slice(bytes);
            bytes.len()
        };
        let (report, cut, errors) = running.read(job.bounds, show).await;
        let mut stderr = errors.bytes;
        if report.code == Some(i32::from(FAILED))
            && let Some(why) = stderr.strip_prefix(FAILED_WORDS.as_bytes())
        {
            let why = String::from_utf8_lossy(why);
            return Err(io::Error::other(why.trim().to_owned()));
        }
        if let (None, Some(cut)) = (report.code, report.cut) {
            stderr.extend_from_slice(cut.as_bytes());
        }
        Ok(Ended {
            code: report.code,
            cut,
            stdout,
            stderr,
        })
    }
}
