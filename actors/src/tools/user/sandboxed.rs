//! Runs a user's tool inside the sandbox.

use std::io;

use async_trait::async_trait;

use super::runner::{Ended, Flooded, Job, PlainRunner, Runner, keep_tail, read_up_to};
use crate::protocol::tool::Effect;
use crate::tools::sandbox::{FAILED, FAILED_WORDS, Fence, Order, Sandbox, Streams};

/// See the module. What may use a network, or anything, runs with nothing to hold it, and asks;
/// it ends with everything that it started all the same.
#[derive(Clone, Debug)]
pub struct SandboxRunner {
    sandbox: Sandbox,
}

impl SandboxRunner {
    #[must_use]
    pub fn new(sandbox: Sandbox) -> Self {
        Self { sandbox }
    }
}

#[async_trait]
impl Runner for SandboxRunner {
    fn holds(&self, effect: Effect) -> bool {
        effect <= Effect::Write && self.sandbox.available().is_ok()
    }

    async fn run(&self, job: Job) -> io::Result<Ended> {
        // Without a supervisor there is its process group at least.
        if !cfg!(target_os = "linux") {
            return PlainRunner.run(job).await;
        }
        let fence = if self.holds(job.effect) {
            Fence::Inside
        } else {
            Fence::Lifted
        };
        let name = job
            .cwd
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let order = Order {
            program: job.program.to_string_lossy().into_owned(),
            args: job.args,
            directory: job.cwd.clone(),
            workspace: job.cwd,
            scratch: self.sandbox.scratch_of(&name),
            read: job.readable,
            environment: job.env.into_iter().collect(),
            input: String::from_utf8(job.stdin).ok(),
            streams: Streams::Apart,
            fence,
            limits: self.sandbox.limits(),
        };
        let mut running = self.sandbox.start(order).await?;
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        let stderr = running.errors.take();
        let mut ended = Ended::default();
        let most = job.limits.stdout_bytes;
        let streams = async {
            let read = async {
                let flooded = read_up_to(Some(&mut running.output), &mut out, most).await;
                if flooded { Err(Flooded) } else { Ok(()) }
            };
            let tail = async {
                keep_tail(stderr, &mut errors).await;
                Ok(())
            };
            // A flood ends both: its errors may never end.
            tokio::try_join!(read, tail)
        };
        match tokio::time::timeout(job.limits.time, streams).await {
            Ok(read) => ended.flooded = read.is_err(),
            Err(_) => ended.timed_out = true,
        }
        let report = if ended.flooded || ended.timed_out {
            running.end().await
        } else {
            running.ended().await
        };
        if report.code == Some(i32::from(FAILED))
            && let Some(why) = errors.strip_prefix(FAILED_WORDS.as_bytes())
        {
            let why = String::from_utf8_lossy(why);
            return Err(io::Error::other(why.trim().to_owned()));
        }
        ended.code = report.code;
        ended.stdout = out;
        ended.stderr = errors;
        if let (None, Some(cut)) = (report.code, report.cut) {
            ended.stderr.extend_from_slice(cut.as_bytes());
        }
        Ok(ended)
    }
}
