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

/// A line, in the order that Ollama's have.
#[derive(Serialize)]
struct Document<'a> {
    model: &'a str,
    created_at: String,
    done: bool,
    #[serde(flatten)]
    said: Said<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Said<'a> {
    Chat {
        message: Message<'a>,
    },
    Generated {
        response: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        thinking: Option<&'a str>,
    },
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Value>,
}

impl Document<'_> {
    fn value(&self) -> Value {
        // Ours always can be.
        serde_json::to_value(self).unwrap_or_default()
    }
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
        let calls = std::slice::from_ref(call);
        let mut document = self.document("", "", calls, false).value();
        if let Some(index) = document.pointer_mut("/message/tool_calls/0/function/index") {
            *index = json!(before);
        }
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
        let mut document = self.document(text, thinking, calls, true).value();
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

    /// What a client is told that has the model loaded, or let go.
    pub(super) fn done(&self, reason: &str) -> Value {
        let mut document = self.document("", "", &[], true).value();
        document["done_reason"] = json!(reason);
        document
    }

    fn document<'a>(
        &'a self,
        text: &'a str,
        thinking: &'a str,
        calls: &'a [LentCall],
        done: bool,
    ) -> Document<'a> {
        let thinking = (!thinking.is_empty()).then_some(thinking);
        let said = match self.shape {
            Shape::Generate => Said::Generated {
                response: text,
                thinking,
            },
            Shape::Chat => Said::Chat {
                message: Message {
                    role: "assistant",
                    content: text,
                    thinking,
                    tool_calls: calls.iter().enumerate().map(called).collect(),
                },
            },
        };
        Document {
            model: &self.model,
            created_at: Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true),
            done,
            said,
        }
    }
}

fn called((index, call): (usize, &LentCall)) -> Value {
    let (name, arguments) = (&call.name, &call.args);
    json!({"id": call.id, "function": {"index": index, "name": name, "arguments": arguments}})
}

#[cfg(test)]
mod tests {
    use navi_actors::protocol::ids::CallId;

    use super::*;

    /// A line without what is another one each time.
    fn without_time(line: &str) -> String {
        let (begin, rest) = line.split_once(r#""created_at":""#).unwrap_or((line, ""));
        let rest = rest.split_once("\",").map_or("", |(_, rest)| rest);
        format!("{begin}{rest}")
    }

    #[test]
    fn lines_stand_as_ollama_has_them() {
        let lines = |shape| Lines::new("navi".to_owned(), shape);
        let chat = lines(Shape::Chat);
        assert_eq!(
            without_time(&chat.text("a")),
            "{\"model\":\"navi\",\"done\":false,\"message\":{\"role\":\"assistant\",\"content\":\"a\"}}\n"
        );
        assert_eq!(
            without_time(&chat.thinking("hm")),
            "{\"model\":\"navi\",\"done\":false,\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"hm\"}}\n"
        );
        let generate = lines(Shape::Generate);
        assert_eq!(
            without_time(&generate.thinking("hm")),
            "{\"model\":\"navi\",\"done\":false,\"response\":\"\",\"thinking\":\"hm\"}\n"
        );
        let call = LentCall {
            id: CallId("c".to_owned()),
            name: "weather".to_owned(),
            args: json!({"in": "Kyiv"}),
        };
        let told: Value = serde_json::from_str(&chat.call(&call, 2)).unwrap_or_default();
        assert_eq!(
            told["message"]["tool_calls"],
            json!([{"id": "c", "function": {"index": 2, "name": "weather", "arguments": {"in": "Kyiv"}}}])
        );
        // What is generated has no place for one.
        let none: Value = serde_json::from_str(&generate.call(&call, 2)).unwrap_or_default();
        assert_eq!(
            (&none["done"], &none["response"]),
            (&json!(false), &json!(""))
        );
        let end: Value = serde_json::from_str(&generate.end("stop", (1, 2))).unwrap_or_default();
        assert_eq!(
            (&end["done"], &end["response"], &end["eval_count"]),
            (&json!(true), &json!(""), &json!(2))
        );
    }
}
