//! A reply as it is put together: bounded, its reasoning told apart, in the order of arrival.

use std::collections::VecDeque;

use serde_json::Value;

use crate::protocol::chat::{ChatDelta, FinishReason, RequestedCall, Usage};

use super::LlmError;
use super::think_tags::{Piece, ThinkTags};

/// Text, reasoning and arguments of one reply together.
pub(super) const MAX_REPLY_BYTES: usize = 8 * 1024 * 1024;

/// A model that asks for more than this in one reply has lost its way.
pub(super) const MAX_CALLS: usize = 128;

/// What decoders write to and the stream reads from.
#[derive(Debug, Default)]
pub(super) struct DeltaQueue {
    tags: ThinkTags,
    bytes: usize,
    calls: usize,
    done: bool,
    ready: VecDeque<ChatDelta>,
}

impl DeltaQueue {
    pub(super) fn text(&mut self, text: &str) -> Result<(), LlmError> {
        self.count(text.len())?;
        let pieces = self.tags.push(text);
        self.ready.extend(pieces.into_iter().map(delta_of));
        Ok(())
    }

    pub(super) fn thinking(&mut self, text: &str) -> Result<(), LlmError> {
        self.count(text.len())?;
        if !text.is_empty() {
            self.ready.push_back(ChatDelta::Thinking(text.to_owned()));
        }
        Ok(())
    }

    /// Counts arguments that arrive in pieces; [`DeltaQueue::call`] does not count them again.
    pub(super) fn count(&mut self, bytes: usize) -> Result<(), LlmError> {
        self.bytes += bytes;
        if self.bytes > MAX_REPLY_BYTES {
            return Err(LlmError::ReplyTooLong {
                limit_bytes: MAX_REPLY_BYTES,
            });
        }
        Ok(())
    }

    pub(super) fn call(&mut self, call: RequestedCall) -> Result<(), LlmError> {
        self.calls += 1;
        if self.calls > MAX_CALLS {
            return Err(too_many_calls());
        }
        self.flush_tags();
        self.ready.push_back(ChatDelta::ToolCall(call));
        Ok(())
    }

    /// Says that the model writes, where nothing else says so.
    pub(super) fn calling(&mut self) {
        self.ready.push_back(ChatDelta::Calling);
    }

    /// Whether nothing is there to be handed on.
    pub(super) fn is_silent(&self) -> bool {
        self.ready.is_empty()
    }

    pub(super) fn prefill(&mut self, read: u32, total: u32) {
        self.ready.push_back(ChatDelta::Prefill { read, total });
    }

    pub(super) fn finish(&mut self, finish: FinishReason, usage: Option<Usage>) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        self.flush_tags();
        self.ready.push_back(ChatDelta::Done { finish, usage });
    }

    /// Text, reasoning and arguments so far, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Whether the model said anything at all yet.
    pub(super) fn has_begun(&self) -> bool {
        self.bytes > 0 || self.calls > 0
    }

    pub(super) fn next(&mut self) -> Option<ChatDelta> {
        self.ready.pop_front()
    }

    fn flush_tags(&mut self) {
        self.ready.extend(self.tags.finish().map(delta_of));
    }
}

fn delta_of(piece: Piece) -> ChatDelta {
    match piece {
        Piece::Text(text) => ChatDelta::Text(text),
        Piece::Thinking(text) => ChatDelta::Thinking(text),
    }
}

pub(super) fn too_many_calls() -> LlmError {
    LlmError::Malformed {
        message: format!("over {MAX_CALLS} tool calls in one reply"),
    }
}

/// Arguments as [`RequestedCall`] wants them: an object, or the raw text. An empty text is
/// an empty object, and an object that was put into a JSON string twice is taken out again.
pub(super) fn call_arguments(raw: &str) -> Value {
    let text = raw.trim();
    if text.is_empty() || text == "null" {
        return Value::Object(serde_json::Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Value::Object(object),
        Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
            Ok(Value::Object(object)) => Value::Object(object),
            _ => Value::String(raw.to_owned()),
        },
        _ => Value::String(raw.to_owned()),
    }
}

/// A count that may be missing, null, a float or absurd.
pub(super) fn count_of(value: Option<&Value>) -> Option<u32> {
    let value = value?;
    let count = value.as_u64().or_else(|| {
        let float = value.as_f64()?;
        // A cast from float saturates: what is no count becomes 0 or the largest one.
        (float >= 0.0).then_some(float as u64)
    })?;
    Some(u32::try_from(count).unwrap_or(u32::MAX))
}

/// What a server counted; a server that counts nothing often says 0.
pub(super) fn usage_of(prompt: Option<u32>, completion: Option<u32>) -> Option<Usage> {
    let usage = Usage {
        prompt_tokens: prompt.unwrap_or(0),
        completion_tokens: completion.unwrap_or(0),
        cached_tokens: None,
    };
    (usage != Usage::default()).then_some(usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_an_object_or_the_raw_text() {
        let cases = [
            ("", "{}"),
            (" null ", "{}"),
            (r#"{"a":1}"#, r#"{"a":1}"#),
            (r#""{\"a\":1}""#, r#"{"a":1}"#),
            (r#"{"a":"#, r#""{\"a\":""#),
            ("[1]", r#""[1]""#),
            (r#""word""#, r#""\"word\"""#),
        ];
        for (raw, expected) in cases {
            assert_eq!(call_arguments(raw).to_string(), expected, "{raw}");
        }
    }

    #[test]
    fn counts_survive_what_servers_send() {
        let cases = [
            ("7", Some(7)),
            ("7.0", Some(7)),
            ("-1", None),
            ("null", None),
            ("\"7\"", None),
            ("99999999999", Some(u32::MAX)),
        ];
        for (json, expected) in cases {
            let value: Value = serde_json::from_str(json).unwrap_or_default();
            assert_eq!(count_of(Some(&value)), expected, "{json}");
        }
        assert_eq!(count_of(None), None);
    }

    #[test]
    fn an_endless_reply_is_cut_off() {
        let mut reply = DeltaQueue::default();
        let piece = "x".repeat(1024 * 1024);
        for _ in 0..8 {
            assert_eq!(reply.text(&piece), Ok(()));
        }
        assert_eq!(
            reply.thinking("y"),
            Err(LlmError::ReplyTooLong {
                limit_bytes: MAX_REPLY_BYTES
            })
        );
    }

    #[test]
    fn endless_calls_are_refused() {
        let mut reply = DeltaQueue::default();
        let call = RequestedCall {
            name: "todo".to_owned(),
            arguments: call_arguments(""),
        };
        for _ in 0..MAX_CALLS {
            assert_eq!(reply.call(call.clone()), Ok(()));
        }
        assert_eq!(reply.call(call), Err(too_many_calls()));
    }
}
