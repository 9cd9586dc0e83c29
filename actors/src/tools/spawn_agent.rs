//! `spawn_agent`: a bounded task for a child run (SPEC section 6).

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::read;
use super::output::bounded_for;
use super::schema::spec_of;
use super::{Audience, SpawnOrder, Tool, ToolContext, ToolOutput, ToolResult};
use crate::protocol::powers::Powers;
use crate::protocol::tool::{Effect, ToolSpec};

/// The tool's name on the wire.
pub const NAME: &str = "spawn_agent";

/// The longest task, and the longest context beside it.
const TEXT_CHARS: usize = 20_000;

/// A child has its own limit, beside which it waits for a person as long as that takes; this one
/// only guards the guard.
const TIME_LIMIT_MS: u64 = 60 * 24 * 3_600_000;

const DESCRIPTION: &str = "Give a subtask to a helper who works on it alone and reports back. \
    Use it for a bounded piece of work of three or more tool calls. Several calls in one answer \
    work at the same time. The helper sees only what you write here, and works with the same \
    files and notes.";

/// What the child is to do.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({"task": "Read every file in notes/ and list the dates in them, with the file of each."}))]
struct SpawnArgs {
    /// The whole task: what to do, with which files, and what to report.
    task: String,
    /// Which kind of helper. Without it: your own kind.
    profile_id: Option<String>,
    /// What the helper has to know beside the task.
    #[serde(default)]
    context: String,
}

// A child may change what its tools may change.
tool!(
    SpawnAgent,
    SPEC = spec_of::<SpawnArgs>(NAME, DESCRIPTION, Effect::Write, TIME_LIMIT_MS)
);

#[async_trait]
impl Tool for SpawnAgent {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn needs_workspace(&self) -> bool {
        false
    }

    fn for_powers(self: Arc<Self>, _: &Powers) -> Option<Arc<dyn Tool>> {
        Some(self)
    }

    fn spec_for(&self, audience: &Audience<'_>) -> ToolSpec {
        super::switch_profile::with_profiles(&SPEC, audience.agents)
    }

    /// Children of one reply work at the same time.
    fn side_by_side(&self, _: &Value) -> bool {
        true
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        let args: SpawnArgs = read(args)?;
        refuse_if!(
            args.task.trim().is_empty(),
            "`task` is empty: say what the helper is to do and what to report"
        );
        for (name, text) in [("task", &args.task), ("context", &args.context)] {
            let chars = text.chars().count();
            refuse_if!(
                chars > TEXT_CHARS,
                "`{name}` has {chars} characters, and {TEXT_CHARS} is the limit; name the files to read instead of quoting them"
            );
        }
        let order = SpawnOrder {
            task: args.task,
            profile_id: args.profile_id.filter(|id| !id.trim().is_empty()),
            context: args.context,
        };
        let output = context.agents.spawn(&context.call_id, order).await?;
        Ok(ToolOutput {
            text: bounded_for(output.text, &context).await?,
            ..output
        })
    }
}
