//! [`Toolbox`]: the tools in force, and whether those that come by themselves are there.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use super::registry::Registry;
use crate::protocol::powers::Powers;

/// The tools in force: a shelf that is swapped whole when a tool comes, goes or changes. Cheap to
/// clone; all clones are one shelf. Whoever takes the registry keeps it as it was then: a run goes
/// by one list of tools from its beginning to its end, so that the prefix of its prompts stays.
#[derive(Clone, Debug)]
pub struct Toolbox {
    // Held for a moment at a time, never across an await.
    shelf: Arc<RwLock<Shelf>>,
    /// Told after each change of the shelf.
    servers: watch::Sender<Servers>,
}

/// Whether every MCP server has listed its tools, or failed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    Heard,
    Awaited,
}

/// So many sets of powers are made tools of once: people who may the same have the same.
const KEPT_SETS: usize = 32;

#[derive(Debug)]
struct Shelf {
    all: Registry,
    /// The newest last.
    narrowed: VecDeque<(Powers, Registry)>,
}

impl Toolbox {
    /// A shelf with these tools.
    pub fn new(registry: Registry) -> Self {
        Self {
            shelf: Arc::new(RwLock::new(Shelf {
                all: registry,
                narrowed: VecDeque::new(),
            })),
            servers: watch::Sender::new(Servers::Heard),
        }
    }

    /// All tools as they are now.
    pub fn now(&self) -> Registry {
        self.shelf.read().all.clone()
    }

    /// Those of somebody with these powers. The very same for the same powers, so that what is made
    /// of them is made once.
    pub fn of(&self, powers: &Powers) -> Registry {
        if *powers == Powers::All {
            return self.now();
        }
        let mut shelf = self.shelf.write();
        if let Some((_, known)) = shelf.narrowed.iter().find(|(of, _)| of == powers) {
            return known.clone();
        }
        let narrowed = shelf.all.for_powers(powers);
        if shelf.narrowed.len() == KEPT_SETS {
            shelf.narrowed.pop_front();
        }
        let kept = (powers.clone(), narrowed.clone());
        shelf.narrowed.push_back(kept);
        narrowed
    }

    /// Puts other tools in force, for runs that begin from now on.
    pub fn replace(&self, registry: Registry, servers: Servers) {
        *self.shelf.write() = Shelf {
            all: registry,
            narrowed: VecDeque::new(),
        };
        self.servers.send_replace(servers);
    }

    /// Returns when every server was heard and the tools are `enough`.
    pub async fn complete(&self, enough: impl Fn(&Registry) -> bool) {
        let mut servers = self.servers.subscribe();
        let is_complete = |servers: &Servers| *servers == Servers::Heard && enough(&self.now());
        // It cannot end: the sender is ours.
        let _ = servers.wait_for(is_complete).await;
    }
}
