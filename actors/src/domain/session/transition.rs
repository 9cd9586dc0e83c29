//! What a command comes to, as plain data.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::change::Change;
use super::command::Leaving;
use crate::domain::consent::Answer;
use crate::domain::history::ContextState;
use crate::domain::model_calls::ModelCall;
use crate::domain::model_choice::RunConfig;
use crate::domain::planning::ToolSteps;
use crate::domain::run_loop::RunLoop;
use crate::protocol::approval::Resolution;
use crate::protocol::command::PlainConsent;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::Event;
use crate::protocol::ids::{ApprovalId, MessageId, RunId};
use crate::protocol::message::{Message, ToolCall};
use crate::protocol::phrase::PhraseCode;
use crate::protocol::profile::Profile;
use crate::protocol::session::SessionSummary;
use crate::protocol::todo::{Scratchpad, TodoItem};

/// What a command comes to.
#[derive(Debug, Default, PartialEq)]
pub struct Transition {
    /// Done at once, in order.
    pub now: Vec<Effect>,
    /// To be committed and told.
    pub change: Change,
    /// Done when `change` is told, in order; where that is empty, after all that was submitted
    /// before. A launch may come before that: see [`Transition::take_launch`].
    pub then: Vec<Effect>,
}

impl Transition {
    /// Takes out the run that begins here, to be launched as soon as `change` is submitted: what it
    /// tells comes behind that, and what it does that changes anything waits for its own commits.
    pub fn take_launch(&mut self) -> Option<Effect> {
        let is_launch = |effect: &Effect| matches!(effect, Effect::Launch(_));
        let at = self.then.iter().position(is_launch)?;
        Some(self.then.remove(at))
    }
}

/// One who waits for a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplyTo(pub u64);

/// Something that is to be done outside of the session.
#[derive(Debug, PartialEq)]
pub enum Effect {
    Reply(ReplyTo, Result<Reply, Refused>),
    /// Tells how this run ended, which is over for long.
    ReplyFromStore(ReplyTo, RunId),
    /// Starts the foreground run.
    Launch(Box<Launch>),
    /// Stops a run of this session.
    Cancel(RunId),
    /// The foreground run is over: nothing works for it any more.
    Release(RunId),
    /// The foreground run is to end for a shutdown.
    Interrupt(Leaving),
    /// Denies a request that nobody has answered by then.
    ExpireLater(ApprovalId, Duration),
    /// Summarises old turns of the branch that is shown.
    Summarise {
        summary: u64,
        run_id: RunId,
    },
    /// The summary under way is of no use any more.
    DropSummary,
    FindTitle(Box<Exchange>),
    /// The session was deleted.
    TellRemoved,
    /// The session's actor ends: all is written.
    Leave,
}

/// A foreground run that is to be driven.
#[derive(Debug, PartialEq)]
pub struct Launch {
    pub run_id: RunId,
    /// The user message that it answers.
    pub message_id: MessageId,
    /// Whether it may plan.
    pub plans: bool,
    /// What becomes of calls that its user would be asked about.
    pub consent: PlainConsent,
    pub from: StartPoint,
    /// What it goes by, where its start says so already.
    pub config: Option<Box<RunConfig>>,
    /// The session's, as the run begins.
    pub profile_id: String,
    /// The model that was chosen for the session, likewise.
    pub model: Option<String>,
    /// The session's last event before the run's first.
    pub before_seq: u64,
}

/// Where a run is taken up.
#[derive(Debug, PartialEq)]
pub enum StartPoint {
    /// At its start; with calls of the run before it that are made again first, and the steps of
    /// that run's plan.
    Start {
        again: Vec<ToolCall>,
        steps: ToolSteps,
    },
    /// Where its loop stood before a restart.
    Stored(Box<RunLoop>),
}

impl Default for StartPoint {
    fn default() -> Self {
        Self::Start {
            again: Vec::new(),
            steps: ToolSteps::default(),
        }
    }
}

/// A context that was summarised.
#[derive(Clone, Debug, PartialEq)]
pub struct Compacted {
    pub run_id: RunId,
    pub branch_id: u32,
    pub context: ContextState,
    /// What tells of it.
    pub event: Event,
    /// The question that was asked for it.
    pub call: Option<Box<ModelCall>>,
}

/// What was asked and answered first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    pub asked: String,
    pub answered: String,
    /// The title that stands there.
    pub title: String,
}

/// Why a command comes to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    Error(NaviError),
    /// A sentence for the model.
    Problem(String),
    /// The run is not the session's any more; it is to end without a further word.
    RunGone,
}

impl From<NaviError> for Refused {
    fn from(error: NaviError) -> Self {
        Self::Error(error)
    }
}

impl Refused {
    pub(super) fn error(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::Error(NaviError::new(code, message))
    }

    pub(super) fn shutting_down() -> Self {
        Self::Error(NaviError::said(
            ErrorCode::ShuttingDown,
            PhraseCode::DownSendAgain,
        ))
    }
}

/// Lists the replies, and has each taken out of a [`Reply`] by its type.
macro_rules! replies {
    ($($(#[$doc:meta])* $name:ident($type:ty),)+) => {
        /// What a command is answered.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Reply {
            $($(#[$doc])* $name($type),)+
        }

        $(impl TryFrom<Reply> for $type {
            type Error = Reply;

            fn try_from(reply: Reply) -> Result<Self, Reply> {
                match reply {
                    Reply::$name(value) => Ok(value),
                    other => Err(other),
                }
            }
        })+
    };
}

replies! {
    Done(()),
    /// Whether there was anything to do it to.
    Found(bool),
    Accepted(Accepted),
    Plain(PlainAnswer),
    /// The run that goes on.
    Continued(RunId),
    Branched(Branched),
    Summary(SessionSummary),
    Answered(Answered),
    /// The session's last event with it.
    Recorded(u64),
    Checkpoint(CheckpointState),
    /// A person's, or what stands for it.
    Answer(Answer),
    Todo(Vec<TodoItem>),
    Scratchpad(Scratchpad),
    Profile(Arc<Profile>),
}

/// A message that is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub message_id: MessageId,
    /// The run that answers it.
    pub run_id: RunId,
    /// It waits for the run before it.
    pub queued: bool,
    /// It had been accepted before, under the same `client_id`.
    pub duplicate: bool,
}

/// The answer of a plain run (SPEC section 3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct PlainAnswer {
    pub run_id: RunId,
    pub message_id: MessageId,
    pub content: String,
    /// False where a limit ended the run.
    pub completed: bool,
    pub context_tokens: u32,
}

/// A branch and its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Branched {
    pub branch_id: u32,
    /// The run that answers on it.
    pub run_id: RunId,
    /// The message that it answers.
    pub message_id: MessageId,
}

/// What became of an answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    Now,
    /// Another one was first.
    Before(Resolution),
    /// No run that goes asked this; the store may know it.
    Unknown,
}

/// What a run has to know before each model call.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointState {
    pub todo: Vec<TodoItem>,
    pub profile_id: String,
    /// Messages that were steered to this run: part of the conversation from here on.
    pub steered: Vec<Message>,
    /// The session's last event so far.
    pub last_seq: u64,
}
