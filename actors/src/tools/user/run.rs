//! How a tool's program is run: in the sandbox, or with nothing to hold it.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use tokio::process::Command;

use crate::programs::{self, Bounds, Ended};
use crate::protocol::tool::Effect;
use crate::tools::sandbox::{FAILED, FAILED_WORDS, Fence, Limits, Order, Sandbox, Streams};

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

    /// Where and how a program runs that declares this effect. Which one, and what it gets, is for
    /// the caller to fill in.
    pub fn order(&self, effect: Effect, workspace: PathBuf) -> Order {
        let sandbox = self.0.as_ref();
        let name = workspace.file_name().unwrap_or_default().to_string_lossy();
        let scratch = sandbox.map(|sandbox| sandbox.scratch_of(&name));
        Order {
            program: String::new(),
            args: Vec::new(),
            directory: workspace.clone(),
            scratch: scratch.unwrap_or_default(),
            workspace,
            read: Vec::new(),
            environment: BTreeMap::new(),
            input: None,
            streams: Streams::Apart,
            fence: match self.holds(effect) {
                true => Fence::Inside,
                false => Fence::Lifted,
            },
            limits: sandbox.map_or_else(Limits::default, |sandbox| sandbox.config.limits),
        }
    }

    /// Runs a program to its end. Dropping the future ends it and whatever it started.
    ///
    /// # Errors
    /// It could not be started.
    pub async fn run(&self, order: Order, bounds: Bounds) -> io::Result<Ended> {
        let Some(sandbox) = &self.0 else {
            let mut command = Command::new(order.program);
            command
                .args(order.args)
                .current_dir(order.directory)
                .env_clear()
                .envs(order.environment);
            let input = order.input.unwrap_or_default();
            return programs::run(command, input.as_bytes(), bounds).await;
        };
        let running = sandbox.start(order).await?;
        let mut stdout = Vec::new();
        let show = |bytes: &[u8]| {
            stdout.extend_from_slice(bytes);
            bytes.len()
        };
        let (report, cut, errors) = running.read(bounds, show).await;
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
