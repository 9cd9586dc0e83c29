//! [`SessionActor`]: one live session.
//!
//! Started by the root on demand; it stops by itself when idle (everything is written
//! already), when its session is deleted, and when the service closes. It drives the session as a
//! value ([`Session`]): takes a message, asks the value, has its changes committed and told, and
//! does its effects. It must not know sockets, SQL or providers, and decides nothing. When it
//! dies, the root starts it again: it is read from the store, and a run that was going
//! becomes `interrupted`.

pub mod messages;
pub mod outline;
pub mod sequencer;
pub mod telling;

#[cfg(test)]
mod sequencer_tests;

mod after_turn;
mod effects;
mod from_people;
mod from_runs;
pub mod log_moments;
mod log_rows;
pub mod replies;
mod tabs;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, ResponseFuture,
    WrapFuture,
};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::log_moments::WaitsForLog;
use self::messages::{Ask, Tell, TellSoon};
use self::replies::{NoReply, Replies, Waiting, reply};
use self::sequencer::{At, Frame, encode};
use self::telling::{Committed, StoredPosition, Telling};
use crate::domain::session::command::Command;
use crate::domain::session::state::State;
use crate::domain::session::stored::LoadedSession;
use crate::domain::session::transition::{Effect, Refused, Reply, Transition};
use crate::domain::session::{Policy, Recovery, Session};
use crate::journal::Append;
use crate::metrics;
use crate::observing::SessionWatch;
use crate::protocol::error::ErrorCode;
use crate::protocol::event::{Envelope, Event};
use crate::protocol::ids::{CallId, RunId, SessionId};
use crate::protocol::tool;
use crate::run::RunActor;
use crate::services::{self, ResumePolicy, Services};
use crate::store::{Commit, StoreError};
use crate::supervision::Guard;
use crate::traces::CommitSpan;

/// How many frames a tab may be behind before it is caught up from the log.
/// With pieces of a few KB this also bounds what a tab that never reads costs.
const BROADCAST: usize = 128;

/// A session that nobody uses for this long leaves memory.
const IDLE: Duration = Duration::from_secs(300);

/// How long what nobody waits for is kept, so that what follows it is written with it.
const TOGETHER: Duration = Duration::from_millis(2);

/// The foreground run's actor.
#[derive(Debug)]
struct Foreground {
    run_id: RunId,
    /// The last event before the run's first.
    before_seq: u64,
    actor: Addr<RunActor>,
}

/// How a run is stopped. Whatever works for it ends when this goes.
#[derive(Debug)]
struct StopToken {
    token: CancellationToken,
    /// See [`Ends::stopped`](crate::run::Ends).
    stopped: CancellationToken,
    _kill: DropGuard,
}

impl StopToken {
    fn new(token: CancellationToken, stopped: CancellationToken) -> Self {
        Self {
            _kill: token.clone().drop_guard(),
            token,
            stopped,
        }
    }
}

/// See the module.
pub struct SessionActor {
    services: Arc<Services>,
    id: SessionId,
    epoch: i64,
    /// Decides, on what was submitted.
    session: Session,
    /// What is committed and was told: what people see.
    told: State,
    telling: Telling<Vec<Effect>>,
    replies: Replies,
    /// Of a run whose start may be on its way to the store.
    foreground: Option<Foreground>,
    /// Of the runs that go.
    stops: HashMap<RunId, StopToken>,
    /// What a crash left open, to be recorded before anything else.
    recovery: Option<Recovery>,
    /// Ends the summary that is under way; none where there is none.
    compressing: Option<DropGuard>,
    /// While text waits for its moment.
    waits_for_log: Option<WaitsForLog>,
    /// While something waits for what is to be written with it.
    gathers: bool,
    last_used: Instant,
    /// Cancelled when the root has given this actor up: everything that works for it ends.
    given_up: CancellationToken,
    watch: SessionWatch,
    guard: Guard,
}

impl SessionActor {
    /// An actor for a session that was just taken from the store.
    #[must_use]
    pub fn new(
        services: Arc<Services>,
        mut loaded: LoadedSession,
        given_up: CancellationToken,
        guard: Guard,
    ) -> Self {
        let id = loaded.summary.id;
        let epoch = loaded.epoch;
        let position = StoredPosition {
            last_seq: loaded.last_seq,
            epoch,
            spans: std::mem::take(&mut loaded.spans),
        };
        let (session, told, recovery) = Session::load(loaded, policy(&services));
        Self {
            telling: Telling::new(position, BROADCAST, given_up.clone()),
            services,
            id,
            epoch,
            session,
            watch: SessionWatch::new(&told),
            told,
            replies: Replies::default(),
            foreground: None,
            stops: HashMap::new(),
            recovery,
            compressing: None,
            waits_for_log: None,
            gathers: false,
            last_used: Instant::now(),
            given_up,
            guard,
        }
    }

    /// Has the session do what is asked, and waits for its reply.
    fn ask<T: TryFrom<Reply>>(
        &mut self,
        ctx: &mut Context<Self>,
        command: Command,
    ) -> impl Future<Output = Result<T, NoReply>> + use<T> {
        let (tx, rx) = oneshot::channel();
        self.handle_for(ctx, command, tx);
        reply(rx)
    }

    fn handle_for(
        &mut self,
        ctx: &mut Context<Self>,
        command: Command,
        tx: oneshot::Sender<Result<Reply, Refused>>,
    ) {
        let to = self.replies.open(Waiting::Reply(tx));
        let transition = self.session.handle(command, to, services::now());
        self.carry_out(ctx, transition);
    }

    /// The same where nobody waits for a reply.
    fn hear(&mut self, ctx: &mut Context<Self>, command: Command) {
        let to = self.replies.nobody();
        let transition = self.session.handle(command, to, services::now());
        self.carry_out(ctx, transition);
    }

    /// Shows the session to one who waits, once all that was submitted is told.
    fn show_settled(&mut self, ctx: &mut Context<Self>, waiting: Waiting) {
        let to = self.replies.open(waiting);
        let then = vec![Effect::Reply(to, Ok(Reply::Done(())))];
        self.carry_out(
            ctx,
            Transition {
                then,
                ..Transition::default()
            },
        );
    }

    fn carry_out(&mut self, ctx: &mut Context<Self>, transition: Transition) {
        self.carry_out_by(ctx, transition, Self::advance);
    }

    fn carry_out_by(
        &mut self,
        ctx: &mut Context<Self>,
        mut transition: Transition,
        advance: fn(&mut Self, &mut Context<Self>),
    ) {
        metrics::record(|on| on.runs.turns_begin(&transition.then));
        self.last_used = Instant::now();
        // A run asks its model while the disk writes its start; but not where nothing was written
        // since the session was read: what cannot be written would be asked again and again.
        let is_free = self.told.running().is_none() && self.telling.sequencer().is_settled();
        let begins = is_free && self.telling.has_told();
        let launch = begins.then(|| transition.take_launch()).flatten();
        let Transition { now, change, then } = transition;
        for effect in now {
            self.perform(ctx, effect);
        }
        if !change.is_empty() || !then.is_empty() {
            self.telling.submit(change, services::now(), then);
            advance(self, ctx);
        }
        if let Some(launch) = launch {
            self.perform(ctx, launch);
        }
    }

    /// Sends the backlog to the journal, unless a commit is on its way, and tells what may be told.
    fn advance(&mut self, ctx: &mut Context<Self>) {
        if let Some(writes) = self.telling.next_commit() {
            let commit = Commit {
                session_id: self.id,
                owner: self.services.owner.clone(),
                epoch: self.epoch,
                writes,
            };
            let running = self.told.running().map(|run| run.run_id);
            let span = CommitSpan::begin(&commit, running, &self.services.store);
            let journal = self.services.journal.addr();
            ctx.spawn(
                async move {
                    let appended = journal.send(Append(commit)).await;
                    let result = appended.unwrap_or_else(|_| {
                        Err(StoreError::Unavailable("the journal went down".to_owned()))
                    });
                    if let Some(span) = span {
                        span.ended(&result);
                    }
                    result
                }
                .into_actor(self)
                .map(|result, actor, ctx| match result {
                    Ok(()) => {
                        actor.telling.committed();
                        actor.tell(ctx);
                        actor.advance(ctx);
                    }
                    Err(error) => {
                        // What was submitted is not told and not acknowledged. The root reads
                        // the session again from the store.
                        tracing::error!(session = %actor.id, %error, "commit failed, session starts over");
                        let is_unknown = matches!(error, StoreError::Unsettled(_));
                        if is_unknown || actor.telling.has_told_beyond_log() {
                            actor.guard.mark_unsettled();
                        }
                        actor.tell_cut_off();
                        ctx.stop();
                    }
                }),
            );
        }
        self.tell(ctx);
    }

    /// The same in a moment, unless something that is waited for takes it along before.
    fn advance_soon(&mut self, ctx: &mut Context<Self>) {
        if !std::mem::replace(&mut self.gathers, true) {
            ctx.run_later(TOGETHER, |actor, ctx| {
                actor.gathers = false;
                actor.advance(ctx);
            });
        }
    }

    /// Applies, broadcasts and carries on, strictly in order.
    fn tell(&mut self, ctx: &mut Context<Self>) {
        if !self.telling.begin() {
            return;
        }
        while let Some(Committed {
            frames,
            change,
            then,
        }) = self.telling.next_committed()
        {
            fail::fail_point!("session::tell");
            self.watch.told(&self.told, &change, &self.services.toolbox);
            let before = self.told.summary.clone();
            self.told.apply(&change);
            if self.told.summary != before {
                self.services.hub.session_changed(self.told.summary.clone());
            }
            for frame in frames {
                self.telling.send(frame);
            }
            for effect in then {
                self.perform(ctx, effect);
            }
        }
    }

    /// Whoever watches the run hears why it stands still. Its end is an event, told once that
    /// can be committed.
    fn tell_cut_off(&self) {
        // One whose start is not told was told to nobody: its message is refused.
        let told = self.told.running().map(|run| run.run_id);
        let run = self.foreground.as_ref();
        let Some(run) = run.filter(|run| told == Some(run.run_id)) else {
            return;
        };
        let json = encode(&Envelope {
            seq: None,
            run_id: Some(run.run_id),
            parent_run_id: None,
            at: services::now(),
            event: Event::Error {
                message: "the database does not take what this run does, so it was cut off; check the disk and the database: it can be continued once they work again".to_owned(),
                recoverable: false,
                code: ErrorCode::StoreUnavailable,
                phrase: None,
                client_id: None,
            },
        });
        self.telling.send(Frame {
            place: At::Nowhere,
            json: Some(json),
            envelope: None,
        });
    }

    /// The calls under way that only read. One that cannot be looked up any more, or would be
    /// refused by now, may have changed something: what is refused never begins.
    fn calls_that_read(&self) -> HashSet<CallId> {
        let registry = self.services.toolbox.now();
        let calls = self.session.calls_under_way().into_iter();
        calls
            .filter(|call| {
                let named = std::slice::from_ref(&call.name);
                let found = registry.prepare(&call.name, &call.arguments, named);
                found.is_ok_and(|ready| ready.effect == tool::Effect::Read)
            })
            .map(|call| call.id.clone())
            .collect()
    }

    fn passivate_when_idle(&mut self, ctx: &mut Context<Self>) {
        let idle = self.session.is_idle()
            && self.telling.sequencer().is_settled()
            && !self.telling.is_watched()
            && self.last_used.elapsed() >= IDLE;
        if idle {
            self.guard.mark_clean();
            ctx.stop();
        }
    }
}

fn policy(services: &Services) -> Policy {
    Policy {
        mode: services.consent.mode,
        consent_timeout: services.consent.timeout,
        resumes: services.resume == ResumePolicy::Reads,
        compresses: services.compression.enabled,
        compression_threshold: f64::from(services.compression.threshold),
        window: services.context_window,
    }
}

impl<T: TryFrom<Reply> + 'static> Handler<Ask<T>> for SessionActor {
    type Result = ResponseFuture<Result<T, NoReply>>;

    fn handle(&mut self, asked: Ask<T>, ctx: &mut Self::Context) -> Self::Result {
        Box::pin(self.ask(ctx, asked.command))
    }
}

impl Handler<Tell> for SessionActor {
    type Result = ();

    fn handle(&mut self, Tell(command, to): Tell, ctx: &mut Self::Context) {
        match to {
            Some(to) => self.handle_for(ctx, command, to),
            None => self.hear(ctx, command),
        }
    }
}

impl Handler<TellSoon> for SessionActor {
    type Result = ();

    fn handle(&mut self, TellSoon(command, to): TellSoon, ctx: &mut Self::Context) {
        let to = self.replies.open(Waiting::Reply(to));
        let transition = self.session.handle(command, to, services::now());
        self.carry_out_by(ctx, transition, Self::advance_soon);
    }
}

impl Actor for SessionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(IDLE / 5, Self::passivate_when_idle);
        let found = self.recovery.take();
        let reads = self.calls_that_read();
        let transition = self.session.recover(found, &reads, services::now());
        self.carry_out(ctx, transition);
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        self.services.store.rest(self.id);
    }
}

impl fmt::Debug for SessionActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionActor")
            .field("id", &self.id)
            .field("foreground", &self.foreground)
            .finish_non_exhaustive()
    }
}
