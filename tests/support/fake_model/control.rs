//! Driving the fake over HTTP, for tests that are not written in Rust.
//!
//! | method and path | body | does |
//! | --- | --- | --- |
//! | `POST /control/script` | a reply `{"steps": [...], "when"?, "with_tools"?, "streamed"?, "system"?, "last"?, "temperature"?, "results"?, "pull"?, "always"?}`, or a list of them | queues them |
//! | `POST /control/release/GATE` | | opens a gate, for good |
//! | `POST /control/config` | `{"ollama", "openai", "api_key", "models", "capabilities", "context_window", "template", "owned_by", "slots"}` | what is left out is as at the start |
//! | `POST /control/reset` | | forgets scripts, gates, requests, violations and configuration |
//! | `GET /control/requests` | | every request so far |
//! | `GET /control/violations` | | what was wrong with them |

use serde_json::{Value, json};

use super::script::Reply;
use super::{Shared, State};

/// The answer: a status and a JSON body.
pub(super) fn answer(shared: &Shared, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let done = (200, json!({"ok": true}));
    match (method, path.trim_start_matches("/control/")) {
        ("POST", "script") => {
            let list = if body.is_array() {
                body.clone()
            } else {
                json!([body])
            };
            match serde_json::from_value::<Vec<Reply>>(list) {
                Ok(replies) => {
                    shared.change(|state| state.queue.extend(replies));
                    done
                }
                Err(error) => refused(&error),
            }
        }
        ("POST", "config") => match serde_json::from_value(body.clone()) {
            Ok(config) => {
                shared.change(|state| state.config = config);
                done
            }
            Err(error) => refused(&error),
        },
        ("POST", "reset") => {
            shared.change(|state| *state = State::default());
            done
        }
        ("POST", gate) if gate.starts_with("release/") => {
            let name = gate.trim_start_matches("release/").to_owned();
            shared.change(|state| state.open_gates.push(name));
            done
        }
        ("GET", "requests") => (200, json!(shared.lock().requests)),
        ("GET", "violations") => (200, json!(shared.lock().violations)),
        _ => (404, json!({"error": format!("nothing at {method} {path}")})),
    }
}

fn refused(error: &serde_json::Error) -> (u16, Value) {
    (400, json!({"error": error.to_string()}))
}
