//! What the model server was asked, and when it answered.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bytes::Bytes;

/// One model call. The times of an answer are those right before it is written, so that whoever
/// has read it finds them here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// When the last byte of the request had come.
    pub(crate) arrived: Instant,
    /// When the first token, or the call of a tool, was sent.
    pub(crate) began: Option<Instant>,
    /// When the end of the answer was sent.
    pub(crate) ended: Option<Instant>,
}

/// The calls by the ids of their scripts, and what they come to.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    calls: Mutex<HashMap<u64, Vec<Call>>>,
    asides: AtomicU64,
    last_body: Mutex<Bytes>,
}

impl Ledger {
    /// Notes a call, and gives back the number of those before it by the same script.
    pub(super) fn arrive(&self, script: u64, body: Bytes) -> usize {
        *lock(&self.last_body) = body;
        let mut calls = lock(&self.calls);
        let calls = calls.entry(script).or_default();
        calls.push(Call {
            arrived: Instant::now(),
            began: None,
            ended: None,
        });
        calls.len() - 1
    }

    pub(super) fn begin(&self, script: u64, number: usize) {
        self.change(script, number, |call| call.began = Some(Instant::now()));
    }

    pub(super) fn end(&self, script: u64, number: usize) {
        self.change(script, number, |call| call.ended = Some(Instant::now()));
    }

    fn change(&self, script: u64, number: usize, change: impl FnOnce(&mut Call)) {
        let mut calls = lock(&self.calls);
        let call = calls.get_mut(&script).and_then(|of| of.get_mut(number));
        if let Some(call) = call {
            change(call);
        }
    }

    pub(super) fn count_aside(&self) {
        self.asides.fetch_add(1, Ordering::Relaxed);
    }

    /// The calls of a script, in their order. They are forgotten with that.
    pub(crate) fn take(&self, script: u64) -> Vec<Call> {
        lock(&self.calls).remove(&script).unwrap_or_default()
    }

    /// The one call of a script without calls of tools.
    ///
    /// # Errors
    /// There was none, or there were several: then a turn is not what it is measured as.
    pub(crate) fn take_one(&self, script: u64) -> Result<Call> {
        match self.take(script).as_slice() {
            [call] => Ok(*call),
            calls => bail!("a turn made {} model calls, not one", calls.len()),
        }
    }

    /// The body of the newest model call that was streamed.
    pub(crate) fn last_body(&self) -> Bytes {
        lock(&self.last_body).clone()
    }

    /// Waits until nothing was asked aside (titles, which come after a session's first turn) for
    /// a while, at most for as long as a slow machine needs.
    pub(crate) async fn quiet(&self) {
        const QUIET: Duration = Duration::from_millis(300);
        const PATIENCE: Duration = Duration::from_secs(20);
        let until = Instant::now() + PATIENCE;
        let mut before = self.asides.load(Ordering::Relaxed);
        while Instant::now() < until {
            tokio::time::sleep(QUIET).await;
            let now = self.asides.load(Ordering::Relaxed);
            if now == before {
                return;
            }
            before = now;
        }
    }
}

/// A panic of another thread ends the benchmark elsewhere; the numbers here are whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
