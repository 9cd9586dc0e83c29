//! What a session gives to those who watch it.

use std::sync::Arc;

use actix::{Context, Handler, ResponseFuture};
use futures_util::FutureExt;
use tokio::sync::oneshot;

use super::messages::{Attach, Attached, GetContext, GetSnapshot, Outline, Start};
use super::{Phase, SessionActor};
use crate::domain::context;
use crate::domain::model_choice;
use crate::protocol::chat::ChatRequest;
use crate::protocol::error::NaviError;
use crate::protocol::event::ResyncReason;
use crate::protocol::ids::SessionId;
use crate::protocol::session::{ActiveRun, SessionSnapshot};
use crate::root::store_error;
use crate::services::Services;

impl SessionActor {
    fn outline(&self) -> Outline {
        let session = SessionSnapshot {
            summary: self.state.summary.clone(),
            messages: Vec::new(),
            todo: self.state.todo.clone(),
            queue: self.state.queue.iter().cloned().collect(),
            run: self.foreground().map(|run| ActiveRun {
                run_id: run.run_id,
                message_id: run.message_id,
                model: run.model.clone(),
                started_at: run.started_at,
            }),
            can_continue: matches!(self.phase, Phase::Idle) && self.state.can_continue(),
            max_context_tokens: self.window,
            last_seq: self.sequencer.told_seq(),
            epoch: self.epoch,
        };
        Outline {
            session,
            message_count: self.state.message_count,
        }
    }

    fn start_of(&self, attach: &Attach) -> Start {
        let upto = self.sequencer.told_seq();
        let resync = |reason| Start::Resync {
            reason,
            outline: Box::new(self.outline()),
        };
        if attach.epoch.is_some_and(|epoch| epoch != self.epoch) {
            return resync(ResyncReason::EpochChanged);
        }
        match attach.after {
            Some(after) if after > upto => resync(ResyncReason::CursorAhead),
            Some(after) => Start::Log { after, upto },
            None => Start::Log {
                after: self
                    .foreground()
                    .map_or(upto, |run| run.before_seq.min(upto)),
                upto,
            },
        }
    }
}

impl Handler<Attach> for SessionActor {
    type Result = actix::MessageResult<Attach>;

    /// One turn of the actor: what was told until now, and the receiver of what comes.
    fn handle(&mut self, attach: Attach, _: &mut Self::Context) -> Self::Result {
        self.last_used = tokio::time::Instant::now();
        actix::MessageResult(Attached {
            start: self.start_of(&attach),
            epoch: self.epoch,
            open: self.sequencer.open_parts().to_vec(),
            live: self.live.subscribe(),
        })
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
        let (id, profile_id) = (self.id, self.state.summary.profile_id.clone());
        Box::pin(async move { would_send(&services, id, &profile_id).await })
    }
}

async fn would_send(
    services: &Services,
    id: SessionId,
    profile_id: &str,
) -> Result<ChatRequest, NaviError> {
    let profile = services.profiles.find(profile_id)?;
    let messages = services.store.messages(id).await;
    let messages = messages.map_err(|error| store_error(&error))?;
    let conversation: Vec<_> = messages.into_iter().map(Arc::new).collect();
    let wanted = model_choice::wanted(&profile);
    let choice = model_choice::choose(&services.models.statuses(), wanted);
    let model = choice.map(|choice| choice.model).unwrap_or_default();
    let offer = context::Offer {
        tools: services
            .registry
            .enabled(&profile.enabled_tools, &profile)
            .specs,
        notes: context::notes(&conversation, true),
        context_window: context::window(&model, services.context_window),
        think: services.think,
    };
    Ok(context::request(
        &profile,
        &services.persona,
        &conversation,
        &model,
        &offer,
    ))
}
