//! Our own supervision (DESIGN section 3): actix does not restart an actor that panicked.
//!
//! Each actor carries a [`Guard`]. When the actor goes, however it goes, the guard's `Drop`
//! tells whoever watches whether it stopped in order. For the services, [`keep_alive`] is
//! that watcher: it starts the actor again, with a pause that grows, up to a limit.

use std::fmt;
use std::time::Duration;

use actix::{Actor, Addr};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::metrics;

/// How an actor went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It stopped in order.
    Clean,
    /// It panicked, or its arbiter went from under it.
    Died,
    /// It stopped because nobody knows whether what it wrote was written, or still will be, or
    /// because it told what is not written.
    Unsettled,
}

/// Tells a watcher how its actor went. Lives in the actor, and goes with it.
pub struct Guard {
    tell: Option<Box<dyn FnOnce(Ending) + Send>>,
    ending: Ending,
}

impl Guard {
    /// `tell` is called once, from `Drop`, perhaps during a panic: it must not panic.
    pub fn new(tell: impl FnOnce(Ending) + Send + 'static) -> Self {
        Self {
            tell: Some(Box::new(tell)),
            ending: Ending::Died,
        }
    }

    /// To be called on an orderly stop alone: `stopped()` runs after a panic too.
    pub fn mark_clean(&mut self) {
        self.ending = Ending::Clean;
    }

    /// To be called by one that stops with a write of its own under way, or that told what is
    /// not written.
    pub fn mark_unsettled(&mut self) {
        self.ending = Ending::Unsettled;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(tell) = self.tell.take() {
            tell(self.ending);
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("ending", &self.ending)
            .finish_non_exhaustive()
    }
}

/// Where a service is now. Survives the service's restarts.
#[derive(Debug)]
pub struct Slot<A: Actor>(watch::Receiver<Addr<A>>);

impl<A: Actor> Clone for Slot<A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<A: Actor> Slot<A> {
    /// The service's present address. Between a death and the restart it is that of the dead.
    #[must_use]
    pub fn addr(&self) -> Addr<A> {
        self.0.borrow().clone()
    }
}

/// How often a service may die, and how long it stays down.
#[derive(Clone, Copy, Debug)]
pub struct RestartPolicy {
    pub first_pause: Duration,
    pub longest_pause: Duration,
    /// More deaths than this within `window`, and the service is given up.
    pub limit: u32,
    pub window: Duration,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            first_pause: Duration::from_millis(50),
            longest_pause: Duration::from_secs(5),
            limit: 10,
            window: Duration::from_secs(60),
        }
    }
}

/// Starts a service by `start`, and keeps it alive until `shutdown`. `given_up` is called when it died
/// too often; what was started last is then left dead.
pub fn keep_alive<A>(
    name: &'static str,
    policy: RestartPolicy,
    shutdown: CancellationToken,
    start: impl Fn(Guard) -> Addr<A> + 'static,
    given_up: impl FnOnce() + 'static,
) -> Slot<A>
where
    A: Actor,
{
    let start = move || {
        let (tx, rx) = oneshot::channel();
        let guard = Guard::new(move |ending| {
            // Nobody listens any more when the watcher has ended: that is shutdown.
            let _ = tx.send(ending);
        });
        (start(guard), rx)
    };
    let (first, mut ended) = start();
    let (slot, receiver) = watch::channel(first);
    actix::spawn(async move {
        let mut deaths: Vec<Instant> = Vec::new();
        loop {
            let ending = tokio::select! {
                () = shutdown.cancelled() => return,
                ending = &mut ended => ending.unwrap_or(Ending::Died),
            };
            if ending == Ending::Clean || shutdown.is_cancelled() {
                return;
            }
            let now = Instant::now();
            deaths.retain(|died| now.duration_since(*died) < policy.window);
            deaths.push(now);
            let recent = u32::try_from(deaths.len()).unwrap_or(u32::MAX);
            if recent > policy.limit {
                tracing::error!(
                    service = name,
                    deaths = recent,
                    "service keeps dying, giving up"
                );
                given_up();
                return;
            }
            let pause = policy
                .first_pause
                .saturating_mul(2_u32.saturating_pow(recent - 1))
                .min(policy.longest_pause);
            tracing::error!(
                service = name,
                pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
                "service died, starting it again"
            );
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            metrics::record(|on| on.service.restarted(name));
            let (addr, next_end) = start();
            ended = next_end;
            slot.send_replace(addr);
            tracing::info!(service = name, "service runs again");
        }
    });
    Slot(receiver)
}
