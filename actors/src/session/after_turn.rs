//! What is done after a turn, when its answer is there: the summary of old turns, the title.

use std::sync::Arc;

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use tokio_util::sync::CancellationToken;

use super::sequencer::Submission;
use super::{Phase, SessionActor};
use crate::completion;
use crate::compression::{Compress, CompressionJob, Summarised, event};
use crate::domain::compression;
use crate::domain::run_loop::RunEnd;
use crate::domain::{model_choice, title};
use crate::llm_actor::{Priority, Ticket};
use crate::protocol::ids::{Origin, RunId};
use crate::protocol::message::{Message, Role};
use crate::services::Services;
use crate::store::Write;

impl SessionActor {
    /// The workers after a turn. Whatever fails in them costs the turn nothing.
    pub(super) fn after_turn(&mut self, ctx: &mut Context<Self>, run_id: RunId, end: &RunEnd) {
        if matches!(self.phase, Phase::Closing(_)) {
            return;
        }
        if matches!(end, RunEnd::Answered | RunEnd::Limited) {
            self.find_title(ctx);
            self.compress_if_due(ctx, run_id);
        }
    }

    fn compress_if_due(&mut self, ctx: &mut Context<Self>, run_id: RunId) {
        let policy = self.services.compression;
        let tokens = self.state.summary.context_token_count;
        if !self.state.queue.is_empty()
            || !compression::is_due(
                tokens,
                self.window,
                f64::from(policy.threshold),
                policy.enabled,
            )
        {
            // A message that waits has a run that looks at this first thing.
            return;
        }
        let stop = CancellationToken::new();
        self.compressing = Some(stop.clone().drop_guard());
        let services = Arc::clone(&self.services);
        let (id, user_id) = (self.id, self.state.summary.user_id);
        let (state, path) = (self.state.context().clone(), self.state.path());
        let profile_id = self.state.summary.profile_id.clone();
        let notes = self.notes();
        let work = async move {
            let messages = services.store.context_messages(id, &path, state.start);
            let messages = messages.await.ok()?.into_iter();
            let messages = messages
                .map(|(at, message)| (at, state.as_decided(Arc::new(message))))
                .collect();
            let profile = services.profiles.of_session(&profile_id).profile;
            let wanted = model_choice::wanted(&profile);
            let choice = model_choice::choose(&services.models.statuses(), wanted).ok()?;
            let job = CompressionJob {
                session_id: id,
                user_id,
                run_id,
                choice,
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
            let idle = matches!(actor.phase, Phase::Idle);
            if actor.compressing.take().is_none() || !idle {
                // A run has begun meanwhile; it sees to this itself.
                return;
            }
            if let Some(Summarised { compressed, call }) = summarised {
                let event = event(&compressed);
                let mut submission = Submission {
                    events: vec![(Some(Origin::foreground(run_id)), event)],
                    writes: vec![Write::Context(compressed.state), Write::ContextTokens(0)],
                    ..Submission::default()
                };
                if let Some(call) = call {
                    actor.keep_call(run_id, Box::new(call), &mut submission);
                }
                actor.submit_all(ctx, submission, |_, _| {});
            }
        }));
    }

    /// A new session's title, from its first exchange. Until it is found, and where it is not,
    /// the start of the user's text stands there.
    fn find_title(&mut self, ctx: &mut Context<Self>) {
        let Some(exchange) = first_exchange(&self.state.run_messages) else {
            return;
        };
        let stands = self.state.summary.title.clone();
        if stands != title::from_text(&exchange.asked) {
            return;
        }
        let services = Arc::clone(&self.services);
        let profile_id = self.state.summary.profile_id.clone();
        let work = async move { ask_title(&services, &profile_id, &exchange).await };
        ctx.spawn(work.into_actor(self).map(move |found, actor, ctx| {
            if let Some(found) = found
                // Its user may have chosen another meanwhile.
                && actor.state.summary.title == stands
                && !matches!(actor.phase, Phase::Closing(_))
            {
                let writes = vec![Write::Title(found)];
                actor.submit(ctx, None, Vec::new(), writes, |_, _| {});
            }
        }));
    }
}

/// What was asked and answered first.
struct Exchange {
    asked: String,
    answered: String,
}

fn first_exchange(messages: &[Arc<Message>]) -> Option<Exchange> {
    let text = |role: Role| {
        let mut of_role = messages
            .iter()
            .rev()
            .filter(move |message| message.role == role && !message.is_plan);
        of_role.find_map(|message| message.content.clone())
    };
    Some(Exchange {
        asked: text(Role::User)?,
        // Its start says what it is about, and an answer can be megabytes.
        answered: text(Role::Assistant)?.chars().take(1_000).collect(),
    })
}

async fn ask_title(services: &Services, profile_id: &str, exchange: &Exchange) -> Option<String> {
    let profile = services.profiles.of_session(profile_id).profile;
    let wanted = model_choice::wanted(&profile);
    let choice = model_choice::choose(&services.models.statuses(), wanted).ok()?;
    if choice.model.demo {
        return None;
    }
    let question = completion::Question {
        choice,
        messages: title::question(&exchange.asked, &exchange.answered),
        temperature: title::TEMPERATURE,
        context_window: services.context_window,
        max_output_tokens: title::MAX_TOKENS,
        priority: Priority::Background,
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
