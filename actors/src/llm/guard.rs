//! The time limits and the stop token around a model call (SPEC section 5, "Guarded streams").

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::domain::first_chunk::{LEAST_SAID, Rate, limit_for};
use crate::protocol::chat::ChatDelta;

use super::{ChatStream, LlmError};

/// How long a model may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// From the call to the first thing that the model says; reading of the prompt that the
    /// backend reports starts it anew. `LLM_STREAM_FIRST_CHUNK_TIMEOUT`, or longer for a long prompt.
    pub first_chunk: Duration,
    /// Between one thing that the model says and the next. `LLM_STREAM_CHUNK_TIMEOUT`, or longer
    /// where a call may be written in between.
    pub chunk: Duration,
}

/// When a backend last said anything, to whomever. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Mutex<Option<Instant>>>);

impl Pulse {
    fn beat(&self) {
        *self.0.lock() = Some(Instant::now());
    }

    fn last(&self) -> Option<Instant> {
        *self.0.lock()
    }
}

/// A model call and its stream as one, within limits. See [`guarded`].
pub struct Guarded<F> {
    phase: CallState<F>,
    limits: StreamLimits,
    answering: bool,
    /// Whether `timer` runs: it starts when there is nothing to read.
    waiting: bool,
    timer: Pin<Box<Sleep>>,
    /// Of a backend that may answer others first.
    pulse: Option<Pulse>,
    /// Of one that says nothing while it writes a call.
    silence: Option<Silence>,
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
}

/// How long a call may take that is written unheard: by the pace of what was said before it.
struct Silence {
    tokens: u32,
    /// The model's pace in other answers.
    before: Option<Rate>,
    began: Instant,
    last: Instant,
    said_bytes: usize,
}

impl Silence {
    fn heard(&mut self, delta: &ChatDelta) {
        let (ChatDelta::Thinking(text) | ChatDelta::Text(text)) = delta else {
            return;
        };
        self.last = Instant::now();
        if self.said_bytes == 0 {
            self.began = self.last;
        }
        self.said_bytes += text.len();
    }

    fn limit(&self, base: Duration) -> Duration {
        let said = u32::try_from(self.said_bytes / 4).unwrap_or(u32::MAX);
        let now = (said >= LEAST_SAID).then(|| Rate::of(said, self.last - self.began));
        limit_for(base, self.tokens, now.flatten().or(self.before))
    }
}

enum CallState<F> {
    /// Waiting for the response to begin. Many servers send no header before the first token.
    Calling(Pin<Box<F>>),
    Streaming(ChatStream),
    /// The call or stream is dropped by now: its connection is closed.
    Ended,
}

/// Puts `call` (a [`Backend::chat`](super::Backend::chat)) under limits and a stop token.
///
/// Yields what the backend's stream yields. A time-out is an error that names the limit.
/// When `stop` is cancelled the stream ends, with neither `Done` nor an error: the caller,
/// who holds the token, knows why. Whatever ends it, the call or stream under it is dropped
/// at that moment, not when `Guarded` is.
///
/// The wait counts only while nothing is there to read: a slow reader is not a slow backend.
pub fn guarded<F>(call: F, limits: StreamLimits, stop: CancellationToken) -> Guarded<F>
where
    F: Future<Output = Result<ChatStream, LlmError>> + Send,
{
    Guarded {
        phase: CallState::Calling(Box::pin(call)),
        limits,
        answering: false,
        waiting: true,
        timer: Box::pin(tokio::time::sleep(limits.first_chunk)),
        pulse: None,
        silence: None,
        stopped: Box::pin(stop.cancelled_owned()),
    }
}

impl<F> Guarded<F> {
    /// The backend may answer others first: the wait for the first chunk counts from the last
    /// thing that any of them was told.
    #[must_use]
    pub fn beside(self, pulse: Option<Pulse>) -> Self {
        Self { pulse, ..self }
    }

    /// The backend may write so many tokens of a call before any of it is heard. `before` is how
    /// fast the model was in other answers.
    #[must_use]
    pub fn unheard(self, tokens: u32, before: Option<Rate>) -> Self {
        let now = Instant::now();
        let silence = (tokens > 0).then_some(Silence {
            tokens,
            before,
            began: now,
            last: now,
            said_bytes: 0,
        });
        Self { silence, ..self }
    }

    fn heard(&mut self, delta: &ChatDelta) {
        if let Some(silence) = &mut self.silence {
            silence.heard(delta);
        }
        if !matches!(delta, ChatDelta::Prefill { .. }) {
            self.answering = true;
        }
        self.waiting = false;
        if let Some(pulse) = &self.pulse {
            pulse.beat();
        }
    }

    /// Until when to wait on, where the backend was answering others meanwhile.
    fn prolonged(&self) -> Option<Instant> {
        let last = self.pulse.as_ref().filter(|_| !self.answering)?.last()?;
        let until = last + self.limits.first_chunk;
        (until > Instant::now()).then_some(until)
    }

    fn limit(&self) -> Duration {
        if !self.answering {
            return self.limits.first_chunk;
        }
        let chunk = self.limits.chunk;
        let silence = self.silence.as_ref();
        silence.map_or(chunk, |silence| silence.limit(chunk))
    }

    fn timeout(&self) -> LlmError {
        let seconds = self.limit().as_secs_f64().ceil() as u64;
        if self.answering {
            LlmError::ChunkTimeout { seconds }
        } else {
            LlmError::FirstChunkTimeout { seconds }
        }
    }
}

impl<F> Stream for Guarded<F>
where
    F: Future<Output = Result<ChatStream, LlmError>> + Send,
{
    type Item = Result<ChatDelta, LlmError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // Every field that must stay in place is boxed.
        let this = Pin::into_inner(self);
        if matches!(this.phase, CallState::Ended) {
            return Poll::Ready(None);
        }
        if this.stopped.as_mut().poll(context).is_ready() {
            this.phase = CallState::Ended;
            return Poll::Ready(None);
        }
        if let CallState::Calling(call) = &mut this.phase
            && let Poll::Ready(outcome) = call.as_mut().poll(context)
        {
            match outcome {
                Ok(stream) => this.phase = CallState::Streaming(stream),
                Err(error) => {
                    this.phase = CallState::Ended;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        if let CallState::Streaming(stream) = &mut this.phase
            && let Poll::Ready(item) = stream.as_mut().poll_next(context)
        {
            match &item {
                Some(Ok(ChatDelta::Done { .. }) | Err(_)) => this.phase = CallState::Ended,
                Some(Ok(delta)) => this.heard(delta),
                None => {
                    // A backend must not end so, and a silent end must never pass for an answer.
                    this.phase = CallState::Ended;
                    return Poll::Ready(Some(Err(LlmError::EndedEarly)));
                }
            }
            return Poll::Ready(item);
        }
        if !std::mem::replace(&mut this.waiting, true) {
            let deadline = Instant::now() + this.limit();
            this.timer.as_mut().reset(deadline);
        }
        while this.timer.as_mut().poll(context).is_ready() {
            if let Some(until) = this.prolonged() {
                this.timer.as_mut().reset(until);
                continue;
            }
            this.phase = CallState::Ended;
            return Poll::Ready(Some(Err(this.timeout())));
        }
        Poll::Pending
    }
}

impl<F> fmt::Debug for Guarded<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded")
            .field("limits", &self.limits)
            .field("answering", &self.answering)
            .field("ended", &matches!(self.phase, CallState::Ended))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
