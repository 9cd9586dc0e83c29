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
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::phrase::{Phrase, PhraseCode, Trouble};
use crate::protocol::status::{BackendKind, BackendState, ModelInfo};

/// A model's answer as it comes. Dropping it closes the connection, so that the backend stops.
pub type ChatStream = Pin<Box<dyn Stream<Item = Result<ChatDelta, LlmError>> + Send>>;

/// A place that answers model calls.
#[async_trait]
pub trait Backend: Send + Sync + Debug + 'static {
    fn kind(&self) -> BackendKind;

    /// Where it is: a URL, or `in process`.
    fn address(&self) -> String;

    /// Whether nobody set it up, and it is there where it is found: it has what it lists.
    fn is_looked_for(&self) -> bool {
        false
    }

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
#[error("{}", self.phrase())]
pub enum LlmError {
    Unreachable {
        address: String,
        reason: Phrase,
    },
    Busy {
        status: u16,
        message: String,
        retry_after: Option<Duration>,
    },
    Unauthorized {
        status: u16,
        message: String,
    },
    ModelNotFound {
        model: String,
        message: String,
    },
    ContextOverflow {
        message: String,
        told: Overflow,
    },
    /// The request was refused for another reason. Asking again would not help.
    Rejected {
        status: u16,
        message: String,
    },
    /// The model's chat template takes no such order of roles. The backends ask again with
    /// another (`roles.rs`); this is what is left when no order helped.
    RolesRefused {
        status: u16,
        message: String,
    },
    /// The server failed before it said anything. Asking again may help.
    Server {
        status: u16,
        message: String,
    },
    MidStream {
        message: String,
    },
    EndedEarly,
    Malformed {
        message: String,
    },
    FirstChunkTimeout {
        seconds: u64,
    },
    ChunkTimeout {
        seconds: u64,
    },
    ReplyTooLong {
        limit_bytes: usize,
    },
    NotReady(Trouble),
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

    /// The error that a client gets.
    #[must_use]
    pub fn told(&self) -> NaviError {
        NaviError::said(self.code(), self.phrase())
    }

    /// What is told of it.
    #[must_use]
    pub fn phrase(&self) -> Phrase {
        let answered = |code, status: &u16, message: &String| {
            let params = [("status", status.to_string()), ("message", message.clone())];
            Phrase::new(code, params)
        };
        let heard = |code, message: &String| Phrase::new(code, [("message", message.clone())]);
        let late = |code, seconds: &u64| Phrase::new(code, [("seconds", seconds.to_string())]);
        match self {
            Self::Unreachable { address, reason } => {
                Phrase::new(PhraseCode::ServerSilent, [("address", address.clone())])
                    .with("reason", reason.clone())
            }
            Self::Busy {
                status, message, ..
            } => answered(PhraseCode::ServerBusy, status, message),
            Self::Unauthorized { status, message } => {
                answered(PhraseCode::KeyRefused, status, message)
            }
            Self::ModelNotFound { model, message } => Phrase::new(
                PhraseCode::ModelLacking,
                [("model", model.clone()), ("message", message.clone())],
            ),
            Self::ContextOverflow { message, .. } => heard(PhraseCode::WindowOverflow, message),
            Self::Rejected { status, message } => {
                answered(PhraseCode::RequestRefused, status, message)
            }
            Self::RolesRefused { status, message } => {
                answered(PhraseCode::RolesRefused, status, message)
            }
            Self::Server { status, message } => answered(PhraseCode::ServerFailed, status, message),
            Self::MidStream { message } => heard(PhraseCode::BrokeOff, message),
            Self::EndedEarly => PhraseCode::EndedEarly.into(),
            Self::Malformed { message } => heard(PhraseCode::Malformed, message),
            Self::FirstChunkTimeout { seconds } => late(PhraseCode::FirstChunkLate, seconds),
            Self::ChunkTimeout { seconds } => late(PhraseCode::ChunkLate, seconds),
            Self::ReplyTooLong { limit_bytes } => Phrase::new(
                PhraseCode::ReplyTooLong,
                [("bytes", limit_bytes.to_string())],
            ),
            Self::NotReady(trouble) => trouble.clone().into(),
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
