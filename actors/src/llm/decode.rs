//! Drives a decoder over a response's frames: the one loop behind every HTTP backend's stream.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use crate::protocol::chat::ChatDelta;

use super::frames::{Payload, PayloadStream};
use super::reply::DeltaQueue;
use super::{ChatStream, LlmError};

/// How long to wait for the counts after the answer itself is complete. Some servers leave
/// the connection open there.
const AFTERMATH: Duration = Duration::from_secs(5);

/// How often a stream says that a call is being written.
pub(super) const CALLING_EVERY: Duration = Duration::from_secs(1);

/// Reads one protocol's frames into a reply.
pub(super) trait Decoder: Send + 'static {
    fn frame(&mut self, frame: &Payload, reply: &mut DeltaQueue) -> Result<(), LlmError>;

    /// The body is over. Finishes the reply, or says that it ended early.
    fn end(&mut self, reply: &mut DeltaQueue) -> Result<(), LlmError>;

    /// Whether the answer has its end, as far as is known: mostly only counts follow.
    fn is_complete(&self) -> bool;
}

/// What has no value in it is absent or null.
#[derive(Deserialize)]
pub(super) enum Nothing {}

struct Decoding<D> {
    /// None as soon as nothing more is wanted: that closes the connection.
    frames: Option<PayloadStream>,
    decoder: D,
    reply: DeltaQueue,
    /// When the last delta was handed on.
    told: Instant,
    failure: Option<LlmError>,
    /// When the wait for the counts is over.
    deadline: Option<Instant>,
}

/// The stream that a backend returns: the reply's deltas, then `Done` or one error.
pub(super) fn decoded<D: Decoder>(frames: PayloadStream, decoder: D) -> ChatStream {
    let decoding = Decoding {
        frames: Some(frames),
        decoder,
        reply: DeltaQueue::default(),
        told: Instant::now(),
        failure: None,
        deadline: None,
    };
    Box::pin(stream::unfold(decoding, |mut decoding| async move {
        let item = decoding.next().await?;
        Some((item, decoding))
    }))
}

impl<D: Decoder> Decoding<D> {
    async fn next(&mut self) -> Option<Result<ChatDelta, LlmError>> {
        loop {
            if let Some(delta) = self.reply.next() {
                self.told = Instant::now();
                return Some(Ok(delta));
            }
            if let Some(error) = self.failure.take() {
                return Some(Err(error));
            }
            let frame = self.next_frame().await?;
            let said_before = self.reply.bytes();
            let outcome = match frame {
                Some(Ok(frame)) => self.decoder.frame(&frame, &mut self.reply),
                // Whatever breaks after a complete answer breaks nothing.
                Some(Err(_)) if self.decoder.is_complete() => self.decoder.end(&mut self.reply),
                Some(Err(error)) => Err(error),
                None => {
                    self.frames = None;
                    self.decoder.end(&mut self.reply)
                }
            };
            if self.reply.bytes() > said_before {
                self.deadline = None;
                if self.reply.is_silent() && self.told.elapsed() >= CALLING_EVERY {
                    self.reply.calling();
                }
            }
            self.failure = outcome.err();
            if self.failure.is_some() || self.reply.is_done() {
                self.frames = None;
            }
        }
    }

    /// None when the stream had ended before; `Some(None)` when it ends now.
    async fn next_frame(&mut self) -> Option<Option<Result<Payload, LlmError>>> {
        let frames = self.frames.as_mut()?;
        if !self.decoder.is_complete() {
            return Some(frames.next().await);
        }
        let deadline = *self
            .deadline
            .get_or_insert_with(|| Instant::now() + AFTERMATH);
        Some(timeout_at(deadline, frames.next()).await.unwrap_or(None))
    }
}
