//! The chunks of a chat completion, and the whole completion that some servers send instead.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::llm::LlmError;
use crate::llm::decode::{Decoder, Nothing};
use crate::llm::frames::Payload;
use crate::llm::http_error::{is_overflow, message_in_value, message_of, overflow_of};
use crate::llm::reply::{DeltaQueue, count_of, usage_of};
use crate::llm::roles::refuses_roles;
use crate::protocol::chat::{FinishReason, Usage};

use super::calls::CallAssembler;

#[derive(Debug, Default)]
pub(super) struct OpenAiDecoder {
    calls: CallAssembler,
    finish: Option<FinishReason>,
    usage: Option<Usage>,
}

impl Decoder for OpenAiDecoder {
    fn frame(&mut self, frame: &Payload, reply: &mut DeltaQueue) -> Result<(), LlmError> {
        let data = match frame {
            Payload::Data(data) => data.trim(),
            Payload::Error(data) => {
                let value: Value = serde_json::from_str(data).unwrap_or_default();
                let code = code_of(value.get("error").unwrap_or(&value));
                return Err(stream_error(message_of(data), code, reply));
            }
        };
        if data == "[DONE]" {
            return self.complete(reply);
        }
        if let Some(text) = plain_text(data) {
            if !text.is_empty() {
                self.finish = None;
            }
            return reply.text(&text);
        }
        let chunk: Value = serde_json::from_str(data).map_err(|error| LlmError::Malformed {
            message: format!("an event that is no JSON ({error})"),
        })?;
        if chunk.is_null() {
            return Ok(());
        }
        if !chunk.is_object() {
            return Err(LlmError::Malformed {
                message: "an event that is no JSON object".to_owned(),
            });
        }
        self.chunk(&chunk, reply)
    }

    fn end(&mut self, reply: &mut DeltaQueue) -> Result<(), LlmError> {
        if reply.is_done() {
            Ok(())
        } else if self.finish.is_some() {
            self.complete(reply)
        } else {
            Err(LlmError::EndedEarly)
        }
    }

    fn is_complete(&self) -> bool {
        self.finish.is_some()
    }
}

impl OpenAiDecoder {
    fn chunk(&mut self, chunk: &Value, reply: &mut DeltaQueue) -> Result<(), LlmError> {
        check_error(chunk, reply)?;
        if let Some(progress) = chunk.get("prompt_progress") {
            let count = |key: &str| count_of(progress.get(key));
            if let (Some(read), Some(total)) = (count("processed"), count("total")) {
                reply.prefill(read.min(total), total);
            }
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            let count = |key: &str| count_of(usage.get(key));
            let counted = usage_of(count("prompt_tokens"), count("completion_tokens"));
            self.usage = counted.map(|counted| Usage {
                cached_tokens: cached_of(chunk, usage),
                ..counted
            });
        }
        let choices = chunk.get("choices").and_then(Value::as_array);
        for choice in choices
            .into_iter()
            .flatten()
            .filter(|choice| is_first(choice))
        {
            self.choice(choice, reply)?;
        }
        Ok(())
    }

    fn choice(&mut self, choice: &Value, reply: &mut DeltaQueue) -> Result<(), LlmError> {
        check_error(choice, reply)?;
        let said_before = reply.bytes();
        let of = |key: &str| choice.get(key).filter(|said| said.is_object());
        let (delta, whole) = (of("delta"), of("message"));
        if let Some(delta) = delta {
            self.said(delta, reply)?;
        }
        // Beside a delta some send the message as far as it has come.
        if let Some(whole) = whole.filter(|_| delta.is_none() || !reply.has_begun()) {
            self.said(whole, reply)?;
        }
        let reason = choice.get("finish_reason").and_then(Value::as_str);
        if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
            self.finish = Some(finish_of(reason));
        } else if delta.is_none() && whole.is_some() {
            self.finish = Some(FinishReason::Stop);
        } else if reply.bytes() > said_before {
            // Some give a reason in the midst of an answer.
            self.finish = None;
        }
        Ok(())
    }

    fn said(&mut self, said: &Value, reply: &mut DeltaQueue) -> Result<(), LlmError> {
        let reasoning = ["reasoning_content", "reasoning"]
            .iter()
            .find_map(|key| said.get(*key)?.as_str().filter(|text| !text.is_empty()));
        if let Some(reasoning) = reasoning {
            reply.thinking(reasoning)?;
        }
        match said.get("content") {
            Some(Value::String(text)) => reply.text(text)?,
            Some(Value::Array(parts)) => {
                for part in parts {
                    content_part(part, reply)?;
                }
            }
            _ => {}
        }
        if let Some(refusal) = said.get("refusal").and_then(Value::as_str) {
            reply.text(refusal)?;
        }
        match said.get("tool_calls").and_then(Value::as_array) {
            Some(fragments) => self.calls.push(fragments, reply),
            None => Ok(()),
        }
    }

    fn complete(&mut self, reply: &mut DeltaQueue) -> Result<(), LlmError> {
        self.calls.finish(reply)?;
        reply.finish(self.finish.unwrap_or(FinishReason::Stop), self.usage);
        Ok(())
    }
}

/// The text of a chunk that brings nothing else, as nearly all do: read without a tree of values.
fn plain_text(data: &str) -> Option<Cow<'_, str>> {
    let PlainChunk {
        choices: [choice], ..
    } = serde_json::from_str(data).ok()?;
    (choice.index.unwrap_or(0) == 0).then_some(choice.delta.content)
}

#[derive(Deserialize)]
struct PlainChunk<'a> {
    #[serde(borrow)]
    choices: [PlainChoice<'a>; 1],
    #[serde(rename = "object")]
    _object: Option<ChunkObject>,
    #[serde(rename = "error")]
    _error: Option<Nothing>,
    #[serde(rename = "usage")]
    _usage: Option<Nothing>,
    #[serde(rename = "prompt_progress")]
    _progress: Option<Nothing>,
}

#[derive(Deserialize)]
enum ChunkObject {
    #[serde(rename = "chat.completion.chunk")]
    Chunk,
}

#[derive(Deserialize)]
struct PlainChoice<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    delta: PlainDelta<'a>,
    #[serde(rename = "finish_reason")]
    _finish: Option<Nothing>,
    #[serde(rename = "error")]
    _error: Option<Nothing>,
    #[serde(rename = "message")]
    _message: Option<Nothing>,
}

#[derive(Deserialize)]
struct PlainDelta<'a> {
    #[serde(borrow)]
    content: Cow<'a, str>,
    #[serde(rename = "reasoning_content")]
    _reasoning_content: Option<Nothing>,
    #[serde(rename = "reasoning")]
    _reasoning: Option<Nothing>,
    #[serde(rename = "refusal")]
    _refusal: Option<Nothing>,
    #[serde(rename = "tool_calls")]
    _tool_calls: Option<Nothing>,
}

/// Content in parts, as Mistral's reasoning models send it.
fn content_part(part: &Value, reply: &mut DeltaQueue) -> Result<(), LlmError> {
    if let Some(text) = part.get("text").and_then(Value::as_str) {
        return reply.text(text);
    }
    let thoughts = part.get("thinking").and_then(Value::as_array);
    for thought in thoughts.into_iter().flatten() {
        if let Some(text) = thought.get("text").and_then(Value::as_str) {
            reply.thinking(text)?;
        }
    }
    Ok(())
}

/// How much of the prompt was read before: as OpenAI says it, or older builds of llama.cpp.
fn cached_of(chunk: &Value, usage: &Value) -> Option<u32> {
    let told = count_of(usage.pointer("/prompt_tokens_details/cached_tokens"));
    told.or_else(|| count_of(chunk.pointer("/timings/cache_n")))
}

/// Only one answer was asked for.
fn is_first(choice: &Value) -> bool {
    choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0
}

fn finish_of(reason: &str) -> FinishReason {
    match reason {
        "stop" | "tool_calls" | "function_call" | "eos" | "eos_token" | "end_turn"
        | "stop_sequence" => FinishReason::Stop,
        "length" | "max_tokens" => FinishReason::Length,
        _ => FinishReason::Other,
    }
}

/// Errors stand under `error`, or (older vLLM) are the whole chunk.
fn check_error(chunk: &Value, reply: &DeltaQueue) -> Result<(), LlmError> {
    let error = match chunk.get("error") {
        Some(error) if !error.is_null() => error,
        _ if chunk.get("object").and_then(Value::as_str) == Some("error") => chunk,
        _ => return Ok(()),
    };
    Err(stream_error(message_in_value(error), code_of(error), reply))
}

/// The status that an error would have had, where one is told.
fn code_of(error: &Value) -> Option<u16> {
    let mut keys = ["code", "status_code"].iter();
    let code = keys.find_map(|key| count_of(error.get(*key)))?;
    u16::try_from(code).ok()
}

fn stream_error(message: String, code: Option<u16>, reply: &DeltaQueue) -> LlmError {
    // Some answer 200 before they know whether anyone can take the call.
    match code {
        _ if is_overflow(&message) => LlmError::ContextOverflow {
            told: overflow_of(&message),
            message,
        },
        _ if reply.has_begun() => LlmError::MidStream { message },
        _ if refuses_roles(&message) => LlmError::RolesRefused {
            status: code.unwrap_or(200),
            message,
        },
        Some(status @ (429 | 503 | 529)) => LlmError::Busy {
            status,
            message,
            retry_after: None,
        },
        Some(status @ (400..=407 | 409..=499)) => LlmError::Rejected { status, message },
        _ => LlmError::MidStream { message },
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
