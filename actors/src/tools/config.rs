//! What the settings say of tools: a field for each that has settings.

use std::sync::Arc;

use super::home_assistant::HomeAssistantConfig;
use super::net::grants::Grants;
use super::ssh::SshConfig;
use super::terminal::TerminalConfig;
use super::web_search::SearchEngine;
use super::workspace::FileAccess;

/// See the module. The default is what an empty configuration comes to.
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
