//! [`Extensions`]: what doors ask of them.

use std::sync::Arc;

use actix::Actor;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    Dependencies, ExtensionPlaces, ExtensionsActor, ExtensionsView, Order, Rescan, RestartPolicy,
    Slot, Trust, Workshop, keep_alive, user,
};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::UserId;
use crate::store::Store;
use crate::tools::registry::Registry;
use crate::tools::toolbox::Toolbox;

/// See the module. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Extensions {
    /// None where there is no place for any.
    actor: Option<Slot<ExtensionsActor>>,
    view: watch::Receiver<Arc<ExtensionsView>>,
}

impl Extensions {
    /// Starts the actor, and keeps it alive until `closing`. Tools that it finds are put into
    /// the toolbox beside those of `base`. To be called within the actix system.
    #[must_use]
    pub fn start(
        places: Option<ExtensionPlaces>,
        base: Registry,
        toolbox: Toolbox,
        store: Store,
        closing: CancellationToken,
    ) -> Self {
        let (tell, view) = watch::channel(Arc::default());
        let actor = places.map(|places| {
            let around = Dependencies {
                workshop: Workshop {
                    trust: Trust::default(),
                    copies: user::Copies::new(places.copies_dir.clone()),
                    runner: places.runner.clone(),
                },
                places,
                store,
                base,
                toolbox,
                view: Arc::new(tell),
                closing: closing.clone(),
            };
            keep_alive(
                "extensions",
                RestartPolicy {
                    // Without it conversations go on; it is worth starting as long as they do.
                    limit: u32::MAX,
                    ..RestartPolicy::default()
                },
                closing,
                move |guard| ExtensionsActor::new(around.clone(), guard).start(),
                || {},
            )
        });
        Self { actor, view }
    }

    /// How everything stands.
    #[must_use]
    pub fn view(&self) -> Arc<ExtensionsView> {
        Arc::clone(&self.view.borrow())
    }

    /// Told whenever that changes.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Arc<ExtensionsView>> {
        self.view.clone()
    }

    /// Reads everything again: folders, manifests, the servers' configuration. What changed
    /// holds when this returns, but for servers, which take their time.
    pub async fn rescan(&self) {
        if let Some(actor) = &self.actor {
            // One that just died reads everything when it is back.
            let _ = actor.addr().send(Rescan).await;
        }
    }

    /// Allows a tool as it was seen, by its hash.
    ///
    /// # Errors
    /// `not_found`; `tool_changed` where it has another hash by now, or cannot be used;
    /// `store_unavailable`.
    pub async fn allow(&self, name: String, sha256: String, user: UserId) -> Result<(), NaviError> {
        // What stands on the disk now, not what stood there a while ago.
        self.rescan().await;
        self.ask(Order::Allow { name, sha256, user }).await
    }

    /// Allows a tool no more, at once.
    ///
    /// # Errors
    /// `not_found`; `store_unavailable`.
    pub async fn forbid(&self, name: String) -> Result<(), NaviError> {
        self.ask(Order::Forbid { name }).await
    }

    /// Starts an MCP server again.
    ///
    /// # Errors
    /// `not_found`.
    pub async fn restart_server(&self, server: String) -> Result<(), NaviError> {
        self.ask(Order::Restart { server }).await
    }

    async fn ask(&self, order: Order) -> Result<(), NaviError> {
        let Some(actor) = &self.actor else {
            let none = "there are no tools of yours and no MCP servers here";
            return Err(NaviError::new(ErrorCode::NotFound, none));
        };
        actor.addr().send(order).await.unwrap_or_else(|_| {
            Err(NaviError::new(
                ErrorCode::Internal,
                "this failed here; try again in a moment",
            ))
        })
    }
}
