//! The body of `/api/chat`.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::llm::wire::{Body, arguments_object, decimal};
use crate::protocol::chat::{ChatMessage, ChatRequest, ReplyForm};
use crate::protocol::ids::CallId;
use crate::protocol::message::ToolCall;
use crate::protocol::status::BackendKind;

/// What the request says about reasoning. Left unsaid, a model that can think does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::llm) enum Think {
    On,
    Off,
    Unsaid,
}

/// The same request always becomes the same bytes: the backend's prefix cache lives on it.
pub(in crate::llm) fn body<'a>(
    request: &'a ChatRequest,
    think: Think,
    keep_alive: &str,
) -> Body<'a> {
    let fields = fields(request, think, keep_alive);
    Body::of(request, Some(BackendKind::Ollama), written, fields)
}

fn written(of: &ChatMessage) -> serde_json::Result<Box<RawValue>> {
    to_raw_value(&message(of))
}

fn fields(request: &ChatRequest, think: Think, keep_alive: &str) -> Map<String, Value> {
    let mut options = Map::new();
    options.insert("num_ctx".to_owned(), request.context_window.into());
    options.insert("temperature".to_owned(), decimal(request.temperature));
    if let Some(limit) = request.max_output_tokens {
        options.insert("num_predict".to_owned(), limit.into());
    }
    let thinks = match think {
        Think::On => Some(true),
        Think::Off => Some(false),
        Think::Unsaid => None,
    };
    let format = match &request.form {
        Some(ReplyForm::Json) => Some("json".into()),
        Some(ReplyForm::Schema(wanted)) => Some(wanted.schema.clone()),
        // It has no word for that: the prompt says it, and no other tool is offered.
        Some(ReplyForm::Call) | None => None,
    };
    // What does not fit is to be refused: to make room, Ollama would drop whole messages from
    // the front, the question among them, and tell nobody.
    let all: [(&str, Option<Value>); 7] = [
        ("stream", Some(request.streamed.into())),
        ("truncate", Some(false.into())),
        ("shift", Some(false.into())),
        ("keep_alive", Some(keep_alive.into())),
        ("options", Some(options.into())),
        ("think", thinks.map(Value::from)),
        ("format", format),
    ];
    let said = all.into_iter();
    said.filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

/// A message as it stands in the body.
#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum OllamaMessage<'a> {
    System {
        content: &'a str,
    },
    User {
        content: &'a str,
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        images: &'a [String],
    },
    Assistant {
        content: &'a str,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Value>,
    },
    Tool {
        tool_name: &'a str,
        tool_call_id: &'a CallId,
        content: &'a str,
    },
}

fn message(message: &ChatMessage) -> OllamaMessage<'_> {
    match message {
        ChatMessage::System { content } => OllamaMessage::System { content },
        ChatMessage::User { content, images } => OllamaMessage::User { content, images },
        ChatMessage::Assistant {
            content,
            tool_calls,
        } => OllamaMessage::Assistant {
            content,
            tool_calls: tool_calls.iter().map(call).collect(),
        },
        ChatMessage::Tool {
            call_id,
            name,
            content,
        } => OllamaMessage::Tool {
            tool_name: name,
            tool_call_id: call_id,
            content,
        },
    }
}

fn call(call: &ToolCall) -> Value {
    json!({
        "id": call.id,
        "function": {
            "name": call.name,
            "arguments": arguments_object(&call.arguments),
        },
    })
}
