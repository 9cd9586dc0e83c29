//! What can go wrong between a model's file and its answer.

use crate::domain::context::overflow::Overflow;
use crate::llm::LlmError;
use crate::protocol::phrase::{Phrase, PhraseCode, Trouble};

/// Why the model in this process could not do its work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ModelError {
    #[error("the model file {path} cannot be read: {reason}")]
    Unreadable { path: String, reason: String },
    /// The file is damaged, or is of a kind that this decoder does not know.
    #[error("the model file {path} cannot be used: {reason}")]
    Unsupported { path: String, reason: String },
    #[error("the model needs {needed} of memory and {available} is free")]
    NoMemory { needed: String, available: String },
    #[error("the conversation cannot be put into the model's words: {0}")]
    Prompt(String),
    #[error("the conversation has {tokens} tokens and the model's window {window}")]
    Overflow { tokens: usize, window: usize },
    #[error("the tools' schemas cannot be made into a grammar: {0}")]
    Grammar(String),
    #[error("the model failed while it computed: {0}")]
    Compute(String),
    /// Nobody waits for the answer any more.
    #[error("nobody waits for the answer any more")]
    Cancelled,
}

impl ModelError {
    /// What is told of it.
    pub(super) fn phrase(&self) -> Phrase {
        let file = |code, path: &String, reason: &String| {
            Phrase::new(code, [("path", path.clone()), ("reason", reason.clone())])
        };
        match self {
            Self::Unreadable { path, reason } => file(PhraseCode::UnreadModelFile, path, reason),
            Self::Unsupported { path, reason } => file(PhraseCode::BadModelFile, path, reason),
            Self::NoMemory { needed, available } => Phrase::new(
                PhraseCode::NoMemory,
                [("needed", needed.clone()), ("available", available.clone())],
            ),
            Self::Prompt(_)
            | Self::Overflow { .. }
            | Self::Grammar(_)
            | Self::Compute(_)
            | Self::Cancelled => Phrase::plain(self.to_string()),
        }
    }
}

impl From<candle_core::Error> for ModelError {
    fn from(error: candle_core::Error) -> Self {
        Self::Compute(error.to_string())
    }
}

impl From<ModelError> for LlmError {
    fn from(error: ModelError) -> Self {
        let problem = error.to_string();
        match error {
            ModelError::Unreadable { .. } | ModelError::Unsupported { .. } => {
                Self::NotReady(Trouble::new(error.phrase(), PhraseCode::FetchModelAgain))
            }
            ModelError::NoMemory { .. } => {
                Self::NotReady(Trouble::new(error.phrase(), PhraseCode::CloseForMemory))
            }
            ModelError::Overflow { tokens, window } => Self::ContextOverflow {
                message: problem,
                told: Overflow {
                    window: u32::try_from(window).ok(),
                    prompt: u32::try_from(tokens).ok(),
                },
            },
            ModelError::Prompt(_) | ModelError::Grammar(_) => Self::Rejected {
                status: 400,
                message: problem,
            },
            ModelError::Compute(_) | ModelError::Cancelled => Self::MidStream { message: problem },
        }
    }
}
