//! Which tools there are, and a model's call on its way to one of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::arguments::{fit, nearest};
use super::filesystem::Filesystem;
use super::memory::{MemoryForget, MemorySave, MemorySearch};
use super::output::shortened;
use super::scratchpad::ScratchpadTool;
use super::spawn_agent::SpawnAgent;
use super::switch_profile::SwitchProfile;
use super::todo::TodoTool;
use super::{Audience, Tool, ToolError};
use crate::protocol::tool::{Effect, ToolSpec};

/// As much of a wrong tool name as an error shows.
const SHOWN_BYTES: usize = 60;

/// All tools, by name. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Registry {
    tools: Arc<BTreeMap<String, Arc<dyn Tool>>>,
}

/// What a profile's list of tools comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct EnabledTools {
    /// In the order of the list, each once.
    pub specs: Vec<ToolSpec>,
    /// Names of the list that no tool has.
    pub unknown: Vec<String>,
}

/// A call that may be made: the tool exists, the profile allows it, the arguments fit.
#[derive(Clone, Debug)]
pub struct PreparedCall {
    pub tool: Arc<dyn Tool>,
    /// As the tool's schema wants them, which may not be byte for byte what the model sent.
    pub args: Value,
    /// What this very call does.
    pub effect: Effect,
    /// Whether it may run beside others that may.
    pub side_by_side: bool,
}

impl Registry {
    /// A registry of these tools. Of two tools with one name the later stays.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let tools = tools
            .into_iter()
            .map(|tool| (tool.spec().name.clone(), tool))
            .collect();
        Self {
            tools: Arc::new(tools),
        }
    }

    /// The tools that come with Navi.
    #[must_use]
    pub fn builtin() -> Self {
        let tools: [Arc<dyn Tool>; 8] = [
            Arc::new(Filesystem::new()),
            Arc::new(TodoTool::new()),
            Arc::new(ScratchpadTool::new()),
            Arc::new(MemorySearch::new()),
            Arc::new(MemorySave::new()),
            Arc::new(MemoryForget::new()),
            Arc::new(SpawnAgent::new()),
            Arc::new(SwitchProfile::new()),
        ];
        Self::new(tools)
    }

    /// Every tool, by name.
    pub fn all(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.values().map(|tool| tool.spec())
    }

    /// What the model is told of the tools in `enabled`: a profile's `enabled_tools`, or its
    /// `subagent_tools`.
    #[must_use]
    pub fn enabled(&self, enabled: &[String], audience: &Audience<'_>) -> EnabledTools {
        let mut found = EnabledTools {
            specs: Vec::new(),
            unknown: Vec::new(),
        };
        for (index, name) in enabled.iter().enumerate() {
            if enabled[..index].contains(name) {
                continue;
            }
            match self.tools.get(name) {
                Some(tool) => found.specs.push(tool.spec_for(audience)),
                None => found.unknown.push(name.clone()),
            }
        }
        found
    }

    /// Checks a call as the model asked for it. `arguments` is a JSON object, or a string that
    /// holds what the model wrote instead of one; `allowed` are the names that it may call. The
    /// error is the call's result: it tells the model how to do better.
    pub fn prepare(
        &self,
        name: &str,
        arguments: &Value,
        allowed: &[String],
    ) -> Result<PreparedCall, ToolError> {
        let tool = self.find(name, allowed)?;
        let schema = &tool.spec().parameters;
        let args = fit(schema, arguments).map_err(|problem| {
            let problem = format!("wrong call of `{name}`: {problem}");
            ToolError(match example(schema, arguments) {
                Some(example) => joined(problem, &format!("for example {example}")),
                None => problem,
            })
        })?;
        Ok(PreparedCall {
            effect: tool.effect(&args),
            side_by_side: tool.side_by_side(&args),
            tool: Arc::clone(tool),
            args,
        })
    }

    fn find(&self, name: &str, allowed: &[String]) -> Result<&Arc<dyn Tool>, ToolError> {
        let is_allowed = allowed.iter().any(|other| other == name);
        let known = self.tools.get(name);
        if let (Some(tool), true) = (known, is_allowed) {
            return Ok(tool);
        }
        let shown = shortened(name, SHOWN_BYTES);
        let callable: Vec<&str> = allowed
            .iter()
            .map(String::as_str)
            .filter(|name| self.tools.contains_key(*name))
            .collect();
        let mut problem = match known {
            Some(_) => format!("the tool `{shown}` is not allowed here"),
            None => format!("there is no tool `{shown}`"),
        };
        if known.is_none()
            && let Some(near) = nearest(name, callable.iter().copied())
        {
            problem.push_str(&format!("; did you mean `{near}`?"));
        }
        let remedy = if callable.is_empty() {
            "no tools can be called; answer in text".to_owned()
        } else {
            format!("the tools are {}", callable.join(", "))
        };
        Err(ToolError(joined(problem, &remedy)))
    }
}

/// The schema's example, unless the call is for another action: then it would mislead.
fn example<'a>(schema: &'a Value, arguments: &Value) -> Option<&'a Value> {
    let example = schema["examples"].get(0)?;
    let action = &arguments["action"];
    let actions = schema["properties"]["action"]["enum"].as_array();
    let is_another =
        *action != example["action"] && actions.is_some_and(|actions| actions.contains(action));
    (!is_another).then_some(example)
}

fn joined(problem: String, remedy: &str) -> String {
    let separator = if problem.ends_with('?') { " " } else { "; " };
    problem + separator + remedy
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
