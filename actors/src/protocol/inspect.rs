//! Runs and their model calls, as one who looks into them sees them.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chat::ChatRequest;
use super::ids::{MessageId, RunId, SessionId};
use super::message::ToolCall;
use super::phrase::Phrase;
use super::session::RunState;

/// A run as the store has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    pub run_id: RunId,
    pub session_id: SessionId,
    /// The run that started it; subagents only.
    pub parent_run_id: Option<RunId>,
    /// The user message that it answers.
    pub message_id: MessageId,
    pub profile_id: String,
    pub backend: String,
    pub model: String,
    pub state: RunState,
    /// Why it ended so, where that is not plain from the state.
    pub reason: Option<String>,
    /// The same as a code, where it is Navi's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_phrase: Option<Phrase>,
    pub started_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
    /// This and the counts below are known when the run has ended.
    pub iterations: u32,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// What it and all runs under it cost; in lists, where a model of theirs has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// What a model call was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// An iteration of the loop.
    Turn,
    /// A question of planning.
    Plan,
    /// The summary of the older part of the conversation.
    Summary,
}

/// How a model call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    Done,
    Failed,
    /// The user stopped the run.
    Stopped,
    /// A shutdown ended it.
    Interrupted,
    /// The run's time was up.
    TimeUp,
}

/// What in a request differs first from the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrefixBreak {
    /// Another model, or the same at another server.
    Model,
    /// The system message: another profile, another persona, or one of them edited.
    System,
    Tools,
    Memory,
    /// The older part of the conversation was summarised.
    Summary,
    /// Results are cut, or images shown, by another measure.
    Window,
    /// An edited message, an answer made anew, or another branch.
    Message,
    /// What stood for that call alone stands there no more.
    Note,
    /// The request goes on as it was; the server had not kept it.
    Server,
}

/// What became of what a model had read with the call before: of the conversation's own calls, or
/// of a subagent's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallPrefix {
    /// None where this request goes on from all of that one.
    pub broken_by: Option<PrefixBreak>,
    pub kept_tokens: u32,
    /// Of what that one had, what came after the break.
    pub read_again_tokens: u32,
    /// Whether the server said what it had kept. Otherwise both counts are guesses.
    pub counted: bool,
    /// The share of the time to the first chunk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_again_ms: Option<u64>,
    /// What these tokens cost, where the model has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// A model call of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallInfo {
    /// Counts from 1 within the run.
    pub n: u32,
    pub kind: CallKind,
    pub started_at: DateTime<Utc>,
    /// From the start, with the wait for a slot and what was tried in vain; none where nothing
    /// came, and where the answer was wanted whole.
    pub first_chunk_ms: Option<u64>,
    pub duration_ms: u64,
    pub model: String,
    /// As the backend counted them; for a call of the loop an estimate where it counts nothing.
    pub prompt_tokens: Option<u32>,
    pub completion_tokens: Option<u32>,
    /// Of the prompt, what the server says that it had read before; none where it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u32>,
    /// Added for calls of the loop that have one before them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<CallPrefix>,
    pub outcome: CallOutcome,
    /// The session's last event before it began.
    pub after_seq: u64,
}

/// A run with its calls and the runs that it started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunDetails {
    pub run: RunInfo,
    pub calls: Vec<CallInfo>,
    pub children: Vec<RunId>,
    /// Added where the price table is at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<RunSpending>,
}

/// Runs of a session, newest first. The next page is the one before the last of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunList {
    pub runs: Vec<RunInfo>,
    /// Of all runs of the session.
    pub spent: Spending,
    /// Of all of the user's runs that began today, by the service's clock; only for who owns the
    /// session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub today: Option<Spending>,
}

/// What runs that have ended used, and what that cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spending {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// By the price table as it is now; none where no model of them has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// An amount of money.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    pub amount: f64,
    /// Three letters, as in `EUR`.
    pub currency: String,
}

/// What was spent around a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSpending {
    /// By the run and all runs under it.
    pub run: Spending,
    /// By all runs of its session.
    pub session: Spending,
    /// By all of the user's runs that began on its day, by the service's clock.
    pub day: Spending,
}

/// What the model said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallReply {
    pub content: Option<String>,
    pub thinking: Option<String>,
    pub tool_calls: Vec<ToolCall>,
}

/// What the model was sent at a call, and what it said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallDetails {
    pub request: ChatRequest,
    /// Whether `request` is what was sent, to the byte. It is made again from what is stored;
    /// a file that has gone since, or another release, can make it differ.
    pub exact: bool,
    pub reply: CallReply,
}
