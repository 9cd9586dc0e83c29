//! One script in two protocols.

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Ollama,
    OpenAi,
}

/// What a whole answer is made of.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) thinking: String,
    pub(super) text: String,
    pub(super) calls: Vec<(String, Value)>,
}

/// Writes an answer's pieces as frames of its protocol, or all of them as one document.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) protocol: Protocol,
    /// For [`Wire::whole`] alone.
    pub(super) said: Said,
    model: String,
    calls: u32,
    pieces: u32,
    prompt_tokens: u32,
}

impl Wire {
    pub(super) fn new(protocol: Protocol, body: &Value) -> Self {
        let prompt_bytes = body["messages"].to_string().len();
        Self {
            protocol,
            said: Said::default(),
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            calls: 0,
            pieces: 0,
            prompt_tokens: u32::try_from(prompt_bytes / 4).unwrap_or(u32::MAX),
        }
    }

    pub(super) fn content_type(&self) -> &'static str {
        match self.protocol {
            Protocol::Ollama => "application/x-ndjson",
            Protocol::OpenAi => "text/event-stream",
        }
    }

    pub(super) fn thinking(&mut self, text: &str) -> String {
        self.pieces += 1;
        match self.protocol {
            Protocol::Ollama => {
                self.line(&json!({"role": "assistant", "content": "", "thinking": text}))
            }
            Protocol::OpenAi => self.delta(&json!({"reasoning_content": text})),
        }
    }

    pub(super) fn text(&mut self, text: &str) -> String {
        self.pieces += 1;
        match self.protocol {
            Protocol::Ollama => self.line(&json!({"role": "assistant", "content": text})),
            Protocol::OpenAi => self.delta(&json!({"content": text})),
        }
    }

    /// Whole in Ollama's way, in fragments in OpenAI's.
    pub(super) fn tool_call(&mut self, name: &str, arguments: &Value) -> String {
        let index = self.calls;
        self.calls += 1;
        self.pieces += 1;
        if self.protocol == Protocol::Ollama {
            let function = json!({"index": index, "name": name, "arguments": arguments});
            let calls = json!([{"function": function}]);
            return self.line(&json!({"role": "assistant", "content": "", "tool_calls": calls}));
        }
        let text = arguments.to_string();
        let middle = text.floor_char_boundary(text.len() / 2);
        let begin = json!({"index": index, "id": format!("fake-{index}"), "type": "function", "function": {"name": name, "arguments": ""}});
        let piece = |part: &str| json!({"index": index, "function": {"arguments": part}});
        [begin, piece(&text[..middle]), piece(&text[middle..])]
            .iter()
            .map(|fragment| self.delta(&json!({"tool_calls": [fragment]})))
            .collect()
    }

    pub(super) fn prefill(&self, read: u32, total: u32) -> String {
        match self.protocol {
            Protocol::Ollama => String::new(),
            Protocol::OpenAi => event(&json!({
                "choices": [{"index": 0, "delta": {}, "finish_reason": null}],
                "prompt_progress": {"total": total, "cache": 0, "processed": read, "time_ms": 1},
            })),
        }
    }

    pub(super) fn error(&self, message: &str) -> String {
        match self.protocol {
            Protocol::Ollama => format!("{}\n", json!({"error": message})),
            Protocol::OpenAi => event(&json!({"error": {"message": message, "code": 500}})),
        }
    }

    /// The usual end.
    pub(super) fn finish(&self) -> String {
        let reason = match self.protocol {
            Protocol::OpenAi if self.calls > 0 => "tool_calls",
            _ => "stop",
        };
        self.finish_with(reason, self.prompt_tokens, self.pieces)
    }

    pub(super) fn finish_with(&self, reason: &str, prompt: u32, completion: u32) -> String {
        match self.protocol {
            Protocol::Ollama => format!(
                "{}\n",
                json!({
                    "model": self.model,
                    "created_at": "2026-01-01T00:00:00Z",
                    "message": {"role": "assistant", "content": ""},
                    "done": true,
                    "done_reason": reason,
                    "prompt_eval_count": prompt,
                    "eval_count": completion,
                })
            ),
            Protocol::OpenAi => {
                let end = json!([{"index": 0, "delta": {}, "finish_reason": reason}]);
                let usage = json!({
                    "prompt_tokens": prompt,
                    "completion_tokens": completion,
                    "total_tokens": prompt.saturating_add(completion),
                });
                self.chunk(&end)
                    + &event(&json!({"choices": [], "usage": usage}))
                    + "data: [DONE]\n\n"
            }
        }
    }

    /// The whole answer with the usual end.
    pub(super) fn whole(&self) -> String {
        let reason = match self.protocol {
            Protocol::OpenAi if !self.said.calls.is_empty() => "tool_calls",
            _ => "stop",
        };
        let said = self.said.thinking.len() + self.said.text.len();
        let pieces = said.div_ceil(4) + self.said.calls.len();
        let completion = u32::try_from(pieces).unwrap_or(u32::MAX);
        self.whole_with(reason, self.prompt_tokens, completion)
    }

    pub(super) fn whole_with(&self, reason: &str, prompt: u32, completion: u32) -> String {
        let Said {
            thinking,
            text,
            calls,
        } = &self.said;
        let mut message = json!({"role": "assistant", "content": text});
        let calls = calls.iter().zip(0..).map(|((name, arguments), index)| {
            match self.protocol {
                Protocol::Ollama => json!({"function": {"index": index, "name": name, "arguments": arguments}}),
                Protocol::OpenAi => json!({"id": format!("fake-{index}"), "type": "function", "function": {"name": name, "arguments": arguments.to_string()}}),
            }
        });
        let calls: Vec<Value> = calls.collect();
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        if !thinking.is_empty() {
            let key = match self.protocol {
                Protocol::Ollama => "thinking",
                Protocol::OpenAi => "reasoning_content",
            };
            message[key] = json!(thinking);
        }
        let document = match self.protocol {
            Protocol::Ollama => json!({
                "model": self.model,
                "created_at": "2026-01-01T00:00:00Z",
                "message": message,
                "done": true,
                "done_reason": reason,
                "prompt_eval_count": prompt,
                "eval_count": completion,
            }),
            Protocol::OpenAi => json!({
                "id": "chatcmpl-fake",
                "object": "chat.completion",
                "model": self.model,
                "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                "usage": {
                    "prompt_tokens": prompt,
                    "completion_tokens": completion,
                    "total_tokens": prompt.saturating_add(completion),
                },
            }),
        };
        document.to_string()
    }

    fn line(&self, message: &Value) -> String {
        let line = json!({
            "model": self.model,
            "created_at": "2026-01-01T00:00:00Z",
            "message": message,
            "done": false,
        });
        format!("{line}\n")
    }

    fn delta(&self, delta: &Value) -> String {
        self.chunk(&json!([{"index": 0, "delta": delta, "finish_reason": null}]))
    }

    fn chunk(&self, choices: &Value) -> String {
        event(&json!({
            "id": "chatcmpl-fake",
            "object": "chat.completion.chunk",
            "model": self.model,
            "choices": choices,
        }))
    }
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}
