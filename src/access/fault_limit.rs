//! A limit on wrong tries, in a fixed amount of memory: Navi is reached from its own
//! machine alone, so there is no address to count by.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const TRIES: u32 = 30;
const WINDOW: Duration = Duration::from_secs(60);

/// Counts wrong tries per minute.
#[derive(Debug)]
pub(crate) struct FaultLimit {
    state: Mutex<(Instant, u32)>,
}

impl Default for FaultLimit {
    fn default() -> Self {
        Self {
            state: Mutex::new((Instant::now(), 0)),
        }
    }
}

impl FaultLimit {
    /// Counts a wrong try; whether it is still answered as such.
    pub(crate) fn allows(&self) -> bool {
        self.allows_at(Instant::now())
    }

    fn allows_at(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_duration_since(state.0) >= WINDOW {
            *state = (now, 0);
        }
        state.1 = state.1.saturating_add(1);
        state.1 <= TRIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_thirty_tries_a_minute_must_pass() {
        let limit = FaultLimit::default();
        let start = Instant::now();
        assert!((0..TRIES).all(|_| limit.allows_at(start)));
        assert!(!limit.allows_at(start + WINDOW / 2));
        assert!(limit.allows_at(start + WINDOW * 2));
    }
}
