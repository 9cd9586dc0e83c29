//! Whether anybody is still there.

use std::time::{Duration, Instant};

/// How often a socket is asked.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(15);
/// How long a socket may say nothing at all.
const SILENCE_LIMIT: Duration = Duration::from_secs(45);
/// How long a client has to answer a close before its connection is cut.
pub(crate) const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// When a socket was last heard.
///
/// A tab that stops reading stops its actor's clock too, since the response's body drives
/// it; `TCP_USER_TIMEOUT` ends such a connection.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    heard: Instant,
}

impl Heartbeat {
    pub(crate) fn new(now: Instant) -> Self {
        Self { heard: now }
    }

    pub(crate) fn hear(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Whether a ping was left without an answer: whoever ends closes the socket, and whoever sleeps
    /// does not.
    pub(crate) fn missed_a_ping(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.heard) > PING_INTERVAL + CLOSE_GRACE
    }

    pub(crate) fn is_silent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.heard) > SILENCE_LIMIT
    }
}
