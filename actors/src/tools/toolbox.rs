//! The tools in force: a shelf that is swapped whole when a tool comes, goes or changes.

use std::sync::Arc;

use parking_lot::RwLock;

use super::registry::Registry;

/// See the module. Cheap to clone; all clones are one shelf. Whoever takes the registry keeps
/// it as it was then: a run goes by one list of tools from its beginning to its end, so that
/// the prefix of its prompts stays.
#[derive(Clone, Debug)]
// Held for a moment at a time, never across an await.
pub struct Toolbox(Arc<RwLock<Registry>>);

impl Toolbox {
    /// A shelf with these tools.
    pub fn new(registry: Registry) -> Self {
        Self(Arc::new(RwLock::new(registry)))
    }

    /// The tools as they are now.
    pub fn now(&self) -> Registry {
        self.0.read().clone()
    }

    /// Puts other tools in force, for runs that begin from now on.
    pub fn replace(&self, registry: Registry) {
        *self.0.write() = registry;
    }
}
