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
pub(crate) mod store;
mod world;

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};

use world::World;

/// How many are searched where nothing else is said: as many as take a few seconds.
const HISTORIES: u64 = 4_000;

/// Steps of one history: most are short, since most of what can go wrong does so within a few
/// steps, and one in so many is long.
const FEW_STEPS: usize = 30;
const MANY_STEPS: usize = 240;
const LONG_ONE_IN: u64 = 16;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn every_history_keeps_what_it_promised() {
    if let Some(seed) = number("NAVI_HISTORY") {
        search(seed, true);
        return;
    }
    let histories = number("NAVI_HISTORIES").unwrap_or(HISTORIES);
    let next = AtomicU64::new(0);
    let search_some = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= histories {
                break;
            }
            if let Err(panic) = std::panic::catch_unwind(|| search(seed, false)) {
                eprintln!("NAVI_HISTORY={seed} goes through this history again");
                std::panic::resume_unwind(panic);
            }
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(search_some);
        }
    });
    println!("{histories} histories");
}

fn search(seed: u64, is_shown: bool) {
    let mut world = World::new(seed, is_shown);
    // Of the calm ones and of the others alike.
    let is_long = (seed / 2).is_multiple_of(LONG_ONE_IN);
    for _ in 0..if is_long { MANY_STEPS } else { FEW_STEPS } {
        world.step();
    }
    world.settle();
}
