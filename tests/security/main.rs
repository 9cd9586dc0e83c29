//! Attacks, each a test named after it: the built program from outside, or the real tool.
//!
//! What is refused inside is shown to work outside, where that is safe: a test that passes
//! without the sandbox would prove nothing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::field_reassign_with_default,
    clippy::print_stdout,
    dead_code,
    unused_imports,
    reason = "tests; what they share with the service's other tests is used in part"
)]

#[path = "../support/fake_model/mod.rs"]
mod fake_model;
#[path = "../support/processes.rs"]
mod processes;
#[path = "../support/server.rs"]
mod server;
#[path = "../../actors/src/tools/ssh/sshd.rs"]
mod sshd;

mod commands;
mod consent;
mod extensions;
mod fetch;
mod orders;
mod paths;
mod sandbox;
mod secrets;
mod site;
mod ssh;
mod subagents;
mod terminal;
mod tool_context;
mod uploads;
mod user_tools;
mod ward;
mod web_text;

use fake_model::FakeModel;
use server::{House, Server};

/// A model server and a service that uses it, with these variables beside.
fn talking(variables: &[(&str, &str)]) -> (FakeModel, Server) {
    let model = FakeModel::start();
    let url = model.url();
    let all: Vec<_> = [("OLLAMA_HOST", url.as_str())]
        .into_iter()
        .chain(variables.iter().copied())
        .collect();
    let server = House::new(&all).start();
    (model, server)
}
