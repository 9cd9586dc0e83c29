//! What runs hand to their session beside commands: text to stream, their children, their end.

use actix::{AsyncContext, Context, Handler, ResponseFuture};
use futures_util::FutureExt;

use super::messages::{GetConsent, RunActorEnded, RunGone, StartChild, Stream};
use super::replies::Waiting;
use super::{SessionActor, StopToken};
use crate::domain::recovery::UnfinishedPart;
use crate::domain::session::ConsentState;
use crate::domain::session::change::Change;
use crate::domain::session::command::Command;
use crate::domain::session::transition::{Effect, Reply};
use crate::services::now;
use crate::supervision::Ending;

impl SessionActor {
    /// Sees to it that streamed text reaches the log before long.
    fn log_soon(&mut self, ctx: &mut Context<Self>) {
        if self.waits_for_log.is_none() && self.telling.sequencer().has_unlogged() {
            let (pause, waits) = self.services.log_moments.wait(self.id, now());
            self.waits_for_log = Some(waits);
            ctx.run_later(pause, |actor, ctx| {
                actor.waits_for_log = None;
                actor.telling.log_chunks();
                actor.advance(ctx);
            });
        }
    }
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
    type Result = ();

    fn handle(&mut self, Stream(pieces, told): Stream, ctx: &mut Self::Context) {
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
                return;
            }
            self.telling.delta(piece, now);
        }
        self.tell(ctx);
        // Text that filled a chunk is in the backlog now.
        self.advance(ctx);
        self.log_soon(ctx);
        if !self.telling.sequencer().is_congested() {
            // A run that went waits for nothing.
            let _ = told.send(Ok(Reply::Done(())));
            return;
        }
        // The log is slower than the model: so is the run from here on, and the backend's socket.
        let to = self.replies.open(Waiting::Reply(told));
        let then = vec![Effect::Reply(to, Ok(Reply::Done(())))];
        self.telling.submit(Change::default(), now, then);
        self.advance(ctx);
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
