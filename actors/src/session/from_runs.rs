//! What runs hand to their session beside commands: text to stream, their children, their end.

use std::time::Duration;

use actix::{AsyncContext, Context, Handler, ResponseFuture};
use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use tokio::sync::oneshot;

use super::messages::{GetConsent, RunActorEnded, RunGone, StartChild, Stream};
use super::replies::{Waiting, reply};
use super::{LOG_EVERY, SessionActor, StopToken};
use crate::domain::recovery::UnfinishedPart;
use crate::domain::session::ConsentState;
use crate::domain::session::change::Change;
use crate::domain::session::command::Command;
use crate::domain::session::transition::{Effect, Reply};
use crate::protocol::ids::SessionId;
use crate::services::now;
use crate::supervision::Ending;

impl SessionActor {
    /// Sees to it that streamed text reaches the log before long.
    fn log_soon(&mut self, ctx: &mut Context<Self>) {
        if self.log_timer.is_none() && self.telling.sequencer().has_unlogged() {
            let pause = until_logged(self.id, now());
            self.log_timer = Some(ctx.run_later(pause, |actor, ctx| {
                actor.log_timer = None;
                actor.telling.log_chunks();
                actor.advance(ctx);
            }));
        }
    }
}

/// How long a session's text waits for the log from now on. Many sessions that stream write at
/// the same moments, a quarter of them at a time: that is one transaction, and not one for each.
fn until_logged(session: SessionId, now: DateTime<Utc>) -> Duration {
    const QUARTERS: i64 = 4;
    let every = i64::try_from(LOG_EVERY.as_micros()).unwrap_or(i64::MAX);
    let quarter = i64::from(session.0.as_bytes()[15]) % QUARTERS;
    let past = (now.timestamp_micros() - quarter * every / QUARTERS).rem_euclid(every);
    LOG_EVERY.saturating_sub(Duration::from_micros(past.unsigned_abs()))
}

impl Handler<StartChild> for SessionActor {
    type Result = ResponseFuture<Result<(), RunGone>>;

    fn handle(&mut self, child: StartChild, ctx: &mut Self::Context) -> Self::Result {
        let StartChild {
            start,
            stop,
            stopped,
        } = child;
        self.stops
            .insert(start.origin.run_id, StopToken::new(stop, stopped));
        let started = self.ask::<()>(ctx, Command::StartChild(Box::new(start)));
        Box::pin(started.map(|done| done.map_err(RunGone::from)))
    }
}

impl Handler<GetConsent> for SessionActor {
    type Result = Result<ConsentState, RunGone>;

    fn handle(&mut self, GetConsent(run_id): GetConsent, _: &mut Self::Context) -> Self::Result {
        let origin = self.session.ahead().origin_of(run_id);
        origin.map(|_| self.session.consent()).ok_or(RunGone)
    }
}

impl Handler<Stream> for SessionActor {
    type Result = ResponseFuture<Result<(), RunGone>>;

    fn handle(&mut self, Stream(pieces): Stream, ctx: &mut Self::Context) -> Self::Result {
        fail::fail_point!("session::stream");
        let now = now();
        for piece in pieces {
            if self
                .session
                .ahead()
                .origin_of(piece.origin.run_id)
                .is_none()
            {
                self.tell(ctx);
                return Box::pin(async { Err(RunGone) });
            }
            self.telling.delta(piece, now);
        }
        self.tell(ctx);
        // Text that filled a chunk is in the backlog now.
        self.advance(ctx);
        self.log_soon(ctx);
        if !self.telling.sequencer().is_congested() {
            return Box::pin(async { Ok(()) });
        }
        // The log is slower than the model: so is the run from here on, and the backend's socket.
        let (tx, rx) = oneshot::channel();
        let to = self.replies.open(Waiting::Reply(tx));
        let then = vec![Effect::Reply(to, Ok(Reply::Done(())))];
        self.telling.submit(Change::default(), now, then);
        self.advance(ctx);
        Box::pin(reply::<()>(rx).map(|done| done.map_err(RunGone::from)))
    }
}

impl Handler<RunActorEnded> for SessionActor {
    type Result = ();

    fn handle(&mut self, ended: RunActorEnded, ctx: &mut Self::Context) {
        let run_id = ended.run_id;
        let origin = self.session.ahead().origin_of(run_id);
        if ended.ending == Ending::Clean || origin.is_none() {
            return;
        }
        tracing::error!(session = %self.id, run = %run_id, "run died");
        let open = self.telling.sequencer().open_ahead().into_iter();
        let unfinished = open
            .filter(|part| part.origin.run_id == run_id)
            .map(|part| UnfinishedPart {
                message_id: part.message_id,
                kind: part.kind,
                text: part.text,
            })
            .collect();
        let reads = self.calls_that_read();
        self.hear(
            ctx,
            Command::RunDied {
                run_id,
                unfinished,
                reads,
            },
        );
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn text_waits_for_the_next_moment_of_its_sessions_quarter() {
        let at = |millis| DateTime::<Utc>::from_timestamp_millis(millis).unwrap();
        let of = |byte: u128| SessionId(uuid::Uuid::from_u128(byte));
        let waits = |byte, millis| until_logged(of(byte), at(millis)).as_millis();
        assert_eq!(waits(0, 1_000), 200);
        assert_eq!(waits(0, 1_001), 199);
        assert_eq!(waits(4, 1_150), 50);
        assert_eq!(waits(1, 1_000), 50);
        assert_eq!(waits(3, 1_149), 1);
        assert_eq!(waits(3, 1_150), 200);
        // A clock that stands before its beginning.
        assert_eq!(waits(0, -1), 1);
    }
}
