//! User tools: a folder each in `TOOLS_DIR`, with a manifest and an executable in any language.
//! Arguments come as JSON on standard input, the result goes to standard output
//! (`docs/user-tools.md`).
//!
//! Nothing of a folder runs before its owner allowed it by the hash of everything in it. What
//! runs is a copy of the very bytes that were hashed: a folder that changes between the check
//! and the call changes nothing of the call.

mod folder;
mod scan;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::process::Command;

pub use self::folder::Copies;
pub use self::scan::{Manifest, Scan, ScannedTool, Scanner};
use crate::programs::{self, Bounds, Cut, Ended};
use crate::protocol::approval::Detail;
use crate::protocol::phrase::{Label, Phrase, PhraseCode};
use crate::protocol::powers::{PowerKind, Powers};
use crate::protocol::tool::{Effect, ToolSpec};
use crate::tools::output::{bounded_for, human_size, visible};
use crate::tools::sandbox::{FAILED, FAILED_WORDS, Fence, Limits, Order, Sandbox, Streams};
use crate::tools::trust::Trust;
use crate::tools::{
    Proposal, Provenance, RuleSubject, Tool, ToolContext, ToolError, ToolResult, ToolSource,
    arguments_shown,
};

/// As much as a tool may write to standard output.
const MAX_OUTPUT: usize = 1024 * 1024;

/// The call's own limit ends a tool; that of the run, a little later, is there for the rest.
const MARGIN: Duration = Duration::from_secs(5);

/// What an error shows of standard error, from its end.
const SHOWN_STDERR: usize = 2000;

/// A tool of the user's own, as the model calls it.
#[derive(Debug)]
pub struct UserTool {
    spec: ToolSpec,
    manifest: Arc<Manifest>,
    folder: PathBuf,
    sha256: String,
    workshop: Workshop,
}

/// What all user tools are run with.
#[derive(Clone, Debug)]
pub struct Workshop {
    pub trust: Trust,
    pub copies: Copies,
    pub runner: Runner,
}

impl UserTool {
    /// A tool as its folder stood when it had this hash.
    pub fn new(
        manifest: Arc<Manifest>,
        folder: PathBuf,
        sha256: String,
        workshop: Workshop,
    ) -> Self {
        let effect = if workshop.runner.holds(manifest.effect) {
            // What holds it lets it change the session's folder.
            manifest.effect.max(Effect::Write)
        } else {
            // With nothing to hold it, what it declares is a promise and no more.
            manifest.effect.max(Effect::Host)
        };
        Self {
            spec: ToolSpec {
                name: manifest.name.clone(),
                description: manifest.description.clone(),
                parameters: Value::Object(manifest.parameters.clone()),
                effect,
                time_limit_ms: manifest.time_limit_seconds * 1_000,
            },
            manifest,
            folder,
            sha256,
            workshop,
        }
    }

    fn refuse_untrusted(&self) -> ToolResult<()> {
        if self.workshop.trust.holds(&self.spec.name, &self.sha256) {
            return Ok(());
        }
        Err(self.refused("it is not allowed as it is now"))
    }

    fn refused(&self, reason: &str) -> ToolError {
        let name = &self.spec.name;
        refusal!(
            "the tool {name} did not run: {reason}; its owner has to look at it and allow it (in the page under tools, or POST /tools/{name}/allow)"
        )
    }

    /// What the model is told of how it ended.
    fn read(&self, ended: &Ended) -> ToolResult<String> {
        let name = &self.spec.name;
        let limit = self.manifest.time_limit_seconds;
        let stdout = String::from_utf8_lossy(&ended.stdout);
        let mut problem = match (ended.cut, ended.code) {
            (Some(Cut::TimedOut), _) => format!(
                "the tool {name} did not end within its limit of {limit} s and was ended; it may have taken effect in part"
            ),
            (Some(Cut::TooMuch), _) => format!(
                "the tool {name} wrote more than {} and was ended; ask it for less",
                human_size(MAX_OUTPUT as u64)
            ),
            (None, Some(0)) => return Ok(stdout.into_owned()),
            (None, Some(code)) => format!("the tool {name} failed with exit code {code}"),
            (None, None) => format!("the tool {name} was ended by a signal"),
        };
        let stderr = String::from_utf8_lossy(&ended.stderr);
        // Some programs say what is wrong where they say everything.
        let mut said = [stderr.trim(), stdout.trim()].into_iter();
        if let Some(said) = said.find(|said| !said.is_empty()) {
            let from = said.ceil_char_boundary(said.len().saturating_sub(SHOWN_STDERR));
            problem.push_str(&format!(". It said: {}", &said[from..]));
        }
        Err(ToolError(problem))
    }
}

#[async_trait]
impl Tool for UserTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn for_powers(self: Arc<Self>, powers: &Powers) -> Option<Arc<dyn Tool>> {
        let is_granted = powers.has_named(PowerKind::UserTools, &self.spec.name);
        is_granted.then_some(self)
    }

    fn source(&self) -> ToolSource {
        ToolSource::User
    }

    fn hangs_on_files(&self, _: &Value) -> bool {
        true
    }

    async fn proposal(&self, args: &Value, _: &ToolContext) -> ToolResult<Proposal> {
        self.refuse_untrusted()?;
        let tool = [("tool", self.spec.name.clone())];
        let any = Phrase::new(PhraseCode::AnyOwnCall, tool.clone());
        let program = self.folder.join(&self.manifest.executable);
        let mut details = vec![
            arguments_shown(args),
            Detail::text(Label::Program, visible(&program.to_string_lossy())),
        ];
        if !self.workshop.runner.holds(self.manifest.effect) {
            details.push(Detail::words(Label::Sandbox, PhraseCode::NotHeld));
        }
        Ok(Proposal {
            summary: Phrase::new(PhraseCode::RunOwnTool, tool),
            details,
            // The key holds the hash: "always" covers the tool as it is, not what it becomes.
            rule: Some(RuleSubject::new(&self.sha256, any)),
            binding: self.sha256.clone(),
        })
    }

    fn provenance(&self, _: &Value) -> Provenance {
        Provenance::Outside
    }

    fn margin(&self) -> Duration {
        MARGIN
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        self.refuse_untrusted()?;
        context.means.check_command()?;
        let (copies, folder) = (self.workshop.copies.clone(), self.folder.clone());
        let sha256 = self.sha256.clone();
        let copying = tokio::task::spawn_blocking(move || copies.of(&folder, &sha256));
        let copy = copying
            .await
            .unwrap_or_else(|_| Err("it could not be read".to_owned()))
            .map_err(|reason| self.refused(&reason))?;
        let executable = &self.manifest.executable;
        let runner = &self.workshop.runner;
        let path = std::env::var("PATH");
        let path = path.unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned());
        let workspace = context.workspace.to_string_lossy().into_owned();
        // The whole of it: nothing of Navi's own.
        let environment = [
            ("PATH", path),
            ("HOME", workspace.clone()),
            ("LANG", "C.UTF-8".to_owned()),
            // A folder that changes under Python would be another tool.
            ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
            ("NAVI_WORKSPACE", workspace),
            ("NAVI_TOOL_DIR", copy.to_string_lossy().into_owned()),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value));
        let order = Order {
            program: copy.join(executable).to_string_lossy().into_owned(),
            args: self.manifest.args.clone(),
            environment: environment.into(),
            input: Some(args.to_string()),
            read: vec![copy],
            uid: context.means.uid,
            ..runner.order(self.manifest.effect, context.workspace.clone())
        };
        let bounds = Bounds {
            time: Duration::from_secs(self.manifest.time_limit_seconds),
            output_bytes: MAX_OUTPUT,
        };
        let ended = runner.run(order, bounds).await.map_err(|error| {
            refusal!(
                "the tool {} could not be started: {error}; is the first line of {executable} a `#!` with a program that is installed?",
                self.spec.name
            )
        })?;
        Ok(bounded_for(self.read(&ended)?, &context).await?.into())
    }
}

/// Runs programs. What may use a network, or anything, runs with nothing to hold it, and asks;
/// it ends with everything that it started all the same. Without a sandbox's supervisor that is
/// its process group.
#[derive(Clone, Debug)]
pub struct Runner(Option<Sandbox>);

impl Runner {
    pub fn new(sandbox: Option<Sandbox>) -> Self {
        Self(sandbox)
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
            directory: workspace.clone(),
            scratch: scratch.unwrap_or_default(),
            workspace,
            streams: Streams::Apart,
            fence: match self.holds(effect) {
                true => Fence::Inside,
                false => Fence::Lifted,
            },
            limits: sandbox.map_or_else(Limits::default, |sandbox| sandbox.config.limits),
            ..Order::default()
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

#[cfg(test)]
mod tests;
