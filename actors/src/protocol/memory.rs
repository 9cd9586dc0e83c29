//! What Navi remembers of a user (SPEC section 9).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ids::{MessageId, SessionId};

/// Where a fact came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactSource {
    /// None where the user wrote it in the memory page, or the session is gone for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The message in which the user said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
}

/// A fact about the user. `category` and `key` name it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    pub category: String,
    pub key: String,
    pub value: String,
    #[serde(flatten)]
    pub source: FactSource,
    /// 0 to 1; 1 where the user said or wrote it in so many words.
    pub confidence: f32,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A value that a fact had before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FormerFact {
    pub value: String,
    #[serde(flatten)]
    pub source: FactSource,
    pub confidence: f32,
    pub replaced_at: DateTime<Utc>,
}

/// All that is known of a user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryOverview {
    /// By category and key. Those of a confidence of 0.5 or less are unconfirmed: they do not
    /// stand in the summary.
    pub facts: Vec<Fact>,
    /// What every conversation begins with; null where nothing is known.
    pub summary: Option<String>,
    /// When the summary was written.
    pub updated_at: Option<DateTime<Utc>>,
}

/// A fact with the values that it had before, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FactWithHistory {
    #[serde(flatten)]
    pub fact: Fact,
    pub history: Vec<FormerFact>,
}

/// All that is known of a user and was before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryExport {
    pub exported_at: DateTime<Utc>,
    pub facts: Vec<FactWithHistory>,
    pub summary: Option<String>,
}
