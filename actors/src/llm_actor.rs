//! [`LlmActor`]: guards one backend.
//!
//! Started by the root, one for each backend, and stopped by it. It owns the queue for the
//! backend's slots and what is known of the backend's health. It must not know what is
//! asked of the model: a run takes a lease and reads its stream itself. When it dies it is
//! rebuilt; those who wait for a slot get an error, streams that are under way go on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, ResponseFuture,
    SpawnHandle, WrapFuture,
};
use tokio::sync::{oneshot, watch};

use crate::llm::Backend;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::status::{BackendState, BackendStatus};
use crate::supervision::Guard;

/// How often a backend that is well is asked how it is.
const PROBE_WELL: Duration = Duration::from_secs(20);

/// How often one that is not.
const PROBE_ILL: Duration = Duration::from_secs(3);

/// How often one that is fetching its weights, so that people see it move.
const PROBE_PROGRESS: Duration = Duration::from_millis(500);

/// No probe takes longer than this, whatever the backend does.
const PROBE_LIMIT: Duration = Duration::from_secs(10);

/// The most runs that may wait for one backend.
const WAITING: usize = 256;

/// Who goes first when several wait for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// A person waits.
    Interactive,
}

/// Asks for a slot. Answered when there is one; asking no longer gives it up.
#[derive(Debug, Message)]
#[rtype(result = "Result<Lease, NaviError>")]
pub struct Acquire(pub Priority);

/// Asks the backend now how it is, and answers when it has said so.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct ProbeNow;

/// A slot came back.
#[derive(Debug, Message)]
#[rtype(result = "()")]
struct Release;

/// A slot of a backend: hold it while reading the stream, drop it before running tools.
#[derive(Debug)]
pub struct Lease {
    backend: Arc<dyn Backend>,
    actor: Addr<LlmActor>,
}

impl Lease {
    /// The backend that the slot is of.
    #[must_use]
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // At most as many as there are slots.
        self.actor.do_send(Release);
    }
}

#[derive(Debug)]
struct Waiter {
    priority: Priority,
    granted: oneshot::Sender<Lease>,
}

/// See the module.
#[derive(Debug)]
pub struct LlmActor {
    backend: Arc<dyn Backend>,
    free: usize,
    waiting: VecDeque<Waiter>,
    status: watch::Sender<BackendStatus>,
    probing: bool,
    next_probe: Option<SpawnHandle>,
    probed: Vec<oneshot::Sender<()>>,
    _guard: Guard,
}

impl LlmActor {
    /// An actor for this backend. What it learns of its health goes to `status`.
    #[must_use]
    pub fn new(
        backend: Arc<dyn Backend>,
        status: watch::Sender<BackendStatus>,
        guard: Guard,
    ) -> Self {
        Self {
            free: backend.slots().max(1),
            backend,
            waiting: VecDeque::new(),
            status,
            probing: false,
            next_probe: None,
            probed: Vec::new(),
            _guard: guard,
        }
    }

    /// What is known of a backend that nobody has asked yet.
    #[must_use]
    pub fn unknown(backend: &dyn Backend) -> BackendStatus {
        BackendStatus {
            kind: backend.kind(),
            address: backend.address(),
            state: BackendState::Unknown,
            version: None,
            models: Vec::new(),
            default_model: None,
        }
    }

    fn probe(&mut self, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.probing, true) {
            return;
        }
        if let Some(timer) = self.next_probe.take() {
            ctx.cancel_future(timer);
        }
        let backend = Arc::clone(&self.backend);
        ctx.spawn(
            async move {
                let answer = tokio::time::timeout(PROBE_LIMIT, backend.probe()).await;
                (backend, answer)
            }
            .into_actor(self)
            .map(|(backend, answer), actor, ctx| {
                let mut status = Self::unknown(backend.as_ref());
                match answer {
                    Ok(probe) => {
                        status.state = probe.state;
                        status.version = probe.version;
                        status.models = probe.models;
                        status.default_model = probe.default_model;
                    }
                    Err(_) => {
                        status.state = BackendState::Down {
                            problem: format!(
                                "{} does not answer within {} s",
                                status.address,
                                PROBE_LIMIT.as_secs()
                            ),
                            remedy: "check that it is running and not overloaded".to_owned(),
                        };
                    }
                }
                let pause = match status.state {
                    BackendState::Ready => PROBE_WELL,
                    BackendState::Fetching { .. } => PROBE_PROGRESS,
                    BackendState::Unknown
                    | BackendState::Loading { .. }
                    | BackendState::Down { .. } => PROBE_ILL,
                };
                actor.status.send_if_modified(|known| {
                    let changed = *known != status;
                    *known = status;
                    changed
                });
                actor.probing = false;
                for probed in actor.probed.drain(..) {
                    // Whoever asked may have gone.
                    let _ = probed.send(());
                }
                actor.next_probe = Some(ctx.run_later(pause, Self::probe));
            }),
        );
    }

    fn grant(&mut self, ctx: &Context<Self>) {
        while self.free > 0 {
            let Some(next) = self.next_waiter() else {
                return;
            };
            self.free -= 1;
            let lease = Lease {
                backend: Arc::clone(&self.backend),
                actor: ctx.address(),
            };
            // One that gave up drops the lease, which comes back as a `Release`.
            let _ = next.granted.send(lease);
        }
    }

    fn next_waiter(&mut self) -> Option<Waiter> {
        self.waiting.retain(|waiter| !waiter.granted.is_closed());
        let first = self.waiting.iter().map(|waiter| waiter.priority).min()?;
        let at = self
            .waiting
            .iter()
            .position(|waiter| waiter.priority == first)?;
        self.waiting.remove(at)
    }
}

impl Actor for LlmActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.probe(ctx);
    }
}

impl Handler<Acquire> for LlmActor {
    type Result = ResponseFuture<Result<Lease, NaviError>>;

    fn handle(&mut self, Acquire(priority): Acquire, ctx: &mut Self::Context) -> Self::Result {
        fail::fail_point!("llm::acquire");
        if self.waiting.len() >= WAITING {
            return Box::pin(async {
                Err(NaviError::new(
                    ErrorCode::BackendBusy,
                    "too many runs wait for the model already; try again later",
                ))
            });
        }
        let (tx, rx) = oneshot::channel();
        self.waiting.push_back(Waiter {
            priority,
            granted: tx,
        });
        self.grant(ctx);
        Box::pin(async {
            rx.await.map_err(|_| {
                NaviError::new(
                    ErrorCode::BackendUnavailable,
                    "what guards the model went down",
                )
            })
        })
    }
}

impl Handler<Release> for LlmActor {
    type Result = ();

    fn handle(&mut self, _: Release, ctx: &mut Self::Context) {
        // A lease of this actor's dead predecessor goes to the dead address, never here.
        self.free += 1;
        self.grant(ctx);
    }
}

impl Handler<ProbeNow> for LlmActor {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: ProbeNow, ctx: &mut Self::Context) -> Self::Result {
        let (tx, rx) = oneshot::channel();
        self.probed.push(tx);
        self.probe(ctx);
        Box::pin(async {
            // An error means that the actor died; its successor probes by itself.
            let _ = rx.await;
        })
    }
}
