//! The backends together: which one a call goes to, and how each of them is.

use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::domain::lanes::QueueView;
use crate::domain::model_choice::{self, Choice, Wanted};
use crate::llm::Backend;
use crate::llm_actor::{Acquire, GetQueue, Lease, LlmActor, Priority, ProbeNow, Ticket};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::status::{BackendKind, BackendState, BackendStatus};
use crate::supervision::{RestartPolicy, Slot, keep_alive};

/// How long a run waits for backends that nobody has asked yet, or that were down a moment ago.
const FIRST_PROBE: Duration = Duration::from_secs(5);

/// One backend: its guard and what is known of it.
#[derive(Clone, Debug)]
pub struct GuardedBackend {
    pub kind: BackendKind,
    pub guard: Slot<LlmActor>,
    pub status: watch::Receiver<BackendStatus>,
}

/// All backends, in order of preference. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Models(Arc<[GuardedBackend]>);

impl Models {
    /// Starts a guard for each of these backends, which are in order of preference. The guards
    /// end when `closed` is cancelled. To be called within the actix system.
    #[must_use]
    pub fn start(backends: Vec<Arc<dyn Backend>>, closed: &CancellationToken) -> Self {
        let backends = backends.into_iter();
        Self::new(
            backends
                .map(|backend| guard_backend(backend, closed))
                .collect(),
        )
    }

    /// Backends in order of preference.
    #[must_use]
    pub fn new(backends: Vec<GuardedBackend>) -> Self {
        Self(backends.into())
    }

    /// Each backend as it is known to stand.
    #[must_use]
    pub fn statuses(&self) -> Vec<BackendStatus> {
        self.0
            .iter()
            .map(|backend| backend.status.borrow().clone())
            .collect()
    }

    /// Receivers that wake when a backend's status changes.
    #[must_use]
    pub fn watches(&self) -> Vec<watch::Receiver<BackendStatus>> {
        self.0
            .iter()
            .map(|backend| backend.status.clone())
            .collect()
    }

    /// Chooses a backend and a model. Where nothing is ready, every
    /// backend is asked once more before that is an error.
    ///
    /// # Errors
    /// As [`model_choice::choose`].
    pub async fn choose(&self, wanted: Option<Wanted<'_>>) -> Result<Choice, NaviError> {
        if !self.preferred_is_known() {
            self.probe().await;
        }
        model_choice::choose(&self.statuses(), wanted)
    }

    /// Waits for a slot of a backend.
    ///
    /// # Errors
    /// `backend_busy` where too many wait, `backend_unavailable` where its guard went down, or
    /// the backend failed too often in a row to be asked now.
    pub async fn acquire(&self, kind: BackendKind, priority: Priority) -> Result<Lease, NaviError> {
        self.acquire_as(Ticket::new(), kind, priority).await
    }

    /// [`Models::acquire`] with a ticket by which [`Models::queue`] finds it while it waits.
    ///
    /// # Errors
    /// As [`Models::acquire`].
    pub async fn acquire_as(
        &self,
        ticket: Ticket,
        kind: BackendKind,
        priority: Priority,
    ) -> Result<Lease, NaviError> {
        let unavailable = || {
            NaviError::new(
                ErrorCode::BackendUnavailable,
                format!("what guards the {} backend went down", kind.as_str()),
            )
        };
        let guard = self.guard(kind).ok_or_else(unavailable)?;
        guard
            .send(Acquire { priority, ticket })
            .await
            .map_err(|_| unavailable())?
    }

    /// How a backend's queue looks to one that waits in it. None where it waits no longer.
    pub async fn queue(&self, kind: BackendKind, ticket: Ticket) -> Option<QueueView> {
        // An error means that the guard went down: so does the wait.
        self.guard(kind)?.send(GetQueue(ticket)).await.ok()?
    }

    fn guard(&self, kind: BackendKind) -> Option<Addr<LlmActor>> {
        let backend = self.0.iter().find(|backend| backend.kind == kind)?;
        Some(backend.guard.addr())
    }

    /// Asks every backend how it is, now, and waits for the answers within a limit.
    pub async fn probe(&self) {
        let asked = self
            .0
            .iter()
            .map(|backend| backend.guard.addr().send(ProbeNow));
        // Who has not answered by then is still `Unknown` or as it was: the choice says so.
        let _ = tokio::time::timeout(FIRST_PROBE, futures_util::future::join_all(asked)).await;
    }

    /// Whether the choice can be made without asking: the first backend that is not known
    /// to be down is ready.
    fn preferred_is_known(&self) -> bool {
        for backend in self.0.iter() {
            match backend.status.borrow().state {
                BackendState::Ready => return true,
                BackendState::Unknown => return false,
                BackendState::Loading { .. }
                | BackendState::Fetching { .. }
                | BackendState::Down { .. } => {}
            }
        }
        false
    }
}

fn guard_backend(backend: Arc<dyn Backend>, closed: &CancellationToken) -> GuardedBackend {
    let kind = backend.kind();
    let (tx, status) = watch::channel(LlmActor::unknown(backend.as_ref()));
    let guard: Slot<LlmActor> = keep_alive(
        kind.as_str(),
        RestartPolicy {
            // A backend's guard is worth starting for as long as the service lives.
            limit: u32::MAX,
            ..RestartPolicy::default()
        },
        closed.clone(),
        move |guard| LlmActor::new(Arc::clone(&backend), tx.clone(), guard),
        || {},
    );
    GuardedBackend {
        kind,
        guard,
        status,
    }
}
