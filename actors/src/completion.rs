//! A model call whose answer is wanted whole: plans, summaries, titles, facts.

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::StreamExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::context;
use crate::domain::model_calls::{ModelCall, Recipe};
use crate::domain::model_choice::Choice;
use crate::domain::reasoning::behind_reasoning;
use crate::llm::LlmError;
use crate::llm::guard::StreamLimits;
use crate::llm_actor::{Acquire, Priority, Ticket};
use crate::models::Models;
use crate::protocol::chat::{ChatDelta, ChatMessage, ChatRequest, FinishReason, ReplyForm, Usage};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::ids::UserId;
use crate::protocol::inspect::{CallKind, CallOutcome, CallReply};
use crate::protocol::offered::OfferedTools;
use crate::protocol::status::BackendKind;
use crate::services::now;
use crate::traces::InRun;

/// A wait for a slot has a limit too: nobody asks for what is this old.
const SLOT_LIMIT: Duration = Duration::from_secs(600);

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    pub choice: Choice,
    pub messages: Vec<ChatMessage>,
    pub temperature: f32,
    /// The context window to ask for, in tokens, where the model has so large a one: a model
    /// server loads a model anew for another one than a run's.
    pub context_window: u32,
    pub max_output_tokens: u32,
    /// What the answer has to be.
    pub form: Option<ReplyForm>,
    pub priority: Priority,
    /// Whose work it is; none where it is nobody's.
    pub person: Option<UserId>,
    /// The run that it is for; none where it is for none.
    pub run: Option<InRun>,
}

impl Question {
    /// What the model is sent.
    #[must_use]
    pub fn request(&self) -> ChatRequest {
        ChatRequest {
            model: self.choice.model.name.clone(),
            messages: self.messages.iter().cloned().map(Into::into).collect(),
            tools: OfferedTools::default(),
            temperature: self.temperature,
            think: false,
            context_window: context::window(&self.choice.model, self.context_window),
            max_output_tokens: Some(self.max_output_tokens),
            streamed: false,
            form: self.form.clone(),
        }
    }
}

/// The whole answer, without any reasoning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    pub text: String,
    pub finish: FinishReason,
    pub usage: Option<Usage>,
}

/// Asks once: no tools, no reasoning, not streamed.
///
/// # Errors
/// What the backend said, whose window is known from then on where it said that this was too
/// long for it; `backend_busy` where no slot came free, or background work made way
/// for a person who waits (it may be asked again later); `run_failed` where `stop` was
/// cancelled first.
pub async fn ask(
    models: &Models,
    limits: StreamLimits,
    question: Question,
    stop: CancellationToken,
) -> Result<Completion, NaviError> {
    ask_as(Ticket::new(), models, limits, question, stop).await
}

/// The same, by a ticket with which the caller can look at the queue meanwhile.
///
/// # Errors
/// As [`ask`].
pub async fn ask_as(
    ticket: Ticket,
    models: &Models,
    limits: StreamLimits,
    question: Question,
    stop: CancellationToken,
) -> Result<Completion, NaviError> {
    let asked = Acquire {
        priority: question.priority,
        person: question.person,
        ticket,
        stop: stop.clone(),
    };
    let acquire = models.acquire(question.choice.kind, asked);
    let lease = tokio::select! {
        biased;
        () = stop.cancelled() => return Err(stopped()),
        lease = tokio::time::timeout(SLOT_LIMIT, acquire) => lease.map_err(|_| {
            NaviError::new(ErrorCode::BackendBusy, "the model had no time for this; try again later")
        })??,
    };
    let request = question.request();
    let window = request.context_window;
    let mut stream = lease.call(request, limits, question.run);
    let mut text = String::new();
    loop {
        let delta = tokio::select! {
            biased;
            () = lease.asked_back() => return Err(made_way()),
            delta = stream.next() => delta,
        };
        let Some(delta) = delta else {
            return Err(stopped());
        };
        let delta = delta.map_err(|error| {
            if let LlmError::ContextOverflow { told, .. } = &error
                && let Some(told) = told.window.filter(|told| *told < window)
            {
                let (kind, model) = (question.choice.kind, &question.choice.model.name);
                models.learn_window(kind, &lease.retired, model, told);
            }
            error.told()
        })?;
        match delta {
            ChatDelta::Text(piece) => text.push_str(&piece),
            ChatDelta::Done { finish, usage } => {
                return Ok(Completion {
                    text: behind_reasoning(&text).to_owned(),
                    finish,
                    usage,
                });
            }
            ChatDelta::Thinking(_)
            | ChatDelta::ToolCall(_)
            | ChatDelta::Calling
            | ChatDelta::Prefill { .. } => {}
        }
    }
}

fn made_way() -> NaviError {
    NaviError::new(
        ErrorCode::BackendBusy,
        "this made way for an answer that a person waits for; try again later",
    )
}

fn stopped() -> NaviError {
    NaviError::new(ErrorCode::RunFailed, "this was stopped before it was done")
}

/// A question on its way, as it is kept for those who look into its run.
#[derive(Debug)]
pub struct AskedCall {
    kind: CallKind,
    after_seq: Option<u64>,
    started_at: DateTime<Utc>,
    began: Instant,
    backend: BackendKind,
    request: ChatRequest,
}

impl AskedCall {
    /// A question that is asked now, after the session's event `after_seq`; its session is to
    /// say where that is none.
    #[must_use]
    pub fn new(kind: CallKind, after_seq: Option<u64>, question: &Question) -> Self {
        Self {
            kind,
            after_seq,
            started_at: now(),
            began: Instant::now(),
            backend: question.choice.kind,
            request: question.request(),
        }
    }

    /// It was answered, or ended otherwise. None where it cannot be kept, which is logged.
    #[must_use]
    pub fn ended(self, ended: Result<&Completion, CallOutcome>) -> Option<ModelCall> {
        let prompt = match Recipe::of_question(&self.request) {
            Ok(prompt) => prompt,
            Err(error) => {
                tracing::warn!(%error, "a model call cannot be kept");
                return None;
            }
        };
        let answer = ended.ok();
        Some(ModelCall {
            kind: self.kind,
            after_seq: self.after_seq,
            started_at: self.started_at,
            first_chunk_ms: None,
            duration_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            backend: self.backend.as_str().to_owned(),
            model: self.request.model,
            usage: answer.and_then(|answer| answer.usage),
            outcome: ended.err().unwrap_or(CallOutcome::Done),
            attempts: 1,
            message_id: None,
            reply: Some(CallReply {
                content: answer.map(|answer| answer.text.clone()),
                ..CallReply::default()
            }),
            own: Vec::new(),
            prompt,
        })
    }
}
