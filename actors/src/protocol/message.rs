//! Messages of a conversation (SPEC section 2).

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::IntoStaticStr;

use super::command::CallDecision;
use super::file::AttachedFile;
use super::ids::{CallId, MessageId, RunId};
use super::people::PersonRef;

/// Who speaks. System messages are built for each call and never stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

/// A call that the model asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    pub id: CallId,
    pub name: String,
    /// The arguments as the model gave them: an object, or the raw text where it was no JSON object.
    pub arguments: Value,
}

/// How a message came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// Whole.
    #[default]
    Complete,
    /// The user stopped the run; this is what had been said.
    Stopped,
    /// A crash or shutdown cut it off.
    Interrupted,
    /// The backend ended in the middle of it: it failed, or its limit of tokens was reached.
    Failed,
}

/// What became of a tool call, on its tool message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ToolOutcome {
    Success,
    /// The tool, or what checks its arguments, said no.
    Failed,
    /// The user stopped the run before the call ended.
    Stopped,
    /// It had started when the process died and may or may not have taken effect.
    OutcomeUnknown,
    /// It had started when the process died and only read: going on makes it again.
    Interrupted,
}

/// One message of `messages` or `context`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    pub id: MessageId,
    /// The run that this message belongs to: the one that answers it, or that made it.
    pub run_id: RunId,
    pub role: Role,
    pub content: Option<String>,
    /// Base64, without a `data:` prefix. User and assistant only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Where the images are, relative to the service's own address, in place of `images` where
    /// only the newest messages were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_urls: Vec<String>,
    /// What the user attached, or images that a tool gave back. User and tool only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<AttachedFile>,
    /// Assistant only; each has exactly one tool message after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Tool results only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<CallId>,
    /// The tool's name; tool results only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Tool results only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ToolOutcome>,
    /// What the user said of a call whose outcome is unknown; in snapshots alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<CallDecision>,
    /// Whether the text came from outside and is data, whatever it says; tool results only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// How long the tool ran, in milliseconds; tool results only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The model's reasoning, where it gave any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    #[serde(default)]
    pub state: MessageState,
    #[serde(default)]
    pub is_summary: bool,
    #[serde(default)]
    pub is_plan: bool,
    /// The sender's own id for it; the same one twice is one message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Who wrote it, where there are accounts. User only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<PersonRef>,
    /// Whether the model is told who that was: others may write here, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub names_author: bool,
    pub created_at: DateTime<Utc>,
}

impl Message {
    fn blank(id: MessageId, run_id: RunId, role: Role, created_at: DateTime<Utc>) -> Self {
        Self {
            id,
            run_id,
            role,
            content: None,
            images: Vec::new(),
            image_urls: Vec::new(),
            files: Vec::new(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
            outcome: None,
            decision: None,
            outside: false,
            duration_ms: None,
            thinking: None,
            state: MessageState::Complete,
            is_summary: false,
            is_plan: false,
            client_id: None,
            author: None,
            names_author: false,
            created_at,
        }
    }

    /// What a person said.
    #[must_use]
    pub fn user(id: MessageId, run_id: RunId, content: String, created_at: DateTime<Utc>) -> Self {
        Self {
            content: Some(content),
            ..Self::blank(id, run_id, Role::User, created_at)
        }
    }

    /// What the model said; text, reasoning and calls are filled in by the caller.
    #[must_use]
    pub fn assistant(id: MessageId, run_id: RunId, created_at: DateTime<Utc>) -> Self {
        Self::blank(id, run_id, Role::Assistant, created_at)
    }

    /// The one result of a call.
    #[must_use]
    pub fn tool_result(
        run_id: RunId,
        call: &ToolCall,
        outcome: ToolOutcome,
        result: String,
        created_at: DateTime<Utc>,
    ) -> Self {
        Self {
            content: Some(result),
            tool_call_id: Some(call.id.clone()),
            name: Some(call.name.clone()),
            outcome: Some(outcome),
            ..Self::blank(MessageId::new(), run_id, Role::Tool, created_at)
        }
    }
}
