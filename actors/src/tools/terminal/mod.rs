//! `terminal`: commands in the session's workspace, inside the sandbox.

mod allowed;
mod output;
mod proposal;
mod removal;
mod run;
mod shell;

#[cfg(test)]
mod terminal_tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub use self::allowed::Allowed;
pub(crate) use self::removal::remove_all;
use self::shell::{Background, Shells};
use super::actions::{ActionFields, actions, effect_of, read_action};
use super::output::bounded_for;
use super::sandbox::{Fence, Sandbox, SandboxConfig};
use super::schema::spec_of;
use super::{Proposal, Provenance, Tool, ToolContext, ToolResult};
use crate::protocol::ids::SessionId;
use crate::protocol::phrase::{Phrase, PhraseCode};
use crate::protocol::powers::{PowerKind, Powers};
use crate::protocol::tool::{Effect, ToolSpec};

/// The tool's name on the wire.
pub const NAME: &str = "terminal";

/// How long a command may take that asks for no more.
const USUAL_TIME: Duration = Duration::from_secs(120);

const DESCRIPTION: &str = "Run a shell command in this conversation's workspace. It has no \
    network, sees no files outside the workspace and cannot be typed into: give everything as \
    arguments, with flags such as -y. cd stays for the next command. Run servers and other long \
    work with background.";

/// What the settings say of the terminal.
#[derive(Clone, Debug)]
pub struct TerminalConfig {
    pub sandbox: SandboxConfig,
    pub allowed: Allowed,
    /// The most that a command may ask for.
    pub max_time: Duration,
}

impl Default for TerminalConfig {
    fn default() -> Self {
        Self {
            sandbox: SandboxConfig::default(),
            allowed: Allowed::Any,
            max_time: Duration::from_secs(3600),
        }
    }
}

/// What to run, or which background command is meant. One flat object, since small models fill
/// that in best.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({"action": "run", "command": "ls -la src"}))]
struct TerminalArgs {
    /// run: run `command`. look: new output of a background command. end: end a background
    /// command. list: the background commands.
    action: Action,
    /// run: the command, as for a shell.
    #[serde(default)]
    command: String,
    /// run: the folder to run it in, from the workspace down. Without it: where the last
    /// command ended.
    directory: Option<String>,
    /// run: end it after so many seconds; 120 without it, in the background as many as it may.
    timeout_seconds: Option<u64>,
    /// run: do not wait for its end.
    #[serde(default)]
    background: bool,
    /// look, end: the number of the background command.
    #[serde(default)]
    id: u64,
}

actions! {
    "run" Run Host ["command"] ["directory", "timeout_seconds", "background"]
        r#"{"action":"run","command":"ls -la"}"#;
    "look" Look Read ["id"] [] r#"{"action":"look","id":1}; list shows their numbers"#;
    "end" End Write ["id"] [] r#"{"action":"end","id":1}; list shows their numbers"#;
    "list" List Read [] [];
}

/// The tool. Commands that run in the background live here, a bounded number for each session.
#[derive(Debug)]
pub struct Terminal {
    spec: ToolSpec,
    sandbox: Sandbox,
    allowed: Allowed,
    max_time: Duration,
    shells: Shells,
}

impl Terminal {
    pub fn new(config: TerminalConfig) -> Self {
        let time_limit = config.max_time + Duration::from_secs(60);
        let time_limit = u64::try_from(time_limit.as_millis()).unwrap_or(u64::MAX);
        Self {
            // The most: what a command can do depends on what holds it.
            spec: spec_of::<TerminalArgs>(NAME, DESCRIPTION, Effect::Host, time_limit),
            sandbox: Sandbox::new(config.sandbox),
            allowed: config.allowed,
            max_time: config.max_time,
            shells: Shells::default(),
        }
    }

    fn fence(&self) -> Fence {
        match self.allowed {
            Allowed::Any | Allowed::Only(_) => Fence::Inside,
            Allowed::Everything => Fence::Lifted,
        }
    }
}

#[async_trait]
impl Tool for Terminal {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn for_powers(self: Arc<Self>, powers: &Powers) -> Option<Arc<dyn Tool>> {
        powers.has(PowerKind::Terminal).then_some(self)
    }

    fn actions(&self) -> &[ActionFields] {
        ACTIONS
    }

    fn effect(&self, args: &Value) -> Effect {
        match effect_of(ACTIONS, args) {
            Some(effect) if args["action"] != "run" => effect,
            _ => self.why_open().map_or(Effect::Write, |_| Effect::Host),
        }
    }

    fn hangs_on_files(&self, args: &Value) -> bool {
        args["action"] == "run"
    }

    // Without a fence it may have read anything, from anywhere.
    fn provenance(&self, _: &Value) -> Provenance {
        let open = self.why_open();
        open.map_or(Provenance::Workspace, |_| Provenance::Outside)
    }

    // Whoever lifted the fence knows; who has none where one is wanted may not.
    fn by_word(&self, args: &Value) -> Option<Phrase> {
        let runs = args["action"] == "run" && self.fence() == Fence::Inside;
        let reason = self.sandbox.available().err().filter(|_| runs)?;
        Some(Phrase::from(PhraseCode::NothingHolds).with("reason", reason.clone()))
    }

    async fn proposal(&self, args: &Value, context: &ToolContext) -> ToolResult<Proposal> {
        let args: TerminalArgs = read_action(ACTIONS, args.clone())?;
        match args.action {
            Action::Run => self.propose(&self.wanted(args, context).await?).await,
            Action::End => self.propose_end(args.id, context),
            Action::Look => Ok(Proposal::of_arguments(NAME, &json!({"id": args.id}))),
            Action::List => Ok(Proposal::of_arguments(NAME, &json!({}))),
        }
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        let args: TerminalArgs = read_action(ACTIONS, args)?;
        let session = context.session_id;
        let said = match args.action {
            Action::Run => {
                context.means.check_command()?;
                let wanted = self.wanted(args, &context).await?;
                return match wanted.background {
                    true => self.start_in_background(wanted, &context).await,
                    false => self.run(wanted, &context).await,
                };
            }
            Action::Look => self.shells.of(session, args.id, Background::look)?,
            Action::End => self.shells.end(session, args.id).await?,
            Action::List => self.shells.list(session),
        };
        Ok(bounded_for(said, &context).await?.into())
    }

    fn session_closed(&self, session: SessionId) {
        self.shells.forget(session);
        // Nothing of it runs by now, or will in a moment: what is left is deleted with the rest.
        let scratch = self.sandbox.scratch_of(&session.to_string());
        if let Err(error) = remove_all(&scratch) {
            tracing::warn!(%error, path = %scratch.display(), "temporary files of a session were left");
        }
    }
}
