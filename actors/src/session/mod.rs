//! [`SessionActor`]: one live session.
//!
//! Started by the root on demand; it stops by itself when idle (everything is written
//! already), when its session is deleted, and when the service closes. It owns the
//! committed state, the order of the events and their broadcast, and the foreground run.
//! It must not know sockets, SQL or providers, and decides nothing about a run. When it
//! dies, the root starts it again: it is read from the store, and a run that was going
//! becomes `interrupted`.

pub mod messages;
pub mod sequencer;
pub mod state;
pub mod telling;

#[cfg(test)]
mod sequencer_tests;

mod after_turn;
mod approvals;
mod branches;
mod children;
mod commands;
mod incoming;
mod outcomes;
mod plain;
mod recording;
mod recovering;
mod replies;
mod tabs;
mod turns;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, SpawnHandle, WrapFuture,
};
use chrono::Utc;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::approvals::Approvals;
use self::children::Children;
use self::messages::{Leaving, PlainAnswer};
use self::recovering::Recovery;
use self::sequencer::{At, Frame, Submission, encode};
use self::state::State;
use self::telling::{Committed, Standing, Telling};
use crate::journal::Append;
use crate::protocol::command::PlainConsent;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::{Envelope, Event};
use crate::protocol::ids::{MessageId, Origin, RunId, SessionId};
use crate::protocol::message::Role;
use crate::protocol::session::SessionSummary;
use crate::run::{From, RunActor};
use crate::services::Services;
use crate::services::now;
use crate::store::{Commit, LoadedSession, StoreError, Write};
use crate::supervision::Guard;

/// How many frames a tab may be behind before it is caught up from the log.
/// With pieces of a few KB this also bounds what a tab that never reads costs.
const BROADCAST: usize = 128;

/// Streamed text waits no longer than this for the log: what a crash may lose.
const LOG_EVERY: Duration = Duration::from_millis(200);

/// A session that nobody uses for this long leaves memory.
const IDLE: Duration = Duration::from_secs(300);

/// What a submitter wants done when its submission was told.
type Then = Box<dyn FnOnce(&mut SessionActor, &mut Context<SessionActor>)>;

/// Whether the session has a run.
#[derive(Debug)]
enum Phase {
    Idle,
    Running(Foreground),
    /// The service closes, or the session is deleted: no new run starts.
    Closing(Option<Foreground>),
}

/// The foreground run.
#[derive(Debug)]
struct Foreground {
    run_id: RunId,
    /// The user message that it answers.
    message_id: MessageId,
    /// Whether it may plan.
    plans: bool,
    /// What becomes of calls that its user would be asked about.
    consent: PlainConsent,
    /// Where its actor takes it up; taken when that is started.
    from: From,
    model: String,
    started_at: chrono::DateTime<Utc>,
    /// The last event before the run's first.
    before_seq: u64,
    stop: CancellationToken,
    /// Ends the run's work when this session goes.
    _kill: DropGuard,
    actor: Option<Addr<RunActor>>,
    /// Plain runs that wait for the end.
    waiting: Vec<oneshot::Sender<Result<PlainAnswer, NaviError>>>,
}

/// See the module.
pub struct SessionActor {
    services: Arc<Services>,
    id: SessionId,
    epoch: i64,
    state: State,
    /// The newest todo list and notes that were submitted; committed a moment later.
    draft: Draft,
    telling: Telling<Then>,
    /// Parts of requests that are in the store, by their SHA-256, as far as this actor knows.
    prompt_parts: HashSet<String>,
    phase: Phase,
    /// The `client_id` of each message that is being committed.
    accepting: HashSet<String>,
    /// How many messages are on their way into the queue: accepted, and not told yet.
    enqueuing: usize,
    /// The waiting messages that were handed to the run, and whose leaving the queue is not told
    /// yet: nobody takes them back any more.
    steered: HashSet<MessageId>,
    /// The runs that the foreground run started, and those that they started.
    children: Children,
    /// What its user is asked.
    approvals: Approvals,
    /// What a crash left open, to be recorded before anything else.
    recovery: Option<Recovery>,
    /// Ends the summary that is under way; none where there is none.
    compressing: Option<DropGuard>,
    /// The window of the model that the last run used, in tokens.
    window: u32,
    log_timer: Option<SpawnHandle>,
    /// How it closes, once it does.
    leaving_as: Option<Leaving>,
    /// Who waits for this session to close.
    leaving: Vec<oneshot::Sender<()>>,
    /// Who waits for its deletion.
    deleting: Vec<oneshot::Sender<SessionSummary>>,
    last_used: Instant,
    /// Cancelled when the root has given this actor up: everything that works for it ends.
    given_up: CancellationToken,
    guard: Guard,
}

#[derive(Clone, Debug)]
struct Draft {
    todo: Vec<crate::protocol::todo::TodoItem>,
    scratchpad: crate::protocol::todo::Scratchpad,
}

/// Whether a user's message with files in it is written.
fn brings_files(write: &Write) -> bool {
    matches!(write, Write::Message(message) if message.role == Role::User && !message.files.is_empty())
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
        let window = services.context_window;
        let id = loaded.summary.id;
        let epoch = loaded.epoch;
        let standing = Standing {
            last_seq: loaded.last_seq,
            epoch,
            spans: std::mem::take(&mut loaded.spans),
        };
        let telling = Telling::new(standing, BROADCAST, given_up.clone());
        let recovery = Recovery::of(&loaded);
        let state = State::from_loaded(loaded, services.consent.mode);
        Self {
            services,
            id,
            epoch,
            draft: Draft {
                todo: state.todo.clone(),
                scratchpad: state.scratchpad.clone(),
            },
            state,
            telling,
            prompt_parts: HashSet::new(),
            phase: Phase::Idle,
            accepting: HashSet::new(),
            enqueuing: 0,
            steered: HashSet::new(),
            children: Children::default(),
            approvals: Approvals::default(),
            recovery,
            compressing: None,
            window,
            log_timer: None,
            leaving_as: None,
            leaving: Vec::new(),
            deleting: Vec::new(),
            last_used: Instant::now(),
            given_up,
            guard,
        }
    }

    /// Numbers, commits and tells; `then` runs after that. The events are of the run
    /// `run_id`, where one is meant.
    fn submit(
        &mut self,
        ctx: &mut Context<Self>,
        run_id: Option<RunId>,
        events: Vec<Event>,
        writes: Vec<Write>,
        then: impl FnOnce(&mut Self, &mut Context<Self>) + 'static,
    ) {
        let origin = run_id.map(|run_id| {
            self.origin_of(run_id)
                .unwrap_or_else(|| Origin::foreground(run_id))
        });
        let submission = Submission {
            events: events.into_iter().map(|event| (origin, event)).collect(),
            writes,
            closed: Vec::new(),
        };
        self.submit_all(ctx, submission, then);
    }

    fn submit_all(
        &mut self,
        ctx: &mut Context<Self>,
        mut submission: Submission,
        then: impl FnOnce(&mut Self, &mut Context<Self>) + 'static,
    ) {
        self.last_used = Instant::now();
        // Whoever sent a file in need not have written it.
        if submission.writes.iter().any(brings_files) {
            self.taint(&mut submission);
        }
        self.telling.submit(submission, now(), Box::new(then));
        self.advance(ctx);
    }

    /// Runs `then` once everything submitted so far is committed and told.
    fn when_settled(
        &mut self,
        ctx: &mut Context<Self>,
        then: impl FnOnce(&mut Self, &mut Context<Self>) + 'static,
    ) {
        self.submit(ctx, None, Vec::new(), Vec::new(), then);
    }

    /// Sends the backlog to the journal, unless a commit is on its way, and tells what may be told.
    fn advance(&mut self, ctx: &mut Context<Self>) {
        if let Some(writes) = self.telling.next_commit() {
            let append = Append(Commit {
                session_id: self.id,
                owner: self.services.owner.clone(),
                epoch: self.epoch,
                writes,
            });
            let journal = self.services.journal.addr();
            ctx.spawn(
                async move {
                    journal.send(append).await.unwrap_or_else(|_| {
                        Err(StoreError::Unavailable("the journal went down".to_owned()))
                    })
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
                        if matches!(error, StoreError::Unsettled(_)) {
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

    /// Applies, broadcasts and carries on, strictly in order: what a `then` submits comes
    /// after all that was already to be told.
    fn tell(&mut self, ctx: &mut Context<Self>) {
        if !self.telling.begin() {
            return;
        }
        while let Some(Committed {
            frames,
            writes,
            then,
        }) = self.telling.next_committed()
        {
            fail::fail_point!("session::tell");
            let before = self.state.summary.clone();
            for write in &writes {
                self.state.apply(write);
            }
            if self.state.summary != before {
                self.services
                    .hub
                    .session_changed(self.state.summary.clone());
            }
            for frame in frames {
                self.telling.send(frame);
            }
            then(self, ctx);
        }
    }

    /// Whoever watches the run hears why it stands still. Its end is an event, told once that
    /// can be committed.
    fn tell_cut_off(&self) {
        // One that is not launched yet was told to nobody: its message is refused.
        let Some(run) = self.foreground().filter(|run| run.actor.is_some()) else {
            return;
        };
        let json = encode(&Envelope {
            seq: None,
            run_id: Some(run.run_id),
            parent_run_id: None,
            at: now(),
            event: Event::Error {
                message: "the database does not take what this run does, so it was cut off; check the disk and the database: it can be continued once they work again".to_owned(),
                recoverable: false,
                code: ErrorCode::StoreUnavailable,
                client_id: None,
            },
        });
        self.telling.send(Frame {
            place: At::Nowhere,
            json: Some(json),
        });
    }

    fn passivate_when_idle(&mut self, ctx: &mut Context<Self>) {
        let idle = matches!(self.phase, Phase::Idle)
            && self.telling.sequencer().is_settled()
            && !self.telling.is_watched()
            && self.last_used.elapsed() >= IDLE;
        if idle {
            self.guard.mark_clean();
            ctx.stop();
        }
    }
}

impl Actor for SessionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(IDLE / 5, Self::passivate_when_idle);
        self.recover(ctx);
    }
}

impl fmt::Debug for SessionActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionActor")
            .field("id", &self.id)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}
