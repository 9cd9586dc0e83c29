//! [`TabActor`]: one tab on a session.

use std::collections::VecDeque;
use std::time::Instant;

use actix::fut::{ActorFutureExt as _, WrapFuture as _};
use actix::{Actor, ActorContext as _, AsyncContext as _, StreamHandler};
use actix_http::ws::Item;
use actix_web::web;
use actix_web_actors::ws::{self, CloseCode, CloseReason, ProtocolError, WebsocketContext};
use bytestring::ByteString;
use navi_actors::domain::input::MAX_MESSAGE_JSON_BYTES;
use navi_actors::domain::permissions::{Action, Grant};
use navi_actors::domain::session::command::ApprovalAnswer;
use navi_actors::domain::session::transition::Accepted;
use navi_actors::protocol::command::{ClientFrame, SendMode};
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::event::Event;
use navi_actors::protocol::ids::{SessionId, UserId};
use navi_actors::store::KnownMessage;
use tokio::sync::oneshot;

use super::assemble::{Assembled, Assembly};
use super::frame::{self, Parsed, Refusal};
use super::heartbeat::{CLOSE_GRACE, Heartbeat, PING_INTERVAL};
use super::incoming::too_large;
use super::rate::{FrameRate, frame_rate};
use super::{
    Admission, Subscription, bytes_refused, feed_ended, in_portions, logged_out, max_message_bytes,
};
use crate::access::Principal;
use crate::http::App;
use crate::http::error::close_reason;
use crate::http::values::LARGE_BYTES;

/// Frames that wait for the one before them.
const MAX_WAITING: usize = 64;
const MAX_WAITING_BYTES: usize = MAX_MESSAGE_JSON_BYTES;

/// One WebSocket on a session.
///
/// Started by the HTTP upgrade; ends with its socket, or when its feed ends. Owns nothing
/// but its subscription: what it shows comes from the feed, which is bounded by what this tab has
/// read. It must not know what a run is. When it dies, the client reconnects.
///
/// Frames are handled one after the other, as they came, and only once the tab has joined the
/// session: it is told all that comes of them. Except for a ping, which asks about nobody but this
/// actor, and for Stop, which is asked at once and again when its turn comes: it may mean the
/// message that stands before it.
#[derive(Debug)]
pub(crate) struct TabActor {
    app: App,
    user: UserId,
    grant: Grant,
    subscription: Result<Subscription, NaviError>,
    heartbeat: Heartbeat,
    rate: FrameRate,
    assembly: Assembly,
    waiting: VecDeque<ByteString>,
    waiting_bytes: usize,
    /// It joins the session, or a frame is being handled.
    busy: bool,
    closing: bool,
    admission: Admission,
    /// Why no more of its bytes are taken; heard from the start on.
    refused: Option<oneshot::Receiver<NaviError>>,
}

impl TabActor {
    pub(crate) fn new(
        app: App,
        who: &Principal,
        subscription: Result<Subscription, NaviError>,
        admission: Admission,
        refused: oneshot::Receiver<NaviError>,
    ) -> Self {
        let now = Instant::now();
        Self {
            app,
            user: who.user,
            grant: who.grant,
            subscription,
            heartbeat: Heartbeat::new(now),
            rate: frame_rate(),
            assembly: Assembly::new(max_message_bytes(who.grant)),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            busy: true,
            closing: false,
            admission,
            refused: Some(refused),
        }
    }
}

impl Actor for TabActor {
    type Context = WebsocketContext<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let ended = self.admission.hold.ended().into_actor(self);
        ctx.spawn(ended.map(|(), tab, ctx| tab.close(logged_out(), ctx)));
        let refused = bytes_refused(self.refused.take()).into_actor(self);
        ctx.spawn(refused.map(|why, tab, ctx| tab.close(why, ctx)));
        ctx.run_interval(PING_INTERVAL, |tab, ctx| {
            if tab.heartbeat.is_silent(Instant::now()) {
                ctx.stop();
            } else if !tab.closing {
                ctx.ping(b"");
            }
        });
        match self.subscription.clone() {
            Ok(subscription) => self.attach(subscription, ctx),
            Err(error) => self.close(close_reason(&error), ctx),
        }
    }
}

/// Whatever ends it: the silence of a program that lends tools, or the kernel, which gives up sooner.
impl Drop for TabActor {
    fn drop(&mut self) {
        if let Some(lender) = &mut self.admission.lender
            && self.heartbeat.missed_a_ping(Instant::now())
        {
            lender.fell_silent();
        }
    }
}

/// The feed: whole frames, in order.
impl StreamHandler<ByteString> for TabActor {
    fn handle(&mut self, frame: ByteString, ctx: &mut Self::Context) {
        if !self.is_over() {
            ctx.text(frame);
        }
    }

    fn finished(&mut self, ctx: &mut Self::Context) {
        let why = feed_ended(&self.app, &self.admission).into_actor(self);
        ctx.spawn(why.map(|why, tab, ctx| tab.close(why, ctx)));
    }
}

/// The socket. Its end ends the actor.
impl StreamHandler<Result<ws::Message, ProtocolError>> for TabActor {
    fn handle(&mut self, frame: Result<ws::Message, ProtocolError>, ctx: &mut Self::Context) {
        let now = Instant::now();
        self.heartbeat.hear(now);
        if self.is_over() {
            if matches!(frame, Ok(ws::Message::Close(_)) | Err(_)) {
                ctx.stop();
            }
            return;
        }
        if counts(&frame) && self.rate.check().is_err() {
            let message = "too many frames a second; wait a little and connect again";
            let error = NaviError::new(ErrorCode::RateLimited, message);
            ctx.text(Refusal::from(error.clone()).to_json());
            self.close(close_reason(&error), ctx);
            return;
        }
        match frame {
            Ok(ws::Message::Text(text)) => self.take(text, ctx),
            Ok(ws::Message::Continuation(item)) => match self.assembly.add(item) {
                Assembled::Partly => {}
                Assembled::Text(text) => self.take(text, ctx),
                Assembled::Binary => refuse_binary(ctx),
                Assembled::TooLarge => {
                    let error = too_large(max_message_bytes(self.grant));
                    self.close(close_reason(&error), ctx);
                }
                Assembled::NotText => self.close(because(CloseCode::Invalid, "not UTF-8"), ctx),
                Assembled::OutOfOrder => self.close(out_of_order(), ctx),
            },
            Ok(ws::Message::Binary(_)) => refuse_binary(ctx),
            Ok(ws::Message::Ping(bytes)) => ctx.pong(&bytes),
            Ok(ws::Message::Pong(_) | ws::Message::Nop) => {}
            Ok(ws::Message::Close(_)) => {
                ctx.close(Some(CloseCode::Normal.into()));
                ctx.stop();
            }
            Err(ProtocolError::Io(_)) => self.close(because(CloseCode::Invalid, "not UTF-8"), ctx),
            Err(_) => self.close(out_of_order(), ctx),
        }
    }
}

impl TabActor {
    fn attach(&mut self, subscription: Subscription, ctx: &mut WebsocketContext<Self>) {
        let Subscription {
            session,
            after,
            epoch,
            newest,
        } = subscription;
        let (engine, user) = (self.app.engine.clone(), self.user);
        let attached = async move { engine.attach(user, session, after, epoch, newest).await };
        ctx.spawn(
            attached
                .into_actor(self)
                .map(move |attached, tab, ctx| match attached {
                    Ok(feed) => {
                        ctx.add_stream(in_portions(feed));
                        tab.busy = false;
                        tab.next(session, ctx);
                    }
                    Err(error) => tab.close(close_reason(&error), ctx),
                }),
        );
    }

    /// Takes a frame in: a Stop goes at once, everything waits for its turn.
    fn take(&mut self, text: ByteString, ctx: &mut WebsocketContext<Self>) {
        let Ok(Subscription { session, .. }) = self.subscription else {
            return;
        };
        let is_looked_at = self.busy && text.len() < LARGE_BYTES;
        let parsed = is_looked_at.then(|| frame::parse(&text));
        if let Some(Ok(Parsed {
            frame: ClientFrame::Ping {},
            ..
        })) = parsed
        {
            ctx.text(pong());
            return;
        }
        if let Some(Ok(Parsed {
            frame: ClientFrame::Stop { hold, run_id },
            ..
        })) = parsed
            && self.grant.check(Action::Converse).is_ok()
        {
            let (engine, user) = (self.app.engine.clone(), self.user);
            let stop = async move { engine.stop_run(user, session, hold, run_id).await };
            // Told when its turn comes; this one only makes it early.
            ctx.spawn(stop.into_actor(self).map(|_, _, _| ()));
        }
        if self.waiting.len() >= MAX_WAITING || self.waiting_bytes + text.len() > MAX_WAITING_BYTES
        {
            let error = NaviError::new(
                ErrorCode::RateLimited,
                "too many frames wait already; send this one again when they are answered",
            );
            let refused = unread(error, text).into_actor(self);
            // No other frame is taken in meanwhile: what is held stays bounded.
            ctx.wait(refused.map(|refusal, tab, ctx| {
                if !tab.is_over() {
                    ctx.text(refusal.to_json());
                }
            }));
            return;
        }
        self.waiting_bytes += text.len();
        self.waiting.push_back(text);
        self.next(session, ctx);
    }

    /// Starts on the next frame, if none is being handled.
    fn next(&mut self, session: SessionId, ctx: &mut WebsocketContext<Self>) {
        if self.busy || self.is_over() {
            return;
        }
        let Some(text) = self.waiting.pop_front() else {
            return;
        };
        self.waiting_bytes -= text.len();
        self.busy = true;
        let (app, user, grant) = (self.app.clone(), self.user, self.grant);
        let handled = async move { handle(&app, user, grant, session, text).await };
        ctx.spawn(handled.into_actor(self).map(move |handled, tab, ctx| {
            tab.busy = false;
            let answer = handled.unwrap_or_else(|refusal| Some(refusal.to_json()));
            if let Some(answer) = answer.filter(|_| !tab.closing) {
                ctx.text(answer);
            }
            tab.next(session, ctx);
        }));
    }

    /// Whether nothing is told and nothing is taken any more.
    fn is_over(&self) -> bool {
        self.closing || self.admission.hold.has_ended()
    }

    /// Says goodbye, and leaves the client a moment to hear it.
    fn close(&mut self, reason: CloseReason, ctx: &mut WebsocketContext<Self>) {
        if self.closing {
            return;
        }
        self.closing = true;
        self.waiting.clear();
        ctx.close(Some(reason));
        ctx.run_later(CLOSE_GRACE, |_, ctx| ctx.stop());
    }
}

/// Does what a frame asks. Gives back what this tab alone is told of it.
async fn handle(
    app: &App,
    user: UserId,
    grant: Grant,
    session: SessionId,
    text: ByteString,
) -> Result<Option<String>, Refusal> {
    let Parsed { frame, client_id } = if text.len() < LARGE_BYTES {
        frame::parse(&text)
    } else {
        // So large is a message, or what changes one: nothing is made of it for who may send none.
        if let Err(error) = grant.check(Action::Converse) {
            return Err(unread(error, text).await);
        }
        web::block(move || frame::parse(&text))
            .await
            .unwrap_or_else(|_| {
                Err(Refusal::new(
                    ErrorCode::ShuttingDown,
                    "navi is shutting down",
                ))
            })
    }?;
    if let Some(Err(error)) = Action::of_frame(&frame).map(|action| grant.check(action)) {
        return Err(Refusal { error, client_id });
    }
    let engine = &app.engine;
    let done = match frame {
        ClientFrame::Message(input) => {
            let content = input.content.clone();
            match engine.send(user, session, input).await {
                Ok(accepted) if accepted.duplicate => {
                    let client_id = client_id.clone().unwrap_or_default();
                    let known = engine.known_message(user, session, client_id.clone()).await;
                    known.map(|known| Some(again(accepted, client_id, content, known)))
                }
                sent => sent.map(|_| None),
            }
        }
        ClientFrame::Stop { hold, run_id } => {
            let stopped = engine.stop_run(user, session, hold, run_id).await;
            stopped.map(|_| None)
        }
        ClientFrame::Continue { queue } => {
            let gone_on = engine.continue_with(user, session, queue).await;
            gone_on.map(|_| None)
        }
        ClientFrame::Withdraw { message_id } => engine
            .withdraw(user, session, message_id)
            .await
            .map(|()| None),
        ClientFrame::EditQueued {
            message_id,
            content,
        } => engine
            .edit_queued(user, session, message_id, content)
            .await
            .map(|()| None),
        ClientFrame::Approve {
            approval_id,
            decision,
            note,
        } => engine
            .approve(
                user,
                session,
                approval_id,
                ApprovalAnswer { decision, note },
            )
            .await
            .map(|()| None),
        ClientFrame::ResolveCall { call_id, decision } => engine
            .resolve_call(user, session, call_id, decision)
            .await
            .map(|()| None),
        ClientFrame::EditPlan(edit) => engine.edit_plan(user, session, edit).await.map(|_| None),
        ClientFrame::Ping {} => Ok(Some(pong())),
    };
    done.map_err(|error| Refusal { error, client_id })
}

/// The refusal of a frame that is not parsed. A large one is searched for its `client_id` beside
/// the arbiter.
async fn unread(error: NaviError, text: ByteString) -> Refusal {
    if text.len() < LARGE_BYTES {
        return Refusal::unread(error, &text);
    }
    let without = Refusal::from(error.clone());
    web::block(move || Refusal::unread(error, &text))
        .await
        .unwrap_or(without)
}

fn pong() -> String {
    frame::for_one_tab(None, Event::Pong {})
}

/// A message that was accepted before is told again to the tab that sent it again, without a
/// number: its event went out when it was accepted. It is told as it is stored; one that was
/// withdrawn, as it came.
fn again(
    accepted: Accepted,
    client_id: String,
    content: String,
    known: Option<KnownMessage>,
) -> String {
    let (mode, content, images, files, author) = match known {
        Some(KnownMessage::Sent(sent)) => (
            SendMode::Queue,
            sent.content.unwrap_or_default(),
            sent.images,
            sent.files,
            sent.author,
        ),
        Some(KnownMessage::Queued(queued)) => (
            queued.mode,
            queued.content,
            queued.images,
            queued.files,
            queued.author,
        ),
        None => (SendMode::Queue, content, Vec::new(), Vec::new(), None),
    };
    let event = Event::MessageAccepted {
        client_id: Some(client_id),
        message_id: accepted.message_id,
        queued: accepted.queued,
        mode,
        content,
        images,
        files,
        author,
    };
    frame::for_one_tab(Some(accepted.run_id), event)
}

/// The middle of a long message is bounded by its bytes, not by its frames.
fn counts(frame: &Result<ws::Message, ProtocolError>) -> bool {
    !matches!(frame, Ok(ws::Message::Continuation(Item::Continue(bytes))) if !bytes.is_empty())
}

fn refuse_binary(ctx: &mut WebsocketContext<TabActor>) {
    let refusal = Refusal::new(
        ErrorCode::BinaryFrame,
        "frames are text; send JSON in a text frame",
    );
    ctx.text(refusal.to_json());
}

fn out_of_order() -> CloseReason {
    because(CloseCode::Protocol, "these frames are no WebSocket message")
}

fn because(code: CloseCode, description: &str) -> CloseReason {
    CloseReason {
        code,
        description: Some(description.to_owned()),
    }
}
