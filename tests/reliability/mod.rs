//! The promises, from outside: the built program, real sockets, a model server that the test holds.

mod crash;
mod mind;
mod slow_tabs;
mod stop;
mod tabs;
mod view;

use crate::fake_model::FakeModel;
use crate::server::{House, Server};

/// A model server and a service that uses it.
fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}
