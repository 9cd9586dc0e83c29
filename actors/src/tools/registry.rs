//! Which tools there are and which are in force, and a model's call on its way to one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use itertools::Itertools as _;
use jsonschema::Validator;
use serde_json::Value;

use super::arguments::{fit, nearest};
use super::filesystem::Filesystem;
use super::home_assistant::{HomeAssistant, HomeAssistantConfig};
use super::memory::{MemoryForget, MemorySave, MemorySearch};
use super::net::grants::Grants;
use super::net::guard::Guard;
use super::output::shown;
use super::schema::validator;
use super::scratchpad::ScratchpadTool;
use super::spawn_agent::SpawnAgent;
use super::ssh::{Ssh, SshConfig};
use super::switch_profile::SwitchProfile;
use super::terminal::{Terminal, TerminalConfig};
use super::todo::TodoTool;
use super::view_image::ViewImage;
use super::web_fetch::WebFetch;
use super::web_search::{SearchEngine, WebSearch};
use super::workspace::FileAccess;
use super::{Audience, Provenance, Tool, ToolError, ToolResult};
use crate::protocol::ids::{SessionId, UserId};
use crate::protocol::powers::Powers;
use crate::protocol::tool::{Effect, ListedTool, ToolSource, ToolSpec};

/// In a profile's list: every user tool that its owner allowed.
pub const USER_TOOLS: &str = "@user";

/// In a profile's list: every tool of every MCP server.
pub const MCP_TOOLS: &str = "@mcp";

/// Whether a name of a profile's list stands for tools that come and go while Navi runs:
/// `@user`, `@mcp`, a beginning with `*` after it, a tool of an MCP server.
pub fn comes_and_goes(name: &str) -> bool {
    matches!(name, USER_TOOLS | MCP_TOOLS) || name.ends_with('*') || name.starts_with("mcp__")
}

/// What the settings say of tools: a field for each that has settings. The default is what an
/// empty configuration comes to.
#[derive(Clone, Debug, Default)]
pub struct ToolConfig {
    pub files: Arc<FileAccess>,
    pub terminal: TerminalConfig,
    /// None where no hosts file is: no host can be reached then.
    pub ssh: Option<SshConfig>,
    /// What of the owner's own network `web_fetch` may reach.
    pub fetch_grants: Grants,
    /// None: there is no web search.
    pub search: Option<SearchEngine>,
    /// None: there is no smart home.
    pub home_assistant: Option<HomeAssistantConfig>,
}

/// All tools, by name. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Registry {
    tools: Arc<BTreeMap<String, Known>>,
    /// Tools that are there and that their owner has not allowed.
    unallowed: Arc<BTreeSet<String>>,
    /// Tools that are there, and not for who asks.
    withheld: Arc<BTreeSet<String>>,
    /// Of those that the program that asks has lent, which every profile has.
    lent: Arc<[String]>,
    /// What that program wants heeded.
    instructions: Arc<str>,
}

/// A tool, and what checks its arguments: made with the first call, since most tools are never
/// called. One whose schema we cannot read checks them alone.
#[derive(Clone, Debug)]
struct Known {
    tool: Arc<dyn Tool>,
    validator: Arc<OnceLock<Option<Validator>>>,
}

impl Known {
    fn validator(&self) -> Option<&Validator> {
        let made = self.validator.get_or_init(|| {
            let spec = self.tool.spec();
            validator(&spec.parameters)
                .inspect_err(|problem| {
                    let tool = &spec.name;
                    tracing::info!(tool, problem, "arguments are not checked here");
                })
                .ok()
        });
        made.as_ref()
    }
}

impl From<Arc<dyn Tool>> for Known {
    fn from(tool: Arc<dyn Tool>) -> Self {
        Self {
            tool,
            validator: Arc::default(),
        }
    }
}

/// What a profile's list of tools comes to.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// Where what it says comes from.
    pub provenance: Provenance,
}

impl Registry {
    /// A registry of these tools. Of two tools with one name the later stays.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let named = |tool: Arc<dyn Tool>| (tool.spec().name.clone(), tool.into());
        Self {
            tools: Arc::new(tools.into_iter().map(named).collect()),
            unallowed: Arc::default(),
            withheld: Arc::default(),
            lent: Arc::default(),
            instructions: Arc::default(),
        }
    }

    /// The tools that come with Navi.
    pub fn builtin(config: &ToolConfig) -> Self {
        let tools: Vec<Arc<dyn Tool>> = vec![
            Arc::new(Filesystem::new(Arc::clone(&config.files))),
            Arc::new(Terminal::new(config.terminal.clone())),
            Arc::new(TodoTool),
            Arc::new(ScratchpadTool),
            Arc::new(MemorySearch),
            Arc::new(MemorySave),
            Arc::new(MemoryForget),
            Arc::new(SpawnAgent),
            Arc::new(SwitchProfile),
            Arc::new(ViewImage),
            Arc::new(WebSearch::new(config.search.clone())),
            Arc::new(WebFetch::new(Guard::new(config.fetch_grants.clone()))),
            Arc::new(HomeAssistant::new(config.home_assistant.clone())),
            Arc::new(Ssh::new(config.ssh.clone().unwrap_or_default())),
        ];
        Self::new(tools)
    }

    /// These tools and more. A name that is taken stays with who has it.
    pub fn with(&self, more: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let mut tools = BTreeMap::clone(&self.tools);
        for tool in more {
            let name = tool.spec().name.clone();
            tools.entry(name).or_insert_with(|| tool.into());
        }
        Self {
            tools: Arc::new(tools),
            ..self.clone()
        }
    }

    /// These tools and those of the program that asks, which go before ours of the same name.
    pub fn with_lent(self, lent: &[Arc<dyn Tool>], instructions: Arc<str>) -> Self {
        if lent.is_empty() {
            // The very same tools: what is made of them is made once.
            return Self {
                instructions,
                ..self
            };
        }
        let mut tools = BTreeMap::clone(&self.tools);
        let named = lent.iter().map(|tool| (tool.spec().name.clone(), tool));
        tools.extend(
            named
                .clone()
                .map(|(name, tool)| (name, Arc::clone(tool).into())),
        );
        Self {
            tools: Arc::new(tools),
            lent: named.map(|(name, _)| name).collect(),
            instructions,
            ..self
        }
    }

    /// Our own tools in place of those with what the program that asks has lent; what it wants heeded
    /// stays.
    pub fn with_own(&self, own: Self) -> Self {
        Self {
            instructions: Arc::clone(&self.instructions),
            ..own
        }
    }

    /// The same tools. Who calls one of these hears that it has to be allowed first.
    pub fn with_unallowed(self, names: impl IntoIterator<Item = String>) -> Self {
        Self {
            unallowed: Arc::new(names.into_iter().collect()),
            ..self
        }
    }

    /// The tools of somebody with these powers.
    pub fn for_powers(&self, powers: &Powers) -> Self {
        if *powers == Powers::All {
            return self.clone();
        }
        let (mut tools, mut withheld) = (BTreeMap::new(), BTreeSet::new());
        for (name, known) in self.tools.iter() {
            match Arc::clone(&known.tool).for_powers(powers) {
                Some(tool) if Arc::ptr_eq(&tool, &known.tool) => {
                    tools.insert(name.clone(), known.clone());
                }
                Some(tool) => {
                    tools.insert(name.clone(), tool.into());
                }
                None => {
                    withheld.insert(name.clone());
                }
            }
        }
        Self {
            tools: Arc::new(tools),
            withheld: Arc::new(withheld),
            ..self.clone()
        }
    }

    /// Whether there is a tool of this name.
    pub fn has(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }

    /// Whether the tool of this name is one that the program that asks lent.
    pub fn is_lent(&self, name: &str) -> bool {
        self.lent.iter().any(|lent| lent == name)
    }

    /// A profile's list of tools as names: what stands for several ([`comes_and_goes`]) becomes
    /// those that there are, by name, where it stands. Each name once.
    pub fn names(&self, listed: &[String]) -> Vec<String> {
        let stands_for = |entry| match (String::as_str(entry), entry.strip_suffix('*')) {
            (USER_TOOLS, _) => self.of_source(ToolSource::User),
            (MCP_TOOLS, _) => self.of_source(ToolSource::Mcp),
            (_, Some(start)) => {
                let all = self.tools.keys();
                all.filter(|name| name.starts_with(start)).collect()
            }
            (_, None) => vec![entry],
        };
        let names = listed.iter().flat_map(stands_for);
        names.chain(self.lent.iter()).unique().cloned().collect()
    }

    fn of_source(&self, source: ToolSource) -> Vec<&String> {
        let tools = self.tools.iter();
        let tools = tools.filter(|(_, known)| known.tool.source() == source);
        tools.map(|(name, _)| name).collect()
    }

    /// What the tools of these names add to the system prompt, in their order, and then the
    /// program that asks.
    pub fn prompts(&self, names: &[String]) -> String {
        let tools = names.iter().filter_map(|name| self.tools.get(name));
        let own = Some(&*self.instructions).filter(|text| !text.is_empty());
        tools
            .filter_map(|known| known.tool.prompt())
            .chain(own)
            .join("\n\n")
    }

    /// Every tool, by name.
    pub fn all(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.values().map(|known| known.tool.spec())
    }

    /// Every tool with where it comes from, by name.
    pub fn listed(&self) -> impl Iterator<Item = ListedTool> {
        self.tools.values().map(|Known { tool, .. }| ListedTool {
            spec: tool.spec().clone(),
            source: tool.source(),
        })
    }

    /// Where the tool of this name comes from.
    pub fn source_of(&self, name: &str) -> Option<ToolSource> {
        self.tools.get(name).map(|known| known.tool.source())
    }

    /// Has every tool end what it keeps for a session that is deleted.
    pub fn session_closed(&self, session: SessionId) {
        for known in self.tools.values() {
            known.tool.session_closed(session);
        }
    }

    /// The hosts that can be reached by `ssh`.
    pub fn hosts(&self) -> Vec<String> {
        let ssh = self.tools.get(super::ssh::NAME);
        ssh.map_or_else(Vec::new, |known| known.tool.reaches())
    }

    /// Has every tool end what it keeps for a person who is removed. Blocks.
    pub fn person_removed(&self, user: UserId) {
        for known in self.tools.values() {
            known.tool.person_removed(user);
        }
    }

    /// Whether these are the very same tools.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tools, &other.tools)
    }

    /// Of these names, those of tools that can be called as things stand, each once.
    pub fn available(&self, names: &[String]) -> Vec<String> {
        let is_there = |name: &&String| {
            let known = self.tools.get(*name);
            known.is_some_and(|known| known.tool.unavailable().is_none())
        };
        names.iter().unique().filter(is_there).cloned().collect()
    }

    /// What the model is told of the tools in `enabled`: a profile's `enabled_tools`, or its
    /// `subagent_tools`.
    pub fn enabled(&self, enabled: &[String], audience: &Audience<'_>) -> EnabledTools {
        let mut found = EnabledTools::default();
        for name in enabled.iter().unique() {
            match self.tools.get(name) {
                Some(known) if known.tool.unavailable().is_some() => {}
                Some(known) => found.specs.push(known.tool.spec_for(audience)),
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
    ) -> ToolResult<PreparedCall> {
        let known = self.find(name, allowed)?;
        let tool = &known.tool;
        let schema = &tool.spec().parameters;
        let fitted = fit(schema, tool.actions(), known.validator(), arguments);
        let args = fitted.map_err(|problem| {
            let problem = format!("wrong call of `{name}`: {problem}");
            ToolError(match example(schema, arguments) {
                Some(example) => joined(problem, &format!("for example {example}")),
                None => problem,
            })
        })?;
        Ok(PreparedCall {
            effect: tool.effect(&args),
            side_by_side: tool.side_by_side(&args),
            provenance: tool.provenance(&args),
            tool: Arc::clone(tool),
            args,
        })
    }

    fn find(&self, name: &str, allowed: &[String]) -> ToolResult<&Known> {
        let is_allowed = allowed.iter().any(|other| other == name);
        let known = self.tools.get(name);
        if let (Some(known), true) = (known, is_allowed) {
            return match known.tool.unavailable() {
                Some(reason) => Err(ToolError(reason.to_owned())),
                None => Ok(known),
            };
        }
        refuse_if!(
            known.is_none() && self.unallowed.contains(name),
            "the tool `{name}` has to be allowed before it can be called: the user looks at it and allows it on Navi's page under tools, or by POST /tools/{name}/allow; say so to the user, and go on without it"
        );
        refuse_if!(self.withheld.contains(name), "{}", withheld(name));
        let shown = shown(name);
        let callable = self.available(allowed);
        let mut problem = match known {
            Some(_) => format!("the tool `{shown}` is not allowed here"),
            None => format!("there is no tool `{shown}`"),
        };
        if known.is_none()
            && let Some(near) = nearest(name, callable.iter().map(String::as_str))
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

/// What a model is told of a tool that its user may not use.
pub(crate) fn withheld(name: &str) -> String {
    format!(
        "the tool `{name}` is not the user's to use: an admin of this Navi grants it (the page's People); say so to the user, and go on without it"
    )
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
