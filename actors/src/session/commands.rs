//! What a person changes about a session: its row, and the messages that wait.

use actix::{Context, Handler, ResponseFuture};
use futures_util::FutureExt;
use tokio::sync::oneshot;

use super::messages::{ChangeSession, EditQueued, TellNotice, Withdraw};
use super::{Phase, SessionActor};
use crate::hub::HubFrame;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::Event;
use crate::protocol::ids::{MessageId, RunId};
use crate::protocol::session::SessionSummary;
use crate::services::now;
use crate::store::Write;

impl SessionActor {
    fn change_row(
        &mut self,
        ctx: &mut Context<Self>,
        write: Write,
    ) -> ResponseFuture<Result<SessionSummary, NaviError>> {
        let (tx, rx) = oneshot::channel();
        self.submit(ctx, None, Vec::new(), vec![write], move |actor, _| {
            // The one who asked may have gone.
            let _ = tx.send(actor.state.summary.clone());
        });
        Box::pin(rx.map(|done| done.map_err(|_| not_stored())))
    }

    fn change_queue(
        &mut self,
        ctx: &mut Context<Self>,
        message_id: MessageId,
        content: Option<String>,
    ) -> ResponseFuture<Result<(), NaviError>> {
        let waiting = self
            .state
            .queue
            .iter()
            .find(|queued| queued.message_id == message_id)
            .filter(|queued| !self.is_starting(queued.run_id))
            .filter(|queued| !self.steered.contains(&queued.message_id));
        let Some(run_id) = waiting.map(|queued| queued.run_id) else {
            return Box::pin(async {
                Err(NaviError::new(
                    ErrorCode::MessageNotFound,
                    "no such message waits in this session; it may have been answered already",
                ))
            });
        };
        let write = match &content {
            None => Write::Dequeue(message_id),
            Some(content) => Write::EditQueued {
                message_id,
                content: content.clone(),
            },
        };
        let event = Event::QueueChanged {
            message_id,
            content,
        };
        let (tx, rx) = oneshot::channel();
        self.submit(ctx, Some(run_id), vec![event], vec![write], move |_, _| {
            // The one who asked may have gone.
            let _ = tx.send(());
        });
        Box::pin(rx.map(|done| done.map_err(|_| not_stored())))
    }

    /// Whether the message's run was submitted, though its leaving the queue is not told yet.
    fn is_starting(&self, run_id: RunId) -> bool {
        self.foreground().is_some_and(|run| run.run_id == run_id)
    }

    /// Ends the session's run first: what it has still to write belongs to the session.
    fn delete(
        &mut self,
        ctx: &mut Context<Self>,
    ) -> ResponseFuture<Result<SessionSummary, NaviError>> {
        let run = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle | Phase::Closing(None) => None,
            Phase::Running(run) | Phase::Closing(Some(run)) => Some(run),
        };
        if let Some(run) = &run {
            run.stop.cancel();
        }
        self.phase = Phase::Closing(run);
        let (tx, rx) = oneshot::channel();
        self.deleting.push(tx);
        self.leave_when_done(ctx);
        Box::pin(rx.map(|done| done.map_err(|_| not_stored())))
    }

    /// Marks the session as deleted and lets its actor go.
    pub(super) fn write_deleted(&mut self, ctx: &mut Context<Self>) {
        let write = Write::Deleted(Some(now()));
        self.submit(ctx, None, Vec::new(), vec![write], |actor, ctx| {
            actor.services.hub.tell(
                Some(actor.state.summary.user_id),
                HubFrame::SessionRemoved {
                    session_id: actor.id,
                },
            );
            for deleted in actor.deleting.drain(..) {
                // The one who asked may have gone.
                let _ = deleted.send(actor.state.summary.clone());
            }
            let (registry, id) = (actor.services.toolbox.now(), actor.id);
            // It may wait for the disk.
            tokio::task::spawn_blocking(move || registry.session_closed(id));
            actor.leave_when_done(ctx);
        });
    }
}

impl Handler<ChangeSession> for SessionActor {
    type Result = ResponseFuture<Result<SessionSummary, NaviError>>;

    fn handle(&mut self, change: ChangeSession, ctx: &mut Context<Self>) -> Self::Result {
        match change {
            ChangeSession::Rename(title) => self.change_row(ctx, Write::Title(title)),
            ChangeSession::Pin(pinned) => self.change_row(ctx, Write::Pinned(pinned)),
            ChangeSession::TogglePin => {
                let pinned = !self.state.summary.pinned;
                self.change_row(ctx, Write::Pinned(pinned))
            }
            ChangeSession::Delete => self.delete(ctx),
        }
    }
}

impl Handler<Withdraw> for SessionActor {
    type Result = ResponseFuture<Result<(), NaviError>>;

    fn handle(&mut self, Withdraw(id): Withdraw, ctx: &mut Context<Self>) -> Self::Result {
        self.change_queue(ctx, id, None)
    }
}

impl Handler<EditQueued> for SessionActor {
    type Result = ResponseFuture<Result<(), NaviError>>;

    fn handle(&mut self, edit: EditQueued, ctx: &mut Context<Self>) -> Self::Result {
        self.change_queue(ctx, edit.message_id, Some(edit.content))
    }
}

impl Handler<TellNotice> for SessionActor {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, notice: TellNotice, ctx: &mut Context<Self>) -> Self::Result {
        let TellNotice { code, message } = notice;
        let (tx, rx) = oneshot::channel();
        let event = Event::Notice {
            code,
            message,
            is_subagent: false,
        };
        self.submit(ctx, None, vec![event], Vec::new(), |_, _| {
            // The one who asked may have gone.
            let _ = tx.send(());
        });
        Box::pin(rx.map(|_| ()))
    }
}

fn not_stored() -> NaviError {
    NaviError::new(
        ErrorCode::StoreUnavailable,
        "this could not be stored, so nothing was changed; check the disk and the database, and try again",
    )
}
