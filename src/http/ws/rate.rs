//! How fast a client may send frames.

use std::time::Instant;

const FRAMES_PER_SECOND: f64 = 50.0;
const BURST: f64 = 200.0;

/// A token bucket.
#[derive(Debug)]
pub(crate) struct FrameRate {
    left: f64,
    at: Instant,
}

impl FrameRate {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            left: BURST,
            at: now,
        }
    }

    /// Counts a frame; whether it was within the limit.
    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        self.left = (self.left + passed * FRAMES_PER_SECOND).min(BURST);
        if self.left < 1.0 {
            return false;
        }
        self.left -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_passes_and_a_flood_does_not() {
        let start = Instant::now();
        let mut rate = FrameRate::new(start);
        assert!((0..200).all(|_| rate.allows(start)));
        assert!(!rate.allows(start));
        let later = start + Duration::from_secs(1);
        assert!((0..50).all(|_| rate.allows(later)));
        assert!(!rate.allows(later));
    }
}
