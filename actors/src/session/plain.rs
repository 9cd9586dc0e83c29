//! Plain runs: who sent the message waits for the end of its run (SPEC section 3).

use actix::{ActorFutureExt, AsyncContext, Context, Handler, ResponseFuture, WrapFuture};
use tokio::sync::oneshot;

use super::SessionActor;
use super::incoming::Sender;
use super::messages::{PlainAnswer, RunPlain};
use super::replies::{Reply, answer, committed};
use super::state::State;
use crate::domain::run_loop::RunEnd;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::{MessageId, RunId};
use crate::protocol::message::{Message, Role};
use crate::protocol::session::RunState;
use crate::root::store_error;
use crate::store::Answer;

impl Handler<RunPlain> for SessionActor {
    type Result = ResponseFuture<Result<PlainAnswer, NaviError>>;

    fn handle(&mut self, RunPlain(input): RunPlain, ctx: &mut Self::Context) -> Self::Result {
        let (tx, rx) = oneshot::channel();
        self.take_message(ctx, input.message, Sender::Plain(input.consent, tx));
        Box::pin(committed(rx))
    }
}

impl SessionActor {
    /// Answers one whose message came before, under the same `client_id`: with the end of its
    /// run, now or once it is there.
    pub(super) fn answer_again(
        &mut self,
        ctx: &mut Context<Self>,
        run_id: RunId,
        reply: Reply<PlainAnswer>,
    ) {
        if let Some(run) = self.foreground_mut().filter(|run| run.run_id == run_id) {
            run.waiting.push(reply);
            return;
        }
        let (store, id) = (self.services.store.clone(), self.id);
        ctx.spawn(
            async move { store.answer_of(id, run_id).await }
                .into_actor(self)
                .map(move |found, actor, _| {
                    let told = match found {
                        Ok(Some(found)) => again(&actor.state, run_id, found),
                        Ok(None) => Err(NaviError::new(
                            ErrorCode::RunFailed,
                            "what answered this message is not there any more",
                        )),
                        Err(error) => Err(store_error(&error)),
                    };
                    answer(Some(reply), told);
                }),
        );
    }
}

/// What a plain run's sender is told of its end.
pub(super) fn plain_answer(
    state: &State,
    run_id: RunId,
    end: &RunEnd,
) -> Result<PlainAnswer, NaviError> {
    if let RunEnd::Failed(error) = end {
        return Err(error.clone());
    }
    let mut messages = state.run_messages.iter().rev();
    let last = messages.find(|message| message.role == Role::Assistant);
    let completed = *end == RunEnd::Answered;
    Ok(answer_with(
        state,
        run_id,
        last.map(AsRef::as_ref),
        completed,
    ))
}

/// The same of a run that is over for long.
fn again(state: &State, run_id: RunId, found: Answer) -> Result<PlainAnswer, NaviError> {
    if found.state == RunState::Failed {
        let reason = found.reason.unwrap_or_else(|| "the run failed".to_owned());
        return Err(NaviError::new(ErrorCode::RunFailed, reason));
    }
    let completed = found.state == RunState::Completed;
    Ok(answer_with(
        state,
        run_id,
        found.message.as_ref(),
        completed,
    ))
}

fn answer_with(
    state: &State,
    run_id: RunId,
    last: Option<&Message>,
    completed: bool,
) -> PlainAnswer {
    PlainAnswer {
        run_id,
        message_id: last.map_or_else(MessageId::new, |message| message.id),
        content: last
            .and_then(|message| message.content.clone())
            .unwrap_or_default(),
        completed,
        context_tokens: state.summary.context_token_count,
    }
}
