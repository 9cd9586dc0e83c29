//! Attacks, each a test named after it: the built program from outside, or the real tool.
//!
//! What is refused inside is shown to work outside, where that is safe: a test that passes
//! without the sandbox would prove nothing.

mod beside;
mod commands;
mod consent;
mod denials;
mod doors;
mod evening;
mod extensions;
mod fetch;
mod homes;
mod limits;
mod matrix;
mod mcp_programs;
mod orders;
mod own_limits;
mod passkeys;
mod paths;
mod people;
mod person_limits;
mod powers;
mod privileges;
mod provenance;
mod remote_images;
mod sandbox;
mod secrets;
mod shares;
mod sharing;
mod sign_on;
mod site;
mod ssh;
mod subagents;
mod terminal;
mod tool_context;
mod uploads;
mod user_tools;
mod ward;
mod ways_in;
mod web_text;

use crate::fake_model::FakeModel;
use crate::server::{House, Server};

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
