//! A model call in no provider's terms: what goes in, and what streams out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids::CallId;
use super::message::ToolCall;
use super::offered::OfferedTools;
use super::prompt::PromptMessage;

/// Everything a backend needs for one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChatRequest {
    pub model: String,
    pub messages: Vec<PromptMessage>,
    /// Empty where the model may not call tools.
    pub tools: OfferedTools,
    pub temperature: f32,
    /// Whether to ask for reasoning. A backend that cannot reason ignores it.
    pub think: bool,
    /// The context window to ask for, in tokens.
    pub context_window: u32,
    /// A limit on the answer, in tokens.
    pub max_output_tokens: Option<u32>,
    /// Whether the answer is wanted as it comes. Otherwise the backend sends it in one piece.
    pub streamed: bool,
    /// What the reply has to be, where it may not be whatever the model says. A backend that cannot
    /// see to it ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<ReplyForm>,
}

/// What a reply has to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplyForm {
    /// A call of one of the tools that are offered.
    Call,
    /// A JSON object.
    Json,
    /// JSON as this schema has it.
    Schema(AnswerSchema),
}

/// What text that is JSON has to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerSchema {
    /// For servers that want one.
    pub name: String,
    /// JSON Schema.
    pub schema: Value,
    /// As the program that asks has it, for servers that know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

/// One message as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum ChatMessage {
    System {
        content: String,
    },
    User {
        content: String,
        /// Base64, no `data:` prefix.
        images: Vec<String>,
    },
    Assistant {
        content: String,
        tool_calls: Vec<ToolCall>,
    },
    Tool {
        call_id: CallId,
        name: String,
        content: String,
    },
}

/// A call as the backend gave it: whole, with no id that anyone may rely on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestedCall {
    pub name: String,
    /// A JSON object, or the raw text as a JSON string where it was no object.
    pub arguments: Value,
}

/// Why the model stopped talking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    Stop,
    /// The output limit or the window ran out.
    Length,
    /// Anything else the backend names (content filters, loads, unloads).
    Other,
}

/// What the backend counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    pub prompt_tokens: u32,
    pub completion_tokens: u32,
    /// How much of the prompt it had read before; none where it does not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u32>,
}

/// One item of a model's stream. The last is always `Done`; a stream that ends
/// without it is an error, never a short answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ChatDelta {
    Thinking(String),
    Text(String),
    ToolCall(RequestedCall),
    /// A call is being written, which comes whole: told about once a second meanwhile.
    Calling,
    /// Reading of the prompt goes on: tokens read of tokens to read.
    Prefill {
        read: u32,
        total: u32,
    },
    Done {
        finish: FinishReason,
        /// None where the backend counts nothing.
        usage: Option<Usage>,
    },
}
