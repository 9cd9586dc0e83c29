//! The engine as a door uses it: real store, real actors, a scripted model.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "tests; the house is shared with those of faults"
)]

mod compression;
mod consent;
mod house;
mod iterations;
mod memory;
mod planning;
mod prefix;
mod profiles;
mod stopping;
mod subagents;
mod threads;
mod turns;
mod watching;
