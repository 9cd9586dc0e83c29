//! How everything that was added from outside stands.

use std::sync::Arc;

use super::{ExtensionsActor, FORBIDDEN};
use crate::protocol::extension::{
    ExtensionKind, ExtensionState, ExtensionTool, McpServer, McpServerState, SkillInfo,
};
use crate::services::now;
use crate::tools::Tool;
use crate::tools::mcp::McpTool;
use crate::tools::skills::SkillTool;
use crate::tools::user::UserTool;

/// As many tools of servers as are offered in all.
const MAX_MCP_TOOLS: usize = 256;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExtensionsView {
    /// By kind and name.
    pub tools: Vec<ExtensionTool>,
    pub servers: Vec<McpServer>,
    pub skills: Vec<SkillInfo>,
    /// What is wrong, one sentence each, for the page.
    pub problems: Vec<String>,
}

impl ExtensionsActor {
    /// `pinned`: the hash that a tool is allowed under.
    pub(super) fn view(&self, pinned: &dyn Fn(&str) -> Option<String>) -> ExtensionsView {
        let mut tools = self.user_tools(pinned);
        let mut problems: Vec<String> = self.scan.problem.iter().cloned().collect();
        problems.extend(tools.iter().filter_map(|tool| {
            let problem = tool.problem.as_ref()?;
            Some(format!("tool {}: {problem}", tool.name))
        }));
        problems.extend(self.mcp_problems.iter().cloned());
        problems.extend(self.skills.problems.iter().cloned());
        let mut servers = Vec::new();
        for (name, server) in &self.servers {
            let report = server.report.as_ref();
            let listing = report.and_then(|report| report.listing.as_ref());
            let listed = listing
                .map(|listing| listing.tools.as_ref())
                .unwrap_or_default();
            tools.extend(listed.iter().map(|tool| ExtensionTool {
                name: tool.name.clone(),
                kind: ExtensionKind::Mcp,
                state: state(&tool.sha256, pinned(&tool.name)),
                problem: None,
                sha256: Some(tool.sha256.clone()),
                description: tool.description.clone(),
                effect: Some(tool.effect),
                folder: None,
                server: Some(name.clone()),
            }));
            let shown = McpServer {
                name: name.clone(),
                transport: server.config.transport.word().to_owned(),
                state: report.map_or(McpServerState::Starting, |report| report.state),
                since: report.map_or_else(now, |report| report.since),
                failures: report.map_or(0, |report| report.failures),
                last_error: report.and_then(|report| report.last_error.clone()),
                problems: listing.map(|l| l.problems.clone()).unwrap_or_default(),
                tools: listed.iter().map(|tool| tool.name.clone()).collect(),
            };
            if let (McpServerState::Waiting | McpServerState::Failed, Some(error)) =
                (shown.state, &shown.last_error)
            {
                problems.push(format!("MCP server {name}: {error}"));
            }
            problems.extend(
                shown
                    .problems
                    .iter()
                    .map(|p| format!("MCP server {name}: {p}")),
            );
            servers.push(shown);
        }
        ExtensionsView {
            tools,
            servers,
            skills: self
                .skills
                .skills
                .iter()
                .map(|skill| SkillInfo {
                    name: skill.name.clone(),
                    description: skill.description.clone(),
                    folder: skill.folder.display().to_string(),
                })
                .collect(),
            problems,
        }
    }

    fn user_tools(&self, pinned: &dyn Fn(&str) -> Option<String>) -> Vec<ExtensionTool> {
        let tools = self.scan.tools.iter();
        tools
            .map(|tool| {
                let base = ExtensionTool {
                    name: tool.name.clone(),
                    kind: ExtensionKind::User,
                    state: ExtensionState::Failed,
                    problem: None,
                    sha256: None,
                    description: String::new(),
                    effect: None,
                    folder: Some(tool.folder.display().to_string()),
                    server: None,
                };
                match &tool.found {
                    Err(problem) => ExtensionTool {
                        problem: Some(problem.clone()),
                        ..base
                    },
                    Ok((manifest, sha256)) => ExtensionTool {
                        state: state(sha256, pinned(&tool.name)),
                        description: manifest.description.clone(),
                        effect: Some(manifest.effect),
                        // Its own are older.
                        problem: self.around.base.has(&tool.name).then(|| {
                            "Navi has a tool of that name already; give it another one".to_owned()
                        }),
                        sha256: Some(sha256.clone()),
                        ..base
                    },
                }
            })
            .map(|tool| ExtensionTool {
                state: if tool.problem.is_some() {
                    ExtensionState::Failed
                } else {
                    tool.state
                },
                ..tool
            })
            .collect()
    }

    /// The tools of a view that may be called.
    pub(super) fn callable(&self, view: &ExtensionsView) -> Vec<Arc<dyn Tool>> {
        let allowed = |name: &str| {
            let mut tools = view.tools.iter();
            tools.any(|tool| tool.name == name && tool.state == ExtensionState::Allowed)
        };
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        if !self.skills.skills.is_empty() {
            tools.push(Arc::new(SkillTool::new(&self.skills.skills)));
        }
        for tool in self.scan.tools.iter().filter(|tool| allowed(&tool.name)) {
            if let Ok((manifest, sha256)) = &tool.found {
                tools.push(Arc::new(UserTool::new(
                    Arc::clone(manifest),
                    tool.folder.clone(),
                    sha256.clone(),
                    self.around.workshop.clone(),
                )));
            }
        }
        let mut room = MAX_MCP_TOOLS;
        for (name, server) in &self.servers {
            let listing = server.report.as_ref().and_then(|r| r.listing.as_ref());
            for listed in listing.iter().flat_map(|listing| listing.tools.iter()) {
                if room == 0 || !allowed(&listed.name) {
                    continue;
                }
                room -= 1;
                tools.push(Arc::new(McpTool::new(
                    listed.clone(),
                    name.clone(),
                    server.config.time_limit,
                    server.link.clone(),
                    self.around.workshop.trust.clone(),
                )));
            }
        }
        tools
    }
}

fn state(sha256: &str, pinned: Option<String>) -> ExtensionState {
    match pinned {
        None => ExtensionState::New,
        Some(pinned) if pinned == FORBIDDEN => ExtensionState::New,
        Some(pinned) if pinned == sha256 => ExtensionState::Allowed,
        Some(_) => ExtensionState::Changed,
    }
}
