//! Where Navi's processor time goes, as the kernel's `perf` samples it.

use std::fs;
use std::mem;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Samples a second: next to a round number, so that what goes by a clock is not always met.
const FREQUENCY: &str = "997";

/// Callers are found by the program's own tables, of as much of the stack as a sample takes, in
/// bytes. What people run has no frame pointers.
const CALLERS: &str = "dwarf,32768";

/// How long a recording may take to be written when what it samples has ended.
const WRITING: Duration = Duration::from_secs(120);

/// Samples every Navi that is started, from her first answer to her end.
#[derive(Debug)]
pub(crate) struct Profiler {
    dir: PathBuf,
    going: Mutex<Vec<Recording>>,
}

/// One that goes. It ends with what it samples.
#[derive(Debug)]
struct Recording {
    perf: Child,
    file: PathBuf,
}

impl Profiler {
    /// One whose recordings come into this directory.
    ///
    /// # Errors
    /// It cannot be made, or there is no `perf`.
    pub(crate) fn new(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        let perf = std::process::Command::new("perf").arg("--version").output();
        perf.context("--profile needs the kernel's `perf` (on Debian: linux-perf)")?;
        Ok(Self {
            dir: dir.to_owned(),
            going: Mutex::default(),
        })
    }

    /// Samples a process until it ends.
    ///
    /// # Errors
    /// `perf` cannot be started.
    pub(crate) fn record(&self, process: u32) -> Result<()> {
        let file = self.dir.join(format!("{process}.data"));
        let perf = Command::new("perf")
            .args(["record", "--quiet", "--event", "cpu-clock"])
            .args(["--freq", FREQUENCY, "--call-graph", CALLERS])
            .args(["--pid", &process.to_string()])
            .arg("--output")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("perf cannot be started")?;
        let mut going = self.going.lock().unwrap_or_else(PoisonError::into_inner);
        going.push(Recording { perf, file });
        Ok(())
    }

    /// Gives the recordings of a figure its name, when all that it started has ended.
    ///
    /// # Errors
    /// `perf` may not sample, or does not end.
    pub(crate) async fn keep(&self, figure: &str) -> Result<()> {
        let ended = mem::take(&mut *self.going.lock().unwrap_or_else(PoisonError::into_inner));
        for (number, recording) in ended.into_iter().enumerate() {
            let to = match number {
                0 => format!("{figure}.data"),
                later => format!("{figure}-{}.data", later + 1),
            };
            fs::rename(recording.written().await?, self.dir.join(to))?;
        }
        Ok(())
    }
}

impl Recording {
    /// Its file, once it stands.
    async fn written(mut self) -> Result<PathBuf> {
        let status = timeout(WRITING, self.perf.wait()).await;
        let status = status.with_context(|| format!("perf writes for over {WRITING:?}"))??;
        if !status.success() {
            bail!("perf may not sample, {status}: it says why above");
        }
        Ok(self.file)
    }
}
