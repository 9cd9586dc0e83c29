//! What a run tells its watchers (SPEC section 12): the only source of the wire format.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::IntoStaticStr;

use super::approval::{ApprovalRequest, ConsentMode, DecidedBy};
use super::command::{CallDecision, Decision, SendMode};
use super::error::ErrorCode;
use super::file::AttachedFile;
use super::ids::{ApprovalId, CallId, MessageId, PartId, RunId};
use super::message::ToolOutcome;
use super::people::PersonRef;
use super::phrase::{Phrase, PhraseCode};
use super::plan::PlanStep;
use super::session::SessionSnapshot;
use super::todo::TodoItem;

/// An event with its place in the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// Gapless within a session. Absent on deltas and on what goes to one tab alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Absent only where no run is meant (`resync` of an idle session, refused frames).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The run that started this one; subagents only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<RunId>,
    pub at: DateTime<Utc>,
    #[serde(flatten)]
    pub event: Event,
}

/// Why nothing moves just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// Another call has the backend.
    Lane,
    /// The backend reads the prompt.
    Prefill,
    /// A person is asked.
    Approval,
    /// The backend failed; it is tried again.
    Retry,
}

/// A piece of a streamed part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delta {
    pub part_id: PartId,
    /// How much of the part came before, in UTF-16 code units.
    pub offset: u64,
    pub delta: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_subagent: bool,
}

/// Everything that a server tells a client on a session's socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(tag = "type", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Event {
    /// The message is committed. Sent before anything of its run.
    MessageAccepted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<String>,
        message_id: MessageId,
        /// It waits for the run that goes now.
        queued: bool,
        /// How it waits, where it does.
        #[serde(default)]
        mode: SendMode,
        content: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<AttachedFile>,
        /// Who wrote it, where there are accounts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        author: Option<PersonRef>,
    },
    /// A waiting message was changed; `content` is null where it was withdrawn.
    QueueChanged {
        message_id: MessageId,
        content: Option<String>,
        /// Who changed it, where there are accounts: what it says is theirs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        author: Option<PersonRef>,
    },
    /// A waiting message was handed to the run that goes (`mode: steer`): it is part of the
    /// conversation from here on.
    MessageSteered {
        message_id: MessageId,
    },
    /// The session shows another branch of its conversation now: read it again.
    BranchChanged {
        branch_id: u32,
    },
    /// Work began; the client blocks input.
    StreamStart {
        /// The user message that this run answers.
        message_id: MessageId,
        model: String,
        profile_id: String,
    },
    RunWaiting {
        reason: WaitReason,
        detail: String,
        /// The detail as a code, where it is Navi's own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phrase: Option<Phrase>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_subagent: bool,
    },
    ThinkingDelta(Delta),
    /// The reasoning that was streamed is over.
    ThinkingEnd {
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_subagent: bool,
    },
    /// The plan, before it is executed. It is a message of the conversation too.
    PlanReady {
        /// As the model wrote it.
        plan: String,
        /// The message that holds it (`is_plan`).
        message_id: MessageId,
        steps: Vec<PlanStep>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_subagent: bool,
    },
    /// A child run began. Its id and its parent's stand in the envelope.
    SubagentStarted {
        /// The `spawn_agent` call that it answers.
        call_id: CallId,
        profile_id: String,
        task: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_subagent: bool,
    },
    /// It ended. The result of its call follows.
    SubagentFinished {
        call_id: CallId,
        /// False where the iteration limit, the time limit, a stop or a fault ended it.
        completed_normally: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_subagent: bool,
    },
    /// From the next iteration on.
    ProfileSwitched {
        profile_id: String,
        profile_name: String,
    },
    /// The old part of `context` was replaced by a summary; `messages` is as it was.
    ContextCompressed {
        /// How many messages the model saw before, and sees now.
        messages_before: u32,
        messages_after: u32,
        /// The first message that stands word for word; none where no message does.
        first_kept: Option<MessageId>,
    },
    /// The whole reasoning of a turn that called tools.
    TurnThinking {
        thinking: String,
        is_subagent: bool,
    },
    StreamDelta(Delta),
    ToolStarted {
        tool: String,
        args: Value,
        is_subagent: bool,
        call_id: CallId,
        /// The assistant message that asked for it.
        message_id: MessageId,
        /// Whether its tool is one that the program that asks lent, and that it calls by itself.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        lent: bool,
    },
    /// Output of a running tool, live.
    ToolOutput {
        call_id: CallId,
        part_id: PartId,
        offset: u64,
        delta: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_subagent: bool,
    },
    ToolCall {
        tool: String,
        args: Value,
        result: String,
        success: bool,
        outcome: ToolOutcome,
        is_subagent: bool,
        call_id: CallId,
        duration_ms: u64,
        /// Whether the result came from outside and is data, whatever it says.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        outside: bool,
        /// Images that the call gave back.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<AttachedFile>,
        /// As its `tool_started` says.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        lent: bool,
    },
    /// A person is asked whether a call may be made. The first answer from any tab counts.
    ApprovalRequested {
        approval_id: ApprovalId,
        call_id: CallId,
        tool: String,
        request: ApprovalRequest,
        /// When it counts as denied.
        expires_at: DateTime<Utc>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_subagent: bool,
    },
    /// It was answered, or nobody can answer it any more.
    ApprovalResolved {
        approval_id: ApprovalId,
        call_id: CallId,
        decision: Decision,
        by: DecidedBy,
        /// Why not, in the words of the person who denied it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// Who answered, where a person did and there are accounts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        author: Option<PersonRef>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_subagent: bool,
    },
    /// A person said what became of a call whose outcome was unknown.
    CallResolved {
        call_id: CallId,
        decision: CallDecision,
    },
    /// How much the session may do without asking, from here on.
    ModeChanged {
        mode: ConsentMode,
    },
    /// Which model the session's runs ask for, from the next one on; null where that is its
    /// profile's.
    ModelChanged {
        model: Option<String>,
    },
    /// The whole list after a change.
    TodoUpdated {
        items: Vec<TodoItem>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_subagent: bool,
    },
    /// The answer is complete; the client unlocks input.
    StreamEnd {
        content: String,
        message_id: MessageId,
        context_tokens: u32,
        max_context_tokens: u32,
        /// False where a limit ended the run.
        completed: bool,
    },
    /// The user stopped it.
    StreamStopped {},
    /// A crash or a shutdown ended the run.
    RunInterrupted {
        reason: String,
        /// The reason as a code, where it is Navi's own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phrase: Option<Phrase>,
        can_continue: bool,
    },
    /// Something the user should know; the run goes on.
    Notice {
        code: String,
        message: String,
        /// The message as a code, where it is Navi's own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phrase: Option<Phrase>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_subagent: bool,
    },
    Error {
        message: String,
        /// Whether the run goes on.
        recoverable: bool,
        code: ErrorCode,
        /// The message as a code, where it is Navi's own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phrase: Option<Phrase>,
        /// That of the frame which this answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<String>,
    },
    /// Forget what you have; here is the session as it stands.
    Resync {
        reason: ResyncReason,
        session: Box<SessionSnapshot>,
    },
    /// The answer to a ping.
    Pong {},
}

/// Why a cursor could not be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResyncReason {
    /// The cursor is ahead of everything that this session has told.
    CursorAhead,
    /// The session changed hands since the cursor was taken.
    EpochChanged,
    /// The log is kept for some time, and does not go back to the cursor any more.
    LogExpired,
}

impl Event {
    /// A notice in Navi's own words.
    #[must_use]
    pub fn notice(code: &str, phrase: impl Into<Phrase>) -> Self {
        let phrase = phrase.into();
        Self::Notice {
            code: code.to_owned(),
            message: phrase.to_string(),
            phrase: Some(phrase),
            is_subagent: false,
        }
    }

    /// What a run waits for, in Navi's own words.
    #[must_use]
    pub fn waiting(reason: WaitReason, phrase: Phrase, is_subagent: bool) -> Self {
        Self::RunWaiting {
            reason,
            detail: phrase.to_string(),
            phrase: Some(phrase),
            is_subagent,
        }
    }

    /// The end of a run that can be continued.
    #[must_use]
    pub fn interrupted(reason: &str) -> Self {
        Self::RunInterrupted {
            reason: reason.to_owned(),
            phrase: PhraseCode::saying(reason).map(Phrase::from),
            can_continue: true,
        }
    }

    /// Notes that a child run tells it, of events that are made without a look at whose they are.
    pub fn mark_subagent(&mut self) {
        if let Self::RunWaiting { is_subagent, .. }
        | Self::SubagentStarted { is_subagent, .. }
        | Self::SubagentFinished { is_subagent, .. }
        | Self::TodoUpdated { is_subagent, .. }
        | Self::Notice { is_subagent, .. } = self
        {
            *is_subagent = true;
        }
    }

    /// The event's `type` on the wire.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// The kind of text that a part carries; decides its event type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    Thinking,
    Text,
    ToolOutput,
}

/// Length of a text as the page's language counts it.
#[must_use]
pub fn utf16_len(text: &str) -> u64 {
    if text.is_ascii() {
        return text.len() as u64;
    }
    text.chars().map(|c| c.len_utf16() as u64).sum()
}

/// The text behind so many UTF-16 code units; half a character is no place in it, and is skipped.
#[must_use]
pub fn behind_utf16(text: &str, units: u64) -> &str {
    let mut before = 0;
    let at = if text.is_ascii() {
        usize::try_from(units).ok()
    } else {
        text.char_indices().find_map(|(at, c)| {
            let is_here = before >= units;
            before += c.len_utf16() as u64;
            is_here.then_some(at)
        })
    };
    at.and_then(|at| text.get(at..)).unwrap_or_default()
}
