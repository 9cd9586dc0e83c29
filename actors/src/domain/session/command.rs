//! What a session can be asked to do.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::transition::Compacted;
use crate::domain::history::{MessagePosition, Segment};
use crate::domain::model_choice::RunConfig;
use crate::domain::recovery::UnfinishedPart;
use crate::domain::run_loop::Record;
use crate::domain::scratchpad::ScratchpadCommand;
use crate::domain::todo::TodoCommand;
use crate::protocol::approval::ConsentMode;
use crate::protocol::command::{CallDecision, Decision, PlainConsent, PlanEdit, UserInput};
use crate::protocol::ids::{ApprovalId, CallId, MessageId, Origin, RunId};
use crate::protocol::message::Message;
use crate::protocol::people::PersonRef;
use crate::protocol::profile::Profile;
use crate::protocol::session::Shared;

/// A person's, a run's, or what came of work that the session asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    Send(Box<Incoming>),
    Withdraw(MessageId),
    EditQueued {
        message_id: MessageId,
        content: String,
        author: Option<PersonRef>,
    },
    Stop {
        /// What waits is not begun by it.
        hold: bool,
    },
    /// As `Stop`, if this is the run that goes.
    StopOnly {
        run_id: RunId,
        hold: bool,
    },
    StopChild(RunId),
    Continue {
        /// With what a stop held back, whatever the last run left.
        queue: bool,
    },
    /// What became of a call whose outcome a crash left unknown. The first word counts.
    ResolveCall {
        call_id: CallId,
        decision: CallDecision,
    },
    StartBranch(Box<BranchStart>),
    ShowBranch(u32),
    /// Validated already.
    Change(SessionChange),
    Pin(bool),
    TogglePin,
    SetMode(ConsentMode),
    /// These are in the session from here on.
    Share(Shared),
    /// `answer` is validated already.
    Answer {
        approval_id: ApprovalId,
        answer: ApprovalAnswer,
        /// Who gives it, where there are accounts.
        author: Option<PersonRef>,
    },
    /// A request's time is up.
    Expire(ApprovalId),
    EditPlan(PlanEdit),
    Notify {
        code: String,
        message: String,
    },
    Delete,
    Close(Leaving),

    Record {
        run_id: RunId,
        records: Vec<Record>,
    },
    /// A run is about to call its model.
    Checkpoint(RunId),
    StartChild(Box<ChildStart>),
    /// A run waits for the answer to a request of its own.
    AwaitAnswer {
        run_id: RunId,
        approval_id: ApprovalId,
    },
    ChangeTodo {
        run_id: RunId,
        profile: Arc<Profile>,
        command: TodoCommand,
    },
    ChangeScratchpad {
        run_id: RunId,
        profile: Arc<Profile>,
        command: ScratchpadCommand,
    },
    SwitchProfile {
        run_id: RunId,
        profile: Arc<Profile>,
    },
    /// A run is left in the store as it stands.
    Park(RunId),
    /// Nobody drives the run any more, and it did not end.
    RunDied {
        run_id: RunId,
        unfinished: Vec<UnfinishedPart>,
        /// The calls under way that only read.
        reads: HashSet<CallId>,
    },

    /// The summary with this number is there, or is not to be had.
    Summarised {
        summary: u64,
        compacted: Option<Box<Compacted>>,
    },
    TitleFound {
        title: String,
        /// The title that it takes the place of.
        instead_of: String,
    },
}

/// A message that comes, validated.
#[derive(Clone, Debug, PartialEq)]
pub struct Incoming {
    pub input: UserInput,
    /// For a plain run: what becomes of questions.
    pub plain: Option<PlainConsent>,
    /// What a run that begins with it goes by, where that is known.
    pub config: Option<Box<RunConfig>>,
    /// What the store knows under its `client_id`.
    pub stored: Option<(MessageId, RunId)>,
}

/// What a person changes of a session; what is none stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionChange {
    pub title: Option<String>,
    pub profile: Option<Arc<Profile>>,
    /// The model that its runs ask for; none inside where that is its profile's.
    pub model: Option<Option<String>>,
    pub archived: Option<bool>,
    pub tags: Option<Vec<String>>,
}

/// Where a branch is to start, as the store has it.
#[derive(Clone, Debug, PartialEq)]
pub struct BranchStart {
    pub ordinal: u64,
    pub branch_id: u32,
    pub message: Message,
    /// The path that it was looked up on.
    pub path: Vec<Segment>,
    /// The last message that both branches share.
    pub before: Option<MessagePosition>,
    /// None where the message is to be answered anew.
    pub content: Option<String>,
    /// Who has it so, where there are accounts.
    pub author: Option<PersonRef>,
}

impl BranchStart {
    /// Without another text the message itself is shared, and what follows it is not.
    #[must_use]
    pub fn forks_at(ordinal: u64, edits: bool) -> u64 {
        ordinal + u64::from(!edits)
    }
}

/// A person's answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalAnswer {
    pub decision: Decision,
    /// Why not, for the model; only with a denial.
    pub note: Option<String>,
}

impl From<Decision> for ApprovalAnswer {
    fn from(decision: Decision) -> Self {
        Self {
            decision,
            note: None,
        }
    }
}

/// A child run that begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildStart {
    pub origin: Origin,
    /// The `spawn_agent` call that it answers.
    pub call_id: CallId,
    pub profile_id: String,
    pub task: String,
}

/// What becomes of runs that go when the service shuts down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// How long they may go on to their next safe point.
    pub grace: Duration,
    pub runs: LeftRuns,
}

/// See [`Leaving`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftRuns {
    /// They are interrupted, and a person can have them continued.
    Interrupted,
    /// They are left in the store at their safe point, and go on when the service is back.
    Parked,
}
