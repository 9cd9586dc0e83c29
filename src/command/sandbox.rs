//! `navi sandbox`: any command in the sandbox, with the terminal of whoever asked.

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use navi_actors::tools::sandbox::{Fence, Order, Sandbox, Streams, supervise};

use crate::cli::SandboxArgs;
use crate::console::complain;
use crate::settings::Settings;

/// Runs the command, and ends with its exit code.
///
/// # Errors
/// Where commands cannot be held as they should be: it is not run then.
pub(crate) fn run(settings: &Settings, args: &SandboxArgs) -> anyhow::Result<ExitCode> {
    let sandbox = Sandbox::new(settings.terminal.sandbox.clone());
    if let Err(reason) = sandbox.available() {
        bail!("there is no sandbox here: {reason}");
    }
    let workspace = match &args.workspace {
        Some(workspace) => workspace.clone(),
        None => std::env::current_dir().context("the current directory is gone")?,
    };
    let workspace = workspace
        .canonicalize()
        .with_context(|| format!("there is no folder {}", workspace.display()))?;
    let Some((program, arguments)) = args.command.split_first() else {
        bail!("name a command to run");
    };
    let scratch = Scratch::make(&sandbox)?;
    let order = Order {
        program: program.clone(),
        args: arguments.to_vec(),
        directory: workspace.clone(),
        workspace,
        scratch: scratch.0.clone(),
        read: Vec::new(),
        uid: None,
        environment: BTreeMap::new(),
        input: None,
        streams: Streams::Apart,
        fence: Fence::Inside,
        limits: sandbox.config.limits,
    };
    let report = supervise::carry_out(sandbox.job(order, false));
    if let Some(why) = &report.cut {
        complain(&format!("navi: the command was ended because {why}"));
    }
    Ok(ExitCode::from(report.exit_code()))
}

/// A directory for temporary files, gone with the command.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn make(sandbox: &Sandbox) -> anyhow::Result<Self> {
        let path = sandbox.scratch_of(&format!("by-hand-{}", std::process::id()));
        // The data directory may be made with it, and is its user's alone.
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("{} cannot be made", path.display()))?;
        give(&path, sandbox)?;
        Ok(Self(path))
    }
}

/// The user that the command runs as has to be able to write there.
fn give(path: &std::path::Path, sandbox: &Sandbox) -> anyhow::Result<()> {
    if let Some(user) = &sandbox.user {
        std::os::unix::fs::chown(path, Some(user.uid), Some(user.gid))
            .with_context(|| format!("{} cannot be given away", path.display()))?;
    }
    Ok(())
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left there is nobody's loss.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
