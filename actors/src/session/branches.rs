//! Other ways that the conversation could go: an edited message, an answer made anew.

use std::sync::Arc;

use actix::{ActorFutureExt, AsyncContext, Context, Handler, ResponseFuture, WrapFuture};
use tokio::sync::oneshot;

use super::messages::{Branched, ShowBranch, StartBranch};
use super::replies::{Reply, answer, committed};
use super::turns::NewRun;
use super::{Phase, SessionActor};
use crate::domain::history::{self, Place, Segment};
use crate::protocol::command::SendMode;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::Event;
use crate::protocol::ids::{MessageId, RunId, SessionId};
use crate::protocol::message::{Message, Role};
use crate::root::store_error;
use crate::services::{Services, now};
use crate::store::{StoreError, Write};

/// A message that a branch starts at.
struct Start {
    ordinal: u64,
    branch_id: u32,
    message: Message,
    /// The path that it was looked up on.
    path: Vec<Segment>,
    /// The last message that both branches share.
    before: Option<Place>,
}

impl SessionActor {
    fn refuses_branches(&self) -> Option<NaviError> {
        match self.phase {
            Phase::Idle => None,
            Phase::Running(_) | Phase::Closing(_) => Some(NaviError::new(
                ErrorCode::SessionBusy,
                "a run goes in this session; wait for its end or stop it, then edit",
            )),
        }
    }

    fn start_branch(
        &mut self,
        ctx: &mut Context<Self>,
        start: Start,
        content: Option<String>,
        reply: Reply<Branched>,
    ) {
        if let Some(error) = self.refuses_branches() {
            answer(Some(reply), Err(error));
            return;
        }
        let shown = start.path.iter().any(|segment| {
            segment.branch == start.branch_id
                && segment.below.is_none_or(|below| start.ordinal < below)
        });
        if !shown || start.path != self.state.path() || start.message.role != Role::User {
            let error = NaviError::new(
                ErrorCode::MessageNotFound,
                "only a message of the user's own that is shown can be edited or answered anew",
            );
            answer(Some(reply), Err(error));
            return;
        }
        let forked = history::fork(
            &self.state.branches,
            self.state.branch_id,
            start.before,
            forks_at(start.ordinal, content.is_some()),
        );
        let Some(branch) = forked else {
            let error = NaviError::new(
                ErrorCode::QueueFull,
                "this conversation has as many branches as it may have; go on in a new one",
            );
            answer(Some(reply), Err(error));
            return;
        };
        let now = now();
        let branch_id = branch.id;
        let run_id = RunId::new();
        let mut message_id = start.message.id;
        let mut events = vec![Event::BranchChanged { branch_id }];
        let mut writes = vec![
            Write::Fork(branch),
            Write::ContextTokens(0),
            Write::Active(now),
        ];
        if let Some(content) = content {
            let mut message = Message::user(MessageId::new(), run_id, content, now);
            message.images = start.message.images;
            message.files = start.message.files;
            message_id = message.id;
            events.push(Event::MessageAccepted {
                client_id: None,
                message_id,
                queued: false,
                mode: SendMode::Queue,
                content: message.content.clone().unwrap_or_default(),
                images: message.images.clone(),
                files: message.files.clone(),
            });
            writes.push(Write::Message(message));
        }
        self.begin(NewRun::turn(run_id, message_id), now, &mut writes);
        let branched = Branched {
            branch_id,
            run_id,
            message_id,
        };
        self.submit(ctx, Some(run_id), events, writes, move |actor, ctx| {
            answer(Some(reply), Ok(branched));
            actor.launch(ctx, run_id);
        });
    }
}

impl Handler<StartBranch> for SessionActor {
    type Result = ResponseFuture<Result<Branched, NaviError>>;

    fn handle(&mut self, start: StartBranch, ctx: &mut Context<Self>) -> Self::Result {
        let (tx, rx) = oneshot::channel();
        let (services, id) = (Arc::clone(&self.services), self.id);
        let path = self.state.path();
        let StartBranch {
            message_id,
            content,
        } = start;
        ctx.spawn(
            find(services, id, path, message_id, content.is_some())
                .into_actor(self)
                .map(move |found, actor, ctx| match found {
                    Ok(Some(start)) => actor.start_branch(ctx, start, content, tx),
                    Ok(None) => answer(Some(tx), Err(no_such_message())),
                    Err(error) => answer(Some(tx), Err(store_error(&error))),
                }),
        );
        Box::pin(committed(rx))
    }
}

impl Handler<ShowBranch> for SessionActor {
    type Result = ResponseFuture<Result<(), NaviError>>;

    fn handle(
        &mut self,
        ShowBranch(branch_id): ShowBranch,
        ctx: &mut Context<Self>,
    ) -> Self::Result {
        if !matches!(self.phase, Phase::Idle) {
            return Box::pin(async {
                Err(NaviError::new(
                    ErrorCode::SessionBusy,
                    "a run goes in this session; wait for its end or stop it first",
                ))
            });
        }
        if !self
            .state
            .branches
            .iter()
            .any(|branch| branch.id == branch_id)
        {
            return Box::pin(async move {
                Err(NaviError::new(
                    ErrorCode::NotFound,
                    format!("this session has no branch {branch_id}"),
                ))
            });
        }
        let (tx, rx) = oneshot::channel();
        let events = vec![Event::BranchChanged { branch_id }];
        // How large the other branch's context is will be known with its next run.
        let writes = vec![Write::ShowBranch(branch_id), Write::ContextTokens(0)];
        self.submit(ctx, None, events, writes, |_, _| answer(Some(tx), Ok(())));
        Box::pin(committed(rx))
    }
}

/// Without another text the message itself is shared, and what follows it is not.
fn forks_at(ordinal: u64, edits: bool) -> u64 {
    ordinal + u64::from(!edits)
}

async fn find(
    services: Arc<Services>,
    id: SessionId,
    path: Vec<Segment>,
    message_id: MessageId,
    edits: bool,
) -> Result<Option<Start>, StoreError> {
    let store = &services.store;
    let Some((ordinal, branch_id, message)) = store.message_ordinal(id, message_id).await? else {
        return Ok(None);
    };
    let at = forks_at(ordinal, edits);
    let before = store.message_before(id, &path, at).await?;
    Ok(Some(Start {
        ordinal,
        branch_id,
        message,
        path,
        before,
    }))
}

fn no_such_message() -> NaviError {
    NaviError::new(
        ErrorCode::MessageNotFound,
        "there is no such message in this session",
    )
}
