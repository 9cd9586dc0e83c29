//! What people may use of what is powerful, and what there is to grant.

use super::Engine;
use crate::extensions::ExtensionsView;
use crate::protocol::error::NaviError;
use crate::protocol::extension::ExtensionKind;
use crate::protocol::ids::UserId;
use crate::protocol::powers::{Power, PowerKind, Powers};
use crate::protocol::tool::ListedTool;
use strum::IntoEnumIterator as _;

impl Engine {
    /// The tools that this person may use.
    ///
    /// # Errors
    /// `store_unavailable`.
    pub async fn tools_of(&self, user: UserId) -> Result<Vec<ListedTool>, NaviError> {
        let powers = self.powers_of(user).await?;
        Ok(self.services.toolbox.of(&powers).listed().collect())
    }

    /// How what is added from outside stands, as far as this person may use it.
    ///
    /// # Errors
    /// `store_unavailable`.
    pub async fn extensions_of(&self, user: UserId) -> Result<ExtensionsView, NaviError> {
        let powers = self.powers_of(user).await?;
        Ok(self.extensions.view().of(&powers))
    }

    /// What there is to grant, by name.
    #[must_use]
    pub fn grantable(&self) -> Vec<Power> {
        let hosts = self.services.toolbox.now().hosts();
        let hosts = hosts.iter().map(|name| Power::named(PowerKind::Ssh, name));
        let view = self.extensions.view();
        let servers = view.servers.iter();
        let servers = servers.map(|server| Power::named(PowerKind::Mcp, &server.name));
        let tools = view.tools.iter();
        let tools = tools.filter(|tool| tool.kind == ExtensionKind::User);
        let tools = tools.map(|tool| Power::named(PowerKind::UserTools, &tool.name));
        let skills = view.skills.iter();
        let skills = skills.map(|skill| Power::named(PowerKind::Skills, &skill.name));
        let kinds = PowerKind::iter().map(Power::of);
        kinds
            .chain(hosts)
            .chain(servers)
            .chain(tools)
            .chain(skills)
            .collect()
    }

    pub(super) async fn powers_of(&self, user: UserId) -> Result<Powers, NaviError> {
        let people = self.services.people.clone();
        self.stored(async move |_| people.powers(user).await).await
    }
}
