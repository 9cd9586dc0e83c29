//! Turns: a message comes, its run starts, its run ends, the next one starts.

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, ResponseFuture,
    WrapFuture,
};
use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::messages::{Accepted, Close, ContinueRun, PlainAnswer, RunActorEnded, Send, StopRun};
use super::plain::plain_answer;
use super::recording::queued_message;
use super::{Foreground, Phase, SessionActor};
use crate::domain::recovery::{self, UnfinishedPart};
use crate::domain::run_loop::{RunEnd, RunSummary};
use crate::domain::title;
use crate::protocol::command::{PlainConsent, UserInput};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::Event;
use crate::protocol::ids::{MessageId, Origin, RunId};
use crate::protocol::message::{Message, ToolCall};
use crate::protocol::session::QueuedMessage;
use crate::protocol::tool::Effect;
use crate::root::store_error;
use crate::run::{Ends, From, Interrupt, RunActor, RunSetup, Turn, Work};
use crate::services::now;
use crate::store::{KnownMessage, RunRow, Write};
use crate::supervision::{Ending, Guard};

/// The most messages that may wait in one session.
const QUEUE: usize = 50;

pub(super) type Reply<T> = oneshot::Sender<Result<T, NaviError>>;

/// What the sender of a message waits for.
pub(super) enum Sender {
    /// That it is accepted.
    Streamed(Reply<Accepted>),
    /// The end of its run; what becomes of questions meanwhile.
    Plain(PlainConsent, Reply<PlainAnswer>),
}

impl Sender {
    pub(super) fn refuse(self, error: NaviError) {
        match self {
            Self::Streamed(reply) => answer(Some(reply), Err(error)),
            Self::Plain(_, reply) => answer(Some(reply), Err(error)),
        }
    }
}

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
    fn accept(&mut self, ctx: &mut Context<Self>, input: UserInput, sender: Sender) {
        // What is on its way into the queue waits before this, and its run may have to start yet.
        let queued = matches!(self.phase, Phase::Running(_)) || self.enqueuing > 0;
        let plain_refused = matches!(sender, Sender::Plain(..)) && queued;
        if matches!(self.phase, Phase::Closing(_))
            || plain_refused
            || self.state.queue.len() >= QUEUE
        {
            sender.refuse(self.refusal());
            return;
        }
        let (consent, plain, reply) = match sender {
            Sender::Streamed(reply) => (PlainConsent::Ask, None, Some(reply)),
            Sender::Plain(consent, reply) => (consent, Some(reply), None),
        };
        let now = now();
        let (message_id, run_id) = (MessageId::new(), RunId::new());
        let client_id = input.client_id.clone();
        self.accepting.extend(client_id.clone());
        let event = Event::MessageAccepted {
            client_id: input.client_id.clone(),
            message_id,
            queued,
            mode: input.mode,
            content: input.content.clone(),
            images: input.images.clone(),
            files: input.attached.clone(),
        };
        let mut writes = vec![Write::Active(now)];
        if self.state.message_count == 0 && self.state.summary.title.is_empty() {
            writes.push(Write::Title(title::from_text(&input.content)));
        }
        if queued {
            self.enqueuing += 1;
            writes.push(Write::Enqueue(QueuedMessage {
                message_id,
                run_id,
                content: input.content,
                images: input.images,
                files: input.attached,
                client_id: input.client_id,
                mode: input.mode,
                created_at: now,
            }));
        } else {
            let mut message = Message::user(message_id, run_id, input.content, now);
            message.images = input.images;
            message.files = input.attached;
            message.client_id = input.client_id;
            writes.push(Write::Message(message));
            let new = NewRun {
                run_id,
                message_id,
                plans: plain.is_none(),
                consent,
                again: Vec::new(),
                plain,
            };
            self.begin(new, now, &mut writes);
        }
        let accepted = Accepted {
            message_id,
            run_id,
            queued,
            duplicate: false,
        };
        self.submit(ctx, Some(run_id), vec![event], writes, move |actor, ctx| {
            if let Some(client_id) = client_id {
                actor.accepting.remove(&client_id);
            }
            answer(reply, Ok(accepted));
            if queued {
                actor.enqueuing -= 1;
                // The run that it was to wait for may have ended before this was told.
                actor.start_next(ctx);
            } else {
                actor.launch(ctx, run_id);
            }
        });
    }

    pub(super) fn refusal(&self) -> NaviError {
        match self.phase {
            Phase::Closing(_) => shutting_down(),
            _ if self.state.queue.len() < QUEUE => NaviError::new(
                ErrorCode::SessionBusy,
                "another run goes in this session; wait for its end or stop it",
            ),
            Phase::Idle | Phase::Running(_) => NaviError::new(
                ErrorCode::QueueFull,
                format!("{QUEUE} messages wait in this session already; wait, or withdraw some"),
            ),
        }
    }

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

    /// Takes a message in once, however often it comes under the same `client_id`. The newest
    /// ids are known here, older ones to the store.
    pub(super) fn take_message(
        &mut self,
        ctx: &mut Context<Self>,
        input: UserInput,
        sender: Sender,
    ) {
        let Some(client_id) = input.client_id.clone() else {
            self.accept(ctx, input, sender);
            return;
        };
        if self.state.accepted(&client_id).is_some() {
            self.accept_once(ctx, None, input, sender);
            return;
        }
        let (store, id) = (self.services.store.clone(), self.id);
        ctx.spawn(
            async move { store.message_by_client_id(id, &client_id).await }
                .into_actor(self)
                .map(move |known, actor, ctx| match known {
                    Ok(known) => {
                        let known = known.map(|known| match known {
                            KnownMessage::Sent(message) => (message.id, message.run_id),
                            KnownMessage::Queued(queued) => (queued.message_id, queued.run_id),
                        });
                        actor.accept_once(ctx, known, input, sender);
                    }
                    Err(error) => sender.refuse(store_error(&error)),
                }),
        );
    }

    fn accept_once(
        &mut self,
        ctx: &mut Context<Self>,
        stored: Option<(MessageId, RunId)>,
        input: UserInput,
        sender: Sender,
    ) {
        let client_id = input.client_id.as_deref().unwrap_or_default();
        if self.accepting.contains(client_id) {
            // The same message is on its way to the store just now.
            self.when_settled(ctx, move |actor, ctx| {
                actor.accept_once(ctx, stored, input, sender);
            });
            return;
        }
        let known = self.state.accepted(client_id).or(stored);
        let Some((message_id, run_id)) = known else {
            self.accept(ctx, input, sender);
            return;
        };
        let mut waiting = self.state.queue.iter();
        let queued = waiting.any(|queued| queued.message_id == message_id);
        match sender {
            Sender::Streamed(reply) => {
                let accepted = Accepted {
                    message_id,
                    run_id,
                    queued,
                    duplicate: true,
                };
                answer(Some(reply), Ok(accepted));
            }
            Sender::Plain(_, reply) if queued => answer(Some(reply), Err(self.refusal())),
            Sender::Plain(_, reply) => self.answer_again(ctx, run_id, reply),
        }
    }
}

impl Handler<Send> for SessionActor {
    type Result = ResponseFuture<Result<Accepted, NaviError>>;

    fn handle(&mut self, Send(input): Send, ctx: &mut Self::Context) -> Self::Result {
        fail::fail_point!("session::send");
        let (tx, rx) = oneshot::channel();
        self.take_message(ctx, input, Sender::Streamed(tx));
        Box::pin(committed(rx))
    }
}

impl SessionActor {
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

pub(super) fn shutting_down() -> NaviError {
    NaviError::new(
        ErrorCode::ShuttingDown,
        "Navi is shutting down; send it again when it is back",
    )
}

pub(super) fn answer<T>(reply: Option<Reply<T>>, result: Result<T, NaviError>) {
    if let Some(reply) = reply {
        // The one who asked may have gone.
        let _ = reply.send(result);
    }
}

/// Waits for what a session promised; a session that went over a failed commit promised in vain.
pub(super) async fn committed<T>(
    rx: oneshot::Receiver<Result<T, NaviError>>,
) -> Result<T, NaviError> {
    rx.await.unwrap_or_else(|_| {
        Err(NaviError::new(
            ErrorCode::StoreUnavailable,
            "this could not be stored, so nothing was done; check the disk and the database, and send it again",
        ))
    })
}
