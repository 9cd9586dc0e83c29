//! Answers as OpenAI's clients read them: in one piece, and in chunks.

use actix_web::web::Bytes;
use chrono::Utc;
use navi_actors::protocol::ids::RunId;
use navi_actors::tools::lent::LentCall;
use serde::Serialize;
use serde_json::{Value, json};

/// Most pieces have less.
const USUAL_BYTES: usize = 512;

/// What all pieces of an answer have in common.
#[derive(Debug)]
pub(super) struct Chunks {
    id: String,
    created: i64,
    model: String,
}

/// A piece, in the order that OpenAI's have.
#[derive(Serialize)]
struct Chunk<'a> {
    id: &'a str,
    object: &'static str,
    created: i64,
    model: &'a str,
    choices: &'a [Choice<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Value>,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    delta: Delta<'a>,
    finish_reason: Option<&'a str>,
    /// Always null.
    logprobs: (),
}

/// What a piece adds.
#[derive(Default, Serialize)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<[Value; 1]>,
}

impl Chunks {
    pub(super) fn new(run: RunId, model: String) -> Self {
        Self {
            id: format!("chatcmpl-{}", run.0.simple()),
            created: Utc::now().timestamp(),
            model,
        }
    }

    pub(super) fn begin(&self) -> Bytes {
        self.chunk(Delta {
            role: Some("assistant"),
            content: Some(""),
            ..Delta::default()
        })
    }

    pub(super) fn text(&self, text: &str) -> Bytes {
        self.chunk(Delta {
            content: Some(text),
            ..Delta::default()
        })
    }

    pub(super) fn thinking(&self, text: &str) -> Bytes {
        self.chunk(Delta {
            reasoning_content: Some(text),
            ..Delta::default()
        })
    }

    /// A step of Navi's own work. Open WebUI shows it as a line; others see an empty delta.
    pub(super) fn doing(&self, what: &str, done: bool) -> Bytes {
        let event = json!({"type": "status", "data": {"description": what, "done": done}});
        framed(&Chunk {
            event: Some(event),
            ..self.of(&[choice(Delta::default(), None)])
        })
    }

    pub(super) fn call(&self, at: usize, call: &LentCall) -> Bytes {
        let mut call = Self::call_of(call);
        call["index"] = json!(at);
        self.chunk(Delta {
            tool_calls: Some([call]),
            ..Delta::default()
        })
    }

    pub(super) fn end(&self, reason: &str) -> Bytes {
        framed(&self.of(&[choice(Delta::default(), Some(reason))]))
    }

    pub(super) fn usage(&self, used: (u64, u64)) -> Bytes {
        framed(&Chunk {
            usage: Some(usage(used)),
            ..self.of(&[])
        })
    }

    pub(super) fn done() -> Bytes {
        Bytes::from_static(b"data: [DONE]\n\n")
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

    fn chunk(&self, delta: Delta<'_>) -> Bytes {
        framed(&self.of(&[choice(delta, None)]))
    }

    fn of<'a>(&'a self, choices: &'a [Choice<'a>]) -> Chunk<'a> {
        Chunk {
            id: &self.id,
            object: "chat.completion.chunk",
            created: self.created,
            model: &self.model,
            choices,
            event: None,
            usage: None,
        }
    }
}

fn choice<'a>(delta: Delta<'a>, finish_reason: Option<&'a str>) -> Choice<'a> {
    Choice {
        index: 0,
        delta,
        finish_reason,
        logprobs: (),
    }
}

/// A piece as an event.
pub(super) fn framed(piece: &impl Serialize) -> Bytes {
    let mut event = Vec::with_capacity(USUAL_BYTES);
    event.extend_from_slice(b"data: ");
    // Ours always can be.
    let _ = serde_json::to_writer(&mut event, piece);
    event.extend_from_slice(b"\n\n");
    event.into()
}

fn usage((read, written): (u64, u64)) -> Value {
    json!({
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(frame: &Bytes) -> String {
        let text = std::str::from_utf8(frame).unwrap();
        let begin = r#"data: {"id":"chatcmpl-00000000000000000000000000000000","object":"chat.completion.chunk","created":7,"model":"navi","#;
        let rest = text.strip_prefix(begin).unwrap_or(text);
        rest.strip_suffix("}\n\n").unwrap().to_owned()
    }

    #[test]
    fn pieces_stand_as_openai_has_them() {
        let chunks = Chunks {
            created: 7,
            ..Chunks::new(RunId(uuid::Uuid::nil()), "navi".to_owned())
        };
        let choice = |delta: &str, reason: &str| {
            format!(
                r#""choices":[{{"index":0,"delta":{delta},"finish_reason":{reason},"logprobs":null}}]"#
            )
        };
        let begun = choice(r#"{"role":"assistant","content":""}"#, "null");
        assert_eq!(of(&chunks.begin()), begun);
        let said = choice(r#"{"content":"a \"b\""}"#, "null");
        assert_eq!(of(&chunks.text("a \"b\"")), said);
        let thought = choice(r#"{"reasoning_content":"hm"}"#, "null");
        assert_eq!(of(&chunks.thinking("hm")), thought);
        assert_eq!(of(&chunks.end("stop")), choice("{}", r#""stop""#));
        let does = r#","event":{"type":"status","data":{"description":"todo","done":true}}"#;
        assert_eq!(of(&chunks.doing("todo", true)), choice("{}", "null") + does);
        let used =
            r#""choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}"#;
        assert_eq!(of(&chunks.usage((1, 2))), used);
    }
}
