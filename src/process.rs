//! What a program that has an engine begins and ends with: the service, and the eval.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use navi_actors::tools::sandbox;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tokio::runtime::Runtime;
use tracing::Level;

use crate::settings::{self, Loaded, Overrides};
use crate::{console, telemetry};

/// How long a thread for work that blocks is kept without any. Each has memory that nobody else
/// can use meanwhile, and a crowd leaves many of them.
const KEEP: Duration = Duration::from_secs(2);

/// How much is logged where the settings ask for the usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logs {
    Usual,
    /// For programs whose progress stands where logs do: the usual ones would bury it.
    Warnings,
}

/// Runs a program to its end, and tells why it failed: what it had to say may have been lost. Where
/// the process was started as the sandbox of a command, it is that instead.
pub fn main(program: &str, run: impl FnOnce() -> anyhow::Result<ExitCode>) -> ExitCode {
    // It confines itself, has no settings and says nothing: no part of the program is in it.
    let mut words = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .skip(1);
    if words.next().as_deref() == Some(sandbox::SUBCOMMAND) {
        return ExitCode::from(sandbox::carry_out(&words.collect::<Vec<_>>()));
    }
    // Before anything else: it sets a variable, which is sound only while there is one thread.
    navi_threads::leave_one_free();
    let ended = run().and_then(|code| match console::lost() {
        None => Ok(code),
        Some(error) => bail!("standard output could not be written: {error}"),
    });
    match ended {
        Ok(code) => code,
        Err(error) => {
            console::complain(&format!("{program}: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Does the work with the settings, and with logs as they ask for.
///
/// # Errors
/// Everything that is wrong with the settings, or what keeps the work from its end.
pub fn with_settings(
    overrides: &Overrides,
    logs: Logs,
    work: impl FnOnce(&Loaded, &Arc<Runtime>) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    keep_to_itself();
    let _faults = cfg!(feature = "failpoints")
        .then(navi_actors::faults::arm)
        .transpose()
        .map_err(anyhow::Error::msg)?;
    let loaded = settings::load(overrides, &std::env::vars_os().collect())?;
    telemetry::start(match (logs, loaded.settings.log_level) {
        (Logs::Warnings, Level::INFO) => Level::WARN,
        (_, level) => level,
    });
    // One runtime for all: a pooled connection must not hang on one actor's thread.
    let runtime = Arc::new(
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_keep_alive(KEEP)
            .build()?,
    );
    let code = work(&loaded, &runtime);
    // Blocking work that hangs must not keep the process.
    if let Ok(runtime) = Arc::try_unwrap(runtime) {
        runtime.shutdown_timeout(Duration::from_millis(500));
    }
    code
}

/// Closes this process's memory and environment, which hold the secret settings, to other
/// programs of the same user. What it starts is not closed by this, and what it becomes by an
/// upgrade comes here again.
fn keep_to_itself() {
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        console::complain(&format!(
            "! other programs of this user can read navi's environment: {error}"
        ));
    }
}
