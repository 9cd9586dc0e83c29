//! How everything that was added from outside stands.

use std::sync::Arc;

use super::{ExtensionsActor, FORBIDDEN, Server};
use crate::protocol::extension::{
    ExtensionKind, ExtensionState, ExtensionTool, McpServer, McpServerState, SkillInfo,
};
use crate::protocol::phrase::{Phrase, PhraseCode};
use crate::protocol::powers::{PowerKind, Powers};
use crate::services::now;
use crate::tools::Tool;
use crate::tools::mcp::McpTool;
use crate::tools::skills::SkillTool;
use crate::tools::user::{ScannedTool, UserTool};

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
    pub problems: Vec<Phrase>,
}

impl ExtensionsView {
    /// As much of it as somebody with these powers may use.
    #[must_use]
    pub fn of(&self, powers: &Powers) -> Self {
        if *powers == Powers::All {
            return self.clone();
        }
        let mut theirs = self.clone();
        theirs.tools.retain(|tool| match (tool.kind, &tool.server) {
            (ExtensionKind::User, _) => powers.has_named(PowerKind::UserTools, &tool.name),
            (ExtensionKind::Mcp, server) => server
                .as_ref()
                .is_some_and(|server| powers.has_named(PowerKind::Mcp, server)),
        });
        theirs
            .servers
            .retain(|server| powers.has_named(PowerKind::Mcp, &server.name));
        theirs
            .skills
            .retain(|skill| powers.has_named(PowerKind::Skills, &skill.name));
        // What is wrong is an admin's to mend.
        theirs.problems.clear();
        theirs
    }
}

impl ExtensionsActor {
    /// How everything stands now.
    pub(super) fn view(&self) -> ExtensionsView {
        let mut tools: Vec<ExtensionTool> = self
            .found
            .scan
            .tools
            .iter()
            .map(|t| self.user_tool(t))
            .collect();
        let of = |code, name: &str, problem: &str| {
            let params = [("name", name.to_owned()), ("problem", problem.to_owned())];
            Phrase::new(code, params)
        };
        let folders = self.found.scan.problem.iter();
        let files = folders
            .chain(&self.found.mcp.problems)
            .chain(&self.found.skills.problems);
        let mut problems: Vec<Phrase> = files.map(Phrase::plain).collect();
        problems.extend(tools.iter().filter_map(|tool| {
            let problem = tool.problem.as_ref()?;
            Some(of(PhraseCode::ToolProblem, &tool.name, problem))
        }));
        let mut servers = Vec::new();
        for (name, server) in &self.servers {
            let listed = server.listing().map_or(&[][..], |listing| &listing.tools);
            tools.extend(listed.iter().map(|tool| ExtensionTool {
                name: tool.spec.name.clone(),
                kind: ExtensionKind::Mcp,
                state: self.state(&tool.spec.name, &tool.sha256),
                problem: None,
                sha256: Some(tool.sha256.clone()),
                description: tool.spec.description.clone(),
                effect: Some(tool.spec.effect),
                folder: None,
                server: Some(name.clone()),
            }));
            let shown = shown(server);
            let fell = [McpServerState::Waiting, McpServerState::Failed].contains(&shown.state);
            let why = shown.last_error.iter().filter(|_| fell);
            let told = why.chain(&shown.problems);
            problems.extend(told.map(|problem| of(PhraseCode::McpProblem, name, problem)));
            servers.push(shown);
        }
        let skills = self.found.skills.skills.iter().map(|skill| SkillInfo {
            name: skill.name.clone(),
            description: skill.description.clone(),
            folder: skill.folder.display().to_string(),
        });
        ExtensionsView {
            tools,
            servers,
            skills: skills.collect(),
            problems,
        }
    }

    fn user_tool(&self, tool: &ScannedTool) -> ExtensionTool {
        let read = tool.found.as_ref().ok();
        // Its own are older.
        let is_taken = self.around.base.has(&tool.name);
        let taken = "Navi has a tool of that name already; give it another one";
        let problem = tool.found.as_ref().err().map(String::as_str);
        let problem = problem.or(is_taken.then_some(taken));
        ExtensionTool {
            name: tool.name.clone(),
            kind: ExtensionKind::User,
            state: match read {
                Some((_, sha256)) if problem.is_none() => self.state(&tool.name, sha256),
                _ => ExtensionState::Failed,
            },
            problem: problem.map(str::to_owned),
            sha256: read.map(|(_, sha256)| sha256.clone()),
            description: read.map_or_else(String::new, |(tool, _)| tool.description.clone()),
            effect: read.map(|(tool, _)| tool.effect),
            folder: Some(tool.folder.display().to_string()),
            server: None,
        }
    }

    /// Whether a tool may be called as it is now.
    fn state(&self, name: &str, sha256: &str) -> ExtensionState {
        let pin = self.pins.as_ref().and_then(|pins| pins.get(name));
        match pin.map(|pin| pin.sha256.as_str()) {
            None | Some(FORBIDDEN) => ExtensionState::New,
            Some(pinned) if pinned == sha256 => ExtensionState::Allowed,
            Some(_) => ExtensionState::Changed,
        }
    }

    /// The tools of a view that may be called.
    pub(super) fn callable(&self, view: &ExtensionsView) -> Vec<Arc<dyn Tool>> {
        let allowed = |name: &str| {
            let mut tools = view.tools.iter();
            tools.any(|tool| tool.name == name && tool.state == ExtensionState::Allowed)
        };
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        let skills = &self.found.skills.skills;
        if !skills.is_empty() {
            tools.push(Arc::new(SkillTool::new(skills)));
        }
        let workshop = &self.around.workshop;
        for tool in self
            .found
            .scan
            .tools
            .iter()
            .filter(|tool| allowed(&tool.name))
        {
            if let Ok((manifest, sha256)) = &tool.found {
                tools.push(Arc::new(UserTool::new(
                    Arc::clone(manifest),
                    tool.folder.clone(),
                    sha256.clone(),
                    workshop.clone(),
                )));
            }
        }
        let listed = self.servers.values().flat_map(|server| {
            let listing = server.listing().into_iter();
            let tools = listing.flat_map(|listing| listing.tools.iter());
            tools.map(move |tool| (&server.task, tool))
        });
        let listed = listed.filter(|(_, tool)| allowed(&tool.spec.name));
        for (task, tool) in listed.take(MAX_MCP_TOOLS) {
            tools.push(Arc::new(McpTool {
                listed: tool.clone(),
                server: task.config.name.clone(),
                time_limit: task.config.time_limit,
                link: task.link.clone(),
                trust: workshop.trust.clone(),
            }));
        }
        tools
    }
}

fn shown(server: &Server) -> McpServer {
    let (config, report) = (&server.task.config, server.report.as_ref());
    let listing = server.listing();
    let tools = listing.iter().flat_map(|listing| listing.tools.iter());
    McpServer {
        name: config.name.clone(),
        transport: config.transport.word().to_owned(),
        state: report.map_or(McpServerState::Starting, |report| report.state),
        since: report.map_or_else(now, |report| report.since),
        failures: report.map_or(0, |report| report.failures),
        last_error: report.and_then(|report| report.last_error.clone()),
        problems: listing.map(|l| l.problems.clone()).unwrap_or_default(),
        tools: tools.map(|tool| tool.spec.name.clone()).collect(),
        // Who may change the file knows.
        version: None,
    }
}
