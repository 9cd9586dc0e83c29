//! [`UserTool`]: a tool of the user's own, as the model calls it.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jsonschema::Validator;
use serde_json::Value;

use super::copy::Copies;
use super::manifest::Manifest;
use super::runner::{Ended, Job, JobLimits, Runner};
use crate::protocol::approval::{Detail, DetailKind};
use crate::protocol::tool::{Effect, ToolSpec};
use crate::tools::output::{human_size, visible};
use crate::tools::spill::bounded;
use crate::tools::trust::Trust;
use crate::tools::{
    Proposal, Provenance, RuleSubject, Tool, ToolContext, ToolError, ToolResult, ToolSource,
};

/// As much as a tool may write to standard output.
const MAX_OUTPUT: usize = 1024 * 1024;

/// The call's own limit ends a tool; that of the run, a little later, is there for the rest.
const MARGIN: Duration = Duration::from_secs(5);

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
    pub runner: Arc<dyn Runner>,
}

impl UserTool {
    /// A tool as its folder stood when it had this hash.
    #[must_use]
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
        let limit = manifest.time_limit + MARGIN;
        Self {
            spec: ToolSpec {
                name: manifest.name.clone(),
                description: manifest.description.clone(),
                parameters: manifest.parameters.clone(),
                effect,
                time_limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
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
}

#[async_trait]
impl Tool for UserTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn source(&self) -> ToolSource {
        ToolSource::User
    }

    fn validator(&self) -> Option<&Validator> {
        Some(&self.manifest.validator)
    }

    fn effect(&self, _: &Value) -> Effect {
        self.spec.effect
    }

    fn hangs_on_files(&self, _: &Value) -> bool {
        true
    }

    async fn proposal(&self, args: &Value, _: &ToolContext) -> Result<Proposal, ToolError> {
        self.refuse_untrusted()?;
        let name = &self.spec.name;
        let mut details = vec![Detail {
            label: "arguments".to_owned(),
            kind: DetailKind::Code,
            text: serde_json::to_string_pretty(args).unwrap_or_default(),
        }];
        details.push(Detail {
            label: "program".to_owned(),
            kind: DetailKind::Text,
            text: visible(
                &self
                    .folder
                    .join(&self.manifest.executable)
                    .to_string_lossy(),
            ),
        });
        if !self.workshop.runner.holds(self.manifest.effect) {
            details.push(Detail {
                label: "sandbox".to_owned(),
                kind: DetailKind::Text,
                text: "none: it may do whatever you may".to_owned(),
            });
        }
        Ok(Proposal {
            summary: format!("run your tool {name}"),
            details,
            // The key holds the hash: "always" covers the tool as it is, not what it becomes.
            rule: Some(RuleSubject {
                key: self.sha256.clone(),
                words: format!("any call of {name} as it is now"),
            }),
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
        let job = Job {
            program: copy.join(executable.strip_prefix("./").unwrap_or(executable)),
            args: self.manifest.args.clone(),
            cwd: context.workspace.clone(),
            env: environment(&context, &copy),
            stdin: args.to_string().into_bytes(),
            readable: vec![copy],
            effect: self.manifest.effect,
            limits: JobLimits {
                time: self.manifest.time_limit,
                stdout_bytes: MAX_OUTPUT,
            },
        };
        let ended = self.workshop.runner.run(job).await.map_err(|error| {
            ToolError(format!(
                "the tool {} could not be started: {error}; is the first line of {executable} a `#!` with a program that is installed?",
                self.spec.name
            ))
        })?;
        let text = self.read(&ended)?;
        let (workspace, call_id) = (context.workspace, context.call_id);
        let text = tokio::task::spawn_blocking(move || bounded(text, &workspace, &call_id))
            .await
            .map_err(|_| ToolError("the result was lost; call the tool again".to_owned()))?;
        Ok(text.into())
    }
}

impl UserTool {
    /// What the model is told of how it ended.
    fn read(&self, ended: &Ended) -> Result<String, ToolError> {
        let name = &self.spec.name;
        let limit = self.manifest.time_limit.as_secs();
        let stdout = String::from_utf8_lossy(&ended.stdout);
        let mut problem = if ended.timed_out {
            format!(
                "the tool {name} did not end within its limit of {limit} s and was ended; it may have taken effect in part"
            )
        } else if ended.flooded {
            format!(
                "the tool {name} wrote more than {} and was ended; ask it for less",
                human_size(MAX_OUTPUT as u64)
            )
        } else {
            match ended.code {
                Some(0) => return Ok(stdout.into_owned()),
                Some(code) => format!("the tool {name} failed with exit code {code}"),
                None => format!("the tool {name} was ended by a signal"),
            }
        };
        let stderr = String::from_utf8_lossy(&ended.stderr);
        // Some programs say what is wrong where they say everything.
        let said = if stderr.trim().is_empty() {
            &stdout
        } else {
            &stderr
        };
        let said = said.trim();
        if !said.is_empty() {
            let from = said.ceil_char_boundary(said.len().saturating_sub(SHOWN_STDERR));
            // Writing to a string cannot fail.
            let _ = write!(problem, ". It said: {}", &said[from..]);
        }
        Err(ToolError(problem))
    }
}

/// The whole environment of a tool: nothing of Navi's own.
fn environment(context: &ToolContext, copy: &std::path::Path) -> Vec<(String, String)> {
    let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let workspace = text(&context.workspace);
    vec![
        (
            "PATH".to_owned(),
            std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ),
        ("HOME".to_owned(), workspace.clone()),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
        // A folder that changes under Python would be another tool.
        ("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned()),
        ("NAVI_WORKSPACE".to_owned(), workspace),
        ("NAVI_TOOL_DIR".to_owned(), text(copy)),
    ]
}
