//! The service from outside: its commands, its doors, its sockets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

#[path = "../support/fake_model/mod.rs"]
mod fake_model;
#[path = "../support/server.rs"]
mod server;

mod branches;
mod changes;
mod commands;
mod doors;
mod eval;
mod extensions;
mod files;
mod login;
mod memory;
mod mind;
mod profiles;
mod runs;
mod search;
mod sockets;
