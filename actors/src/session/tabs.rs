//! What a session gives to those who watch it.

use std::sync::Arc;

use actix::{Context, Handler, ResponseFuture};
use futures_util::FutureExt;
use tokio::sync::oneshot;

use super::SessionActor;
use super::messages::{Attach, Attached, GetContext, GetNotes, GetSnapshot, NextCall, Notes};
use super::outline::Outline;
use super::replies::Waiting;
use crate::domain::context::{self, Conversation};
use crate::domain::model_choice;
use crate::domain::permissions::Memory;
use crate::protocol::error::NaviError;
use crate::protocol::session::{ActiveRun, SessionSnapshot};
use crate::root::store_error;
use crate::run;

impl SessionActor {
    pub(super) fn outline(&self) -> Outline {
        let told = &self.told;
        let last = told.last_run.as_ref();
        let shown = last.filter(|run| run.branch_id == told.branch_id);
        let reason = told.last_run.as_ref().and_then(|run| run.reason.as_ref());
        let session = SessionSnapshot {
            summary: told.summary.clone(),
            messages: Vec::new(),
            earlier: 0,
            todo: told.todo.clone(),
            plan: told.plan.clone(),
            compression: None,
            forks: Vec::new(),
            queue: told.queue.iter().cloned().collect(),
            run: told.running().map(|run| ActiveRun {
                run_id: run.run_id,
                message_id: run.message_id,
                model: run.model.clone(),
                started_at: run.started_at,
                waiting: told.waiting.clone(),
            }),
            mode: told.mode,
            tainted_at: told.tainted_at,
            approvals: told.approvals.iter().map(|it| it.pending.clone()).collect(),
            unknown_calls: told.unknown_calls(),
            can_continue: !self.session.is_closing() && told.can_continue(),
            reason: reason.map(|reason| reason.text.clone()),
            reason_phrase: reason.and_then(|reason| reason.phrase.clone()),
            notices: Vec::new(),
            max_context_tokens: self.window(),
            last_seq: self.telling.sequencer().told_seq(),
            epoch: self.epoch,
        };
        Outline {
            session,
            message_count: told.message_count,
            branches: told.branches.clone(),
            branch_id: told.branch_id,
            last_run: shown.map(|run| run.run_id),
        }
    }

    /// The window of the model that ran last; before that, of the one that would.
    fn window(&self) -> u32 {
        self.session.window().unwrap_or_else(|| {
            let (services, summary) = (&self.services, &self.told.summary);
            let profile = services.profiles.of_session(&summary.profile_id);
            let wanted = model_choice::wanted(&profile.profile, summary.model.as_deref());
            model_choice::choose(&services.models.statuses(), wanted)
                .map_or(services.context_window, |choice| {
                    context::window(&choice.model, services.context_window)
                })
        })
    }

    /// What was told until now, and the receiver of what comes.
    pub(super) fn attached(&self, attach: &Attach) -> Attached {
        let run_from = self.foreground.as_ref().map(|run| run.before_seq);
        self.telling.attach(attach, run_from, || self.outline())
    }
}

impl Handler<Attach> for SessionActor {
    type Result = ResponseFuture<Attached>;

    /// All of it is of one turn of the actor.
    fn handle(&mut self, attach: Attach, ctx: &mut Context<Self>) -> Self::Result {
        self.last_used = tokio::time::Instant::now();
        let now = self.attached(&attach);
        if self.telling.may_begin(&attach, &now) {
            return Box::pin(std::future::ready(now));
        }
        let (tx, rx) = oneshot::channel();
        self.show_settled(ctx, Waiting::Attached(attach, tx));
        Box::pin(rx.map(|settled| settled.unwrap_or(now)))
    }
}

impl Handler<GetSnapshot> for SessionActor {
    type Result = ResponseFuture<Outline>;

    /// Waits for what was submitted before, so that one who sent a message and asks finds it.
    fn handle(&mut self, _: GetSnapshot, ctx: &mut Context<Self>) -> Self::Result {
        let (tx, rx) = oneshot::channel();
        self.show_settled(ctx, Waiting::Outline(tx));
        let now = self.outline();
        Box::pin(rx.map(|settled| settled.unwrap_or(now)))
    }
}

impl Handler<GetContext> for SessionActor {
    type Result = ResponseFuture<Result<NextCall, NaviError>>;

    fn handle(&mut self, GetContext(memory): GetContext, _: &mut Context<Self>) -> Self::Result {
        let services = Arc::clone(&self.services);
        let session = self.told.summary.clone();
        let mut context = self.told.context().clone();
        let store = self.services.store.clone();
        let (id, path) = (self.id, self.told.path());
        let ordinals = context.start..self.told.message_count;
        let counted = self.told.summary.context_token_count;
        Box::pin(async move {
            if memory == Memory::LeftOut {
                context.memory = None;
            } else if context.memory.is_none() && session.shared.is_none() {
                // The first run takes it in.
                let memory = store.memory_summary(session.user_id).await;
                context.memory = memory.map_err(|error| store_error(&error))?;
            }
            let read = store.context_messages(id, &path, ordinals).await;
            let messages: Vec<_> = read
                .map_err(|error| store_error(&error))?
                .into_iter()
                .map(|(_, message)| context.as_decided(message))
                .collect();
            let views = services
                .files
                .views_again(id, messages.iter().map(|message| &**message))
                .await;
            let conversation = Conversation::of(&context, &messages).with_files(&views);
            let tools = services.tools_of(session.user_id).await?;
            let mut next = run::would_send(&services, &session, &conversation, &tools)?;
            next.parts.counted = counted;
            Ok(next)
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
            plan: self.session.ahead().plan.clone(),
            todo: self.session.ahead().todo.clone(),
            scratchpad: self.session.ahead().scratchpad.clone(),
        }
    }
}
