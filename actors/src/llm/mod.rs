//! Backends: the places that answer model calls. A provider's JSON never leaves this module.

pub mod guard;
pub mod ollama;
pub mod openai;
pub mod starter;

mod decode;
mod frames;
mod http;
mod http_error;
mod reply;
mod roles;
mod think_tags;
mod wire;

#[cfg(test)]
mod fixture_tests;
#[cfg(test)]
mod prefix_tests;
#[cfg(test)]
mod whole_tests;

#[cfg(test)]
#[path = "../../../tests/support/fake_model/mod.rs"]
mod fake_model;

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::Stream;

use crate::domain::context::overflow::Overflow;
use crate::domain::slots::Capacity;
use crate::protocol::chat::{ChatDelta, ChatRequest};
use crate::protocol::error::ErrorCode;
use crate::protocol::status::{BackendKind, BackendState, ModelInfo};

/// A model's answer as it comes. Dropping it closes the connection, so that the backend stops.
pub type ChatStream = Pin<Box<dyn Stream<Item = Result<ChatDelta, LlmError>> + Send>>;

/// A place that answers model calls.
#[async_trait]
pub trait Backend: Send + Sync + Debug + 'static {
    fn kind(&self) -> BackendKind;

    /// Where it is: a URL, or `in process`.
    fn address(&self) -> String;

    /// Asks the backend how it is. Never takes longer than a few seconds and never
    /// fails: what is wrong is part of the answer, with its remedy.
    async fn probe(&self) -> Probe;

    /// Starts one call. The returned stream ends with [`ChatDelta::Done`] or an error;
    /// a stream that the backend ends in any other way yields [`LlmError::EndedEarly`].
    async fn chat(&self, request: Arc<ChatRequest>) -> Result<ChatStream, LlmError>;
}

/// What a backend said of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    pub state: BackendState,
    pub version: Option<String>,
    pub models: Vec<ModelInfo>,
    /// The model that a call uses where its profile names none.
    pub default_model: Option<String>,
    /// How many calls it takes at once; none where that was not asked this time.
    pub capacity: Option<Capacity>,
}

/// Why a call failed. Every variant says what a person can do, or what a retry needs to know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LlmError {
    #[error("the model server at {address} does not answer: {reason}")]
    Unreachable { address: String, reason: String },
    #[error("the model server is busy (HTTP {status}): {message}")]
    Busy {
        status: u16,
        message: String,
        retry_after: Option<Duration>,
    },
    #[error("the model server refuses the key (HTTP {status}): {message}; check OPENAI_API_KEY")]
    Unauthorized { status: u16, message: String },
    #[error("the model server does not have {model}: {message}")]
    ModelNotFound { model: String, message: String },
    #[error("the conversation is longer than the model's window: {message}")]
    ContextOverflow { message: String, told: Overflow },
    /// The request was refused for another reason. Asking again would not help.
    #[error("the model server refused the request (HTTP {status}): {message}")]
    Rejected { status: u16, message: String },
    /// The model's chat template takes no such order of roles. The backends ask again with
    /// another (`roles.rs`); this is what is left when no order helped.
    #[error("the model's chat template refuses the conversation (HTTP {status}): {message}")]
    RolesRefused { status: u16, message: String },
    /// The server failed before it said anything. Asking again may help.
    #[error("the model server failed (HTTP {status}): {message}")]
    Server { status: u16, message: String },
    #[error("the model server broke off in the middle of its answer: {message}")]
    MidStream { message: String },
    #[error("the model server ended its answer without finishing it")]
    EndedEarly,
    #[error("the model server sent something that is no answer: {message}")]
    Malformed { message: String },
    #[error(
        "the model server said nothing for {seconds} s (LLM_STREAM_FIRST_CHUNK_TIMEOUT); it may be loading the model, or be too slow for this conversation"
    )]
    FirstChunkTimeout { seconds: u64 },
    #[error(
        "the model server paused for over {seconds} s in mid-answer (LLM_STREAM_CHUNK_TIMEOUT)"
    )]
    ChunkTimeout { seconds: u64 },
    #[error("the model's answer went over {limit_bytes} bytes and was cut off")]
    ReplyTooLong { limit_bytes: usize },
    #[error("{problem}; {remedy}")]
    NotReady { problem: String, remedy: String },
}

impl LlmError {
    /// Whether the same request may succeed later, given that nothing was streamed yet.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Busy { .. } | Self::Server { .. } => true,
            // A stream that broke before its first chunk is as good as no answer.
            Self::MidStream { .. } | Self::EndedEarly => true,
            Self::Unauthorized { .. }
            | Self::ModelNotFound { .. }
            | Self::ContextOverflow { .. }
            | Self::Rejected { .. }
            | Self::RolesRefused { .. }
            | Self::Malformed { .. }
            | Self::FirstChunkTimeout { .. }
            | Self::ChunkTimeout { .. }
            | Self::ReplyTooLong { .. }
            | Self::NotReady { .. } => false,
        }
    }

    /// The code that a client gets.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unreachable { .. } | Self::NotReady { .. } => ErrorCode::BackendUnavailable,
            Self::Busy { .. } => ErrorCode::BackendBusy,
            Self::Unauthorized { .. } => ErrorCode::BackendUnauthorized,
            Self::ModelNotFound { .. } => ErrorCode::ModelNotFound,
            Self::ContextOverflow { .. } => ErrorCode::ContextOverflow,
            Self::Rejected { .. } | Self::RolesRefused { .. } | Self::Server { .. } => {
                ErrorCode::BackendError
            }
            Self::MidStream { .. } | Self::EndedEarly | Self::Malformed { .. } => {
                ErrorCode::BackendStreamBroken
            }
            Self::FirstChunkTimeout { .. } => ErrorCode::FirstChunkTimeout,
            Self::ChunkTimeout { .. } => ErrorCode::ChunkTimeout,
            Self::ReplyTooLong { .. } => ErrorCode::ReplyTooLong,
        }
    }
}
