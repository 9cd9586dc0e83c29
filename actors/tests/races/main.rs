//! Races between attach, commit and broadcast, searched by a model checker.
//!
//! What runs is the code of the session and of the feed itself (`session::telling`, `feed`),
//! driven by a session, a journal and tabs that are small enough to be tried in thousands of
//! schedules. Each operation yields before and after, so that everything else may happen
//! there. The journal commits late, refuses, or loses its answer; the session dies, or hangs
//! and is given up; tabs lag, drop and come back with what they have.
//!
//! What must hold stands in [`view`]: no gap, no repeat, nothing told before it is committed,
//! and of each part exactly the text that was committed.
//!
//! A failure prints its schedule; `shuttle::replay` with the same body tries it again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod house;
mod session;
mod shelf;
mod tab;
mod view;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

/// `few`, or `many` where the long check was asked for.
fn rounds(few: usize, many: usize) -> usize {
    match std::env::var("NAVI_FAULT_ROUNDS").as_deref() {
        Ok("long") => many,
        _ => few,
    }
}

#[test]
fn every_tab_sees_the_same_in_random_schedules() {
    let scheduler = RandomScheduler::new(rounds(3000, 40_000));
    Runner::new(scheduler, Config::new()).run(house::live);
}

/// Few preemptions, each at a place that was chosen beforehand: finds what needs a rare order.
#[test]
fn every_tab_sees_the_same_with_few_preemptions() {
    for depth in 1..=4 {
        let scheduler = PctScheduler::new(depth, rounds(500, 10_000));
        Runner::new(scheduler, Config::new()).run(house::live);
    }
}
