//! What the context of an actor does with waits, futures, streams and timers.

use std::time::Duration;

use actix::prelude::*;
use futures_util::{StreamExt, stream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{on_arbiter, on_paused_arbiter};

/// What a listener heard, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Message,
    Item,
    Tick,
    Finished,
    WaitIsOver,
    Stopped,
}

struct Listener(UnboundedSender<Heard>);

impl Listener {
    fn new() -> (Self, UnboundedReceiver<Heard>) {
        let (heard, ears) = unbounded_channel();
        (Self(heard), ears)
    }

    fn hear(&self, what: Heard) {
        let _ = self.0.send(what);
    }
}

impl Actor for Listener {
    type Context = Context<Self>;

    fn stopped(&mut self, _: &mut Self::Context) {
        self.hear(Heard::Stopped);
    }
}

/// An item of a stream whose end is left to the trait.
struct Plain;

impl StreamHandler<Plain> for Listener {
    fn handle(&mut self, _: Plain, _: &mut Self::Context) {
        self.hear(Heard::Item);
    }
}

/// An item of a stream whose end the actor takes into its own hands.
struct Overridden;

impl StreamHandler<Overridden> for Listener {
    fn handle(&mut self, _: Overridden, _: &mut Self::Context) {
        self.hear(Heard::Item);
    }

    fn finished(&mut self, _: &mut Self::Context) {
        self.hear(Heard::Finished);
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct Note;

impl Handler<Note> for Listener {
    type Result = ();

    fn handle(&mut self, _: Note, _: &mut Self::Context) {
        self.hear(Heard::Message);
    }
}

/// Answers when its gate opens, with the actor in hand.
#[derive(Message)]
#[rtype(result = "()")]
struct AnswerAfter(oneshot::Receiver<()>);

impl Handler<AnswerAfter> for Listener {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, message: AnswerAfter, _: &mut Self::Context) -> Self::Result {
        let gate = message.0.into_actor(self);
        Box::pin(gate.map(|_, listener, _| listener.hear(Heard::WaitIsOver)))
    }
}

#[derive(Message)]
#[rtype(result = "()")]
struct WaitFor(Duration);

impl Handler<WaitFor> for Listener {
    type Result = ();

    fn handle(&mut self, message: WaitFor, ctx: &mut Self::Context) {
        let sleep = tokio::time::sleep(message.0).into_actor(self);
        ctx.wait(sleep.map(|(), listener, _| listener.hear(Heard::WaitIsOver)));
    }
}

#[test]
fn ctx_wait_stops_mailbox_streams_and_timers() {
    on_paused_arbiter(async {
        let (listener, mut ears) = Listener::new();
        let addr = Listener::create(|ctx| {
            ctx.run_later(Duration::from_secs(1), |listener, _| {
                listener.hear(Heard::Tick);
            });
            let after_two_seconds = tokio::time::sleep(Duration::from_secs(2));
            let items = stream::once(after_two_seconds).map(|()| Overridden);
            ctx.add_stream(items.chain(stream::pending()));
            listener
        });

        addr.send(WaitFor(Duration::from_secs(60))).await.unwrap();
        addr.send(Note).await.unwrap();

        assert_eq!(ears.recv().await, Some(Heard::WaitIsOver));
        let mut rest = [
            ears.recv().await.unwrap(),
            ears.recv().await.unwrap(),
            ears.recv().await.unwrap(),
        ];
        rest.sort_by_key(|heard| *heard as u8);
        assert_eq!(rest, [Heard::Message, Heard::Item, Heard::Tick]);
    });
}

#[test]
fn response_act_future_handlers_interleave() {
    on_arbiter(async {
        let (listener, mut ears) = Listener::new();
        let addr = listener.start();
        let (open_first, first_gate) = oneshot::channel();
        let (open_second, second_gate) = oneshot::channel();

        let first = addr.send(AnswerAfter(first_gate));
        let second = addr.send(AnswerAfter(second_gate));

        // Both are under way: neither holds up the mailbox, nor the other.
        addr.send(Note).await.unwrap();
        assert_eq!(ears.recv().await, Some(Heard::Message));
        open_second.send(()).unwrap();
        second.await.unwrap();
        open_first.send(()).unwrap();
        first.await.unwrap();
    });
}

#[test]
fn the_end_of_a_stream_stops_the_actor() {
    on_arbiter(async {
        let (listener, mut ears) = Listener::new();
        let addr = Listener::create(|ctx| {
            ctx.add_stream(stream::iter([Plain]));
            listener
        });
        assert_eq!(ears.recv().await, Some(Heard::Item));
        assert_eq!(ears.recv().await, Some(Heard::Stopped));
        assert_eq!(addr.send(Note).await, Err(MailboxError::Closed));
    });
}

#[test]
fn the_end_of_a_stream_stops_nothing_where_finished_is_overridden() {
    on_arbiter(async {
        let (listener, mut ears) = Listener::new();
        let addr = Listener::create(|ctx| {
            ctx.add_stream(stream::iter([Overridden]));
            listener
        });
        assert_eq!(ears.recv().await, Some(Heard::Item));
        assert_eq!(ears.recv().await, Some(Heard::Finished));
        assert_eq!(addr.send(Note).await, Ok(()));
        assert_eq!(ears.recv().await, Some(Heard::Message));
    });
}

#[test]
fn take_until_ends_a_silent_stream_at_once() {
    on_paused_arbiter(async {
        let (listener, mut ears) = Listener::new();
        let token = CancellationToken::new();
        let stopped = token.clone().cancelled_owned();
        let _addr = Listener::create(|ctx| {
            ctx.add_stream(stream::pending::<Overridden>().take_until(stopped));
            listener
        });
        let start = tokio::time::Instant::now();

        token.cancel();

        assert_eq!(ears.recv().await, Some(Heard::Finished));
        assert_eq!(start.elapsed(), Duration::ZERO);
    });
}
