//! `POST /api/pull`: Ollama gets a model, and says how far it is.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::models::same_model;
use super::{OllamaBackend, http};
use crate::llm::LlmError;
use crate::llm::frames::{self, Payload};
use crate::llm::http::Ask;
use crate::llm::http_error::{message_in_value, shortened};
use crate::protocol::phrase::{Phrase, PhraseCode};

/// So long Ollama may say nothing: a large model's parts are checked without a word.
const SILENCE: Duration = Duration::from_secs(10 * 60);

/// The longest line that is taken.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// A model has a handful of parts; those past this are not counted.
const MAX_PARTS: usize = 64;

/// The longest name of a registry, an owner, a model or a tag.
const MAX_NAME_CHARS: usize = 80;

/// A model's name as Ollama's library and other registries have it, as in `qwen3:8b` or
/// `hf.co/owner/model:Q4_K_M`.
#[derive(Clone, Debug)]
pub struct ModelName(String);

impl ModelName {
    /// None for what is no such name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('/').collect();
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphanumeric())
                && name.len() <= MAX_NAME_CHARS
                && name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        };
        // What stands behind a colon is a tag, or a registry's port.
        let is_part = |part: &&str| match part.split_once(':') {
            Some((name, tag)) => is_name(name) && is_name(tag),
            None => is_name(part),
        };
        let is_whole = parts.len() <= 3 && parts.iter().all(is_part);
        is_whole.then(|| Self(text.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether another name means the same model: `:latest` may be left out.
    #[must_use]
    pub fn means(&self, other: &str) -> bool {
        same_model(&self.0, other)
    }
}

/// How far a pull is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullProgress {
    /// What Ollama does just now, in its own words.
    pub step: String,
    /// Bytes here, of bytes in all: of the parts of which it has said something.
    pub received: u64,
    pub total: u64,
}

/// Why a pull ended without the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.phrase())]
pub enum PullError {
    NoSuchModel { name: String, message: String },
    NoDisk { message: String },
    Silent { minutes: u64 },
    Gone { reason: LlmError },
    Failed { name: String, message: String },
}

impl PullError {
    /// What is told of it.
    #[must_use]
    pub fn phrase(&self) -> Phrase {
        let of_model = |code, name: &String, message: &String| {
            let params = [("name", name.clone()), ("message", message.clone())];
            Phrase::new(code, params)
        };
        match self {
            Self::NoSuchModel { name, message } => of_model(PhraseCode::PullUnknown, name, message),
            Self::NoDisk { message } => {
                Phrase::new(PhraseCode::PullNoDisk, [("message", message.clone())])
            }
            Self::Silent { minutes } => {
                Phrase::new(PhraseCode::PullSilent, [("minutes", minutes.to_string())])
            }
            Self::Gone { reason } => {
                Phrase::from(PhraseCode::PullGone).with("reason", reason.phrase())
            }
            Self::Failed { name, message } => of_model(PhraseCode::PullFailed, name, message),
        }
    }
}

impl OllamaBackend {
    /// Has Ollama pull a model, and tells how far it is. Where this is dropped Ollama stops; what
    /// it has by then stays there.
    ///
    /// # Errors
    /// Whatever keeps the model from being there.
    pub async fn pull(
        &self,
        name: &ModelName,
        mut tell: impl FnMut(&PullProgress),
    ) -> Result<(), PullError> {
        let url = http::under(&self.base, "api/pull");
        let body = json!({"model": name.as_str(), "stream": true});
        let ask = Ask {
            request: self.client.post(url.clone()).json(&body),
            url: &url,
            model: name.as_str(),
        };
        let response = heard(ask.send())
            .await?
            .map_err(|error| refused(name, error))?;
        let mut lines = frames::answer(http::body(response), MAX_LINE_BYTES);
        let mut parts = Parts::default();
        while let Some(line) = heard(lines.next()).await? {
            let (Payload::Data(text) | Payload::Error(text)) =
                line.map_err(|error| refused(name, error))?;
            let said: Value = serde_json::from_str(&text).unwrap_or_default();
            if let Some(error) = said.get("error").filter(|error| !error.is_null()) {
                return Err(failed(name, message_in_value(error)));
            }
            if said["status"] == "success" {
                return Ok(());
            }
            tell(parts.read(&said));
        }
        Err(PullError::Gone {
            reason: LlmError::EndedEarly,
        })
    }
}

/// What Ollama has said of the parts of a model.
#[derive(Debug, Default)]
struct Parts {
    /// The bytes of each that are here, and that it has, by its digest.
    known: Vec<(String, u64, u64)>,
    progress: PullProgress,
}

impl Parts {
    fn read(&mut self, said: &Value) -> &PullProgress {
        if let Some(step) = said["status"].as_str() {
            self.progress.step = shortened(step);
        }
        if let (Some(digest), Some(total)) = (said["digest"].as_str(), said["total"].as_u64()) {
            let received = said["completed"].as_u64().unwrap_or_default().min(total);
            let part = (digest.to_owned(), received, total);
            if let Some(known) = self.known.iter_mut().find(|known| known.0 == digest) {
                *known = part;
            } else if self.known.len() < MAX_PARTS {
                self.known.push(part);
            }
            let sum = |of: fn(&(String, u64, u64)) -> u64| {
                self.known.iter().map(of).fold(0, u64::saturating_add)
            };
            self.progress.received = sum(|part| part.1);
            self.progress.total = sum(|part| part.2);
        }
        &self.progress
    }
}

/// What comes before Ollama has been silent for too long.
async fn heard<T>(next: impl Future<Output = T>) -> Result<T, PullError> {
    let minutes = SILENCE.as_secs() / 60;
    let heard = timeout(SILENCE, next).await;
    heard.map_err(|_| PullError::Silent { minutes })
}

fn refused(name: &ModelName, error: LlmError) -> PullError {
    match error {
        LlmError::Unreachable { .. } | LlmError::EndedEarly => PullError::Gone { reason: error },
        LlmError::ModelNotFound { message, .. }
        | LlmError::Rejected { message, .. }
        | LlmError::Server { message, .. } => failed(name, message),
        other => failed(name, other.to_string()),
    }
}

/// By Ollama's words, which are all that it tells.
fn failed(name: &ModelName, message: String) -> PullError {
    let name = name.as_str().to_owned();
    let has = |words: &[&str]| words.iter().any(|words| message.contains(words));
    if has(&[
        "no space left",
        "disk full",
        "not enough space",
        "quota exceeded",
    ]) {
        PullError::NoDisk { message }
    } else if has(&["file does not exist", "not found", "invalid model name"]) {
        PullError::NoSuchModel { name, message }
    } else {
        PullError::Failed { name, message }
    }
}

#[cfg(test)]
#[path = "pull_tests.rs"]
mod tests;
