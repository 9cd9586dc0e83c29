//! A slot of a backend, and the calls that are made with it.

use std::collections::HashMap;
use std::sync::Arc;

use actix::Addr;
use futures_util::{Stream, StreamExt};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use super::LlmActor;
use super::messages::{CallBegan, CallEnded, CallTalks, Release, Ticket};
use crate::domain::breaker::Health;
use crate::domain::first_chunk::{ModelPace, Prompt, Timing, unheard_tokens};
use crate::domain::lanes::Priority;
use crate::llm::guard::{Pulse, StreamLimits, guarded};
use crate::llm::{Backend, LlmError};
use crate::observing::CallWatch;
use crate::protocol::chat::{ChatDelta, ChatRequest};
use crate::traces::InRun;

/// A slot of a backend: hold it while reading the stream, drop it before running tools.
#[derive(Debug)]
pub struct Lease {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) actor: Addr<LlmActor>,
    pub(super) ticket: Ticket,
    /// With which it was asked for.
    pub(super) priority: Priority,
    pub(super) trial: bool,
    /// It goes beside more than the backend is known to answer at once.
    pub(super) tried: bool,
    /// How many the backend answers at once is learnt from when it begins to talk.
    pub(super) teaches: bool,
    /// See [`Acquire::stop`](super::Acquire::stop).
    pub(super) stop: CancellationToken,
    pub(super) asked_back: CancellationToken,
    pub(super) paces: Arc<HashMap<String, ModelPace>>,
    /// Where the backend may keep the call waiting while it answers others.
    pub(super) pulse: Option<Pulse>,
    /// Cancelled when another backend takes the place of this one.
    pub(crate) retired: CancellationToken,
}

impl Lease {
    /// Whether it is not known that the backend answers this beside the others: it may keep it
    /// waiting in its own queue.
    #[must_use]
    pub fn is_tried(&self) -> bool {
        self.tried
    }

    /// Resolves when a person waits and this is background work: it should end at once. A
    /// lease of any other work is never asked back.
    pub fn asked_back(&self) -> WaitForCancellationFuture<'_> {
        self.asked_back.cancelled()
    }

    /// Calls the model, under limits and the slot's stop token as [`guarded`] does it. Waits are
    /// `base`'s, or longer for a long prompt and for what is written unheard, by the pace that the
    /// model has shown; where the backend may answer others first, it begins anew with each thing that
    /// they are told. What comes of the call tells the backend's guard its pace and its health.
    /// `run` is the one that it is for; none where it is for none.
    pub fn call(
        &self,
        request: impl Into<Arc<ChatRequest>>,
        base: StreamLimits,
        run: Option<InRun>,
    ) -> impl Stream<Item = Result<ChatDelta, LlmError>> + Send + Unpin {
        let request = request.into();
        let prompt = Prompt::of(&request);
        let seen = self.paces.get(&request.model);
        let unheard = unheard_tokens(&request, self.backend.kind());
        let limits = StreamLimits {
            first_chunk: seen.map_or(base.first_chunk, |pace| {
                pace.first_chunk(base.first_chunk, &prompt, unheard)
            }),
            ..base
        };
        let saying = seen.and_then(ModelPace::saying);
        let mut meter = Meter {
            lease: self,
            model: request.model.clone(),
            streamed: request.streamed,
            new_tokens: seen.map_or_else(|| prompt.tokens(), |pace| pace.new_tokens(&prompt)),
            began: Instant::now(),
            first: None,
            said_bytes: 0,
            watch: CallWatch::begin(self.backend.as_ref(), &request, self.priority, run),
        };
        // Once a call, as `CallEnded` is.
        self.actor.do_send(CallBegan {
            model: request.model.clone(),
            prompt,
            streamed: request.streamed,
            ticket: self.ticket,
        });
        guarded(self.backend.chat(request), limits, self.stop.clone())
            .beside(self.pulse.clone())
            .unheard(unheard, saying)
            .inspect(move |item| meter.see(item))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // At most as many as there are slots.
        self.actor.do_send(Release {
            ticket: self.ticket,
            trial: self.trial,
        });
    }
}

/// Watches one call.
struct Meter<'a> {
    lease: &'a Lease,
    model: String,
    streamed: bool,
    new_tokens: u32,
    began: Instant,
    first: Option<Instant>,
    said_bytes: usize,
    watch: CallWatch,
}

impl Meter<'_> {
    fn see(&mut self, item: &Result<ChatDelta, LlmError>) {
        match item {
            Ok(ChatDelta::Prefill { .. }) => {}
            Ok(ChatDelta::Thinking(text) | ChatDelta::Text(text)) => {
                self.talks();
                self.said_bytes += text.len();
            }
            Ok(ChatDelta::Calling) => self.talks(),
            Ok(ChatDelta::ToolCall(_)) => {
                self.talks();
                self.watch.calls_tool();
            }
            Ok(ChatDelta::Done { finish, usage }) => {
                let counted = usage.map_or_else(
                    || u32::try_from(self.said_bytes / 4).unwrap_or(u32::MAX),
                    |usage| usage.completion_tokens,
                );
                self.watch.done(*finish, *usage);
                let timing = self.timing(counted);
                self.tell(Health::Well, None, timing);
            }
            Err(error) => {
                self.watch.failed(error);
                self.tell(health_of(error), Some(error), None);
            }
        }
    }

    fn talks(&mut self) {
        if self.first.is_none() {
            self.first = Some(Instant::now());
            if self.streamed {
                self.watch.first_token();
            }
            if self.streamed && self.lease.teaches {
                // Once a call, as `CallEnded` is.
                self.lease.actor.do_send(CallTalks(self.lease.ticket));
            }
        }
    }

    /// None for a whole answer: nobody knows when it began.
    fn timing(&self, completion_tokens: u32) -> Option<Timing> {
        let first = self.first.filter(|_| self.streamed)?;
        Some(Timing {
            new_tokens: self.new_tokens,
            first_chunk: first.duration_since(self.began),
            rest: first.elapsed(),
            completion_tokens,
        })
    }

    fn tell(&self, health: Health, error: Option<&LlmError>, timing: Option<Timing>) {
        self.lease.actor.do_send(CallEnded {
            ticket: self.lease.ticket,
            model: self.model.clone(),
            health,
            busy: matches!(error, Some(LlmError::Busy { .. })),
            problem: error.map(LlmError::phrase),
            trial: self.lease.trial,
            timing,
        });
    }
}

/// What a call's error says of the server that answered it.
fn health_of(error: &LlmError) -> Health {
    match error {
        LlmError::Unreachable { .. } | LlmError::Server { .. } => Health::Ill,
        // One that is busy or loading says so itself, and when to come again.
        LlmError::Busy { .. }
        | LlmError::NotReady { .. }
        | LlmError::MidStream { .. }
        | LlmError::EndedEarly
        | LlmError::Malformed { .. }
        | LlmError::FirstChunkTimeout { .. }
        | LlmError::ChunkTimeout { .. } => Health::Unclear,
        LlmError::Unauthorized { .. }
        | LlmError::ModelNotFound { .. }
        | LlmError::ContextOverflow { .. }
        | LlmError::Rejected { .. }
        | LlmError::RolesRefused { .. }
        | LlmError::ReplyTooLong { .. } => Health::Well,
    }
}
