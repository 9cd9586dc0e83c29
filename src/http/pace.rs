//! How slowly a request's body, or a large message on a socket, may come: whoever sends a byte now
//! and then holds what it was given (a place among the uploads, memory) for as long as they like.

use std::future::Future as _;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::HttpMessage as _;
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::http::Method;
use bytes::Bytes;
use futures_util::Stream;
use navi_actors::protocol::error::ErrorCode;
use tokio::time::{Instant, Sleep, sleep};

use super::error::ApiError;

/// What a body that takes long has to bring, on average.
const LEAST_BYTES_PER_SECOND: u64 = 8 * 1024;

/// Holds the body of a request to the pace, whoever reads it. A socket is no body: between its
/// messages it may be silent.
pub(super) fn keep(request: &mut ServiceRequest, patience: Duration) {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return;
    }
    let body = request.take_payload();
    request.set_payload(match body {
        Payload::None => Payload::None,
        body => Payload::Stream {
            payload: Box::pin(Paced::new(body, patience)),
        },
    });
}

/// The error of a body that was too slow; none for what else is wrong with one.
pub(super) fn too_slow(error: &PayloadError) -> Option<ApiError> {
    match error {
        PayloadError::Io(error) if error.kind() == ErrorKind::TimedOut => Some(ApiError::new(
            ErrorCode::BodyTooSlow,
            "the request's body came too slowly and was left; send it again over a faster connection, or raise NAVI_SLOW_BODY_SECONDS",
        )),
        _ => None,
    }
}

/// A body. Only the time that is waited for the client counts: what reads it may be slow.
pub(super) struct Paced<S> {
    body: S,
    patience: Duration,
    /// When enough has to have come since the last look.
    due: Pin<Box<Sleep>>,
    came: u64,
    /// Since when nobody has been waiting.
    handed_over: Option<Instant>,
}

impl<S> Paced<S> {
    pub(super) fn new(body: S, patience: Duration) -> Self {
        Self {
            body,
            patience,
            due: Box::pin(sleep(patience)),
            came: 0,
            handed_over: Some(Instant::now()),
        }
    }

    /// What comes from now on is held to the pace.
    pub(super) fn begin(&mut self) {
        self.came = 0;
        self.handed_over = None;
        self.due.as_mut().reset(Instant::now() + self.patience);
    }

    /// What comes here is held to none.
    pub(super) fn at_any_pace(&mut self) -> &mut S {
        &mut self.body
    }

    fn least(&self) -> u64 {
        LEAST_BYTES_PER_SECOND * self.patience.as_secs().max(1)
    }
}

impl<S: Stream<Item = Result<Bytes, PayloadError>> + Unpin> Stream for Paced<S> {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if let Some(since) = this.handed_over.take() {
            let due = this.due.deadline() + since.elapsed();
            this.due.as_mut().reset(due);
        }
        if let Poll::Ready(piece) = Pin::new(&mut this.body).poll_next(cx) {
            if let Some(Ok(bytes)) = &piece {
                this.came += bytes.len() as u64;
            }
            this.handed_over = Some(Instant::now());
            return Poll::Ready(piece);
        }
        while this.due.as_mut().poll(cx).is_ready() {
            if this.came < this.least() {
                let late = io::Error::from(ErrorKind::TimedOut);
                return Poll::Ready(Some(Err(PayloadError::Io(late))));
            }
            this.came = 0;
            this.due.as_mut().reset(Instant::now() + this.patience);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// A body that comes in pieces of this size, so often.
    fn body(bytes: usize, every: Duration) -> impl Stream<Item = Result<Bytes, PayloadError>> {
        let pieces = futures_util::stream::repeat(bytes).take(200);
        pieces.then(move |bytes| async move {
            sleep(every).await;
            Ok(Bytes::from(vec![0; bytes]))
        })
    }

    /// How much of it came, and how long that took.
    async fn read(bytes: usize, every: Duration, between: Duration) -> (usize, Duration) {
        let began = Instant::now();
        let mut paced = Paced::new(Box::pin(body(bytes, every)), PATIENCE);
        let mut came = 0;
        while let Some(Ok(piece)) = paced.next().await {
            came += piece.len();
            sleep(between).await;
        }
        (came, began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_trickle_ends_when_patience_does_and_a_slow_reader_costs_nobody_anything() {
        let second = Duration::from_secs(1);
        let (came, took) = read(1, second, Duration::ZERO).await;
        assert!(came < 200 && took <= PATIENCE, "{came} {took:?}");
        // Much at a time, and later than patience lasts.
        let (came, _) = read(1 << 20, 11 * second, Duration::ZERO).await;
        assert_eq!(came, 0);
        let enough = 9 * 1024;
        assert_eq!(read(enough, second, Duration::ZERO).await.0, 200 * enough);
        assert_eq!(read(enough, second, 60 * second).await.0, 200 * enough);
    }
}
