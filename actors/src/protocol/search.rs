//! What a search over a user's sessions finds.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ids::{MessageId, SessionId};
use super::message::Role;

/// A message, or a session's title, that holds all the words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchHit {
    pub session_id: SessionId,
    pub session_title: String,
    /// Whether the session is put away.
    #[serde(default)]
    pub session_archived: bool,
    /// None where the title was found; `branch_id` and `role` then too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The branch that the message was said on. It may not be the one that is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_id: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    pub snippet: Snippet,
    /// When the message was said, or the session was last active.
    pub at: DateTime<Utc>,
}

/// A few words around what was found: plain text, never markup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snippet {
    /// On one line. `…` stands where something was left out.
    pub text: String,
    /// What matched: in order, without overlap.
    pub marks: Vec<Mark>,
}

/// A stretch of a text, in UTF-16 code units, as the page's language counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mark {
    pub start: u32,
    pub end: u32,
}
