//! The events of an answer, in two protocols, each in a chunk of its own.

use serde_json::{Value, json};

use super::{MODEL, Protocol};
use crate::script::Tool;
use crate::stamp::{Stamp, TOKEN_BYTES};

/// What stands for the token where its event is made.
const PLACE: &str = "~000000 ";

const CREATED: &str = "2026-01-01T00:00:00Z";

/// The head of every stream.
pub(super) fn head(protocol: Protocol) -> String {
    let content_type = match protocol {
        Protocol::Openai => "text/event-stream",
        Protocol::Ollama => "application/x-ndjson",
    };
    format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n")
}

/// The events of tokens: the same bytes but for the stamp, so they are written and not made.
#[derive(Debug)]
pub(super) struct Tokens {
    bytes: Vec<u8>,
    /// Of one event.
    event_bytes: usize,
    /// Where its token begins.
    place: usize,
}

impl Tokens {
    /// Room for so many events in a write.
    pub(super) fn new(protocol: Protocol, events: usize) -> Self {
        let event = chunk(&match protocol {
            Protocol::Openai => delta(&json!({"content": PLACE})),
            Protocol::Ollama => line(&json!({"role": "assistant", "content": PLACE})),
        });
        let place = event.find(PLACE).unwrap_or_default();
        Self {
            event_bytes: event.len(),
            place,
            bytes: event.repeat(events).into_bytes(),
        }
    }

    /// As many events as there is room for, sent now.
    pub(super) fn stamped(&mut self) -> &[u8] {
        let token = Stamp::now().token();
        for event in self.bytes.chunks_exact_mut(self.event_bytes) {
            event[self.place..self.place + TOKEN_BYTES].copy_from_slice(&token);
        }
        &self.bytes
    }
}

/// The event of a tool's call.
pub(super) fn tool_call(protocol: Protocol, id: &str, tool: Tool) -> String {
    let arguments = match tool {
        Tool::Todo => json!({"action": "list"}),
        Tool::Terminal => json!({"command": "timeout 30 yes > /dev/null"}),
    };
    let name = tool.name();
    chunk(&match protocol {
        Protocol::Openai => delta(&json!({"tool_calls": [{
            "index": 0,
            "id": id,
            "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()},
        }]})),
        Protocol::Ollama => line(&json!({
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": name, "arguments": arguments}}],
        })),
    })
}

/// How an answer ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) calls_tool: bool,
    pub(super) prompt_tokens: usize,
    pub(super) tokens: u32,
}

/// The events of an answer's end, and the end of its body.
pub(super) fn end(protocol: Protocol, end: End) -> String {
    let End {
        calls_tool,
        prompt_tokens,
        tokens,
    } = end;
    let events = match protocol {
        Protocol::Openai => {
            let reason = if calls_tool { "tool_calls" } else { "stop" };
            let choice = json!({"index": 0, "delta": {}, "finish_reason": reason});
            let usage = json!({
                "prompt_tokens": prompt_tokens,
                "completion_tokens": tokens,
                "total_tokens": prompt_tokens + tokens as usize,
            });
            completion(&json!({"choices": [choice]}))
                + &completion(&json!({"choices": [], "usage": usage}))
                + "data: [DONE]\n\n"
        }
        Protocol::Ollama => {
            let last = json!({
                "model": MODEL,
                "created_at": CREATED,
                "message": {"role": "assistant", "content": ""},
                "done": true,
                "done_reason": "stop",
                "prompt_eval_count": prompt_tokens,
                "eval_count": tokens,
            });
            format!("{last}\n")
        }
    };
    chunk(&events) + "0\r\n\r\n"
}

/// A whole answer of one word, for what is asked aside.
pub(super) fn whole(protocol: Protocol) -> Value {
    let message = json!({"role": "assistant", "content": "Bench"});
    match protocol {
        Protocol::Openai => json!({
            "id": "chatcmpl-bench",
            "object": "chat.completion",
            "model": MODEL,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }),
        Protocol::Ollama => json!({
            "model": MODEL,
            "created_at": CREATED,
            "message": message,
            "done": true,
            "done_reason": "stop",
            "prompt_eval_count": 1,
            "eval_count": 1,
        }),
    }
}

fn chunk(events: &str) -> String {
    format!("{:x}\r\n{events}\r\n", events.len())
}

fn delta(delta: &Value) -> String {
    completion(&json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
}

/// An event of OpenAI's, with what it says beside the usual fields.
fn completion(fields: &Value) -> String {
    let mut event = json!({
        "id": "chatcmpl-bench",
        "object": "chat.completion.chunk",
        "model": MODEL,
    });
    if let (Some(event), Some(fields)) = (event.as_object_mut(), fields.as_object()) {
        event.extend(fields.clone());
    }
    format!("data: {event}\n\n")
}

fn line(message: &Value) -> String {
    let line = json!({
        "model": MODEL,
        "created_at": CREATED,
        "message": message,
        "done": false,
    });
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::http::{Body, Chunks};
    use crate::stamp;

    #[test]
    fn events_carry_their_stamps_in_whole_chunks() {
        for protocol in [Protocol::Openai, Protocol::Ollama] {
            let mut tokens = Tokens::new(protocol, 3);
            let mut raw = BytesMut::from(tokens.stamped());
            raw.extend_from_slice(tool_call(protocol, "call-1", Tool::Todo).as_bytes());
            let last = End {
                calls_tool: true,
                prompt_tokens: 10,
                tokens: 3,
            };
            raw.extend_from_slice(end(protocol, last).as_bytes());
            let mut body = BytesMut::new();
            let taken = Chunks::default().take(&mut raw, &mut body);
            assert_eq!(taken.ok(), Some(Body::Ended), "{protocol}");
            assert_eq!(stamp::stamps(&body).count(), 3, "{protocol}");
            let lines = String::from_utf8_lossy(&body).into_owned();
            for line in lines.lines().filter(|line| !line.is_empty()) {
                let json = line.trim_start_matches("data: ");
                let is_json = serde_json::from_str::<Value>(json).is_ok();
                assert!(is_json || json == "[DONE]", "{line}");
            }
        }
    }
}
