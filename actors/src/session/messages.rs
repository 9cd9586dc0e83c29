//! What a session can be asked and told.

use std::sync::Arc;

use actix::Message as ActixMessage;
use chrono::{DateTime, Utc};
use serde::Serialize;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::sequencer::{Frame, Piece};
use crate::domain::consent::Answer;
use crate::domain::history::{self, Branch};
use crate::domain::run_loop::Record;
use crate::domain::scratchpad::ScratchpadCommand;
use crate::domain::todo::TodoCommand;
use crate::protocol::approval::{ConsentMode, Resolution};
use crate::protocol::chat::ChatRequest;
use crate::protocol::command::{CallDecision, Decision, PlainInput, UserInput};
use crate::protocol::error::NaviError;
use crate::protocol::event::ResyncReason;
use crate::protocol::ids::{ApprovalId, CallId, MessageId, Origin, RunId};
use crate::protocol::message::Message;
use crate::protocol::plan::Plan;
use crate::protocol::profile::Profile;
use crate::protocol::session::{Compression, SessionSnapshot, SessionSummary};
use crate::protocol::todo::{Scratchpad, TodoItem};
use crate::store::{Span, Store, StoreError};
use crate::supervision::Ending;
use crate::tools::ToolError;

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

/// Sends a message (`input` is validated already). Answered when it is committed.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<Accepted, NaviError>")]
pub struct Send(pub UserInput);

/// Sends a message and waits for the end of its run. Refused while another run goes.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<PlainAnswer, NaviError>")]
pub struct RunPlain(pub PlainInput);

/// Goes on from an interrupted, limited or failed run.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<RunId, NaviError>")]
pub struct ContinueRun;

/// A person says what became of a call whose outcome a crash left unknown. The first word
/// counts.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<(), NaviError>")]
pub struct ResolveCall {
    pub call_id: CallId,
    pub decision: CallDecision,
}

/// Asks the run to stop. Says whether there was one. Its end comes as an event.
#[derive(Debug, ActixMessage)]
#[rtype(result = "bool")]
pub struct StopRun;

/// Takes back a message that waits.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<(), NaviError>")]
pub struct Withdraw(pub MessageId);

/// Changes a message that waits. `content` is validated already.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<(), NaviError>")]
pub struct EditQueued {
    pub message_id: MessageId,
    pub content: String,
}

/// The session as it stands.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Outline")]
pub struct GetSnapshot;

/// A snapshot whose messages are still in the store: those of the branch that is shown with
/// an ordinal below `message_count`.
#[derive(Debug)]
pub struct Outline {
    pub session: SessionSnapshot,
    pub message_count: u64,
    pub branches: Vec<Branch>,
    /// The branch that is shown.
    pub branch_id: u32,
}

impl Outline {
    /// Reads the messages in, and tells what only they can tell: where the conversation
    /// forks, and where the part begins that the model sees word for word.
    ///
    /// # Errors
    /// As [`Store::conversation`].
    pub async fn fill(mut self, store: &Store) -> Result<SessionSnapshot, StoreError> {
        let id = self.session.summary.id;
        let mut messages = store.conversation(id, self.branch_id).await?;
        // What was committed since and not told yet is for the events to tell.
        messages.retain(|(ordinal, _)| *ordinal < self.message_count);
        let first_from = |from: u64| {
            let index = messages.partition_point(|(ordinal, _)| *ordinal < from);
            messages.get(index).map(|(_, message)| message.id)
        };
        self.session.forks = history::forks(&self.branches, self.branch_id, first_from);
        self.session.compression = self
            .branches
            .iter()
            .find(|branch| branch.id == self.branch_id)
            .and_then(|branch| {
                let summary = branch.context.summary.as_ref()?;
                Some(Compression {
                    summary: summary.content.clone().unwrap_or_default(),
                    first_kept: first_from(branch.context.start),
                })
            });
        let shown = self.branches.iter().find(|it| it.id == self.branch_id);
        for (_, message) in &mut messages {
            let call = message.tool_call_id.as_ref();
            message.decision = shown
                .zip(call)
                .and_then(|(branch, call)| branch.context.decisions.get(call).copied());
        }
        self.session.messages = messages.into_iter().map(|(_, message)| message).collect();
        Ok(self.session)
    }
}

/// What the model would be sent now.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<ChatRequest, NaviError>")]
pub struct GetContext;

/// Changes the session's row.
#[derive(Clone, Debug, PartialEq, Eq, ActixMessage)]
#[rtype(result = "Result<SessionSummary, NaviError>")]
pub enum ChangeSession {
    Rename(String),
    Pin(bool),
    TogglePin,
    /// Ends its run, marks it deleted and ends the actor.
    Delete,
}

/// Tells every tab something, whether a run goes or not. Answered when it is committed.
#[derive(Debug, ActixMessage)]
#[rtype(result = "()")]
pub struct TellNotice {
    pub code: String,
    pub message: String,
}

/// Joins the session's events.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Attached")]
pub struct Attach {
    /// The last event that the tab has. Where absent, the tab gets the running run from its start.
    pub after: Option<u64>,
    /// The epoch that the tab knows; another one gets a snapshot.
    pub epoch: Option<i64>,
}

/// What a tab gets: where it stands, and everything from here on. Both are of one moment:
/// nothing is told between them.
#[derive(Debug)]
pub struct Attached {
    pub start: Start,
    pub epoch: i64,
    /// Parts that are open, each from offset 0 up to what was told.
    pub open: Vec<Piece>,
    pub live: broadcast::Receiver<Frame>,
    /// Cancelled when that session's actor hangs: nothing more comes of it.
    pub given_up: CancellationToken,
}

/// Where a tab starts.
#[derive(Debug)]
pub enum Start {
    /// The tab is to read the log after `after`, up to and with `upto`; and of the parts that
    /// go across `after` what stands before.
    Log {
        after: u64,
        upto: u64,
        across: Vec<Span>,
    },
    /// The tab's cursor is not one of this log: a `resync` first.
    Resync {
        reason: ResyncReason,
        outline: Box<Outline>,
    },
}

/// Starts a branch of the conversation: with another text in place of a message of the user's,
/// or with another answer to it. `content` is validated already. Refused while a run goes.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<Branched, NaviError>")]
pub struct StartBranch {
    /// A message of the user's that is shown.
    pub message_id: MessageId,
    /// None where it is to be answered anew.
    pub content: Option<String>,
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

/// Shows another branch. Refused while a run goes.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<(), NaviError>")]
pub struct ShowBranch(pub u32);

/// A run is about to call its model: what happened beside it is told.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<Surroundings, RunGone>")]
pub struct Checkpoint(pub RunId);

/// What a run has to know before each model call.
#[derive(Clone, Debug)]
pub struct Surroundings {
    pub todo: Vec<TodoItem>,
    pub profile_id: String,
    /// Messages that were steered to this run: part of the conversation from here on.
    pub steered: Vec<Message>,
    /// The session's last event so far.
    pub last_seq: u64,
}

/// What the session keeps in typed form.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Notes")]
pub struct GetNotes;

/// What no compression may eat.
#[derive(Clone, Debug, actix::dev::MessageResponse)]
pub struct Notes {
    pub plan: Option<Plan>,
    pub todo: Vec<TodoItem>,
    pub scratchpad: Scratchpad,
}

/// A child run begins. Answered when that is committed and told.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<(), RunGone>")]
pub struct StartChild {
    pub origin: Origin,
    /// The `spawn_agent` call that it answers.
    pub call_id: CallId,
    pub profile_id: String,
    pub task: String,
    /// Cancelled to stop it.
    pub stop: CancellationToken,
}

/// Asks one child run to stop. Says whether there was one.
#[derive(Debug, ActixMessage)]
#[rtype(result = "bool")]
pub struct StopChild(pub RunId);

/// A tool's wish for another profile. It holds from the run's next iteration on.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<Arc<Profile>, ToolError>")]
pub struct SwitchProfile {
    pub run_id: RunId,
    pub profile_id: String,
}

/// A run's records, committed together. Answered when they are, with the session's last event.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<u64, RunGone>")]
pub struct Commit {
    pub run_id: RunId,
    pub records: Vec<Record>,
}

/// How the session stands to consent, before calls of a run begin.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<Standing, RunGone>")]
pub struct GetStanding(pub RunId);

/// See [`GetStanding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub mode: ConsentMode,
    /// When the session first read text from outside.
    pub tainted_at: Option<DateTime<Utc>>,
    /// How many requests wait for an answer.
    pub waiting: usize,
}

/// A run waits for the answer to a request of its own, which is committed. Answered when that
/// is.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<Answer, RunGone>")]
pub struct AwaitAnswer {
    pub run_id: RunId,
    pub approval_id: ApprovalId,
}

/// A person answers a request. The first answer counts.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<Answered, NaviError>")]
pub struct AnswerApproval {
    pub approval_id: ApprovalId,
    pub decision: Decision,
    /// Forbids such calls from then on; only together with a denial.
    pub forbids: bool,
    /// For the model, with a denial. It is validated already.
    pub note: Option<String>,
}

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    Now,
    /// Another one was first.
    Before(Resolution),
    /// No run that goes asked this; the store may know it.
    Unknown,
}

/// How much the session may do without asking, from here on.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<(), NaviError>")]
pub struct SetMode(pub ConsentMode);

/// A run that waits for a person is left as it stands, for the next start of the service.
#[derive(Debug, ActixMessage)]
#[rtype(result = "()")]
pub struct Park(pub RunId);

/// Text that a run streams. Answered when it is told: one is on its way at a time.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<(), RunGone>")]
pub struct Stream(pub Vec<Piece>);

/// The run is not the session's any more; it is to end without a further word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run is not the session's any more")]
pub struct RunGone;

/// A run's actor went.
#[derive(Debug, ActixMessage)]
#[rtype(result = "()")]
pub struct RunActorEnded {
    pub run_id: RunId,
    pub ending: Ending,
}

/// A tool's command to the todo list.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<Vec<TodoItem>, ToolError>")]
pub struct ChangeTodo {
    pub run_id: RunId,
    /// The run's own, which a child's may be another than the session's.
    pub profile: Arc<Profile>,
    pub command: TodoCommand,
}

/// A tool's command to the notes.
#[derive(Debug, ActixMessage)]
#[rtype(result = "Result<Scratchpad, ToolError>")]
pub struct ChangeScratchpad {
    pub run_id: RunId,
    /// The run's own.
    pub profile: Arc<Profile>,
    pub command: ScratchpadCommand,
}

/// The service shuts down: no new run; the one that goes ends as `leaving` says. Answered when
/// the session has nothing left to write.
#[derive(Debug, ActixMessage)]
#[rtype(result = "()")]
pub struct Close(pub Leaving);

/// What becomes of runs that go when the service shuts down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// How long they may go on to their next safe point.
    pub grace: std::time::Duration,
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
