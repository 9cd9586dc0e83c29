//! Turns: a run starts, it ends, the next one starts; the last one ends with the session.

use actix::{Actor, ActorContext, Addr, AsyncContext, Context, Handler, ResponseFuture};
use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::messages::{Close, ContinueRun, PlainAnswer, RunActorEnded, StopRun};
use super::plain::plain_answer;
use super::recording::queued_message;
use super::replies::{Reply, answer, committed};
use super::{Foreground, Phase, SessionActor};
use crate::domain::recovery::{self, UnfinishedPart};
use crate::domain::run_loop::{RunEnd, RunSummary};
use crate::protocol::command::PlainConsent;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::Event;
use crate::protocol::ids::{MessageId, Origin, RunId};
use crate::protocol::message::ToolCall;
use crate::protocol::tool::Effect;
use crate::run::{Ends, From, Interrupt, RunActor, RunSetup, Turn, Work};
use crate::services::now;
use crate::store::{RunRow, Write};
use crate::supervision::{Ending, Guard};

/// A run that is about to begin.
pub(super) struct NewRun {
    pub(super) run_id: RunId,
    /// The user message that it answers.
    pub(super) message_id: MessageId,
    /// Whether it may plan: a plain run does not.
    pub(super) plans: bool,
    /// What becomes of calls that its user would be asked about.
    pub(super) consent: PlainConsent,
    /// Calls of the run that it goes on from, to be made again first.
    pub(super) again: Vec<ToolCall>,
    /// Who waits for its answer.
    pub(super) plain: Option<Reply<PlainAnswer>>,
}

impl NewRun {
    /// The streamed run of a turn.
    pub(super) fn turn(run_id: RunId, message_id: MessageId) -> Self {
        Self {
            run_id,
            message_id,
            plans: true,
            consent: PlainConsent::Ask,
            again: Vec::new(),
            plain: None,
        }
    }
}

impl SessionActor {
    /// Moves the phase: from here on the session has a run, though nothing of it is told yet.
    pub(super) fn begin(&mut self, new: NewRun, now: DateTime<Utc>, writes: &mut Vec<Write>) {
        let NewRun {
            run_id,
            message_id,
            plans,
            consent,
            again,
            plain,
        } = new;
        // What it would summarise, the new run looks at itself.
        self.compressing = None;
        let stop = self.given_up.child_token();
        writes.push(Write::RunStarted(RunRow {
            run_id,
            parent_run_id: None,
            call_id: None,
            message_id,
            profile_id: self.state.summary.profile_id.clone(),
            backend: String::new(),
            model: String::new(),
            started_at: now,
        }));
        self.phase = Phase::Running(Foreground {
            run_id,
            message_id,
            plans,
            consent,
            from: From::Start { again },
            model: String::new(),
            started_at: now,
            before_seq: self.telling.sequencer().last_seq(),
            _kill: stop.clone().drop_guard(),
            stop,
            actor: None,
            waiting: plain.into_iter().collect(),
        });
    }

    /// Starts the actor of a run whose start is committed.
    pub(super) fn launch(&mut self, ctx: &mut Context<Self>, run_id: RunId) {
        let from = self
            .foreground_mut()
            .filter(|run| run.run_id == run_id)
            .map(|run| std::mem::take(&mut run.from));
        let Some(run) = self.foreground().filter(|run| run.run_id == run_id) else {
            return;
        };
        let consent = run.consent;
        let ends = Ends::new(run.stop.clone());
        let turn = Turn {
            message_id: run.message_id,
            context_tokens: self.state.summary.context_token_count,
            plans: run.plans,
            context: self.state.context().clone(),
            from: from.unwrap_or_default(),
            path: self.state.path(),
        };
        let limits = self.services.runs;
        let session = ctx.address();
        let guard = {
            let session: Addr<Self> = session.clone();
            // Once a run.
            Guard::new(move |ending| session.do_send(RunActorEnded { run_id, ending }))
        };
        let actor = RunActor::new(
            RunSetup {
                services: self.services.clone(),
                session,
                session_id: self.id,
                user_id: self.state.summary.user_id,
                origin: Origin::foreground(run_id),
                profile_id: self.state.summary.profile_id.clone(),
                work: Work::Turn(Box::new(turn)),
                ends,
                deadline: Instant::now() + limits.time,
                max_tokens: limits.tokens,
                consent,
                ceiling: Effect::Host,
            },
            guard,
        )
        .start();
        if let Some(leaving) = self.leaving_as {
            // Its start was on its way to the store when the service began to close.
            actor.do_send(Interrupt(leaving));
        }
        if let Some(run) = self.foreground_mut() {
            run.actor = Some(actor);
        }
    }

    pub(super) fn foreground(&self) -> Option<&Foreground> {
        match &self.phase {
            Phase::Idle => None,
            Phase::Running(run) => Some(run),
            Phase::Closing(run) => run.as_ref(),
        }
    }

    pub(super) fn foreground_mut(&mut self) -> Option<&mut Foreground> {
        match &mut self.phase {
            Phase::Idle => None,
            Phase::Running(run) => Some(run),
            Phase::Closing(run) => run.as_mut(),
        }
    }

    /// A run's end is committed and told: answers who waits for it and starts what is next.
    pub(super) fn run_over(
        &mut self,
        ctx: &mut Context<Self>,
        run_id: RunId,
        summary: &RunSummary,
    ) {
        if self.foreground().is_none_or(|run| run.run_id != run_id) {
            return;
        }
        let run = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle => None,
            Phase::Running(run) => Some(run),
            Phase::Closing(run) => {
                self.phase = Phase::Closing(None);
                run
            }
        };
        if let Some(run) = run {
            for waiting in run.waiting {
                // The one who waited may have hung up.
                let _ = waiting.send(plain_answer(&self.state, run_id, &summary.end));
            }
        }
        self.after_turn(ctx, run_id, &summary.end);
        self.state.run_messages.clear();
        self.start_next(ctx);
        self.leave_when_done(ctx);
    }

    /// Starts the run of the next message that waits, if the session is idle.
    pub(super) fn start_next(&mut self, ctx: &mut Context<Self>) {
        if !matches!(self.phase, Phase::Idle) {
            return;
        }
        let Some(queued) = self.state.queue.front().cloned() else {
            return;
        };
        let now = now();
        let run_id = queued.run_id;
        let mut writes = vec![
            Write::Dequeue(queued.message_id),
            Write::Message(queued_message(&queued, run_id)),
            Write::Active(now),
        ];
        let new = NewRun::turn(run_id, queued.message_id);
        self.begin(new, now, &mut writes);
        self.submit(ctx, Some(run_id), Vec::new(), writes, move |actor, ctx| {
            actor.launch(ctx, run_id);
        });
    }

    /// Starts the run that goes on from the last one: with all that was done and said so far,
    /// and first with the calls that a crash cut off and that may be made again. `then` is told
    /// of it once its start is committed, or that there is nothing to go on from.
    pub(super) fn go_on(
        &mut self,
        ctx: &mut Context<Self>,
        events: Vec<Event>,
        then: impl FnOnce(Result<RunId, NaviError>) + 'static,
    ) {
        let can_continue = matches!(self.phase, Phase::Idle) && self.state.can_continue();
        let Some(last) = self.state.last_run.clone().filter(|_| can_continue) else {
            return then(Err(NaviError::new(
                ErrorCode::NothingToContinue,
                "there is no interrupted, limited or failed run to go on from, or another one goes",
            )));
        };
        let run_id = RunId::new();
        let now = now();
        let mut writes = vec![Write::Active(now)];
        let decisions = &self.state.context().decisions;
        let new = NewRun {
            // It goes on from the plan that there is.
            plans: false,
            again: recovery::calls_again(&self.state.run_messages, decisions),
            ..NewRun::turn(run_id, last.message_id)
        };
        self.begin(new, now, &mut writes);
        self.submit(ctx, Some(run_id), events, writes, move |actor, ctx| {
            then(Ok(run_id));
            actor.launch(ctx, run_id);
        });
    }
}

impl Handler<ContinueRun> for SessionActor {
    type Result = ResponseFuture<Result<RunId, NaviError>>;

    /// A session that was just read has yet to close the run that it found open: that comes
    /// first.
    fn handle(&mut self, _: ContinueRun, ctx: &mut Self::Context) -> Self::Result {
        let (tx, rx) = oneshot::channel();
        self.when_settled(ctx, move |actor, ctx| {
            actor.go_on(ctx, Vec::new(), |going| answer(Some(tx), going));
        });
        Box::pin(committed(rx))
    }
}

impl Handler<StopRun> for SessionActor {
    type Result = bool;

    fn handle(&mut self, _: StopRun, _: &mut Self::Context) -> bool {
        let Some(run) = self.foreground() else {
            return false;
        };
        run.stop.cancel();
        true
    }
}

impl Handler<RunActorEnded> for SessionActor {
    type Result = ();

    fn handle(&mut self, ended: RunActorEnded, ctx: &mut Self::Context) {
        if ended.ending == Ending::Clean {
            return;
        }
        // Only once its last records are told is it known what it left open.
        self.when_settled(ctx, move |actor, ctx| {
            let run_id = ended.run_id;
            if actor.foreground().is_none_or(|run| run.run_id != run_id) {
                return;
            }
            tracing::error!(session = %actor.id, run = %run_id, "run died");
            let unfinished: Vec<UnfinishedPart> = actor
                .telling
                .sequencer()
                .open_parts()
                .filter(|part| part.origin.run_id == run_id)
                .map(|part| UnfinishedPart {
                    message_id: part.message_id,
                    kind: part.kind,
                    text: part.text.clone(),
                })
                .collect();
            let end = RunEnd::Failed(NaviError::new(
                ErrorCode::RunFailed,
                "Navi made a mistake and this run ended; what it had done is kept, and you can go on",
            ));
            actor.close_wreck(ctx, run_id, &unfinished, end);
        });
    }
}

impl Handler<Close> for SessionActor {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, Close(leaving): Close, ctx: &mut Self::Context) -> Self::Result {
        let (tx, rx) = oneshot::channel();
        self.leaving.push(tx);
        self.leaving_as = Some(leaving);
        let run = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle => None,
            Phase::Running(run) | Phase::Closing(Some(run)) => Some(run),
            Phase::Closing(None) => None,
        };
        if let Some(actor) = run.as_ref().and_then(|run| run.actor.as_ref()) {
            // Once a shutdown.
            actor.do_send(Interrupt(leaving));
        }
        self.phase = Phase::Closing(run);
        self.leave_when_done(ctx);
        Box::pin(rx.map(|_| ()))
    }
}

impl SessionActor {
    /// Ends a closing session's actor once its run is over and all is written.
    pub(super) fn leave_when_done(&mut self, ctx: &mut Context<Self>) {
        if !matches!(self.phase, Phase::Closing(None)) {
            return;
        }
        if !self.deleting.is_empty() {
            self.write_deleted(ctx);
            return;
        }
        self.when_settled(ctx, |actor, ctx| {
            for done in actor.leaving.drain(..) {
                // The one who closes may have run out of patience.
                let _ = done.send(());
            }
            actor.guard.mark_clean();
            ctx.stop();
        });
    }
}
