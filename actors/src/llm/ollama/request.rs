//! The body of `/api/chat`.

use serde_json::{Map, Value, json};

use crate::llm::wire::{arguments_object, decimal, tool};
use crate::protocol::chat::{ChatMessage, ChatRequest};

/// What the request says about reasoning. Left unsaid, a model that can think does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::llm) enum Think {
    On,
    Off,
    Unsaid,
}

/// The same request always becomes the same bytes: the backend's prefix cache lives on it.
pub(in crate::llm) fn body(request: &ChatRequest, think: Think, keep_alive: &str) -> Value {
    let mut options = Map::new();
    options.insert("num_ctx".to_owned(), request.context_window.into());
    options.insert("temperature".to_owned(), decimal(request.temperature));
    if let Some(limit) = request.max_output_tokens {
        options.insert("num_predict".to_owned(), limit.into());
    }
    let mut body = json!({
        "model": request.model,
        "messages": request.messages.iter().map(message).collect::<Vec<_>>(),
        "stream": request.streamed,
        // What does not fit is to be refused: to make room, Ollama would drop whole messages from
        // the front, the question among them, and tell nobody.
        "truncate": false,
        "shift": false,
        "keep_alive": keep_alive,
        "options": options,
    });
    match think {
        Think::On => body["think"] = true.into(),
        Think::Off => body["think"] = false.into(),
        Think::Unsaid => {}
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    body
}

fn message(message: &ChatMessage) -> Value {
    match message {
        ChatMessage::System { content } => json!({ "role": "system", "content": content }),
        ChatMessage::User { content, images } => {
            let mut message = json!({ "role": "user", "content": content });
            if !images.is_empty() {
                message["images"] = json!(images);
            }
            message
        }
        ChatMessage::Assistant {
            content,
            tool_calls,
        } => {
            let mut message = json!({ "role": "assistant", "content": content });
            if !tool_calls.is_empty() {
                message["tool_calls"] = tool_calls
                    .iter()
                    .map(|call| {
                        json!({
                            "id": call.id,
                            "function": {
                                "name": call.name,
                                "arguments": arguments_object(&call.arguments),
                            },
                        })
                    })
                    .collect();
            }
            message
        }
        ChatMessage::Tool {
            call_id,
            name,
            content,
        } => json!({
            "role": "tool",
            "tool_name": name,
            "tool_call_id": call_id,
            "content": content,
        }),
    }
}
