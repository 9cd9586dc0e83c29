//! `switch_profile`: another profile for the session, from the next iteration on (SPEC section 5.8).

use std::sync::Arc;

use async_trait::async_trait;
use itertools::Itertools as _;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::read;
use super::schema::spec_of;
use super::{Audience, Tool, ToolContext, ToolResult};
use crate::domain::planning::AgentInfo;
use crate::protocol::powers::Powers;
use crate::protocol::tool::{Effect, ToolSpec};

/// The tool's name on the wire.
pub const NAME: &str = "switch_profile";

const DESCRIPTION: &str = "Continue this conversation as another kind of assistant, with its own \
    instructions and tools. Use it when the user asks for it, or when the task plainly belongs to \
    another kind than yours.";

/// Which profile.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = json!({"profile_id": "secretary"}))]
struct SwitchArgs {
    /// The profile to go on with.
    profile_id: String,
}

tool!(
    SwitchProfile,
    SPEC = spec_of::<SwitchArgs>(NAME, DESCRIPTION, Effect::Write, 10_000)
);

#[async_trait]
impl Tool for SwitchProfile {
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
        with_profiles(&SPEC, audience.agents)
    }

    async fn call(&self, args: Value, context: ToolContext) -> ToolResult {
        let args: SwitchArgs = read(args)?;
        let name = context.session.switch_profile(args.profile_id).await?;
        Ok(format!("from now on you are {name}; go on with the user's request").into())
    }
}

/// A tool's schema with the profiles that there are as the values of `profile_id`.
pub(super) fn with_profiles(spec: &ToolSpec, agents: &[AgentInfo<'_>]) -> ToolSpec {
    let mut spec = spec.clone();
    let field = &mut spec.parameters["properties"]["profile_id"];
    if agents.is_empty() || !field.is_object() {
        return spec;
    }
    field["enum"] = agents.iter().map(|agent| agent.id).collect();
    let mut kinds = agents
        .iter()
        .map(|agent| format!("{}: {}", agent.id, agent.description));
    let said = field["description"].as_str().unwrap_or_default();
    field["description"] = format!("{said} {}.", kinds.join("; ")).into();
    spec
}
