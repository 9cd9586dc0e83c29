//! The promises, from outside: the built program, real sockets, a model server that the test holds.

mod crash;
mod mind;
mod slow_tabs;
mod stop;
mod tabs;
mod view;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Recorded};
use crate::server::{House, Server, Socket};

/// A model server and a service that uses it.
fn talking() -> (FakeModel, Server) {
    let model = FakeModel::start();
    let server = House::new(&[("OLLAMA_HOST", &model.url())]).start();
    (model, server)
}

/// What a promised time may be over where the machine has so much to do that a plain request,
/// with its commit, takes its time, too.
async fn leeway(server: &Server) -> Duration {
    let asked = Instant::now();
    server.new_session().await;
    10 * asked.elapsed()
}

/// Stops, and gives back what was told until the end, which comes within a second.
async fn stop(model: &FakeModel, server: &Server, tab: &mut Socket) -> Vec<Value> {
    let asked = Instant::now();
    tab.send(&json!({"type": "stop"})).await;
    let frames = tab.until("stream_stopped").await;
    let took = asked.elapsed();
    let limit = Duration::from_secs(1) + leeway(server).await;
    assert!(took < limit, "{took:?} of {limit:?}");
    model
        .wait_for(|chats| {
            let over =
                |chat: &Recorded| chat.finished_ms.is_some() || chat.closed_early_ms.is_some();
            chats.iter().all(over)
        })
        .await;
    frames
}
