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

/// Stops, and gives back what was told until the end, which comes within a second where the
/// machine has nothing else to do.
async fn stop(model: &FakeModel, tab: &mut Socket) -> Vec<Value> {
    let asked = Instant::now();
    tab.send(&json!({"type": "stop"})).await;
    let frames = tab.until("stream_stopped").await;
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
    model
        .wait_for(|chats| {
            let over =
                |chat: &Recorded| chat.finished_ms.is_some() || chat.closed_early_ms.is_some();
            chats.iter().all(over)
        })
        .await;
    frames
}
