//! Messages come: each is taken in once, and begins a run or waits for one.

use actix::{ActorFutureExt, AsyncContext, Context, Handler, ResponseFuture, WrapFuture};
use tokio::sync::oneshot;

use super::messages::{Accepted, PlainAnswer, Send};
use super::replies::{Reply, answer, committed, shutting_down};
use super::turns::NewRun;
use super::{Phase, SessionActor};
use crate::domain::title;
use crate::protocol::command::{PlainConsent, UserInput};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::Event;
use crate::protocol::ids::{MessageId, RunId};
use crate::protocol::message::Message;
use crate::protocol::session::QueuedMessage;
use crate::root::store_error;
use crate::services::now;
use crate::store::{KnownMessage, Write};

/// The most messages that may wait in one session.
const QUEUE: usize = 50;

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
