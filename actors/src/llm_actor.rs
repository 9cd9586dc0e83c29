//! [`LlmActor`]: guards one backend.
//!
//! Started by the engine, one for each backend; it ends with the service. It owns the queue for
//! the backend's slots ([`Slots`] says how many those are), what is known of the backend's health,
//! and the pace that its models have shown. It must not know what is asked of the model: a run
//! takes a lease and reads its stream itself. When it dies it is rebuilt; those who wait for a
//! slot get an error, streams that are under way go on. The same happens where another server is
//! put in the place of its own, but that it is not rebuilt.
//!
//! What a probe says does not keep a call away: a server that is too busy to tell its version
//! may well be answering. The calls themselves do, when they fail in a row
//! ([`Breaker`]); a probe that finds the server back lets them in again.

mod lease;
mod line;
mod messages;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, ResponseFuture,
    SpawnHandle, WrapFuture,
};
use chrono::Utc;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::breaker::{Admission, Breaker, Health};
use crate::domain::first_chunk::ModelPace;
use crate::domain::lanes::{self, QueueView, Waiting};
use crate::domain::slots::{Parallel, SIDE_BY_SIDE, Slots};
use crate::llm::Backend;
use crate::llm::guard::Pulse;
use crate::metrics;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::UserId;
use crate::protocol::phrase::{Phrase, PhraseCode, Trouble};
use crate::protocol::status::{BackendState, BackendStatus};
use crate::supervision::Guard;

// Whoever takes a lease names its lane, and needs nothing else of the decisions behind it.
pub use crate::domain::lanes::Priority;
pub use lease::Lease;
pub use messages::{Acquire, GetQueue, ProbeNow, Retire, Ticket};

use self::line::{Line, Waiter};
use self::messages::{CallBegan, CallEnded, CallTalks, Release};

/// How often a backend that is well is asked how it is.
const PROBE_WELL: Duration = Duration::from_secs(20);

/// How often one that is not.
const PROBE_ILL: Duration = Duration::from_secs(3);

/// How often one that is fetching its weights, so that people see it move.
const PROBE_PROGRESS: Duration = Duration::from_millis(500);

/// No probe takes longer than this, whatever the backend does.
const PROBE_LIMIT: Duration = Duration::from_secs(10);

/// A call that was stopped gives its slot back at once. One that has not after this long hangs,
/// and others need the slot.
const RECLAIM: Duration = Duration::from_secs(5);

/// The most models whose pace is kept.
const PACES: usize = 64;

/// Who holds a slot.
#[derive(Debug)]
struct Holder {
    ticket: Ticket,
    priority: Priority,
    person: Option<UserId>,
    /// The lane from which it was let in.
    lane: Priority,
    /// Cancelled to ask for the slot back.
    asked_back: CancellationToken,
    /// Takes the slot from one that was stopped and does not give it back.
    reclaim: SpawnHandle,
}

/// See the module.
#[derive(Debug)]
pub struct LlmActor {
    backend: Arc<dyn Backend>,
    slots: Slots,
    running: Vec<Holder>,
    line: Line,
    started: Instant,
    breaker: Breaker,
    last_problem: Phrase,
    /// By model. Leases take it along as it is when they are granted.
    paces: Arc<HashMap<String, ModelPace>>,
    /// When the backend last said anything to anybody.
    pulse: Pulse,
    status: watch::Sender<BackendStatus>,
    probing: bool,
    next_probe: Option<SpawnHandle>,
    probed: Vec<oneshot::Sender<()>>,
    guard: Guard,
}

impl LlmActor {
    /// An actor for this backend, which is sent so many requests at once. What it learns of
    /// its health goes to `status`.
    #[must_use]
    pub fn new(
        backend: Arc<dyn Backend>,
        parallel: Parallel,
        status: watch::Sender<BackendStatus>,
        guard: Guard,
    ) -> Self {
        Self {
            slots: Slots::new(parallel),
            backend,
            running: Vec::new(),
            line: Line::default(),
            started: Instant::now(),
            breaker: Breaker::default(),
            last_problem: Phrase::plain(""),
            paces: Arc::default(),
            pulse: Pulse::default(),
            status,
            probing: false,
            next_probe: None,
            probed: Vec::new(),
            guard,
        }
    }

    /// What is known of a backend that nobody has asked yet.
    #[must_use]
    pub fn unknown(backend: &dyn Backend) -> BackendStatus {
        BackendStatus {
            kind: backend.kind(),
            address: backend.address(),
            state: BackendState::Unknown,
            down_since: None,
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
                        if let Some(capacity) = probe.capacity {
                            actor.slots.said(capacity);
                        }
                        status.state = probe.state;
                        status.version = probe.version;
                        status.models = probe.models;
                        status.default_model = probe.default_model;
                    }
                    Err(_) => {
                        let params = [
                            ("address", status.address.clone()),
                            ("seconds", PROBE_LIMIT.as_secs().to_string()),
                        ];
                        let late = Phrase::new(PhraseCode::ProbeLate, params);
                        status.state =
                            BackendState::down(Trouble::new(late, PhraseCode::AskServer));
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
                    if matches!(known.state, BackendState::Down { .. })
                        && status.state == BackendState::Ready
                    {
                        // Somebody has started it again.
                        actor.breaker = Breaker::default();
                        actor.slots.forget();
                    }
                    if matches!(status.state, BackendState::Down { .. }) {
                        status.down_since = known.down_since.or_else(|| Some(Utc::now()));
                    }
                    let changed = *known != status;
                    *known = status;
                    changed
                });
                actor.probing = false;
                // It may take more than was known.
                actor.grant(ctx);
                for probed in actor.probed.drain(..) {
                    // Whoever asked may have gone.
                    let _ = probed.send(());
                }
                actor.next_probe = Some(ctx.run_later(pause, Self::probe));
            }),
        );
    }

    fn grant(&mut self, ctx: &mut Context<Self>) {
        loop {
            self.forget_those_who_left();
            let now = self.started.elapsed();
            let next = lanes::next(&self.queue());
            let next = next.filter(|at| {
                let next = self.line.waiting().nth(*at);
                next.is_some_and(|next| self.slots.admits(next.priority, now))
            });
            let Some(next) = next.and_then(|at| self.line.serve(at)) else {
                self.count();
                return;
            };
            let tried = self.slots.granted(next.ticket.0);
            let reclaim = self.reclaim_from(&next, ctx);
            let holder = Holder {
                ticket: next.ticket,
                priority: next.priority,
                person: next.person,
                lane: next.priority.after(next.since.elapsed()),
                asked_back: CancellationToken::new(),
                reclaim,
            };
            let lease = Lease {
                backend: Arc::clone(&self.backend),
                actor: ctx.address(),
                ticket: holder.ticket,
                priority: holder.priority,
                trial: next.trial,
                tried,
                teaches: self.slots.learns(),
                stop: next.stop,
                asked_back: holder.asked_back.clone(),
                paces: Arc::clone(&self.paces),
                pulse: self.slots.may_queue().then(|| self.pulse.clone()),
                // `Models`, which knows it, puts it in.
                retired: CancellationToken::new(),
            };
            self.running.push(holder);
            // One that gave up drops the lease, which comes back as a `Release`.
            let _ = next.granted.send(Ok(lease));
        }
    }

    /// Takes the slot of this one where it is stopped and keeps it: its thread may hang before it
    /// has begun what it wanted the slot for.
    fn reclaim_from(&self, holder: &Waiter, ctx: &mut Context<Self>) -> SpawnHandle {
        let (ticket, trial, stop) = (holder.ticket, holder.trial, holder.stop.clone());
        let overdue = async move {
            stop.cancelled().await;
            tokio::time::sleep(RECLAIM).await;
        };
        ctx.spawn(overdue.into_actor(self).map(move |(), actor, ctx| {
            tracing::warn!("what was stopped keeps its slot, which goes to others");
            actor.release(ctx, ticket, trial);
        }))
    }

    /// Asks background work for its slot where a person waits, the newest first: the least
    /// is lost with it. Who is held back would not get what another one gives back: they press
    /// on their own alone.
    fn press(&self) {
        let newest = self.running.iter().rev();
        let mut making_way: Vec<&Holder> = newest.filter(|it| it.lane.gives_way()).collect();
        // One that is asked already is asked for nobody else.
        making_way.sort_by_key(|holder| !holder.asked_back.is_cancelled());
        let queue = self.queue();
        let waiting = self.line.waiting().zip(&queue);
        let pressing = waiting.filter(|(it, _)| it.priority.presses());
        let (held_back, free): (Vec<_>, Vec<_>) = pressing.partition(|(_, it)| it.held_back);
        for (waiter, place) in held_back.into_iter().chain(free) {
            let helps = |holder: &&Holder| !place.held_back || holder.person == waiter.person;
            if let Some(at) = making_way.iter().position(helps) {
                making_way.remove(at).asked_back.cancel();
            }
        }
    }

    fn count(&self) {
        let (waiting, running) = (self.line.waiting().count(), self.running.len());
        let kind = self.backend.kind();
        metrics::record(|on| on.calls.queue(kind, waiting, running));
    }

    fn queue(&self) -> Vec<Waiting> {
        let held = self.running.iter().map(|holder| holder.person);
        self.line.queue(held, self.slots.most())
    }

    fn forget_those_who_left(&mut self) {
        if self.line.forget_those_who_left() {
            self.learn(Health::Unclear, true);
        }
    }

    /// True where the backend is left alone from now on.
    fn learn(&mut self, health: Health, trial: bool) -> bool {
        let now = self.started.elapsed();
        self.breaker.learn(health, trial, now)
    }

    /// Takes a slot back. A lease of this actor's dead predecessor goes to the dead address,
    /// never here.
    fn release(&mut self, ctx: &mut Context<Self>, ticket: Ticket, trial: bool) {
        let Some(at) = self.running.iter().position(|it| it.ticket == ticket) else {
            return;
        };
        ctx.cancel_future(self.running.remove(at).reclaim);
        self.slots.ended(ticket.0, self.started.elapsed());
        if trial {
            // Where the call told how the backend is, this changes nothing.
            self.learn(Health::Unclear, true);
        }
        self.grant(ctx);
    }

    fn refusal(&self, wait: Duration) -> NaviError {
        let order = if wait.is_zero() {
            PhraseCode::BreakerNow.into()
        } else {
            let seconds = wait.as_secs_f64().ceil().to_string();
            Phrase::new(PhraseCode::BreakerWaits, [("seconds", seconds)])
        };
        let failures = [("n", self.breaker.failures().to_string())];
        let open = Phrase::new(PhraseCode::BreakerOpen, failures)
            .with("problem", self.last_problem.clone())
            .with("order", order);
        NaviError::said(ErrorCode::BackendUnavailable, open)
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

    fn handle(&mut self, asked: Acquire, ctx: &mut Self::Context) -> Self::Result {
        fail::fail_point!("llm::acquire");
        self.forget_those_who_left();
        if !self.line.has_room(asked.person) {
            return Box::pin(async {
                Err(NaviError::said(
                    ErrorCode::BackendBusy,
                    PhraseCode::TooManyWait,
                ))
            });
        }
        let trial = match self.breaker.admit(self.started.elapsed()) {
            Admission::Free => false,
            Admission::Trial => true,
            Admission::Refused(wait) => {
                let refusal = self.refusal(wait);
                return Box::pin(async { Err(refusal) });
            }
        };
        let (tx, rx) = oneshot::channel();
        self.line.join(Waiter {
            ticket: asked.ticket,
            priority: asked.priority,
            person: asked.person,
            since: Instant::now(),
            trial,
            stop: asked.stop,
            granted: tx,
        });
        self.grant(ctx);
        self.press();
        Box::pin(async {
            rx.await.map_err(|_| {
                NaviError::new(
                    ErrorCode::BackendUnavailable,
                    "what guards the model went down",
                )
            })?
        })
    }
}

impl Handler<GetQueue> for LlmActor {
    type Result = Option<QueueView>;

    fn handle(&mut self, GetQueue(ticket): GetQueue, _: &mut Self::Context) -> Self::Result {
        self.forget_those_who_left();
        let at = (self.line.waiting()).position(|it| it.ticket == ticket)?;
        Some(QueueView {
            running: self.running.iter().map(|it| it.priority).collect(),
            ahead: lanes::ahead(&self.queue(), at),
            most: self.slots.most(),
        })
    }
}

impl Handler<Release> for LlmActor {
    type Result = ();

    fn handle(&mut self, released: Release, ctx: &mut Self::Context) {
        self.release(ctx, released.ticket, released.trial);
    }
}

impl Handler<CallBegan> for LlmActor {
    type Result = ();

    fn handle(&mut self, began: CallBegan, _: &mut Self::Context) {
        if began.streamed {
            self.slots.streams(began.ticket.0, self.started.elapsed());
        }
        let paces = Arc::make_mut(&mut self.paces);
        if paces.len() >= PACES && !paces.contains_key(&began.model) {
            paces.clear();
        }
        paces.entry(began.model).or_default().began(began.prompt);
    }
}

impl Handler<CallTalks> for LlmActor {
    type Result = ();

    fn handle(&mut self, CallTalks(ticket): CallTalks, ctx: &mut Self::Context) {
        self.slots.talks(ticket.0, self.started.elapsed());
        // Another one may be tried beside it, and more once it is seen to go on beside others.
        self.grant(ctx);
        ctx.run_later(SIDE_BY_SIDE, |actor, ctx| {
            if actor.slots.look(actor.started.elapsed()) {
                tracing::info!(
                    most = actor.slots.most(),
                    "the model server answers more at once"
                );
                actor.grant(ctx);
            }
        });
    }
}

impl Handler<CallEnded> for LlmActor {
    type Result = ();

    fn handle(&mut self, ended: CallEnded, ctx: &mut Self::Context) {
        let now = self.started.elapsed();
        if ended.busy {
            self.slots.refused(ended.ticket.0, now);
        } else if ended.health == Health::Well {
            self.slots.answered(now);
        }
        if let Some(timing) = &ended.timing
            && let Some(pace) = Arc::make_mut(&mut self.paces).get_mut(&ended.model)
        {
            pace.ended(timing);
        }
        if let Some(problem) = ended.problem {
            self.last_problem = problem;
        }
        if self.learn(ended.health, ended.trial) {
            let failures = self.breaker.failures();
            tracing::warn!(
                failures,
                problem = %self.last_problem,
                "model server keeps failing, leaving it alone for a while"
            );
            if let Admission::Refused(wait) = self.breaker.admit(self.started.elapsed()) {
                let refusal = self.refusal(wait);
                self.line.refuse_all(&refusal);
                self.count();
            }
            self.probe(ctx);
        }
    }
}

impl Handler<Retire> for LlmActor {
    type Result = ();

    fn handle(&mut self, _: Retire, ctx: &mut Self::Context) {
        self.guard.mark_clean();
        ctx.stop();
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

#[cfg(test)]
#[path = "llm_actor/tests.rs"]
mod tests;
