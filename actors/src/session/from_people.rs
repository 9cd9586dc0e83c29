//! Messages and branches, of which only the store knows a part: that is looked up first.

use actix::{ActorFutureExt, AsyncContext, Context, Handler, ResponseFuture, WrapFuture};
use futures_util::TryFutureExt as _;
use tokio::sync::oneshot;

use super::SessionActor;
use super::messages::{Attach, Attached, RunPlain, Send, SendWatched, StartBranch};
use super::replies::{NoReply, reply};
use crate::domain::history::Segment;
use crate::domain::input::no_such_message;
use crate::domain::model_choice::RunConfig;
use crate::domain::session::command::{BranchStart, Command, Incoming};
use crate::domain::session::transition::{Accepted, Branched, PlainAnswer, Refused, Reply};
use crate::protocol::command::{PlainConsent, UserInput};
use crate::protocol::ids::SessionId;
use crate::root::store_error;
use crate::run::known_config;
use crate::store::{KnownMessage, Store, StoreError};

impl SessionActor {
    /// Takes a message in, with what the store knows under its `client_id`, where the session
    /// does not.
    fn take_message<T: TryFrom<Reply> + 'static>(
        &mut self,
        ctx: &mut Context<Self>,
        input: UserInput,
        plain: Option<PlainConsent>,
    ) -> ResponseFuture<Result<T, NoReply>> {
        let command = move |input, stored, config| {
            Command::Send(Box::new(Incoming {
                input,
                plain,
                config,
                stored,
            }))
        };
        let unknown = input
            .client_id
            .clone()
            .filter(|client_id| self.session.ahead().may_be_accepted(client_id));
        let Some(client_id) = unknown else {
            let config = self.config_of_next();
            return Box::pin(self.ask(ctx, command(input, None, config)));
        };
        let (tx, rx) = oneshot::channel();
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
                        let config = actor.config_of_next();
                        actor.handle_for(ctx, command(input, known, config), tx);
                    }
                    // The one who asked may have gone.
                    Err(error) => drop(tx.send(Err(store_error(&error).into()))),
                }),
        );
        Box::pin(reply(rx))
    }

    /// What a run that begins now goes by. None where one goes, or a model server has to be asked
    /// first.
    fn config_of_next(&self) -> Option<Box<RunConfig>> {
        let ahead = self.session.ahead();
        let is_free = ahead.running().is_none();
        let config = is_free.then(|| known_config(&self.services, &ahead.summary));
        config.flatten().map(Box::new)
    }
}

impl Handler<Send> for SessionActor {
    type Result = ResponseFuture<Result<Accepted, NoReply>>;

    fn handle(&mut self, Send(input): Send, ctx: &mut Self::Context) -> Self::Result {
        fail::fail_point!("session::send");
        self.take_message(ctx, input, None)
    }
}

impl Handler<SendWatched> for SessionActor {
    type Result = ResponseFuture<Result<(Accepted, Attached), NoReply>>;

    fn handle(&mut self, SendWatched(input): SendWatched, ctx: &mut Self::Context) -> Self::Result {
        let attached = self.attached(&Attach {
            after: Some(self.telling.sequencer().told_seq()),
            ..Attach::default()
        });
        let sent = self.take_message(ctx, input, None);
        Box::pin(sent.map_ok(|accepted| (accepted, attached)))
    }
}

impl Handler<RunPlain> for SessionActor {
    type Result = ResponseFuture<Result<PlainAnswer, NoReply>>;

    fn handle(&mut self, RunPlain(input): RunPlain, ctx: &mut Self::Context) -> Self::Result {
        self.take_message(ctx, input.message, Some(input.consent))
    }
}

impl Handler<StartBranch> for SessionActor {
    type Result = ResponseFuture<Result<Branched, NoReply>>;

    fn handle(&mut self, start: StartBranch, ctx: &mut Self::Context) -> Self::Result {
        let (tx, rx) = oneshot::channel();
        let (store, id) = (self.services.store.clone(), self.id);
        let path = self.session.ahead().path();
        ctx.spawn(
            find(store, id, path, start).into_actor(self).map(
                move |found, actor, ctx| match found {
                    Ok(start) => actor.handle_for(ctx, Command::StartBranch(Box::new(start)), tx),
                    // The one who asked may have gone.
                    Err(refused) => drop(tx.send(Err(refused))),
                },
            ),
        );
        Box::pin(reply(rx))
    }
}

async fn find(
    store: Store,
    id: SessionId,
    path: Vec<Segment>,
    start: StartBranch,
) -> Result<BranchStart, Refused> {
    let StartBranch {
        message_id,
        content,
        author,
    } = start;
    let failed = |error: StoreError| Refused::from(store_error(&error));
    let found = store.message_ordinal(id, message_id).await;
    let (ordinal, branch_id, message) = found.map_err(failed)?.ok_or_else(no_such_message)?;
    let at = BranchStart::forks_at(ordinal, content.is_some());
    let before = store.message_before(id, &path, at).await.map_err(failed)?;
    Ok(BranchStart {
        ordinal,
        branch_id,
        message,
        path,
        before,
        content,
        author,
    })
}
