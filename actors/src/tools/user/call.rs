//! [`UserTool`]: a tool of the user's own, as the model calls it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::folder::Copies;
use super::run::Runner;
use super::scan::Manifest;
use crate::programs::{Bounds, Cut, Ended};
use crate::protocol::approval::Detail;
use crate::protocol::phrase::{Label, Phrase, PhraseCode};
use crate::protocol::tool::{Effect, ToolSpec};
use crate::tools::output::{human_size, visible};
use crate::tools::sandbox::Order;
use crate::tools::spill::bounded_for;
use crate::tools::trust::Trust;
use crate::tools::{
    Proposal, Provenance, RuleSubject, Tool, ToolContext, ToolError, ToolResult, ToolSource,
    arguments_shown,
};

/// As much as a tool may write to standard output.
const MAX_OUTPUT: usize = 1024 * 1024;

/// The call's own limit ends a tool; that of the run, a little later, is there for the rest.
const MARGIN_SECONDS: u64 = 5;

/// What an error shows of standard error, from its end.
const SHOWN_STDERR: usize = 2000;

/// See the module.
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
                time_limit_ms: (manifest.time_limit_seconds + MARGIN_SECONDS) * 1_000,
            },
            manifest,
            folder,
            sha256,
            workshop,
        }
    }

    fn refuse_untrusted(&self) -> Result<(), ToolError> {
        if self.workshop.trust.holds(&self.spec.name, &self.sha256) {
            return Ok(());
        }
        Err(self.refused("it is not allowed as it is now"))
    }

    fn refused(&self, reason: &str) -> ToolError {
        ToolError(format!(
            "the tool {} did not run: {reason}; its owner has to look at it and allow it (in the page under tools, or POST /tools/{}/allow)",
            self.spec.name, self.spec.name
        ))
    }

    /// What the model is told of how it ended.
    fn read(&self, ended: &Ended) -> Result<String, ToolError> {
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
        let said = [stderr.trim(), stdout.trim()];
        let said = said
            .into_iter()
            .find(|said| !said.is_empty())
            .unwrap_or_default();
        if !said.is_empty() {
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

    fn source(&self) -> ToolSource {
        ToolSource::User
    }

    fn hangs_on_files(&self, _: &Value) -> bool {
        true
    }

    async fn proposal(&self, args: &Value, _: &ToolContext) -> Result<Proposal, ToolError> {
        self.refuse_untrusted()?;
        let name = &self.spec.name;
        let program = self.folder.join(&self.manifest.executable);
        let mut details = vec![
            arguments_shown(args),
            Detail::text(Label::Program, visible(&program.to_string_lossy())),
        ];
        if !self.workshop.runner.holds(self.manifest.effect) {
            details.push(Detail::words(Label::Sandbox, PhraseCode::NotHeld));
        }
        Ok(Proposal {
            summary: Phrase::new(PhraseCode::RunOwnTool, [("tool", name.clone())]),
            details,
            // The key holds the hash: "always" covers the tool as it is, not what it becomes.
            rule: Some(RuleSubject::new(
                &self.sha256,
                Phrase::new(PhraseCode::AnyOwnCall, [("tool", name.clone())]),
            )),
            binding: self.sha256.clone(),
        })
    }

    fn provenance(&self, _: &Value) -> Provenance {
        Provenance::Outside
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        self.refuse_untrusted()?;
        let (copies, folder) = (self.workshop.copies.clone(), self.folder.clone());
        let sha256 = self.sha256.clone();
        let copying = tokio::task::spawn_blocking(move || copies.of(&folder, &sha256));
        let copy = copying
            .await
            .unwrap_or_else(|_| Err("it could not be read".to_owned()))
            .map_err(|reason| self.refused(&reason))?;
        let executable = &self.manifest.executable;
        let runner = &self.workshop.runner;
        let order = Order {
            program: copy.join(executable).to_string_lossy().into_owned(),
            args: self.manifest.args.clone(),
            environment: environment(&context.workspace, &copy),
            input: Some(args.to_string()),
            read: vec![copy],
            ..runner.order(self.manifest.effect, context.workspace.clone())
        };
        let bounds = Bounds {
            time: Duration::from_secs(self.manifest.time_limit_seconds),
            output_bytes: MAX_OUTPUT,
        };
        let ended = runner.run(order, bounds).await.map_err(|error| {
            ToolError(format!(
                "the tool {} could not be started: {error}; is the first line of {executable} a `#!` with a program that is installed?",
                self.spec.name
            ))
        })?;
        Ok(bounded_for(self.read(&ended)?, &context).await?.into())
    }
}

/// The whole environment of a tool: nothing of Navi's own.
fn environment(workspace: &Path, copy: &Path) -> BTreeMap<String, String> {
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned());
    let (workspace, copy) = (workspace.to_string_lossy(), copy.to_string_lossy());
    let variables = [
        ("PATH", path.as_str()),
        ("HOME", &workspace),
        ("LANG", "C.UTF-8"),
        // A folder that changes under Python would be another tool.
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("NAVI_WORKSPACE", &workspace),
        ("NAVI_TOOL_DIR", &copy),
    ];
    let owned = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    owned.into()
}
