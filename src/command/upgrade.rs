//! `navi upgrade`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::console::say;
use crate::instance;
use crate::settings::Settings;

/// Runs have some seconds to reach a safe point, and a new program may have a schema to bring
/// up to date.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(50);

/// Has the service that runs become the program that stands at its path now, and waits for it.
///
/// # Errors
/// No service runs on this data directory; it does not come back, or goes on as it was.
pub(crate) fn run(settings: &Settings) -> anyhow::Result<ExitCode> {
    let before = instance::expect_running(&settings.data_dir)?;
    let pid = i32::try_from(before.pid).ok().and_then(Pid::from_raw);
    let pid = pid.context("the service's note names no process; restart it by hand")?;
    kill_process(pid, Signal::USR2)
        .with_context(|| format!("process {} cannot be told to upgrade", before.pid))?;
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        std::thread::sleep(LOOK);
        if let Some(now) = instance::running(&settings.data_dir)
            && now.since_ms != before.since_ms
        {
            say(&format!(
                "navi {} runs in place of {} (process {}, {})",
                now.version,
                before.version,
                now.pid,
                now.url()
            ));
            return Ok(ExitCode::SUCCESS);
        }
    }
    bail!(
        "the upgrade is not there after {} s; the service's log says why",
        PATIENCE.as_secs()
    )
}
