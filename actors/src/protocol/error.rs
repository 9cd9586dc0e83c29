//! One closed list of error codes, and the error that a person or a script gets.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::phrase::Phrase;

/// What went wrong, in a word that stays the same from release to release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    // What came in was wrong.
    InvalidJson,
    UnknownType,
    InvalidField,
    BinaryFrame,
    FrameTooLarge,
    BodyTooLarge,
    BodyTooSlow,
    UnsupportedMediaType,
    EmptyMessage,
    MessageTooLarge,
    TooManyImages,
    ImageTooLarge,
    InvalidImage,
    InvalidId,
    FileNotFound,
    InvalidUpload,
    FileTooLarge,
    TooManyFiles,
    UnknownProfile,
    // Who is asking, and from where.
    Unauthorized,
    ForbiddenOrigin,
    ForbiddenHost,
    Forbidden,
    // What it was asked of.
    NotFound,
    MethodNotAllowed,
    SessionNotFound,
    MessageNotFound,
    ApprovalNotFound,
    ApprovalResolved,
    RuleNotFound,
    TooManyRules,
    FactNotFound,
    PersonNotFound,
    NameTaken,
    InvitationNotFound,
    SignOnFailed,
    SignOnRefused,
    SignOnUnavailable,
    IdentityTaken,
    ChangeNotFound,
    ChangeConflict,
    MemoryFull,
    ToolChanged,
    SessionBusy,
    QueueFull,
    NothingToContinue,
    ModelUnknown,
    // What the model's side did.
    BackendUnavailable,
    BackendBusy,
    BackendUnauthorized,
    BackendError,
    BackendStreamBroken,
    ModelNotFound,
    ContextOverflow,
    EmptyReply,
    FirstChunkTimeout,
    ChunkTimeout,
    ReplyTooLong,
    // What happened here.
    RunFailed,
    RateLimited,
    ShuttingDown,
    StoreUnavailable,
    Internal,
}

/// An error as it crosses a boundary: a code for programs, a sentence for a person.
/// Internals are logged where they happen and never stand in `message`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
pub struct NaviError {
    pub code: ErrorCode,
    pub message: String,
    /// The message as a code, where the page has words of its own for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phrase: Option<Box<Phrase>>,
    /// After how long it may be otherwise, where that is known. A door says it in its own way.
    #[serde(skip)]
    #[schemars(skip)]
    pub wait: Option<Duration>,
}

impl NaviError {
    /// An error with its sentence: lower case, no final dot, saying what to do.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            phrase: None,
            wait: None,
        }
    }

    /// An error whose sentence is told as a code, too.
    pub fn said(code: ErrorCode, phrase: impl Into<Phrase>) -> Self {
        let phrase = phrase.into();
        Self {
            phrase: Some(Box::new(phrase.clone())),
            ..Self::new(code, phrase.to_string())
        }
    }

    /// Its sentence, to stand in another one.
    #[must_use]
    pub fn into_phrase(self) -> Phrase {
        let phrase = self.phrase.map(|phrase| *phrase);
        phrase.unwrap_or_else(|| Phrase::plain(self.message))
    }

    /// The same, which may be otherwise after this long.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self {
            wait: Some(wait),
            ..self
        }
    }
}

/// What came in cannot be taken: `invalid_field`.
#[must_use]
pub fn invalid(message: impl Into<String>) -> NaviError {
    NaviError::new(ErrorCode::InvalidField, message)
}
