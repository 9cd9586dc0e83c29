//! The promises, from outside: the built program, real sockets, a model server that the test holds.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "tests; what they share with the service's other tests is used in part"
)]

#[path = "../support/fake_model/mod.rs"]
mod fake_model;
#[path = "../support/server.rs"]
mod server;

mod crash;
mod mind;
mod slow_tabs;
mod stop;
mod tabs;
mod view;

use fake_model::FakeModel;
use server::{House, Server};

/// A model server and a service that uses it.
fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}
