//! What goes in and out of the loop: steps, replies, calls, cuts, records.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::consent::Asking;
use crate::domain::history::ContextState;
use crate::domain::model_calls::ModelCall;
use crate::domain::planning::Planner;
use crate::domain::todo::StepMark;
use crate::protocol::approval::ConsentEntry;
use crate::protocol::chat::{ReplyForm, RequestedCall, Usage};
use crate::protocol::error::NaviError;
use crate::protocol::event::Event;
use crate::protocol::file::AttachedFile;
use crate::protocol::ids::{MessageId, RunId};
use crate::protocol::message::{Message, MessageState, ToolCall, ToolOutcome};
use crate::protocol::phrase::{Phrase, PhraseCode};
use crate::protocol::plan::Plan;
use crate::protocol::session::RunState;
use crate::protocol::tool::Effect;

/// What the driver does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Ask the model for a part of the plan: no tools, no reasoning, not streamed.
    Plan(Planner),
    /// Call the model, with the tools that it may call then.
    CallModel { tools: ToolUse },
    /// Run these calls, side by side where there are several.
    RunTools(Vec<PlannedCall>),
    /// The run has ended; everything is recorded.
    Finish(RunEnd),
}

/// Which tools the model may call this time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolUse {
    #[default]
    Offered,
    /// None: the run is at its limit and must say how things stand.
    Withheld,
    /// Those of which the program that asks demands a call: it must make one.
    Demanded,
    /// None: it must answer in the form that the program demands.
    Formed,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunEnd {
    Answered,
    Limited,
    Stopped,
    Failed(NaviError),
    /// The process died or was shut down under it.
    Interrupted {
        reason: String,
    },
}

impl RunEnd {
    /// How the store marks such a run.
    #[must_use]
    pub fn state(&self) -> RunState {
        match self {
            Self::Answered => RunState::Completed,
            Self::Limited => RunState::Limited,
            Self::Stopped => RunState::Stopped,
            Self::Failed(_) => RunState::Failed,
            Self::Interrupted { .. } => RunState::Interrupted,
        }
    }

    /// Why it ended so, where that is not plain from the state.
    #[must_use]
    pub fn reason(&self) -> Option<EndReason> {
        match self {
            Self::Answered | Self::Limited | Self::Stopped => None,
            Self::Failed(error) => Some(EndReason {
                text: error.message.clone(),
                phrase: error.phrase.as_deref().cloned(),
            }),
            Self::Interrupted { reason } => Some(EndReason {
                text: reason.clone(),
                phrase: PhraseCode::saying(reason).map(Phrase::from),
            }),
        }
    }
}

/// Why a run failed or was interrupted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndReason {
    pub text: String,
    /// The same as a code, where it is Navi's own words.
    pub phrase: Option<Phrase>,
}

/// Why a run is cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// By its user.
    Stopped,
    /// By a shutdown.
    Interrupted { reason: String },
}

/// Looks calls up where tools are known.
pub trait CallBook {
    /// Whether the model may call a tool of this name.
    fn is_known(&self, tool: &str) -> bool;

    /// Whether the tool of this name is one that the program that asks lent.
    fn is_lent(&self, tool: &str) -> bool;

    /// What is to become of a call.
    fn plan(&mut self, call: &ToolCall) -> CallPlan;

    /// Whether a text has the form that is demanded of it.
    ///
    /// # Errors
    /// Why not.
    fn fits(&self, form: &ReplyForm, text: &str) -> Result<(), String>;
}

/// A call after the registry looked at it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedCall {
    pub call: ToolCall,
    pub plan: CallPlan,
    /// Whether its tool is one that the program that asks lent.
    #[serde(default)]
    pub lent: bool,
}

impl PlannedCall {
    /// Whether what it does is done by the program that lent its tool.
    #[must_use]
    pub fn waits_for_program(&self) -> bool {
        self.lent && matches!(self.plan, CallPlan::Run { .. })
    }
}

/// What is to become of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CallPlan {
    Run {
        effect: Effect,
        /// Whether it may run beside others of its kind.
        side_by_side: bool,
    },
    /// Unknown, not allowed, or with arguments that miss the schema: the model is told why.
    Refuse(String),
}

impl CallPlan {
    pub(super) fn side_by_side(&self) -> bool {
        match self {
            Self::Run { side_by_side, .. } => *side_by_side,
            Self::Refuse(_) => true,
        }
    }
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    pub outcome: ToolOutcome,
    pub text: String,
    /// Whether the text came from outside.
    pub outside: bool,
    /// Images that the call gave back, as they are stored.
    #[serde(default)]
    pub files: Vec<AttachedFile>,
    pub duration_ms: u64,
}

/// What the model said in one call, whole or up to where it was cut off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The id under which its text was streamed.
    pub message_id: MessageId,
    pub text: String,
    pub thinking: String,
    pub calls: Vec<RequestedCall>,
    pub usage: Option<Usage>,
    /// Its limit of tokens, or the window's end, cut it off.
    #[serde(default)]
    pub cut: bool,
}

impl ModelReply {
    /// A reply of which nothing has come yet.
    #[must_use]
    pub fn empty(message_id: MessageId) -> Self {
        Self {
            message_id,
            text: String::new(),
            thinking: String::new(),
            calls: Vec::new(),
            usage: None,
            cut: false,
        }
    }

    pub(super) fn says_nothing(&self) -> bool {
        self.text.trim().is_empty() && self.calls.is_empty()
    }

    pub(super) fn into_message(
        self,
        run_id: RunId,
        state: MessageState,
        now: DateTime<Utc>,
    ) -> Message {
        let mut message = Message::assistant(self.message_id, run_id, now);
        message.content = (!self.text.is_empty()).then_some(self.text);
        message.thinking = (!self.thinking.is_empty()).then_some(self.thinking);
        message.state = state;
        message
    }
}

/// Something to be recorded. All that one transition gives is one commit.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    Event(Event),
    Message(Message),
    /// The session's plan; its steps become the todo list.
    Plan(Plan),
    /// A call begins or ends that carries out a step of the plan: the todo list says so.
    Mark(StepMark),
    /// The last prompt size that is known.
    ContextTokens(u32),
    /// The run got its backend and its model, and begins.
    Began {
        backend: String,
        model: String,
        /// The model's, in tokens.
        window: u32,
    },
    /// The window is another one from here on: of another profile's model, or as a server told
    /// of its own. In tokens.
    Window(u32),
    /// How the context differs from the messages from here on.
    Context(ContextState),
    /// A person is asked about a call.
    Ask(Box<Asking>),
    /// What was allowed or denied without a question, for the list.
    Consented(ConsentEntry),
    /// Text from outside was read.
    Tainted,
    /// A model call that came to its end. It is no part of the loop: whoever made it adds it.
    Called(Box<ModelCall>),
    /// The loop as it stands while it waits for a person: what a restart goes on from.
    Waits(String),
    /// The run is over.
    Ended(RunSummary),
}

/// A run that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    pub end: RunEnd,
    /// What it said last: a child's result.
    pub text: String,
    pub iterations: u32,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// Of the prompts, what servers said that they had read before.
    pub cached_tokens: u64,
    /// Tool calls that the model wrote as text and that were taken as calls.
    pub leaked_calls: u32,
}
