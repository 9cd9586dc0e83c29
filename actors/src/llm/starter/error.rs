//! What can go wrong between a model's file and its answer.

use crate::domain::context::overflow::Overflow;
use crate::llm::LlmError;

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

impl From<candle_core::Error> for ModelError {
    fn from(error: candle_core::Error) -> Self {
        Self::Compute(error.to_string())
    }
}

impl From<ModelError> for LlmError {
    fn from(error: ModelError) -> Self {
        let problem = error.to_string();
        match error {
            ModelError::Unreadable { .. } | ModelError::Unsupported { .. } => Self::NotReady {
                problem,
                remedy: "fetch the model again, or set STARTER_MODEL to another GGUF file of the llama or qwen2 architecture".to_owned(),
            },
            ModelError::NoMemory { .. } => Self::NotReady {
                problem,
                remedy: "close other programs, or use the smaller model (STARTER_MODEL=smollm2-135m)".to_owned(),
            },
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
