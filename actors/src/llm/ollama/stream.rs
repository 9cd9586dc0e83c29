//! The lines that `/api/chat` answers.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::llm::LlmError;
use crate::llm::decode::{Decoder, Nothing};
use crate::llm::frames::Payload;
use crate::llm::http_error::{is_overflow, message_in_value, overflow_of};
use crate::llm::reply::{DeltaQueue, call_arguments, count_of, usage_of};
use crate::protocol::chat::{FinishReason, RequestedCall};

/// Reads a line at a time and keeps nothing between them: the reply does.
#[derive(Debug)]
pub(super) struct OllamaDecoder;

impl Decoder for OllamaDecoder {
    fn frame(&mut self, frame: &Payload, reply: &mut DeltaQueue) -> Result<(), LlmError> {
        let (Payload::Data(text) | Payload::Error(text)) = frame;
        if let Some(said) = plain_message(text) {
            reply.thinking(&said.thinking)?;
            return reply.text(&said.content);
        }
        let line: Value = serde_json::from_str(text).map_err(|error| LlmError::Malformed {
            message: format!("a line that is no JSON ({error})"),
        })?;
        if line.is_null() {
            return Ok(());
        }
        if !line.is_object() {
            return Err(LlmError::Malformed {
                message: "a line that is no JSON object".to_owned(),
            });
        }
        if let Some(error) = line.get("error").filter(|error| !error.is_null()) {
            let message = message_in_value(error);
            return Err(if is_overflow(&message) {
                let told = overflow_of(&error.to_string());
                LlmError::ContextOverflow { message, told }
            } else {
                LlmError::MidStream { message }
            });
        }
        if let Some(message) = line.get("message") {
            read_message(message, reply)?;
        }
        if line.get("done").and_then(Value::as_bool) == Some(true) {
            let usage = usage_of(
                count_of(line.get("prompt_eval_count")),
                count_of(line.get("eval_count")),
            );
            let finish = match line.get("done_reason").and_then(Value::as_str) {
                Some("stop") | None => FinishReason::Stop,
                Some("length") => FinishReason::Length,
                Some(_) => FinishReason::Other,
            };
            reply.finish(finish, usage);
        }
        Ok(())
    }

    fn end(&mut self, reply: &mut DeltaQueue) -> Result<(), LlmError> {
        if reply.is_done() {
            Ok(())
        } else {
            Err(LlmError::EndedEarly)
        }
    }

    fn is_complete(&self) -> bool {
        // The line that completes an answer is also the last.
        false
    }
}

/// The message of a line that brings nothing but text, as nearly all do: read without a tree of
/// values.
fn plain_message(line: &str) -> Option<PlainMessage<'_>> {
    let line: PlainLine<'_> = serde_json::from_str(line).ok()?;
    (!line.done).then_some(line.message)
}

#[derive(Deserialize)]
struct PlainLine<'a> {
    #[serde(borrow)]
    message: PlainMessage<'a>,
    #[serde(default)]
    done: bool,
    #[serde(rename = "error")]
    _error: Option<Nothing>,
}

#[derive(Deserialize)]
struct PlainMessage<'a> {
    #[serde(borrow, default)]
    thinking: Cow<'a, str>,
    #[serde(borrow, default)]
    content: Cow<'a, str>,
    #[serde(rename = "tool_calls")]
    _tool_calls: Option<Nothing>,
}

fn read_message(message: &Value, reply: &mut DeltaQueue) -> Result<(), LlmError> {
    if let Some(thinking) = message.get("thinking").and_then(Value::as_str) {
        reply.thinking(thinking)?;
    }
    if let Some(content) = message.get("content").and_then(Value::as_str) {
        reply.text(content)?;
    }
    for call in message
        .get("tool_calls")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let Some(function) = call.get("function").filter(|function| function.is_object()) else {
            continue;
        };
        let name = function
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let arguments = match function.get("arguments") {
            Some(Value::String(raw)) => call_arguments(raw),
            None | Some(Value::Null) => call_arguments(""),
            Some(object @ Value::Object(_)) => object.clone(),
            Some(other) => Value::String(other.to_string()),
        };
        // The line is bounded and the number of calls is: the objects need no exact count.
        reply.count(name.len())?;
        reply.call(RequestedCall {
            name: name.to_owned(),
            arguments,
        })?;
    }
    Ok(())
}
