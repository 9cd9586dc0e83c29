//! What a person says of calls whose outcome a crash left unknown.

use actix::{Context, Handler, ResponseFuture};
use tokio::sync::oneshot;

use super::messages::ResolveCall;
use super::replies::{Reply, answer, committed};
use super::{Phase, SessionActor};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::Event;
use crate::store::Write;

impl SessionActor {
    fn resolve_call(&mut self, ctx: &mut Context<Self>, resolve: ResolveCall, reply: Reply<()>) {
        let ResolveCall { call_id, decision } = resolve;
        let mut unknown = self.state.unknown_calls().into_iter();
        let is_open =
            matches!(self.phase, Phase::Idle) && unknown.any(|call| call.call_id == call_id);
        if !is_open {
            let error = NaviError::new(
                ErrorCode::NotFound,
                "no such call waits for a word on its outcome; it may have been given already",
            );
            answer(Some(reply), Err(error));
            return;
        }
        // A summary that is under way was made of the context as it was.
        self.compressing = None;
        let mut context = self.state.context().clone();
        context.decisions.insert(call_id.clone(), decision);
        let event = Event::CallResolved { call_id, decision };
        let writes = vec![Write::Context(context)];
        self.submit(ctx, None, vec![event], writes, |_, _| {
            answer(Some(reply), Ok(()));
        });
    }
}

impl Handler<ResolveCall> for SessionActor {
    type Result = ResponseFuture<Result<(), NaviError>>;

    /// The first word counts: it is looked at once those before it are committed. It is the
    /// context's: from then on the model reads the call's result so, and `messages` stays.
    fn handle(&mut self, resolve: ResolveCall, ctx: &mut Self::Context) -> Self::Result {
        let (tx, rx) = oneshot::channel();
        self.when_settled(ctx, move |actor, ctx| actor.resolve_call(ctx, resolve, tx));
        Box::pin(committed(rx))
    }
}
