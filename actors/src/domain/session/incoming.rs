//! Messages come: each is taken in once, and begins a run or waits for one.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::Session;
use super::command::Incoming;
use super::transition::{Accepted, CheckpointState, Effect, Refused, Reply, ReplyTo};
use super::turns::NewRun;
use super::write::Write;
use crate::domain::title;
use crate::protocol::command::{PlainConsent, SendMode};
use crate::protocol::error::ErrorCode;
use crate::protocol::event::Event;
use crate::protocol::ids::{MessageId, Origin, RunId};
use crate::protocol::message::Message;
use crate::protocol::people::PersonRef;
use crate::protocol::session::QueuedMessage;

/// The most messages that may wait in one session.
pub(super) const QUEUE: usize = 50;

impl Session {
    /// Takes a message in once, however often it comes under the same `client_id`. The newest
    /// ids are known here, older ones to the store.
    pub(super) fn take_message(
        &mut self,
        incoming: Incoming,
        to: ReplyTo,
        now: DateTime<Utc>,
    ) -> Result<(), Refused> {
        let client_id = incoming.input.client_id.as_deref();
        let known = client_id
            .and_then(|client_id| self.ahead.accepted(client_id))
            .or(incoming.stored);
        let Some((message_id, run_id)) = known else {
            return self.accept(incoming, to, now);
        };
        let mut waiting = self.ahead.queue.iter();
        let queued = waiting.any(|queued| queued.message_id == message_id);
        match incoming.plain {
            None => self.reply(
                to,
                Reply::Accepted(Accepted {
                    message_id,
                    run_id,
                    queued,
                    duplicate: true,
                }),
            ),
            Some(_) if queued => return Err(self.refusal()),
            Some(_) if self.running_id() == Some(run_id) => self.plain.push(to),
            Some(_) => self.out.then.push(Effect::ReplyFromStore(to, run_id)),
        }
        Ok(())
    }

    fn accept(
        &mut self,
        incoming: Incoming,
        to: ReplyTo,
        now: DateTime<Utc>,
    ) -> Result<(), Refused> {
        let Incoming {
            input,
            plain,
            config,
            ..
        } = incoming;
        let queued = self.ahead.running().is_some();
        if self.closing.is_some() || (plain.is_some() && queued) || self.ahead.queue.len() >= QUEUE
        {
            return Err(self.refusal());
        }
        let (message_id, run_id) = (MessageId::new(), RunId::new());
        if plain.is_none() {
            self.reply(
                to,
                Reply::Accepted(Accepted {
                    message_id,
                    run_id,
                    queued,
                    duplicate: false,
                }),
            );
        }
        let event = Event::MessageAccepted {
            client_id: input.client_id.clone(),
            message_id,
            queued,
            mode: input.mode,
            content: input.content.clone(),
            images: input.images.clone(),
            files: input.attached.clone(),
            author: input.author.clone(),
        };
        self.write(Write::Active(now));
        self.bring_back();
        if self.ahead.message_count == 0 && self.ahead.summary.title.is_empty() {
            self.write(Write::Title(title::from_text(&input.content)));
        }
        let waits = QueuedMessage {
            message_id,
            run_id,
            content: input.content,
            images: input.images,
            files: input.attached,
            client_id: input.client_id,
            mode: input.mode,
            author: input.author,
            created_at: now,
        };
        if queued {
            // One that comes after a stop goes on, behind those before it.
            self.hold(false);
            self.write(Write::Enqueue(waits));
        } else {
            self.write(Write::Message(Arc::new(
                self.message_of(waits, run_id, now),
            )));
            let new = NewRun {
                plans: plain.is_none(),
                consent: plain.unwrap_or(PlainConsent::Ask),
                config: config.clone(),
                ..NewRun::turn(run_id, message_id)
            };
            self.begin(new, now);
            self.plain.extend(plain.map(|_| to));
        }
        self.tell(Some(Origin::foreground(run_id)), event);
        if let Some(config) = config.filter(|_| !queued) {
            self.tell_start(Origin::foreground(run_id), config.choice.model.name);
        }
        Ok(())
    }

    fn refusal(&self) -> Refused {
        if self.closing.is_some() {
            return Refused::shutting_down();
        }
        if self.ahead.queue.len() < QUEUE {
            return Refused::error(
                ErrorCode::SessionBusy,
                "another run goes in this session; wait for its end or stop it",
            );
        }
        Refused::error(
            ErrorCode::QueueFull,
            format!("{QUEUE} messages wait in this session already; wait, or withdraw some"),
        )
    }

    /// Withdraws a message that waits, or gives it another text.
    pub(super) fn change_queue(
        &mut self,
        message_id: MessageId,
        text: Option<(String, Option<PersonRef>)>,
        to: ReplyTo,
    ) -> Result<(), Refused> {
        let mut waiting = self.ahead.queue.iter();
        let Some(run_id) = waiting
            .find(|queued| queued.message_id == message_id)
            .map(|queued| queued.run_id)
        else {
            return Err(Refused::error(
                ErrorCode::MessageNotFound,
                "no such message waits in this session; it may have been answered already",
            ));
        };
        self.write(match &text {
            None => Write::Dequeue(message_id),
            Some((content, author)) => Write::EditQueued {
                message_id,
                content: content.clone(),
                author: author.clone(),
            },
        });
        let (content, author) = text.unzip();
        let event = Event::QueueChanged {
            message_id,
            content,
            author: author.flatten(),
        };
        self.tell(Some(Origin::foreground(run_id)), event);
        self.reply(to, Reply::Done(()));
        Ok(())
    }

    /// A run is about to call its model: it is handed what was steered to it, and told what
    /// happened beside it.
    pub(super) fn checkpoint(
        &mut self,
        run_id: RunId,
        to: ReplyTo,
        now: DateTime<Utc>,
    ) -> Result<(), Refused> {
        let origin = self.origin_of(run_id)?;
        let mut steered = Vec::new();
        // One that is being stopped answers nothing any more.
        if !origin.is_subagent() && !self.is_stopping(run_id) {
            let waiting = self.ahead.queue.iter();
            let wanted = waiting.filter(|queued| queued.mode == SendMode::Steer);
            let wanted: Vec<QueuedMessage> = wanted.cloned().collect();
            for queued in wanted {
                let message_id = queued.message_id;
                let message = self.message_of(queued, run_id, now);
                self.write(Write::Dequeue(message_id));
                self.write(Write::Message(Arc::new(message.clone())));
                self.tell(Some(origin), Event::MessageSteered { message_id });
                steered.push(message);
            }
        }
        let state = CheckpointState {
            todo: self.ahead.todo.clone(),
            profile_id: self.ahead.summary.profile_id.clone(),
            steered,
            last_seq: self.ahead.last_seq,
        };
        if state.steered.is_empty() {
            // A model that is asked changes nothing: it waits for no commit.
            self.reply_now(to, Reply::Checkpoint(state));
        } else {
            self.reply(to, Reply::Checkpoint(state));
        }
        Ok(())
    }

    /// The message that a waiting one becomes.
    pub(super) fn message_of(
        &self,
        queued: QueuedMessage,
        run_id: RunId,
        now: DateTime<Utc>,
    ) -> Message {
        let mut message = Message::user(queued.message_id, run_id, queued.content, now);
        message.images = queued.images;
        message.files = queued.files;
        message.client_id = queued.client_id;
        self.written_by(message, queued.author)
    }

    /// A message with who wrote it. Where others take part, the model is told.
    pub(super) fn written_by(&self, message: Message, author: Option<PersonRef>) -> Message {
        Message {
            names_author: author.is_some() && self.ahead.summary.shared.is_some(),
            author,
            ..message
        }
    }
}
