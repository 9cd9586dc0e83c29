//! Random histories of a session: commands of people and runs, commits, failures, kills and
//! restarts, in any order, without a thread. Each is told by its seed.
//!
//! `NAVI_HISTORIES` says how many are searched, `NAVI_HISTORY` goes through one seed again.
#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests"
)]

mod calls;
mod people;
mod process;
mod promises;
mod random;
mod runs;
pub(super) mod store;
mod world;

use world::World;

/// How many are searched where nothing else is said: as many as take a few seconds.
const HISTORIES: u64 = 2_000;

/// Steps of one history.
const STEPS: usize = 240;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn every_history_keeps_what_it_promised() {
    if let Some(seed) = number("NAVI_HISTORY") {
        search(seed);
        return;
    }
    for seed in 0..number("NAVI_HISTORIES").unwrap_or(HISTORIES) {
        if let Err(panic) = std::panic::catch_unwind(|| search(seed)) {
            eprintln!("NAVI_HISTORY={seed} goes through this history again");
            std::panic::resume_unwind(panic);
        }
    }
}

fn search(seed: u64) {
    let mut world = World::new(seed);
    for _ in 0..STEPS {
        world.step();
    }
    world.settle();
}
