use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::{StreamExt, stream};
use tokio::time::sleep;

use crate::protocol::chat::FinishReason;
use crate::protocol::phrase::Phrase;

use super::*;

const LIMITS: StreamLimits = StreamLimits {
    first_chunk: Duration::from_secs(120),
    chunk: Duration::from_secs(60),
};

const DONE: ChatDelta = ChatDelta::Done {
    finish: FinishReason::Stop,
    usage: None,
};

fn text() -> ChatDelta {
    ChatDelta::Text("x".to_owned())
}

fn prefill() -> ChatDelta {
    ChatDelta::Prefill { read: 1, total: 9 }
}

/// A stream that says each delta after a wait of so many seconds.
fn paced(items: Vec<(u64, ChatDelta)>) -> ChatStream {
    Box::pin(stream::iter(items).then(|(seconds, delta)| async move {
        sleep(Duration::from_secs(seconds)).await;
        Ok(delta)
    }))
}

async fn outcome(
    headers_after: u64,
    items: Vec<(u64, ChatDelta)>,
) -> Vec<Result<ChatDelta, LlmError>> {
    let call = async move {
        sleep(Duration::from_secs(headers_after)).await;
        Ok(paced(items))
    };
    guarded(call, LIMITS, CancellationToken::new())
        .collect()
        .await
}

#[tokio::test(start_paused = true)]
async fn an_answer_within_the_limits_passes() {
    let items = vec![(60, text()), (59, text()), (59, DONE)];
    assert_eq!(outcome(59, items).await, [Ok(text()), Ok(text()), Ok(DONE)]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_being_written_is_no_pause() {
    let calling = || ChatDelta::Calling;
    let items = vec![
        (119, calling()),
        (59, calling()),
        (59, calling()),
        (59, DONE),
    ];
    let told = outcome(0, items).await;
    assert_eq!(told.last(), Some(&Ok(DONE)));
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_headers_is_part_of_the_first_wait() {
    let error = Err(LlmError::FirstChunkTimeout { seconds: 120 });
    assert_eq!(
        outcome(121, vec![(0, DONE)]).await,
        std::slice::from_ref(&error)
    );
    assert_eq!(outcome(61, vec![(60, DONE)]).await, [error]);
}

#[tokio::test(start_paused = true)]
async fn a_pause_in_the_answer_has_its_own_limit() {
    let error = Err(LlmError::ChunkTimeout { seconds: 60 });
    assert_eq!(
        outcome(0, vec![(1, text()), (61, DONE)]).await,
        [Ok(text()), error]
    );
}

/// Ollama tells a call only when all of it is written.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_written_unheard_has_the_time_that_the_model_needs() {
    let answered = async |unheard, before, said: &str, pause| {
        let thought = || ChatDelta::Thinking(said.to_owned());
        let items = vec![(1, thought()), (1, thought()), (pause, DONE)];
        let call = async { Ok(paced(items)) };
        let told = guarded(call, LIMITS, CancellationToken::new()).unheard(unheard, before);
        told.collect::<Vec<_>>().await.pop().unwrap()
    };
    // 40 tokens in the second between the two: 4000 take 100 s at that pace.
    let (slow, quick) = ("abcd".repeat(20), "abcd".repeat(2_000));
    assert_eq!(answered(4_000, None, &slow, 199).await, Ok(DONE));
    let late = |seconds| Err(LlmError::ChunkTimeout { seconds });
    assert_eq!(answered(4_000, None, &slow, 201).await, late(200));
    assert_eq!(answered(4_000, None, &quick, 61).await, late(60));
    assert_eq!(answered(0, None, &slow, 61).await, late(60));
    // Too little was said to tell by.
    let known = Rate::of(40, Duration::from_secs(1));
    assert_eq!(answered(4_000, known, "Hm", 199).await, Ok(DONE));
    assert_eq!(answered(4_000, None, "Hm", 61).await, late(60));
}

#[tokio::test(start_paused = true)]
async fn reading_the_prompt_starts_the_first_wait_anew() {
    let items = vec![(100, prefill()), (119, prefill()), (119, DONE)];
    assert_eq!(
        outcome(0, items).await,
        [Ok(prefill()), Ok(prefill()), Ok(DONE)]
    );
    let error = Err(LlmError::FirstChunkTimeout { seconds: 120 });
    assert_eq!(
        outcome(0, vec![(100, prefill()), (121, DONE)]).await,
        [Ok(prefill()), error]
    );
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_not_a_slow_backend() {
    let call = async { Ok(paced(vec![(0, text()), (0, text()), (1, DONE)])) };
    let mut guarded = guarded(call, LIMITS, CancellationToken::new());
    for expected in [text(), text(), DONE] {
        assert_eq!(guarded.next().await, Some(Ok(expected)));
        sleep(Duration::from_secs(600)).await;
    }
    assert_eq!(guarded.next().await, None);
}

/// Tells when it is dropped, as a connection does.
struct Connection(Arc<AtomicBool>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn silent_stream(closed: &Arc<AtomicBool>) -> ChatStream {
    let connection = Connection(Arc::clone(closed));
    let silence = stream::once(async move {
        let _connection = connection;
        std::future::pending().await
    });
    Box::pin(stream::iter([Ok(text())]).chain(silence))
}

#[tokio::test(start_paused = true)]
async fn stop_ends_a_silent_stream_at_once_and_closes_it() {
    let closed = Arc::new(AtomicBool::new(false));
    let stop = CancellationToken::new();
    let inner = silent_stream(&closed);
    let mut guarded = guarded(async { Ok(inner) }, LIMITS, stop.clone());
    assert_eq!(guarded.next().await, Some(Ok(text())));
    let started = Instant::now();
    tokio::spawn(async move {
        sleep(Duration::from_millis(10)).await;
        stop.cancel();
    });
    assert_eq!(guarded.next().await, None);
    assert_eq!(started.elapsed(), Duration::from_millis(10));
    assert!(
        closed.load(Ordering::SeqCst),
        "closed before the guard is dropped"
    );
    assert_eq!(guarded.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn stop_ends_a_call_without_headers_and_closes_it() {
    let closed = Arc::new(AtomicBool::new(false));
    let connection = Connection(Arc::clone(&closed));
    let stop = CancellationToken::new();
    let call = async move {
        let _connection = connection;
        std::future::pending().await
    };
    let mut guarded = guarded(call, LIMITS, stop.clone());
    assert!(
        tokio::time::timeout(Duration::from_secs(1), guarded.next())
            .await
            .is_err()
    );
    assert!(!closed.load(Ordering::SeqCst));
    stop.cancel();
    assert_eq!(guarded.next().await, None);
    assert!(closed.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_the_call_lets_nothing_out() {
    let stop = CancellationToken::new();
    stop.cancel();
    let call = async { Ok(paced(vec![(0, text()), (0, DONE)])) };
    let heard: Vec<_> = guarded(call, LIMITS, stop).collect().await;
    assert_eq!(heard, []);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_closes_the_connection() {
    let closed = Arc::new(AtomicBool::new(false));
    let inner = silent_stream(&closed);
    let mut guarded = guarded(async { Ok(inner) }, LIMITS, CancellationToken::new());
    assert_eq!(guarded.next().await, Some(Ok(text())));
    assert_eq!(
        guarded.next().await,
        Some(Err(LlmError::ChunkTimeout { seconds: 60 }))
    );
    assert!(closed.load(Ordering::SeqCst));
    assert_eq!(guarded.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_just_ends_is_an_error() {
    let heard = outcome(0, vec![(0, text())]).await;
    assert_eq!(heard, [Ok(text()), Err(LlmError::EndedEarly)]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_is_told_once() {
    let refused = LlmError::Unreachable {
        address: "here".to_owned(),
        reason: Phrase::plain("refused"),
    };
    let call = std::future::ready(Err(refused.clone()));
    let heard: Vec<_> = guarded(call, LIMITS, CancellationToken::new())
        .collect()
        .await;
    assert_eq!(heard, [Err(refused)]);
}
