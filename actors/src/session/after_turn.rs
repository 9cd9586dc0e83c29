//! What is done after a turn, when its answer is there: the summary of old turns, the title.

use std::sync::Arc;

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use tokio_util::sync::CancellationToken;

use super::SessionActor;
use crate::completion;
use crate::compression::{Compress, CompressionJob, Summarised, event};
use crate::domain::model_choice::{self, Choice};
use crate::domain::session::command::Command;
use crate::domain::session::transition::{Compacted, Exchange};
use crate::domain::title;
use crate::llm_actor::{Priority, Ticket};
use crate::memory::Remembers;
use crate::protocol::ids::RunId;
use crate::protocol::session::SessionSummary;
use crate::services::Services;

impl SessionActor {
    /// Has old turns of the branch that is shown summarised, unless nobody wants that any more.
    pub(super) fn summarise(&mut self, ctx: &mut Context<Self>, summary: u64, run_id: RunId) {
        if !self.session.wants_summary(summary) {
            return;
        }
        let stop = CancellationToken::new();
        self.compressing = Some(stop.clone().drop_guard());
        let services = Arc::clone(&self.services);
        let id = self.id;
        let branch_id = self.told.branch_id;
        let (state, path) = (self.told.context().clone(), self.told.path());
        let ordinals = state.start..self.told.message_count;
        let session = self.told.summary.clone();
        let notes = self.notes();
        let work = async move {
            let messages = services.store.context_messages(id, &path, ordinals);
            let messages = messages.await.ok()?.into_iter();
            let messages = messages
                .map(|(at, message)| (at, state.as_decided(message)))
                .collect();
            let choice = choice(&services, &session)?;
            let job = CompressionJob {
                session_id: id,
                user_id: session.user_id,
                remembers: Remembers::of(&session),
                run_id,
                choice,
                priority: Priority::Background,
                state,
                notes,
                messages,
                ticket: Ticket::new(),
                stop,
            };
            let compressed = services.compressor.addr().send(Compress(job)).await;
            match compressed.ok()? {
                Ok(summarised) => summarised,
                Err(error) => {
                    tracing::warn!(%error, "context could not be compressed, left as it was");
                    None
                }
            }
        };
        ctx.spawn(work.into_actor(self).map(move |summarised, actor, ctx| {
            let compacted = summarised.map(|Summarised { compressed, call }| {
                Box::new(Compacted {
                    run_id,
                    branch_id,
                    event: event(&compressed),
                    context: compressed.state,
                    call: call.map(Box::new),
                })
            });
            actor.hear(ctx, Command::Summarised { summary, compacted });
        }));
    }

    /// A new session's title, from its first exchange. Until it is found, and where it is not,
    /// the start of the user's text stands there.
    pub(super) fn find_title(&mut self, ctx: &mut Context<Self>, exchange: Exchange) {
        let services = Arc::clone(&self.services);
        let session = self.told.summary.clone();
        let work = async move {
            let found = ask_title(&services, &session, &exchange).await;
            found.zip(Some(exchange.title))
        };
        ctx.spawn(work.into_actor(self).map(move |found, actor, ctx| {
            if let Some((title, instead_of)) = found {
                actor.hear(ctx, Command::TitleFound { title, instead_of });
            }
        }));
    }
}

/// The model that the session's next run would have.
fn choice(services: &Services, session: &SessionSummary) -> Option<Choice> {
    let profile = services.profiles.of_session(&session.profile_id).profile;
    let wanted = model_choice::wanted(&profile, session.model.as_deref());
    model_choice::choose(&services.models.statuses(), wanted).ok()
}

async fn ask_title(
    services: &Services,
    session: &SessionSummary,
    exchange: &Exchange,
) -> Option<String> {
    let choice = choice(services, session)?;
    if choice.model.demo {
        return None;
    }
    let question = completion::Question {
        choice,
        messages: title::question(&exchange.asked, &exchange.answered),
        temperature: title::TEMPERATURE,
        context_window: services.context_window,
        max_output_tokens: title::MAX_TOKENS,
        form: None,
        priority: Priority::Background,
        person: Some(session.user_id),
        run: None,
    };
    let stop = CancellationToken::new();
    match completion::ask(&services.models, services.limits, question, stop).await {
        Ok(answer) => title::from_answer(&answer.text),
        Err(error) => {
            tracing::info!(%error, "no title, the start of the text stays");
            None
        }
    }
}
