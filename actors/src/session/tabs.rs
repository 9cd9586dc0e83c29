//! What a session gives to those who watch it.

use std::sync::Arc;

use actix::{Context, Handler, ResponseFuture};
use futures_util::FutureExt;
use tokio::sync::oneshot;

use super::messages::{Attach, Attached, GetContext, GetNotes, GetSnapshot, Notes, Outline, Start};
use super::{Phase, SessionActor};
use crate::domain::context::Conversation;
use crate::protocol::chat::ChatRequest;
use crate::protocol::error::NaviError;
use crate::protocol::session::{ActiveRun, SessionSnapshot};
use crate::root::store_error;
use crate::run;

impl SessionActor {
    fn outline(&self) -> Outline {
        let session = SessionSnapshot {
            summary: self.state.summary.clone(),
            messages: Vec::new(),
            todo: self.state.todo.clone(),
            plan: self.state.plan.clone(),
            compression: None,
            forks: Vec::new(),
            queue: self.state.queue.iter().cloned().collect(),
            run: self.foreground().map(|run| ActiveRun {
                run_id: run.run_id,
                message_id: run.message_id,
                model: run.model.clone(),
                started_at: run.started_at,
            }),
            mode: self.state.mode,
            approvals: self.state.approvals.clone(),
            unknown_calls: self.state.unknown_calls(),
            can_continue: matches!(self.phase, Phase::Idle) && self.state.can_continue(),
            max_context_tokens: self.window,
            last_seq: self.telling.sequencer().told_seq(),
            epoch: self.epoch,
        };
        Outline {
            session,
            message_count: self.state.message_count,
            branches: self.state.branches.clone(),
            branch_id: self.state.branch_id,
        }
    }

    /// What was told until now, and the receiver of what comes.
    fn attached(&self, attach: &Attach) -> Attached {
        let run_from = self.foreground().map(|run| run.before_seq);
        self.telling.attach(attach, run_from, || self.outline())
    }
}

impl Handler<Attach> for SessionActor {
    type Result = ResponseFuture<Attached>;

    /// All of it is of one turn of the actor. Where that is a snapshot, it waits for what was
    /// submitted before: a session that was just read closes the run that it found open, and
    /// the event that tells of this does not tell what the run had said.
    fn handle(&mut self, attach: Attach, ctx: &mut Context<Self>) -> Self::Result {
        self.last_used = tokio::time::Instant::now();
        let now = self.attached(&attach);
        if matches!(now.start, Start::Log { .. }) {
            return Box::pin(std::future::ready(now));
        }
        let (tx, rx) = oneshot::channel();
        self.when_settled(ctx, move |actor, _| {
            // The one who asked may have gone.
            let _ = tx.send(actor.attached(&attach));
        });
        Box::pin(rx.map(|settled| settled.unwrap_or(now)))
    }
}

impl Handler<GetSnapshot> for SessionActor {
    type Result = ResponseFuture<Outline>;

    /// Waits for what was submitted before, so that one who sent a message and asks finds it.
    fn handle(&mut self, _: GetSnapshot, ctx: &mut Context<Self>) -> Self::Result {
        let (tx, rx) = oneshot::channel();
        self.when_settled(ctx, |actor, _| {
            // The one who asked may have gone.
            let _ = tx.send(actor.outline());
        });
        let now = self.outline();
        Box::pin(rx.map(|settled| settled.unwrap_or(now)))
    }
}

impl Handler<GetContext> for SessionActor {
    type Result = ResponseFuture<Result<ChatRequest, NaviError>>;

    fn handle(&mut self, _: GetContext, _: &mut Context<Self>) -> Self::Result {
        let services = Arc::clone(&self.services);
        let profile_id = self.state.summary.profile_id.clone();
        let mut context = self.state.context().clone();
        let store = self.services.store.clone();
        let (id, path) = (self.id, self.state.path());
        let user = self.state.summary.user_id;
        Box::pin(async move {
            if context.memory.is_none() {
                // The first run takes it in.
                let memory = store.memory_summary(user).await;
                context.memory = memory.map_err(|error| store_error(&error))?;
            }
            let read = store.context_messages(id, &path, context.start).await;
            let messages: Vec<_> = read
                .map_err(|error| store_error(&error))?
                .into_iter()
                .map(|(_, message)| context.as_decided(Arc::new(message)))
                .collect();
            let views = services
                .files
                .views_again(id, messages.iter().map(AsRef::as_ref))
                .await;
            let conversation = Conversation::of(&context, &messages).with_files(&views);
            run::would_send(&services, &profile_id, &conversation)
        })
    }
}

impl Handler<GetNotes> for SessionActor {
    type Result = Notes;

    fn handle(&mut self, _: GetNotes, _: &mut Context<Self>) -> Notes {
        self.notes()
    }
}

impl SessionActor {
    pub(super) fn notes(&self) -> Notes {
        Notes {
            plan: self.state.plan.clone(),
            todo: self.draft.todo.clone(),
            scratchpad: self.draft.scratchpad.clone(),
        }
    }
}
