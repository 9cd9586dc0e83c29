//! Effects of a session's transitions, done.

use actix::{Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, WrapFuture};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::messages::RunActorEnded;
use super::replies::Waiting;
use super::{Foreground, SessionActor, StopToken};
use crate::domain::run_loop::EndReason;
use crate::domain::session::command::Command;
use crate::domain::session::transition::{Effect, Launch, PlainAnswer, Refused, Reply, ReplyTo};
use crate::memory::Remembers;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::{MessageId, Origin, RunId};
use crate::protocol::session::RunState;
use crate::protocol::tool;
use crate::root::store_error;
use crate::run::{Ends, FileChanges, Interrupt, RunActor, RunSetup, Turn, Work};
use crate::store::RunOutcome;
use crate::supervision::Guard;

impl SessionActor {
    pub(super) fn perform(&mut self, ctx: &mut Context<Self>, effect: Effect) {
        match effect {
            Effect::Reply(to, reply) => self.answer(to, reply),
            Effect::ReplyFromStore(to, run_id) => self.answer_from_store(ctx, to, run_id),
            Effect::Launch(launch) => self.launch(ctx, *launch),
            Effect::Cancel(run_id) => {
                let stop = self.stop_token(run_id);
                stop.stopped.cancel();
                stop.token.cancel();
            }
            Effect::Release(run_id) => {
                self.foreground.take_if(|run| run.run_id == run_id);
                let ahead = self.session.ahead();
                self.stops
                    .retain(|run_id, _| ahead.origin_of(*run_id).is_some());
            }
            Effect::Interrupt(leaving) => {
                if let Some(run) = &self.foreground {
                    // Once a shutdown.
                    run.actor.do_send(Interrupt(leaving));
                }
            }
            Effect::ExpireLater(id, after) => {
                ctx.run_later(after, move |actor, ctx| {
                    actor.hear(ctx, Command::Expire(id));
                });
            }
            Effect::Summarise { summary, run_id } => self.summarise(ctx, summary, run_id),
            Effect::DropSummary => self.compressing = None,
            Effect::FindTitle(exchange) => self.find_title(ctx, *exchange),
            Effect::TellRemoved => {
                self.services.hub.session_removed(&self.told.summary);
                let (registry, id) = (self.services.toolbox.now(), self.id);
                // It may wait for the disk.
                tokio::task::spawn_blocking(move || registry.session_closed(id));
            }
            Effect::Leave => {
                self.guard.mark_clean();
                ctx.stop();
            }
        }
    }

    fn answer(&mut self, to: ReplyTo, reply: Result<Reply, Refused>) {
        // Whoever asked may have gone.
        match self.replies.take(to) {
            None => {}
            Some(Waiting::Reply(tx)) => drop(tx.send(reply)),
            Some(Waiting::Outline(tx)) => drop(tx.send(self.outline())),
            Some(Waiting::Attached(attach, tx)) => drop(tx.send(self.attached(&attach))),
        }
    }

    /// Answers one whose message came before, under the same `client_id`: with the end of its
    /// run.
    fn answer_from_store(&mut self, ctx: &mut Context<Self>, to: ReplyTo, run_id: RunId) {
        let (store, id) = (self.services.store.clone(), self.id);
        ctx.spawn(
            async move { store.answer_of(id, run_id).await }
                .into_actor(self)
                .map(move |found, actor, _| {
                    let tokens = actor.told.summary.context_token_count;
                    let answer = match found {
                        Ok(Some(found)) => stored_answer(run_id, found, tokens),
                        Ok(None) => Err(NaviError::new(
                            ErrorCode::RunFailed,
                            "what answered this message is not there any more",
                        )),
                        Err(error) => Err(store_error(&error)),
                    };
                    let reply = answer.map(Reply::Plain).map_err(Refused::Error);
                    actor.answer(to, reply);
                }),
        );
    }

    /// The token that stops a run, which may not be launched yet.
    fn stop_token(&mut self, run_id: RunId) -> &StopToken {
        let given_up = &self.given_up;
        self.stops
            .entry(run_id)
            .or_insert_with(|| StopToken::new(given_up.child_token(), CancellationToken::new()))
    }

    /// Starts the actor of a run, whose start may be on its way to the store.
    fn launch(&mut self, ctx: &mut Context<Self>, launch: Launch) {
        let Launch {
            run_id,
            message_id,
            plans,
            consent,
            from,
            config,
            profile_id,
            model,
            before_seq,
        } = launch;
        let stop = self.stop_token(run_id);
        let ends = Ends::new(stop.token.clone(), stop.stopped.clone());
        let state = self.session.ahead();
        let turn = Turn {
            message_id,
            context_tokens: state.summary.context_token_count,
            plans,
            context: state.context().clone(),
            from,
            config,
            path: state.path(),
            message_count: state.message_count,
            unwritten: self.telling.sequencer().untold_messages(),
            last_seq: state.last_seq,
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
                user_id: state.summary.user_id,
                remembers: Remembers::of(&state.summary),
                origin: Origin::foreground(run_id),
                profile_id,
                model,
                work: Work::Turn(Box::new(turn)),
                ends,
                deadline: Instant::now() + limits.time,
                max_tokens: limits.tokens,
                consent,
                ceiling: tool::Effect::Host,
                changes: FileChanges::default(),
            },
            guard,
        )
        .start();
        if let Some(leaving) = self.session.leaving() {
            // Its start was on its way to the store when the service began to close.
            actor.do_send(Interrupt(leaving));
        }
        self.foreground = Some(Foreground {
            run_id,
            before_seq,
            actor,
        });
    }
}

/// What a plain run's sender is told of its end, which is long past.
fn stored_answer(
    run_id: RunId,
    found: RunOutcome,
    context_tokens: u32,
) -> Result<PlainAnswer, NaviError> {
    if found.state == RunState::Failed {
        let failed = NaviError::new(ErrorCode::RunFailed, "the run failed");
        return Err(match found.reason {
            Some(EndReason { text, phrase }) => NaviError {
                message: text,
                phrase: phrase.map(Box::new),
                ..failed
            },
            None => failed,
        });
    }
    let last = found.message;
    Ok(PlainAnswer {
        run_id,
        message_id: last
            .as_ref()
            .map_or_else(MessageId::new, |message| message.id),
        content: last.and_then(|message| message.content).unwrap_or_default(),
        completed: found.state == RunState::Completed,
        context_tokens,
    })
}
