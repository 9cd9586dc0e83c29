//! What runs were offered last: the tools of two calls are mostly the same, and each is long.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::context::agents;
use crate::protocol::offered::OfferedTools;
use crate::protocol::profile::Profile;
use crate::tools::Audience;
use crate::tools::registry::Registry;

/// So many are kept: profiles are few, and so are the sets of tools of each.
const KEPT: usize = 16;

/// See the module.
#[derive(Debug, Default)]
pub struct Offers(Mutex<VecDeque<(To, OfferedTools)>>);

/// Who is offered which tools, out of which.
#[derive(Debug)]
struct To {
    registry: Registry,
    profile: Arc<Profile>,
    agents: Vec<Arc<Profile>>,
    names: Vec<String>,
}

impl Offers {
    /// The tools of these names that can be used now, as this profile's model is told of them.
    pub(super) fn of(
        &self,
        registry: &Registry,
        profile: &Arc<Profile>,
        profiles: Vec<Arc<Profile>>,
        names: &[String],
    ) -> OfferedTools {
        let to = To {
            registry: registry.clone(),
            profile: Arc::clone(profile),
            agents: profiles,
            names: registry.available(names),
        };
        let mut kept = self.0.lock();
        if let Some((_, tools)) = kept.iter().find(|(known, _)| known.is_same(&to)) {
            return tools.clone();
        }
        let audience = Audience {
            profile,
            agents: &agents(&to.agents),
        };
        let tools = OfferedTools::from(registry.enabled(&to.names, &audience).specs);
        // What is gone from the registry is held for nobody.
        kept.retain(|(known, _)| known.registry.is(registry));
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back((to, tools.clone()));
        tools
    }
}

impl To {
    /// What is held cannot be another one at the same address.
    fn is_same(&self, other: &Self) -> bool {
        self.registry.is(&other.registry)
            && Arc::ptr_eq(&self.profile, &other.profile)
            && self.names == other.names
            && self.agents.len() == other.agents.len()
            && self
                .agents
                .iter()
                .zip(&other.agents)
                .all(|(one, other)| Arc::ptr_eq(one, other))
    }
}
