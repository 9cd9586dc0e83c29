//! [`CompressionActor`]: summaries of old turns (SPEC section 8).
//!
//! Started by the engine, stopped by its shutdown. It owns the summaries in flight, at most one
//! a session. It must not know runs or sessions: what it is given is all that it knows, and what
//! it gives back is applied by who asked. When it dies it is rebuilt; those who wait get an
//! error, and their context stays as it was.

use std::collections::HashMap;

use actix::{
    Actor, ActorFutureExt, Context, Handler, Message as ActixMessage, ResponseActFuture, WrapFuture,
};
use tokio_util::sync::CancellationToken;

use crate::completion::{self, AskedCall, Question};
use crate::domain::compression::{self, Compressed, TypedState};
use crate::domain::context::{self, ContextMessage};
use crate::domain::history::ContextState;
use crate::domain::model_calls::ModelCall;
use crate::domain::model_choice::Choice;
use crate::llm::guard::StreamLimits;
use crate::llm_actor::{Priority, Ticket};
use crate::memory::Remembers;
use crate::models::Models;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::Event;
use crate::protocol::ids::{RunId, SessionId, UserId};
use crate::protocol::inspect::CallKind;
use crate::services::{CompressionPolicy, now};
use crate::session::messages::Notes;
use crate::store::Store;
use crate::supervision::Guard;
use crate::traces::InRun;

/// Summarises the old part of a context. None where there is nothing old enough.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<Option<Summarised>, NaviError>")]
pub struct Compress(pub CompressionJob);

/// A context that was summarised.
#[derive(Clone, Debug)]
pub struct Summarised {
    pub compressed: Compressed,
    /// The question that was asked for it.
    pub call: Option<ModelCall>,
}

/// What is to be summarised.
#[derive(Debug)]
pub struct CompressionJob {
    pub session_id: SessionId,
    /// Whose session it is.
    pub user_id: UserId,
    pub remembers: Remembers,
    /// The run that it happens in, or after.
    pub run_id: RunId,
    /// The model that the session's runs use.
    pub choice: Choice,
    pub state: ContextState,
    /// Whether a run waits for it.
    pub priority: Priority,
    /// What goes over by code and never by the model.
    pub notes: Notes,
    /// The context's messages with their ordinals, in order.
    pub messages: Vec<(u64, ContextMessage)>,
    /// The question's place in the backend's queue.
    pub ticket: Ticket,
    /// Cancelled where nobody wants the summary any more: another may be asked for then.
    pub stop: CancellationToken,
}

/// See the module.
#[derive(Debug)]
pub struct CompressionActor {
    store: Store,
    models: Models,
    limits: StreamLimits,
    policy: CompressionPolicy,
    context_window: u32,
    in_flight: HashMap<SessionId, (Ticket, CancellationToken)>,
    _guard: Guard,
}

impl CompressionActor {
    /// An actor that asks these models.
    #[must_use]
    pub fn new(
        store: Store,
        models: Models,
        limits: StreamLimits,
        policy: CompressionPolicy,
        context_window: u32,
        guard: Guard,
    ) -> Self {
        Self {
            store,
            models,
            limits,
            policy,
            context_window,
            in_flight: HashMap::new(),
            _guard: guard,
        }
    }
}

impl Actor for CompressionActor {
    type Context = Context<Self>;
}

impl Handler<Compress> for CompressionActor {
    type Result = ResponseActFuture<Self, Result<Option<Summarised>, NaviError>>;

    fn handle(&mut self, Compress(job): Compress, _: &mut Self::Context) -> Self::Result {
        fail::fail_point!("compression::begin");
        let session_id = job.session_id;
        let standing = self.in_flight.get(&session_id);
        if standing.is_some_and(|(_, stop)| !stop.is_cancelled()) {
            return Box::pin(actix::fut::err(NaviError::new(
                ErrorCode::SessionBusy,
                "this session's context is being compressed already",
            )));
        }
        let ticket = job.ticket;
        self.in_flight
            .insert(session_id, (ticket, job.stop.clone()));
        let (store, models) = (self.store.clone(), self.models.clone());
        let (limits, policy, window) = (self.limits, self.policy, self.context_window);
        let work = async move {
            let asked = Asked {
                models: &models,
                limits,
                policy,
                window,
            };
            compress(&store, asked, job).await
        };
        Box::pin(work.into_actor(self).map(move |compressed, actor, _| {
            let standing = actor.in_flight.get(&session_id);
            if standing.is_some_and(|(standing, _)| *standing == ticket) {
                actor.in_flight.remove(&session_id);
            }
            compressed
        }))
    }
}

/// What a summary is asked with.
struct Asked<'a> {
    models: &'a Models,
    limits: StreamLimits,
    policy: CompressionPolicy,
    window: u32,
}

async fn compress(
    store: &Store,
    asked: Asked<'_>,
    job: CompressionJob,
) -> Result<Option<Summarised>, NaviError> {
    let Some(cut) = compression::choose_cut(&job.messages, asked.policy.keep_recent) else {
        return Ok(None);
    };
    let old = &job.messages[..cut.older];
    let window = context::window(&job.choice.model, asked.window);
    let transcript = compression::transcript(old, job.state.summary.as_ref(), window);
    let question = Question {
        messages: compression::request_messages(&transcript, compression::language(old)),
        temperature: asked.policy.temperature,
        context_window: window,
        choice: job.choice,
        max_output_tokens: compression::answer_tokens(window),
        form: None,
        priority: job.priority,
        person: Some(job.user_id),
        run: Some(InRun {
            session_id: job.session_id,
            run_id: job.run_id,
        }),
    };
    let call = AskedCall::new(CallKind::Summary, None, &question);
    let answer =
        completion::ask_as(job.ticket, asked.models, asked.limits, question, job.stop).await?;
    let text = compression::checked(&answer.text)
        .map_err(|fault| NaviError::new(ErrorCode::BackendError, fault.to_string()))?;
    let typed = TypedState {
        plan: job.notes.plan.as_ref(),
        todo: &job.notes.todo,
        scratchpad: &job.notes.scratchpad,
    };
    let summary = compression::summary_message(&text, &typed, job.run_id, now());
    let mut compressed = compression::compressed(
        &job.state,
        &job.messages,
        cut,
        summary,
        job.notes.plan.as_ref(),
    );
    // The prefix changes now anyway.
    if let Remembers::Owner(user) = job.remembers
        && let Ok(memory) = store.memory_summary(user).await
    {
        compressed.state.memory = Some(memory.unwrap_or_default());
    }
    Ok(Some(Summarised {
        compressed,
        call: call.ended(Ok(&answer)),
    }))
}

/// What the watchers are told.
#[must_use]
pub fn event(compressed: &Compressed) -> Event {
    Event::ContextCompressed {
        messages_before: compressed.messages_before,
        messages_after: compressed.messages_after,
        first_kept: compressed.first_kept,
    }
}
