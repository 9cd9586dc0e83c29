//! What a server's refusal means, in the words of the many servers there are.

use std::time::Duration;

use chrono::{DateTime, NaiveDateTime, Utc};
use serde_json::{Map, Value};

use super::LlmError;
use super::roles::refuses_roles;
use crate::domain::context::overflow::Overflow;
use crate::domain::redact::redacted;

/// A message that people read is no longer than this.
const MAX_MESSAGE_CHARS: usize = 500;

/// How deep JSON inside JSON strings is unwrapped (Ollama wraps its runner's errors so).
const MAX_NESTING: usize = 8;

/// A response that is no success, read within its bounds.
#[derive(Debug)]
pub(super) struct Refusal<'a> {
    pub(super) status: u16,
    pub(super) body: &'a str,
    pub(super) retry_after: Option<Duration>,
    /// Where a redirect points to.
    pub(super) location: Option<&'a str>,
    /// The model that was asked for; empty for requests that name none.
    pub(super) model: &'a str,
    /// The address that was asked, for a person to check.
    pub(super) url: &'a str,
}

impl Refusal<'_> {
    /// The error that it means.
    pub(super) fn into_error(self) -> LlmError {
        let status = self.status;
        let message = self.message();
        let is_told = is_overflow(self.body);
        if matches!(status, 400 | 413 | 422 | 500) && (status == 413 || is_told) {
            // What is too large may be counted in bytes.
            let told = if is_told {
                overflow_of(self.body)
            } else {
                Overflow::default()
            };
            return LlmError::ContextOverflow { message, told };
        }
        if matches!(status, 400 | 404 | 422) && self.misses_model() {
            return LlmError::ModelNotFound {
                model: self.model.to_owned(),
                message,
            };
        }
        if matches!(status, 400 | 422 | 500) && refuses_roles(&sentence(self.body)) {
            return LlmError::RolesRefused { status, message };
        }
        match status {
            401 | 403 => LlmError::Unauthorized { status, message },
            // No credit left is told as "too many requests", but waiting does not help.
            429 if self.body.contains("insufficient_quota") => {
                LlmError::Rejected { status, message }
            }
            429 | 503 | 529 => LlmError::Busy {
                status,
                message,
                retry_after: self.retry_after,
            },
            404 | 405 => LlmError::Rejected {
                status,
                message: format!("{message}; check that {} is the right address", self.url),
            },
            300..=399 => LlmError::Rejected {
                status,
                message: match self.location {
                    Some(location) => format!(
                        "{} redirects to {}; set that as the server's address",
                        self.url,
                        shortened(location)
                    ),
                    None => format!("{} redirects nowhere", self.url),
                },
            },
            500 if message.contains("not supported") => LlmError::Rejected { status, message },
            408 | 500..=599 => LlmError::Server { status, message },
            _ => LlmError::Rejected { status, message },
        }
    }

    fn message(&self) -> String {
        let text = message_of(self.body);
        if text.is_empty() {
            return "no reason given".to_owned();
        }
        text
    }

    fn misses_model(&self) -> bool {
        if self.model.is_empty() {
            return false;
        }
        let body = self.body.to_lowercase();
        if body.contains("model_not_found") || body.contains("not a valid model") {
            return true;
        }
        body.contains("model")
            && [
                "not found",
                "does not exist",
                "not exist",
                "unknown model",
                "no such model",
            ]
            .iter()
            .any(|words| body.contains(words))
    }
}

/// Whether a server's words say that the prompt is longer than the window.
pub(super) fn is_overflow(body: &str) -> bool {
    const WORDS: &[&str] = &[
        "context_length_exceeded",
        "exceed_context_size",
        "context size",
        "context length",
        "context window",
        "maximum context",
        "max_model_len",
        "maximum model length",
        "maximum number of tokens",
        "maximum prompt length",
        "model token limit",
        "prompt token count of",
        "prompt is too long",
        "prompt exceeds max length",
        "prompt 超长",
        "input is too long",
        "input length",
        "too many tokens",
        "reduce the length",
        "max_tokens must be at least 1, got -",
        "`max_new_tokens` must be <=",
    ];
    let body = body.to_lowercase();
    WORDS.iter().any(|words| body.contains(words))
}

/// What its words tell of the window and of the prompt.
pub(super) fn overflow_of(body: &str) -> Overflow {
    // Each in the words of one kind of server, the plainest first.
    const WINDOW: &[&str] = &[
        "n_ctx",
        "context size",
        "context length",
        "context window",
        "for model with",
        "maximum model length",
        "maximum prompt length",
        "model token limit",
        "max_model_len",
        "number of tokens allowed",
        "exceeds the limit",
        "max_new_tokens` must be <=",
        " tokens >",
    ];
    const PROMPT: &[&str] = &[
        "n_prompt_tokens",
        "request (",
        "resulted in",
        "you passed",
        "you requested",
        "(requested",
        "request contains",
        "request has",
        "keep the first",
        "token count",
        "is too long:",
        "given:",
    ];
    let body = body.to_lowercase();
    let first = |words: &[&str]| words.iter().find_map(|words| number_after(&body, words));
    Overflow {
        window: first(WINDOW),
        prompt: first(PROMPT),
    }
}

/// The number that follows these words, with none but small ones between.
fn number_after(text: &str, words: &str) -> Option<u32> {
    const SMALL: [&str; 3] = ["of ", "is ", "only "];
    text.match_indices(words).find_map(|(at, _)| {
        let mut rest = &text[at + words.len()..];
        loop {
            rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
            match SMALL.iter().find_map(|small| rest.strip_prefix(*small)) {
                Some(after) => rest = after,
                None => break,
            }
        }
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != ',')
            .unwrap_or(rest.len());
        let number = rest[..end].replace(',', "").parse().ok()?;
        (number > 0).then_some(number)
    })
}

/// The sentence for a person in an error's body: JSON of any of the usual shapes (also
/// JSON inside a JSON string), HTML, or plain text. Empty where there is none.
pub(super) fn message_of(body: &str) -> String {
    shortened(&sentence(body))
}

/// [`message_of`] at its full length: a template's error quotes its source first.
fn sentence(body: &str) -> String {
    let body = body.trim();
    match serde_json::from_str::<Value>(body) {
        Ok(value) => message_in(&value, MAX_NESTING).unwrap_or_else(|| body.to_owned()),
        Err(_) if body.starts_with('<') => html_title(body),
        Err(_) => body.to_owned(),
    }
}

/// The sentence for a person in an error that came inside a stream.
pub(super) fn message_in_value(value: &Value) -> String {
    let text = message_in(value, MAX_NESTING).unwrap_or_else(|| value.to_string());
    shortened(&text)
}

fn message_in(value: &Value, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    match value {
        Value::String(text) => match serde_json::from_str::<Value>(text.trim()) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => {
                Some(message_in(&inner, depth).unwrap_or_else(|| text.clone()))
            }
            _ => (!text.trim().is_empty()).then(|| text.clone()),
        },
        Value::Object(object) => {
            let said = [
                "error", "message", "detail", "msg", "errors", "type", "code",
            ]
            .iter()
            .find_map(|key| message_in(object.get(*key)?, depth))?;
            Some(match field_in(object) {
                Some(field) => format!("{field}: {said}"),
                None => said,
            })
        }
        Value::Array(items) => items.iter().find_map(|item| message_in(item, depth)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Which field of the request a sentence is about, as FastAPI's servers tell it.
fn field_in(object: &Map<String, Value>) -> Option<String> {
    let steps = object.get("loc")?.as_array()?.iter();
    let steps = steps.filter_map(|step| match step {
        Value::String(name) => (name != "body").then(|| name.clone()),
        step => Some(step.as_u64()?.to_string()),
    });
    let field = steps.collect::<Vec<_>>().join(".");
    (!field.is_empty()).then_some(field)
}

fn html_title(page: &str) -> String {
    let title = || {
        let start = page.find("<title>")? + "<title>".len();
        let length = page[start..].find("</title>")?;
        Some(page[start..start + length].trim())
    };
    match title() {
        Some(title) if !title.is_empty() => format!("a web page: {title}"),
        _ => "a web page".to_owned(),
    }
}

/// One line of at most [`MAX_MESSAGE_CHARS`], whose addresses have lost their secrets.
pub(super) fn shortened(text: &str) -> String {
    let mut line = String::new();
    for (count, character) in redacted(text)
        .split_whitespace()
        .flat_map(|word| word.chars().chain([' ']))
        .enumerate()
    {
        if count == MAX_MESSAGE_CHARS {
            line.push('…');
            return line;
        }
        line.push(if character.is_control() {
            ' '
        } else {
            character
        });
    }
    line.truncate(line.trim_end().len());
    line
}

/// `Retry-After` in each form that servers send: seconds, with a fraction too, or an HTTP
/// date (RFC 9110 section 5.6.7). Anything else is as good as none.
pub(super) fn retry_after(value: &str, now: DateTime<Utc>) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number holds are a long wait, not none.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    if let Ok(seconds) = value.trim_end_matches('s').parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = DateTime::parse_from_rfc2822(value)
        .map(|at| at.with_timezone(&Utc))
        .or_else(|_| {
            NaiveDateTime::parse_from_str(value, "%A, %d-%b-%y %H:%M:%S GMT")
                .or_else(|_| NaiveDateTime::parse_from_str(value, "%a %b %e %H:%M:%S %Y"))
                .map(|at| at.and_utc())
        })
        .ok()?;
    Some((at - now).to_std().unwrap_or(Duration::ZERO))
}

#[cfg(test)]
#[path = "http_error_tests.rs"]
mod tests;
