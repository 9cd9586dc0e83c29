//! Faults, each a test named after its row of the table in `docs/reliability.md`: the built
//! program from outside, killed, cut off, starved and misled.
//!
//! How often each is tried is [`rounds`]: few by default (`./check --only faults-sqlite`), many
//! with `NAVI_FAULT_ROUNDS=long` (`./check --long`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "tests; what they share with the service's other tests is used in part"
)]

#[path = "../support/fake_model/mod.rs"]
mod fake_model;
#[path = "../support/processes.rs"]
mod processes;
#[path = "../support/rounds.rs"]
mod rounds;
#[path = "../support/server.rs"]
mod server;
#[path = "../reliability/view.rs"]
mod view;

mod actors;
mod amid;
mod backend;
mod clock;
mod cursors;
mod database;
mod disk;
mod effects;
mod hangs;
mod kill;
mod lost_power;
mod messages;
mod migration;
mod orphans;
mod people;
mod power;
mod resume;
mod retries;
mod script;
mod shim;
mod shutdown;
mod slow_writes;
mod tabs;
mod uploads;
