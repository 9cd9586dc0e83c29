//! What is kept of a model call, and how what the model was sent is made of it again.
//!
//! A request repeats the whole conversation: kept as it was sent, a session would grow with the
//! square of its length. So a call keeps a [`Recipe`]: where in the stored conversation its
//! messages begin and end, and what stood around them. Long texts that most calls share (the
//! system message, the tools, a summary) are [`Part`]s, kept once a session. The code that built
//! the request builds it again, and the request's [`seal`] tells whether it is the same.

pub mod prefix;
mod recipe;

#[cfg(test)]
mod tests;

use chrono::{DateTime, Utc};

pub use self::recipe::{Ingredients, Part, Recipe, seal};
use crate::domain::context::ContextMessage;
use crate::protocol::chat::Usage;
use crate::protocol::ids::MessageId;
use crate::protocol::inspect::{CallKind, CallOutcome, CallReply};

/// What a subagent's conversation may gain between two of its calls and still be kept, in bytes.
pub const MAX_OWN_BYTES: usize = 1024 * 1024;

/// A model call that came to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelCall {
    pub kind: CallKind,
    /// The session's last event before it began; none where its session is to say.
    pub after_seq: Option<u64>,
    pub started_at: DateTime<Utc>,
    /// None where nothing came, and where the answer was wanted whole.
    pub first_chunk_ms: Option<u64>,
    pub duration_ms: u64,
    pub backend: String,
    pub model: String,
    pub usage: Option<Usage>,
    pub outcome: CallOutcome,
    /// How often it was tried.
    pub attempts: u32,
    /// The message that the reply became, or would have become.
    pub message_id: Option<MessageId>,
    /// The reply, where no message of the session holds it.
    pub reply: Option<CallReply>,
    /// What the conversation of a subagent gained since its last call; it is stored nowhere else.
    pub own: Vec<ContextMessage>,
    pub prompt: Prompt,
}

/// What a call was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// [`Recipe`] as JSON.
    pub recipe: String,
    /// Those that the recipe names. Whoever has one already need not keep it again.
    pub parts: Vec<Part>,
    /// [`seal`] of the request.
    pub sha256: String,
}
