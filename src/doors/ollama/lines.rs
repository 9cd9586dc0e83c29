//! Answers as Ollama's clients read them: in one piece, and line by line.

use std::time::Instant;

use chrono::{SecondsFormat, Utc};
use navi_actors::tools::lent::LentCall;
use serde::Serialize;
use serde_json::{Value, json};

/// Which request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Chat,
    Generate,
}

/// What all lines of an answer have in common.
#[derive(Debug)]
pub(super) struct Lines {
    model: String,
    shape: Shape,
    began: Instant,
}

/// A document on a line of its own.
pub(super) fn line(document: &impl Serialize) -> String {
    serde_json::to_string(document).unwrap_or_default() + "\n"
}

impl Lines {
    pub(super) fn new(model: String, shape: Shape) -> Self {
        Self {
            model,
            shape,
            began: Instant::now(),
        }
    }

    pub(super) fn text(&self, text: &str) -> String {
        line(&self.document(text, "", &[], false))
    }

    pub(super) fn thinking(&self, thinking: &str) -> String {
        line(&self.document("", thinking, &[], false))
    }

    /// A call, which so many came before.
    pub(super) fn call(&self, call: &LentCall, before: usize) -> String {
        let mut document = self.document("", "", std::slice::from_ref(call), false);
        document["message"]["tool_calls"][0]["function"]["index"] = json!(before);
        line(&document)
    }

    pub(super) fn end(&self, reason: &str, used: (u64, u64)) -> String {
        line(&self.whole("", "", &[], reason, used))
    }

    pub(super) fn whole(
        &self,
        text: &str,
        thinking: &str,
        calls: &[LentCall],
        reason: &str,
        (read, written): (u64, u64),
    ) -> Value {
        let mut document = self.document(text, thinking, calls, true);
        let took = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        document["done_reason"] = json!(reason);
        document["total_duration"] = json!(took);
        document["load_duration"] = json!(0);
        document["prompt_eval_count"] = json!(read);
        document["prompt_eval_duration"] = json!(0);
        document["eval_count"] = json!(written);
        document["eval_duration"] = json!(took);
        document
    }

    /// What a client is told that has the model loaded.
    pub(super) fn loaded(&self) -> Value {
        let mut document = self.document("", "", &[], true);
        document["done_reason"] = json!("load");
        document
    }

    fn document(&self, text: &str, thinking: &str, calls: &[LentCall], done: bool) -> Value {
        let mut document = json!({
            "model": self.model,
            "created_at": Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true),
            "done": done,
        });
        if self.shape == Shape::Generate {
            document["response"] = json!(text);
            if !thinking.is_empty() {
                document["thinking"] = json!(thinking);
            }
            return document;
        }
        let mut message = json!({"role": "assistant", "content": text});
        if !thinking.is_empty() {
            message["thinking"] = json!(thinking);
        }
        if !calls.is_empty() {
            let calls = calls.iter().enumerate().map(|(index, call)| {
                let (name, arguments) = (&call.name, &call.args);
                json!({"id": call.id, "function": {"index": index, "name": name, "arguments": arguments}})
            });
            message["tool_calls"] = calls.collect();
        }
        document["message"] = message;
        document
    }
}
