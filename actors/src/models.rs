//! The backends together: which one a call goes to, and how each of them is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Addr};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::lanes::QueueView;
use crate::domain::model_choice::{self, Choice, Wanted};
use crate::domain::slots::Parallel;
use crate::llm::Backend;
use crate::llm_actor::{Acquire, GetQueue, Lease, LlmActor, ProbeNow, Retire, Ticket};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::status::{BackendKind, BackendState, BackendStatus, ModelInfo};
use crate::supervision::{RestartPolicy, Slot, keep_alive};

/// How long a run waits for backends that nobody has asked yet, or that were down a moment ago.
const FIRST_PROBE: Duration = Duration::from_secs(5);

/// How long what servers said of their models counts for one that none of them has.
const LOOKED: Duration = Duration::from_millis(250);

/// Models that a server offers are few; past this no window is remembered.
const MAX_WINDOWS: usize = 512;

/// One backend: its guard and what is known of it.
#[derive(Clone, Debug)]
pub struct GuardedBackend {
    pub kind: BackendKind,
    /// See [`Backend::is_looked_for`].
    pub looked_for: bool,
    pub guard: Slot<LlmActor>,
    pub status: watch::Receiver<BackendStatus>,
    /// Cancelled when another one takes its place: its guard is not started again.
    pub retired: CancellationToken,
}

/// All backends, in order of preference. Cheap to clone; all clones have the same.
#[derive(Clone, Debug)]
pub struct Models {
    all: Arc<watch::Sender<Arc<[GuardedBackend]>>>,
    windows: Windows,
    last_look: LastLook,
    parallel: Parallel,
    closed: CancellationToken,
}

/// When the servers were last begun to be asked for a model that none of them had. Held while they are.
type LastLook = Arc<tokio::sync::Mutex<Option<Instant>>>;

/// What servers told of windows that are smaller than was thought, by backend and model. Kept
/// for the process's life.
#[derive(Clone, Debug, Default)]
struct Windows(Arc<Mutex<HashMap<(BackendKind, String), u32>>>);

impl Windows {
    /// Another server has other windows.
    fn forget(&self, kind: BackendKind) {
        self.0.lock().retain(|(of, _), _| *of != kind);
    }

    fn put_into(&self, kind: BackendKind, model: &mut ModelInfo) {
        if let Some(told) = self.0.lock().get(&(kind, model.name.clone())) {
            let said = model.context_window.unwrap_or(*told);
            model.context_window = Some(said.min(*told));
        }
    }
}

impl Models {
    /// Starts a guard for each of these backends, which are in order of preference. The guards
    /// end when `closed` is cancelled. To be called within the actix system.
    #[must_use]
    pub fn start(
        backends: Vec<Arc<dyn Backend>>,
        parallel: Parallel,
        closed: &CancellationToken,
    ) -> Self {
        let backends = backends.into_iter();
        let guarded = backends.map(|backend| guard_backend(backend, parallel, closed));
        Self {
            parallel,
            closed: closed.clone(),
            ..Self::new(guarded.collect())
        }
    }

    /// Backends in order of preference.
    #[must_use]
    pub fn new(backends: Vec<GuardedBackend>) -> Self {
        Self {
            all: Arc::new(watch::Sender::new(backends.into())),
            windows: Windows::default(),
            last_look: LastLook::default(),
            parallel: Parallel::default(),
            closed: CancellationToken::new(),
        }
    }

    fn all(&self) -> Arc<[GuardedBackend]> {
        Arc::clone(&self.all.borrow())
    }

    /// Puts a backend in the place of that of its kind: what is asked from now on, it is asked.
    /// Who waits for the other one gets an error and comes again, streams that are under way go
    /// on. False where there is none of its kind. To be called within the actix system.
    pub fn replace(&self, backend: Arc<dyn Backend>) -> bool {
        let kind = backend.kind();
        let all = self.all();
        let Some(at) = all.iter().position(|it| it.kind == kind) else {
            return false;
        };
        let mut next = all.to_vec();
        let fresh = guard_backend(backend, self.parallel, &self.closed);
        let gone = std::mem::replace(&mut next[at], fresh);
        // In this order: from here on nothing is learnt of it.
        gone.retired.cancel();
        self.windows.forget(kind);
        self.all.send_replace(next.into());
        // Once a change of the settings.
        gone.guard.addr().do_send(Retire);
        true
    }

    /// Wakes when a backend was put in another one's place.
    #[must_use]
    pub fn replacements(&self) -> watch::Receiver<Arc<[GuardedBackend]>> {
        self.all.subscribe()
    }

    /// Each backend as it is known to stand.
    #[must_use]
    pub fn statuses(&self) -> Vec<BackendStatus> {
        self.all()
            .iter()
            .map(|backend| {
                let mut status = backend.status.borrow().clone();
                for model in &mut status.models {
                    self.windows.put_into(status.kind, model);
                }
                status
            })
            .collect()
    }

    /// A server told the window of one of its models. One that `retired` says another took the
    /// place of tells nothing of that one's.
    pub fn learn_window(
        &self,
        kind: BackendKind,
        retired: &CancellationToken,
        model: &str,
        window: u32,
    ) {
        let mut known = self.windows.0.lock();
        if retired.is_cancelled() {
            return;
        }
        let key = (kind, model.to_owned());
        if known.len() < MAX_WINDOWS || known.contains_key(&key) {
            known.insert(key, window);
        }
    }

    /// Receivers that wake when a backend's status changes.
    #[must_use]
    pub fn watches(&self) -> Vec<watch::Receiver<BackendStatus>> {
        self.all()
            .iter()
            .map(|backend| backend.status.clone())
            .collect()
    }

    /// Chooses a backend and a model. Where nothing is ready, or what is wanted was not asked
    /// yet, every backend is asked once more first.
    ///
    /// # Errors
    /// As [`model_choice::choose`].
    pub async fn choose(&self, wanted: Wanted<'_>) -> Result<Choice, NaviError> {
        if !self.preferred_is_known(wanted) {
            self.probe().await;
        }
        self.choose_now(wanted)
    }

    /// The same, where nothing has to be asked for it.
    #[must_use]
    pub fn choose_known(&self, wanted: Wanted<'_>) -> Option<Choice> {
        let is_known = self.preferred_is_known(wanted);
        is_known.then(|| self.choose_now(wanted).ok()).flatten()
    }

    /// Whether a person may choose this model. One that is not known of may have been installed just
    /// now: every backend is asked first, once for all who ask at the time.
    ///
    /// # Errors
    /// As [`model_choice::check_chosen`].
    pub async fn check_chosen(&self, name: &str) -> Result<(), NaviError> {
        let all = self.all();
        let looked_for = all.iter().filter(|backend| backend.looked_for);
        let looked_for: Vec<BackendKind> = looked_for.map(|backend| backend.kind).collect();
        let check = || model_choice::check_chosen(&self.statuses(), &looked_for, name);
        if check().is_ok() {
            return Ok(());
        }
        self.look_anew().await;
        check()
    }

    /// Asks every backend, unless that was begun since, or a moment ago.
    async fn look_anew(&self) {
        let asked = Instant::now();
        let mut last = self.last_look.lock().await;
        if last.is_none_or(|began| began + LOOKED <= asked) {
            let began = Instant::now();
            self.probe().await;
            *last = Some(began);
        }
    }

    fn choose_now(&self, wanted: Wanted<'_>) -> Result<Choice, NaviError> {
        let mut choice = model_choice::choose(&self.statuses(), wanted)?;
        // A default that no server lists has a window too.
        self.windows.put_into(choice.kind, &mut choice.model);
        Ok(choice)
    }

    /// Waits for a slot of a backend. By its ticket [`Models::queue`] finds who waits.
    ///
    /// # Errors
    /// `backend_busy` where too many wait, `backend_unavailable` where its guard went down, or
    /// the backend failed too often in a row to be asked now.
    pub async fn acquire(&self, kind: BackendKind, asked: Acquire) -> Result<Lease, NaviError> {
        let unavailable = || {
            NaviError::new(
                ErrorCode::BackendUnavailable,
                format!("what guards the {} backend went down", kind.as_str()),
            )
        };
        let backend = self.backend(kind).ok_or_else(unavailable)?;
        let lease = backend.guard.addr().send(asked);
        let mut lease = lease.await.map_err(|_| unavailable())??;
        lease.retired = backend.retired;
        Ok(lease)
    }

    /// How a backend's queue looks to one that waits in it. None where it waits no longer.
    pub async fn queue(&self, kind: BackendKind, ticket: Ticket) -> Option<QueueView> {
        // An error means that the guard went down: so does the wait.
        let guard = self.backend(kind)?.guard.addr();
        guard.send(GetQueue(ticket)).await.ok()?
    }

    /// What guards each backend now.
    pub(crate) fn guards(&self) -> Vec<Addr<LlmActor>> {
        let all = self.all();
        all.iter().map(|backend| backend.guard.addr()).collect()
    }

    fn backend(&self, kind: BackendKind) -> Option<GuardedBackend> {
        let all = self.all();
        all.iter().find(|backend| backend.kind == kind).cloned()
    }

    /// Asks every backend how it is, now, and waits for the answers within a limit.
    pub async fn probe(&self) {
        let guards = self.guards().into_iter();
        let asked = guards.map(|guard| guard.send(ProbeNow));
        // Who has not answered by then is still `Unknown` or as it was: the choice says so.
        let _ = tokio::time::timeout(FIRST_PROBE, futures_util::future::join_all(asked)).await;
    }

    /// Whether the choice can be made without asking: the wanted backend, and the first that is
    /// not known to be down, are ready. Any may have the model that was chosen for a session.
    fn preferred_is_known(&self, wanted: Wanted<'_>) -> bool {
        let unknown =
            |backend: &GuardedBackend| backend.status.borrow().state == BackendState::Unknown;
        let may_be_meant = |backend: &&GuardedBackend| {
            wanted.chosen.is_some() || Some(backend.kind) == wanted.backend
        };
        let all = self.all();
        if all.iter().filter(may_be_meant).any(unknown) {
            return false;
        }
        for backend in all.iter() {
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

fn guard_backend(
    backend: Arc<dyn Backend>,
    parallel: Parallel,
    closed: &CancellationToken,
) -> GuardedBackend {
    let (kind, looked_for) = (backend.kind(), backend.is_looked_for());
    let (tx, status) = watch::channel(LlmActor::unknown(backend.as_ref()));
    let retired = closed.child_token();
    let guard: Slot<LlmActor> = keep_alive(
        kind.as_str(),
        RestartPolicy {
            // A backend's guard is worth starting for as long as the service lives.
            limit: u32::MAX,
            ..RestartPolicy::default()
        },
        retired.clone(),
        move |guard| LlmActor::new(Arc::clone(&backend), parallel, tx.clone(), guard).start(),
        || {},
    );
    GuardedBackend {
        kind,
        looked_for,
        guard,
        status,
        retired,
    }
}

#[cfg(test)]
#[path = "models_tests.rs"]
mod models_tests;
