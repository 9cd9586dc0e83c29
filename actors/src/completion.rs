//! A model call whose answer is wanted whole: plans, summaries, titles, facts.

use std::time::Duration;

use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::domain::model_choice::Choice;
use crate::llm::LlmError;
use crate::llm::guard::StreamLimits;
use crate::llm_actor::{Priority, Ticket};
use crate::models::Models;
use crate::protocol::chat::{ChatDelta, ChatMessage, ChatRequest, Usage};
use crate::protocol::error::{ErrorCode, NaviError};

/// A wait for a slot has a limit too: nobody asks for what is this old.
const SLOT_LIMIT: Duration = Duration::from_secs(600);

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    pub choice: Choice,
    pub messages: Vec<ChatMessage>,
    pub temperature: f32,
    /// The context window to ask for, in tokens.
    pub context_window: u32,
    pub max_output_tokens: u32,
    pub priority: Priority,
}

/// The whole answer, without any reasoning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub text: String,
    pub usage: Option<Usage>,
}

/// Asks once: no tools, no reasoning, not streamed.
///
/// # Errors
/// What the backend said; `backend_busy` where no slot came free, or background work made way
/// for a person who waits (it may be asked again later); `run_failed` where `stop` was
/// cancelled first.
pub async fn ask(
    models: &Models,
    limits: StreamLimits,
    question: Question,
    stop: CancellationToken,
) -> Result<Answer, NaviError> {
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
) -> Result<Answer, NaviError> {
    let acquire = models.acquire_as(ticket, question.choice.kind, question.priority);
    let lease = tokio::select! {
        biased;
        () = stop.cancelled() => return Err(stopped()),
        lease = tokio::time::timeout(SLOT_LIMIT, acquire) => lease.map_err(|_| {
            NaviError::new(ErrorCode::BackendBusy, "the model had no time for this; try again later")
        })??,
    };
    let request = ChatRequest {
        model: question.choice.model.name,
        messages: question.messages,
        tools: Vec::new(),
        temperature: question.temperature,
        think: false,
        context_window: question.context_window,
        max_output_tokens: Some(question.max_output_tokens),
        streamed: false,
    };
    let mut stream = lease.call(request, limits, stop);
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
        match delta.map_err(|error: LlmError| NaviError::new(error.code(), error.to_string()))? {
            ChatDelta::Text(piece) => text.push_str(&piece),
            ChatDelta::Done { usage, .. } => return Ok(Answer { text, usage }),
            ChatDelta::Thinking(_) | ChatDelta::ToolCall(_) | ChatDelta::Prefill { .. } => {}
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
