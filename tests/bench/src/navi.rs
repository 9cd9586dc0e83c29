//! Navi as a process, on a port and a data directory of its own.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::conversation::{Conversation, Dialect};
use crate::ground::{Ground, answers, free_address};
use crate::http::{self, Call};
use crate::model::{MODEL, Protocol};
use crate::process::Process;

const TOKEN: &str = "a-token-of-the-benchmark";

/// The default profile as it is built in.
const PROFILE: &str = include_str!("../../../config/profiles/secretary.toml");

/// How long Navi may take to find the model server.
const PATIENCE: Duration = Duration::from_secs(30);

/// A data directory, gone when nothing uses it any more.
#[derive(Clone, Debug)]
pub(crate) struct House {
    dir: Arc<TempDir>,
    /// Beside those of the benchmark.
    settings: Vec<(String, String)>,
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
        Ok(Navi {
            process,
            address,
            started_in,
            house: self.clone(),
        })
    }

    /// What is set is what makes a turn one model call, what lifts the limit on calls at once, and
    /// where everything is. All else is as people have it.
    fn command(&self, ground: &Ground, address: SocketAddr) -> Result<Command> {
        let model = format!("http://{}", ground.model.address);
        let mut command = Command::new(&ground.program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .env("NAVI_DATA_DIR", self.path("data"))
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

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The end of what it said on standard error.
    fn said(&self) -> String {
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

/// A service that runs. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Navi {
    pub(crate) process: Process,
    address: SocketAddr,
    /// From the start of its process to its first answer.
    pub(crate) started_in: Duration,
    /// Last, so that the process has ended before its directory goes.
    house: House,
}

impl Navi {
    /// Waits until it has found the model server.
    ///
    /// # Errors
    /// It does not find it.
    pub(crate) async fn ready(&self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let status = self.ask("GET", "/api/status", None).await?;
            if !status["active"].is_null() {
                return Ok(());
            }
            // Only its own sockets tell of a backend, and they are not open yet.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!("navi finds no model server: {}", self.house.said())
    }

    /// A new session's id.
    ///
    /// # Errors
    /// It is refused.
    pub(crate) async fn new_session(&self) -> Result<String> {
        let created = self.ask("POST", "/sessions", Some(&json!({}))).await?;
        let id = created["session_id"].as_str();
        Ok(id.context("a session without an id")?.to_owned())
    }

    /// A tab on a session, which is told nothing of what was before.
    ///
    /// # Errors
    /// There is no such session.
    pub(crate) async fn tab(&self, session: &str) -> Result<Conversation> {
        let path = format!("/ws/sessions/{session}");
        Conversation::open(self.address, &path, Some(TOKEN), Dialect::Navi).await
    }

    /// A tab that comes back after this event, and is told nothing of what was before it.
    ///
    /// # Errors
    /// There is no such session.
    pub(crate) async fn tab_after(&self, session: &str, seq: u64) -> Result<Conversation> {
        let path = format!("/ws/sessions/{session}?after={seq}");
        Conversation::open(self.address, &path, Some(TOKEN), Dialect::Navi).await
    }

    /// A plain run: answers when it is done.
    ///
    /// # Errors
    /// It is refused, or fails.
    pub(crate) async fn plain_run(&self, session: &str, content: &str) -> Result<()> {
        let path = format!("/sessions/{session}/messages");
        let body = json!({"content": content});
        self.ask("POST", &path, Some(&body)).await?;
        Ok(())
    }

    /// The number of a session's newest event.
    ///
    /// # Errors
    /// There is no such session.
    pub(crate) async fn last_seq(&self, session: &str) -> Result<u64> {
        let path = format!("/sessions/{session}");
        let found = self.ask("GET", &path, None).await?;
        found["last_seq"]
            .as_u64()
            .context("a session without last_seq")
    }

    async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let call = Call {
            method,
            path,
            token: TOKEN,
            body,
        };
        http::call(self.address, call).await
    }
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
