//! Model calls of a run's loop, as they are kept for those who look into the run.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::driver::Driver;
use crate::domain::context::{CallSetup, ContextMessage, request_tokens};
use crate::domain::model_calls::{ModelCall, Prompt, Recipe};
use crate::domain::model_choice::RunConfig;
use crate::domain::run_loop::{Cut, ModelReply, Record};
use crate::protocol::chat::{ChatMessage, ChatRequest};
use crate::protocol::inspect::{CallKind, CallOutcome, CallReply};
use crate::protocol::prompt::PromptMessage;
use crate::services::now;

/// A prompt of so many tokens is hashed in about as long as it takes to wake another thread for it.
const SHORT_PROMPT: u32 = 12_000;

/// A call on its way.
pub(super) struct CallInFlight {
    after_seq: u64,
    started_at: DateTime<Utc>,
    began: Instant,
    first: Option<Instant>,
    pub(super) attempts: u32,
    backend: &'static str,
    model: String,
    own: Vec<ContextMessage>,
    prompt: Making,
}

/// How what is kept of a prompt is made.
enum Making {
    /// When the call has ended: its answer goes first.
    Then(Box<dyn FnOnce() -> serde_json::Result<Prompt> + Send>),
    /// Beside the call: what is long is hashed.
    Beside(JoinHandle<serde_json::Result<Prompt>>),
}

impl Making {
    fn of(
        request: &ChatRequest,
        make: impl FnOnce() -> serde_json::Result<Prompt> + Send + 'static,
    ) -> Self {
        if is_short(request) {
            Self::Then(Box::new(make))
        } else {
            Self::Beside(tokio::task::spawn_blocking(make))
        }
    }

    async fn made(self) -> Result<Prompt, Box<dyn Error + Send + Sync>> {
        match self {
            Self::Then(make) => Ok(make()?),
            Self::Beside(making) => Ok(making.await??),
        }
    }
}

/// Images count as few tokens, whatever their size.
fn is_short(request: &ChatRequest) -> bool {
    let shows = |message: &PromptMessage| matches!(&**message, ChatMessage::User { images, .. } if !images.is_empty());
    request_tokens(request) <= SHORT_PROMPT && !request.messages.iter().any(shows)
}

impl CallInFlight {
    /// The model said something.
    pub(super) fn heard(&mut self) {
        self.first.get_or_insert_with(Instant::now);
    }
}

impl Driver {
    /// A call with this request begins.
    pub(super) fn open_call(
        &mut self,
        config: &RunConfig,
        frame: CallSetup,
        request: &Arc<ChatRequest>,
    ) -> CallInFlight {
        let sent = Arc::clone(request);
        let (own, prompt) = if self.origin.is_subagent() {
            let messages = &self.context.messages;
            let own = messages[self.kept_messages..].to_vec();
            self.kept_messages = messages.len();
            let make = move || Recipe::of_own(frame, &sent);
            (own, Making::of(request, make))
        } else {
            let context = self.context.state.clone();
            let last = self.context.messages.last().map(|message| message.id);
            let make = move || Recipe::of_conversation(frame, &context, last, &sent);
            (Vec::new(), Making::of(request, make))
        };
        CallInFlight {
            after_seq: self.last_seq,
            started_at: now(),
            began: Instant::now(),
            first: None,
            attempts: 0,
            backend: config.choice.kind.as_str(),
            model: config.choice.model.name.clone(),
            own,
            prompt,
        }
    }

    /// The call came to its end: it goes with the next commit, which is the reply's.
    pub(super) async fn close_call(
        &mut self,
        call: CallInFlight,
        outcome: CallOutcome,
        reply: &ModelReply,
    ) {
        let since = |at: Instant| millis(at.duration_since(call.began));
        let duration_ms = since(Instant::now());
        let prompt = match call.prompt.made().await {
            Ok(prompt) => prompt,
            Err(error) => {
                tracing::warn!(%error, "a model call cannot be kept");
                return;
            }
        };
        self.called.push(ModelCall {
            kind: CallKind::Turn,
            after_seq: Some(call.after_seq),
            started_at: call.started_at,
            first_chunk_ms: call.first.map(since),
            duration_ms,
            backend: call.backend.to_owned(),
            model: call.model,
            usage: reply.usage,
            outcome,
            attempts: call.attempts,
            message_id: Some(reply.message_id),
            reply: None,
            own: call.own,
            prompt,
        });
    }

    /// Adds the calls that ended to a commit. A subagent's messages are in no store: what its
    /// model said goes with the call.
    pub(super) fn add_called(&mut self, records: &mut Vec<Record>) {
        for mut call in self.called.drain(..) {
            if self.origin.is_subagent() && call.reply.is_none() {
                let said = records.iter().find_map(|record| match record {
                    Record::Message(said) if Some(said.id) == call.message_id => Some(said),
                    _ => None,
                });
                call.reply = Some(said.map_or_else(CallReply::default, |said| CallReply {
                    content: said.content.clone(),
                    thinking: said.thinking.clone(),
                    tool_calls: said.tool_calls.clone(),
                }));
            }
            records.push(Record::Called(Box::new(call)));
        }
    }
}

/// How a call ends that is cut off with its run.
pub(super) fn outcome_of(cut: &Cut) -> CallOutcome {
    match cut {
        Cut::Stopped => CallOutcome::Stopped,
        Cut::Interrupted { .. } => CallOutcome::Interrupted,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
