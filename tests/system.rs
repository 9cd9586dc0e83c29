//! The service from outside, and what it leans on: one program, built and linked once. What
//! needs places to fail at is in `tests/faults`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::field_reassign_with_default,
    clippy::print_stdout,
    dead_code,
    unused_imports,
    reason = "tests; what they share with those of faults is used in part"
)]

#[path = "support/authenticator.rs"]
mod authenticator;
#[path = "support/collector.rs"]
mod collector;
#[path = "support/fake_model/mod.rs"]
mod fake_model;
#[path = "support/person.rs"]
mod person;
#[path = "support/processes.rs"]
mod processes;
#[path = "support/provider.rs"]
mod provider;
#[path = "support/rounds.rs"]
mod rounds;
#[path = "support/server.rs"]
mod server;
#[path = "../actors/src/tools/ssh/sshd.rs"]
mod sshd;

mod actix_web_facts;
mod fake_model_rules;
mod reliability;
mod security;
mod service;
