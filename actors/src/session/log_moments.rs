//! When the streamed text of sessions reaches the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::journal::GROUP;
use crate::protocol::ids::SessionId;

/// Streamed text waits no longer than this for the log: what a crash may lose.
const LOG_EVERY: Duration = Duration::from_millis(200);

/// How many moments there are in that time.
const MOMENTS: i64 = 4;

/// The moments of a service's sessions.
#[derive(Clone, Debug, Default)]
pub struct LogMoments {
    waiting: Arc<AtomicUsize>,
}

/// A session whose text waits for its moment, until this goes.
#[derive(Debug)]
pub(super) struct WaitsForLog(Arc<AtomicUsize>);

impl Drop for WaitsForLog {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl LogMoments {
    /// The time to a session's next moment.
    ///
    /// Sessions that stream write at the same moment, which is one transaction and not one for
    /// each. Where they are too many for one, a quarter of them has each of the moments: who sends
    /// a message does not stand behind all of them.
    pub(super) fn wait(&self, session: SessionId, now: DateTime<Utc>) -> (Duration, WaitsForLog) {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let waits = WaitsForLog(Arc::clone(&self.waiting));
        let moment = if before < GROUP {
            0
        } else {
            i64::from(session.0.as_bytes()[15]) % MOMENTS
        };
        (until(moment, now), waits)
    }
}

fn until(moment: i64, now: DateTime<Utc>) -> Duration {
    let every = i64::try_from(LOG_EVERY.as_micros()).unwrap_or(i64::MAX);
    let past = (now.timestamp_micros() - moment * every / MOMENTS).rem_euclid(every);
    LOG_EVERY.saturating_sub(Duration::from_micros(past.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(millis).unwrap()
    }

    fn session(last_byte: u128) -> SessionId {
        SessionId(uuid::Uuid::from_u128(last_byte))
    }

    #[test]
    fn text_waits_for_the_next_moment_of_its_session() {
        let waits = |moment, millis| until(moment, at(millis)).as_millis();
        assert_eq!(waits(0, 1_000), 200);
        assert_eq!(waits(0, 1_001), 199);
        assert_eq!(waits(0, 1_150), 50);
        assert_eq!(waits(1, 1_000), 50);
        assert_eq!(waits(3, 1_149), 1);
        assert_eq!(waits(3, 1_150), 200);
        // A clock that stands before its beginning.
        assert_eq!(waits(0, -1), 1);
    }

    #[test]
    fn as_many_as_fit_a_transaction_have_the_same_moment() {
        let moments = LogMoments::default();
        let mut waiting = Vec::new();
        for byte in 0..GROUP as u128 {
            let (pause, waits) = moments.wait(session(byte), at(1_030));
            assert_eq!(pause.as_millis(), 170, "{byte}");
            waiting.push(waits);
        }
        let pause = |byte| moments.wait(session(byte), at(1_030)).0.as_millis();
        assert_eq!([0, 1, 2, 3].map(pause), [170, 20, 70, 120]);
        // One whose text was logged makes room.
        waiting.pop();
        assert_eq!(pause(1), 170);
    }
}
