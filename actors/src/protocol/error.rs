//! One closed list of error codes, and the error that a person or a script gets.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
            wait: None,
        }
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
