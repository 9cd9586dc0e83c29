//! Files of a session: what its user sent in, and images that tools gave back (SPEC section 13).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ids::FileId;
use super::phrase::Phrase;

/// Where a file came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileSource {
    /// Its user uploaded it.
    #[default]
    Upload,
    /// A tool gave it back: an image of our own making.
    Tool,
}

/// A file as a message carries it. It outlives the file: what was sent stays in the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AttachedFile {
    pub file_id: FileId,
    /// The sender's name for it: a label, never a path.
    pub name: String,
    /// Where the session's tools find it, within the workspace. Of our making.
    pub path: String,
    /// What its content is, as in `image/png`; not what its sender said.
    pub media_type: String,
    pub bytes: u64,
    /// Whether `GET /sessions/{session_id}/files/{file_id}/image` shows it.
    #[serde(default)]
    pub image: bool,
}

/// A file as the list shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionFile {
    #[serde(flatten)]
    pub file: AttachedFile,
    pub source: FileSource,
    /// Whether the model gets its text.
    pub text: bool,
    /// Why the model gets neither its text nor its image, where that may surprise; null otherwise.
    pub problem: Option<String>,
    /// The same as a code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phrase: Option<Phrase>,
    pub created_at: DateTime<Utc>,
    pub last_used_at: DateTime<Utc>,
    /// When it goes, unless it is used before.
    pub expires_at: DateTime<Utc>,
}

/// Files of a session, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileList {
    pub files: Vec<SessionFile>,
}
