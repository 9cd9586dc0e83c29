//! How often a fault is tried, and by which chances.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// `few`, or `many` where the long check was asked for.
pub(crate) fn rounds(few: usize, many: usize) -> usize {
    match std::env::var("NAVI_FAULT_ROUNDS").as_deref() {
        Ok("long") => many,
        _ => few,
    }
}

/// Chances that can be had again: a failing test prints its seed, and takes it back from
/// `NAVI_FAULT_SEED`.
#[derive(Debug)]
pub(crate) struct Chance {
    seed: u64,
    rng: StdRng,
}

impl Chance {
    pub(crate) fn new() -> Self {
        let given = std::env::var("NAVI_FAULT_SEED").ok();
        let seed = given
            .and_then(|seed| seed.parse().ok())
            .unwrap_or_else(|| rand::rng().random());
        Self {
            seed,
            rng: StdRng::seed_from_u64(seed),
        }
    }

    /// A number from `low` up to and without `high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        self.rng.random_range(low..high)
    }
}

impl Drop for Chance {
    #[expect(clippy::print_stderr, reason = "a failing test's output")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("NAVI_FAULT_SEED={} tries the same again", self.seed);
        }
    }
}
