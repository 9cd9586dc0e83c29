//! A session as a value: a command and the state as it was submitted give what is to be written,
//! told and done, as plain data. No actor, clock or store is in sight.
//!
//! What was submitted will happen in that order, so decisions are made on it ([`Session::ahead`]).
//! What people see is the same [`State`] a few changes behind: whoever drives the session applies
//! each [`Change`](change::Change) to it once that is committed, tells its events, and does its effects.

pub mod change;
pub mod command;
pub mod state;
pub mod stored;
pub mod transition;
pub mod write;

mod after_turn;
mod approvals;
mod branches;
mod children;
mod incoming;
mod leaving;
mod records;
mod recovery;
mod shares;
mod turns;

#[cfg(test)]
pub(crate) mod tests;

pub use approvals::ConsentState;
pub use recovery::Recovery;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};

use self::approvals::Answers;
use self::command::{Command, Leaving, SessionChange};
use self::leaving::Closing;
use self::state::State;
use self::stored::LoadedSession;
use self::transition::{Effect, Refused, Reply, ReplyTo, Transition};
use self::write::Write;
use crate::protocol::approval::ConsentMode;
use crate::protocol::error::ErrorCode;
use crate::protocol::event::Event;
use crate::protocol::ids::{ApprovalId, Origin, RunId, SessionId};
use crate::protocol::message::{Role, ToolCall};

/// For how many model calls in a row a part of their requests is taken to be in the store. The
/// store forgets what only older calls named, and keeps at least so many; writing a part once
/// more changes nothing.
pub const PARTS_KNOWN_FOR: usize = 100;

/// What a session goes by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// The mode of sessions where none was ever set.
    pub mode: ConsentMode,
    /// A request that nobody answers within this is denied.
    pub consent_timeout: Duration,
    /// Whether a run that a crash cut off goes on by itself where nothing is unclear.
    pub resumes: bool,
    pub compresses: bool,
    /// The part of the window that may be filled before old turns are summarised: 0 to 1.
    pub compression_threshold: f64,
    /// The window that backends are asked for, in tokens.
    pub window: u32,
}

/// The code of the notice that a stop holds back what waits, though the run ended otherwise.
pub const QUEUE_HELD: &str = "queue_held";

/// Parts of requests that are in the store, by their SHA-256: those of the calls that began on
/// this day, up to [`PARTS_KNOWN_FOR`].
#[derive(Debug, Default)]
struct KnownParts {
    day: NaiveDate,
    calls: usize,
    names: HashSet<String>,
}

/// See the module.
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    policy: Policy,
    ahead: State,
    answers: Answers,
    /// The runs that wait for an answer to their requests.
    awaiting: HashMap<ApprovalId, ReplyTo>,
    /// Who waits for the end of the foreground run.
    plain: Vec<ReplyTo>,
    closing: Option<Closing>,
    /// The run that a person asked to stop last.
    stopping: Option<RunId>,
    /// The window of the model that the last run used, in tokens.
    window: Option<u32>,
    /// The summary that is under way.
    summary: Option<u64>,
    summaries: u64,
    prompt_parts: KnownParts,
    out: Transition,
}

impl Session {
    /// A session that was just read, the same as people see it, and what a crash left open:
    /// [`Session::recover`] comes before any command.
    #[must_use]
    pub fn load(loaded: LoadedSession, policy: Policy) -> (Self, State, Option<Recovery>) {
        let recovery = Recovery::of(&loaded);
        let id = loaded.summary.id;
        let state = State::from_loaded(loaded, policy.mode);
        let session = Self {
            id,
            policy,
            ahead: state.clone(),
            answers: Answers::default(),
            awaiting: HashMap::new(),
            plain: Vec::new(),
            closing: None,
            stopping: None,
            window: None,
            summary: None,
            summaries: 0,
            prompt_parts: KnownParts::default(),
            out: Transition::default(),
        };
        (session, state, recovery)
    }

    /// The state as it was submitted.
    #[must_use]
    pub fn ahead(&self) -> &State {
        &self.ahead
    }

    /// Whether no run goes and none is to start.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.closing.is_none() && self.ahead.running().is_none()
    }

    /// Whether no run starts any more.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// The window of the model that the last run used, in tokens; none where no run was since the
    /// session was read.
    #[must_use]
    pub fn window(&self) -> Option<u32> {
        self.window
    }

    /// How it closes, once it does.
    #[must_use]
    pub fn leaving(&self) -> Option<Leaving> {
        self.closing.as_ref().and_then(|closing| closing.leaving)
    }

    /// Whether this summary is still wanted.
    #[must_use]
    pub fn wants_summary(&self, summary: u64) -> bool {
        self.summary == Some(summary)
    }

    /// The calls of the foreground run that have begun and have no result.
    #[must_use]
    pub fn calls_under_way(&self) -> Vec<&ToolCall> {
        let messages = self.ahead.run_messages.iter();
        let calls = messages.flat_map(|message| &message.tool_calls);
        calls
            .filter(|call| self.ahead.started_calls.contains_key(&call.id))
            .collect()
    }

    /// Does what a command asks. Its answer goes to `to`.
    pub fn handle(&mut self, command: Command, to: ReplyTo, now: DateTime<Utc>) -> Transition {
        if let Err(refused) = self.decide(command, to, now) {
            self.out.now.push(Effect::Reply(to, Err(refused)));
        }
        std::mem::take(&mut self.out)
    }

    fn decide(&mut self, command: Command, to: ReplyTo, now: DateTime<Utc>) -> Result<(), Refused> {
        match command {
            Command::Send(incoming) => self.take_message(*incoming, to, now)?,
            Command::Withdraw(message_id) => self.change_queue(message_id, None, to)?,
            Command::EditQueued {
                message_id,
                content,
                author,
            } => self.change_queue(message_id, Some((content, author)), to)?,
            Command::Stop { hold } => self.stop(hold, to),
            Command::StopOnly { run_id, hold } => self.stop_only(run_id, hold, to),
            Command::StopChild(run_id) => self.stop_child(run_id, to),
            Command::Continue { queue } => {
                let run_id = self.continue_with(queue, now)?;
                self.bring_back();
                self.reply(to, Reply::Continued(run_id));
            }
            Command::ResolveCall { call_id, decision } => {
                self.resolve_call(call_id, decision, to)?;
            }
            Command::StartBranch(start) => self.start_branch(*start, to, now)?,
            Command::ShowBranch(branch_id) => self.show_branch(branch_id, to)?,
            Command::Change(change) => self.change(change, to),
            Command::Pin(pinned) => self.pin(pinned, to),
            Command::TogglePin => self.pin(!self.ahead.summary.pinned, to),
            Command::SetMode(mode) => self.set_mode(mode, to)?,
            Command::Share(shared) => self.share(shared, to, now)?,
            Command::Answer {
                approval_id,
                answer,
                author,
            } => self.answer_approval(approval_id, (answer, author), to, now)?,
            Command::Expire(approval_id) => self.expire(approval_id, now),
            Command::EditPlan(edit) => self.edit_plan(edit, to, now)?,
            Command::Notify { code, message } => self.notify(code, message, to),
            Command::Delete => self.delete(to, now),
            Command::Close(leaving) => self.close(leaving, to, now),
            Command::Record { run_id, records } => self.record_all(run_id, records, to, now)?,
            Command::Checkpoint(run_id) => self.checkpoint(run_id, to, now)?,
            Command::StartChild(start) => self.start_child(*start, to, now)?,
            Command::AwaitAnswer {
                run_id,
                approval_id,
            } => self.await_answer(run_id, approval_id, to)?,
            Command::ChangeTodo {
                run_id,
                profile,
                command,
            } => self.change_todo(run_id, &profile, command, to)?,
            Command::ChangeScratchpad {
                run_id,
                profile,
                command,
            } => self.change_scratchpad(run_id, &profile, command, to)?,
            Command::SwitchProfile { run_id, profile } => {
                self.switch_profile(run_id, profile, to)?;
            }
            Command::Park(run_id) => self.park(run_id, now),
            Command::RunDied {
                run_id,
                unfinished,
                reads,
            } => self.run_died(run_id, &unfinished, &reads, now),
            Command::Summarised { summary, compacted } => {
                self.summarised(summary, compacted.map(|compacted| *compacted));
            }
            Command::TitleFound { title, instead_of } => self.title_found(title, &instead_of),
        }
        Ok(())
    }

    fn write(&mut self, write: Write) {
        if let Write::Message(message) = &write
            && message.role == Role::User
            && !message.files.is_empty()
            && self.ahead.tainted_at.is_none()
        {
            // Whoever sent a file in need not have written it.
            self.write(Write::Tainted(message.created_at));
        }
        self.ahead.apply_write(&write);
        self.out.change.writes.push(write);
    }

    fn tell(&mut self, origin: Option<Origin>, event: Event) {
        self.ahead.apply_event(origin, &event);
        self.out.change.events.push((origin, event));
    }

    /// Answers once all that was submitted is told.
    fn reply(&mut self, to: ReplyTo, reply: Reply) {
        self.out.then.push(Effect::Reply(to, Ok(reply)));
    }

    /// Answers at once, by what was submitted: what comes of the answer is written after that, if
    /// that is.
    fn reply_now(&mut self, to: ReplyTo, reply: Reply) {
        self.out.now.push(Effect::Reply(to, Ok(reply)));
    }

    /// All of it in one commit. A run that goes has the profile from its next iteration on; a
    /// model is the next run's.
    fn change(&mut self, change: SessionChange, to: ReplyTo) {
        if let Some(title) = change.title {
            self.write(Write::Title(title));
        }
        if let Some(tags) = change.tags {
            self.write(Write::Tags(tags));
        }
        match change.archived {
            Some(true) => {
                self.write(Write::Archived(true));
                self.write(Write::Pinned(false));
            }
            Some(false) => self.bring_back(),
            None => {}
        }
        let before = &self.ahead.summary;
        let profile = change.profile.filter(|it| it.id != before.profile_id);
        let model = change.model.filter(|model| *model != before.model);
        if let Some(profile) = profile {
            self.change_profile(&profile, None);
        }
        if let Some(model) = model {
            self.write(Write::Model(model.clone()));
            self.tell(None, Event::ModelChanged { model });
        }
        self.reply_row(to);
    }

    fn pin(&mut self, pinned: bool, to: ReplyTo) {
        if pinned {
            self.bring_back();
        }
        self.write(Write::Pinned(pinned));
        self.reply_row(to);
    }

    fn reply_row(&mut self, to: ReplyTo) {
        let summary = self.ahead.summary.clone();
        self.reply(to, Reply::Summary(summary));
    }

    /// Whatever a person goes on with is not put away any more.
    fn bring_back(&mut self) {
        if self.ahead.summary.archived {
            self.write(Write::Archived(false));
        }
    }

    fn notify(&mut self, code: String, message: String, to: ReplyTo) {
        let event = Event::Notice {
            code,
            message,
            phrase: None,
            is_subagent: false,
        };
        self.tell(None, event);
        self.reply(to, Reply::Done(()));
    }

    fn running_id(&self) -> Option<RunId> {
        self.ahead.running().map(|run| run.run_id)
    }

    fn origin_of(&self, run_id: RunId) -> Result<Origin, Refused> {
        self.ahead.origin_of(run_id).ok_or(Refused::RunGone)
    }

    fn busy(what_then: &str) -> Refused {
        Refused::error(
            ErrorCode::SessionBusy,
            format!("a run goes in this session; wait for its end or stop it, {what_then}"),
        )
    }
}
