//! Where a Navi lives: a data directory, its profile, and what else is set.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::ground::{Ground, answers, free_address};
use crate::model::{MODEL, Protocol};
use crate::navi::{Navi, TOKEN};
use crate::process::Process;

/// The program that fills a database, beside this one.
const FILL: &str = "navi-bench-fill";

/// The default profile as it is built in.
const PROFILE: &str = include_str!("../../../config/profiles/secretary.toml");

/// A data directory, gone when nothing uses it any more.
#[derive(Clone, Debug)]
pub(crate) struct House {
    dir: Arc<TempDir>,
    /// Beside those of the benchmark.
    settings: Vec<(String, String)>,
}

/// What a database is filled with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filling {
    pub(crate) sessions: usize,
    /// Of each session.
    pub(crate) messages: usize,
}

impl House {
    /// An empty one, with the profile of the benchmark.
    ///
    /// # Errors
    /// The temporary directory cannot be written to.
    pub(crate) fn new() -> Result<Self> {
        let dir = tempfile::tempdir().context("no temporary directory")?;
        fs::create_dir(dir.path().join("profiles"))?;
        Ok(Self {
            dir: Arc::new(dir),
            settings: Vec::new(),
        })
    }

    /// One with conversations in it, and their sessions' ids. They come by the store and not by
    /// the doors, which would take minutes.
    ///
    /// # Errors
    /// The program that fills it is not there, or fails.
    pub(crate) async fn filled(filling: Filling) -> Result<(Self, Vec<String>)> {
        let house = Self::new()?;
        let program = std::env::current_exe()?.with_file_name(FILL);
        let mut command = tokio::process::Command::new(&program);
        let filled = command
            .arg(house.path("data"))
            .args(["--sessions", &filling.sessions.to_string()])
            .args(["--messages", &filling.messages.to_string()])
            .kill_on_drop(true)
            .output()
            .await
            .with_context(|| format!("{} cannot be started", program.display()))?;
        if !filled.status.success() {
            let said = String::from_utf8_lossy(&filled.stderr);
            bail!("the database is not filled, {}: {said}", filled.status);
        }
        let ids = String::from_utf8(filled.stdout)?;
        Ok((house, ids.lines().map(str::to_owned).collect()))
    }

    /// The same with these settings.
    pub(crate) fn with(mut self, settings: &[(&str, &str)]) -> Self {
        let settings = settings.iter();
        let own = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.settings.extend(own);
        self
    }

    /// Starts Navi in it, and waits for its first answer.
    ///
    /// # Errors
    /// The program is not there, or ends before it answers.
    pub(crate) async fn start(&self, ground: &Ground) -> Result<Navi> {
        let profile = self.path("profiles").join("secretary.toml");
        fs::write(profile, one_call_a_turn(PROFILE, ground.protocol))?;
        let address = free_address()?;
        let command = self.command(ground, address)?;
        let begun = Instant::now();
        let mut process = Process::start(command, ground.cores)?;
        let answered = answers(address, &mut process).await;
        let started_in = begun.elapsed();
        answered.with_context(|| format!("navi does not start: {}", self.said()))?;
        if let Some(profiler) = &ground.profiler {
            profiler.record(process.id())?;
        }
        Ok(Navi::new(process, address, started_in, self.clone()))
    }

    /// What is set is what makes a turn one model call, what lifts the limit on calls at once, and
    /// where everything is. All else is as people have it.
    fn command(&self, ground: &Ground, address: SocketAddr) -> Result<Command> {
        let model = format!("http://{}", ground.model.address);
        let mut command = self.program(&ground.program);
        command
            .env("NAVI_PROFILES_DIR", self.path("profiles"))
            .env("NAVI_BIND", address.to_string())
            .env("NAVI_API_TOKEN", TOKEN)
            .env("LLM_BACKEND", ground.protocol.to_string())
            .env("LLM_PARALLEL", "1024")
            .env("STARTER_MODEL", "off")
            .env("OPENAI_DEFAULT_MODEL", MODEL)
            .env("OLLAMA_DEFAULT_MODEL", MODEL)
            // A summary of old turns would be a call of its own, and would make the context short.
            .env("CONTEXT_COMPRESSION_ENABLED", "false")
            .envs(self.settings.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(self.path("stderr.log"))?);
        match ground.protocol {
            Protocol::Openai => command.env("OPENAI_BASE_URL", model),
            Protocol::Ollama => command.env("OLLAMA_HOST", model),
        };
        Ok(command)
    }

    /// The program as one who lives here runs it, with nothing else set.
    pub(crate) fn program(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .env("NAVI_DATA_DIR", self.path("data"));
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The end of what it said on standard error.
    pub(crate) fn said(&self) -> String {
        const SHOWN_BYTES: usize = 4000;
        let said = fs::read_to_string(self.path("stderr.log")).unwrap_or_default();
        let begin = said.ceil_char_boundary(said.len().saturating_sub(SHOWN_BYTES));
        said[begin..].to_owned()
    }
}

/// The profile with planning off, which would ask the model whether a message needs a plan; and
/// with the backend that is measured. A title is asked for after a session's first turn all the
/// same: nothing switches that off, and figures have their first turn before they measure.
fn one_call_a_turn(profile: &str, protocol: Protocol) -> String {
    let is_kept = |line: &&str| {
        let name = line.split(' ').next().unwrap_or_default();
        !matches!(name, "model" | "planning_enabled")
    };
    let kept: Vec<&str> = profile.lines().filter(is_kept).collect();
    format!(
        "planning_enabled = false\nllm_backend = \"{protocol}\"\n{}\n",
        kept.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_profile_is_changed_in_what_makes_more_calls_of_a_turn() {
        let changed = one_call_a_turn(PROFILE, Protocol::Ollama);
        assert!(PROFILE.contains("\nplanning_enabled = true\n"), "{PROFILE}");
        assert!(changed.starts_with("planning_enabled = false\nllm_backend = \"ollama\"\n"));
        assert!(!changed.contains("planning_enabled = true"), "{changed}");
        assert!(!changed.contains("\nmodel = "), "{changed}");
        assert!(changed.contains("\nenabled_tools = ["), "{changed}");
    }
}
