//! Answers as OpenAI's clients read them: in one piece, and in chunks.

use chrono::Utc;
use navi_actors::protocol::ids::RunId;
use navi_actors::tools::lent::LentCall;
use serde::Serialize;
use serde_json::{Value, json};

/// What all pieces of an answer have in common.
#[derive(Debug)]
pub(super) struct Chunks {
    id: String,
    created: i64,
    model: String,
}

impl Chunks {
    pub(super) fn new(run: RunId, model: String) -> Self {
        Self {
            id: format!("chatcmpl-{}", run.0.simple()),
            created: Utc::now().timestamp(),
            model,
        }
    }

    pub(super) fn begin(&self) -> String {
        self.chunk(&json!({"role": "assistant", "content": ""}), None)
    }

    pub(super) fn text(&self, text: &str) -> String {
        self.chunk(&json!({"content": text}), None)
    }

    pub(super) fn thinking(&self, text: &str) -> String {
        self.chunk(&json!({"reasoning_content": text}), None)
    }

    /// A step of Navi's own work. Open WebUI shows it as a line; others see an empty delta.
    pub(super) fn doing(&self, what: &str, done: bool) -> String {
        let mut chunk = self.object(&json!({}), None);
        chunk["event"] = json!({"type": "status", "data": {"description": what, "done": done}});
        framed(&chunk)
    }

    pub(super) fn call(&self, at: usize, call: &LentCall) -> String {
        let mut call = Self::call_of(call);
        call["index"] = json!(at);
        self.chunk(&json!({"tool_calls": [call]}), None)
    }

    pub(super) fn end(&self, reason: &str) -> String {
        self.chunk(&json!({}), Some(reason))
    }

    pub(super) fn usage(&self, used: (u64, u64)) -> String {
        let mut chunk = self.object(&json!({}), None);
        chunk["choices"] = json!([]);
        chunk["usage"] = usage(used);
        framed(&chunk)
    }

    pub(super) fn done() -> String {
        "data: [DONE]\n\n".to_owned()
    }

    pub(super) fn call_of(call: &LentCall) -> Value {
        let function = json!({"name": call.name, "arguments": call.args.to_string()});
        json!({"id": call.id, "type": "function", "function": function})
    }

    pub(super) fn whole(
        &self,
        text: &str,
        thinking: &str,
        calls: Vec<Value>,
        reason: &str,
        used: (u64, u64),
    ) -> Value {
        let mut message = json!({"role": "assistant", "content": text, "refusal": null});
        if !thinking.is_empty() {
            message["reasoning_content"] = json!(thinking);
        }
        if !calls.is_empty() {
            message["tool_calls"] = Value::Array(calls);
        }
        json!({
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": null}],
            "usage": usage(used),
        })
    }

    fn chunk(&self, delta: &Value, reason: Option<&str>) -> String {
        framed(&self.object(delta, reason))
    }

    fn object(&self, delta: &Value, reason: Option<&str>) -> Value {
        json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason, "logprobs": null}],
        })
    }
}

/// A piece as an event.
pub(super) fn framed(piece: &impl Serialize) -> String {
    let json = serde_json::to_string(piece).unwrap_or_default();
    format!("data: {json}\n\n")
}

fn usage((read, written): (u64, u64)) -> Value {
    json!({
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
    })
}
