//! Turns: a run starts, it ends, the next one starts.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::change::Closed;
use super::records::ended;
use super::transition::{Effect, Launch, PlainAnswer, Refused, Reply, ReplyTo, StartPoint};
use super::write::{RunRow, Write};
use super::{QUEUE_HELD, Session};
use crate::domain::model_choice::RunConfig;
use crate::domain::planning::ToolSteps;
use crate::domain::recovery::{self, DeadRun, UnfinishedPart};
use crate::domain::run_loop::{RunEnd, RunSummary};
use crate::protocol::command::PlainConsent;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::Event;
use crate::protocol::ids::{CallId, MessageId, Origin, RunId};
use crate::protocol::message::{Role, ToolCall};
use crate::protocol::phrase::PhraseCode;

/// A foreground run that is about to begin.
pub(super) struct NewRun {
    pub(super) run_id: RunId,
    /// The user message that it answers.
    pub(super) message_id: MessageId,
    /// Whether it may plan: a plain run does not.
    pub(super) plans: bool,
    /// What becomes of calls that its user would be asked about.
    pub(super) consent: PlainConsent,
    /// Calls of the run that it goes on from, to be made again first.
    pub(super) again: Vec<ToolCall>,
    /// Steps of the plan that it goes on from.
    pub(super) steps: ToolSteps,
    /// What it goes by, where that is known.
    pub(super) config: Option<Box<RunConfig>>,
}

impl NewRun {
    /// The streamed run of a turn.
    pub(super) fn turn(run_id: RunId, message_id: MessageId) -> Self {
        Self {
            run_id,
            message_id,
            plans: true,
            consent: PlainConsent::Ask,
            again: Vec::new(),
            steps: ToolSteps::default(),
            config: None,
        }
    }
}

impl Session {
    /// From here on the session has a run, though nothing of it is told yet.
    pub(super) fn begin(&mut self, new: NewRun, now: DateTime<Utc>) {
        let NewRun {
            run_id,
            message_id,
            plans,
            consent,
            again,
            steps,
            config,
        } = new;
        // What it would summarise, the new run looks at itself.
        self.drop_summary();
        self.hold(false);
        if let Some(config) = &config {
            self.window = Some(config.window);
        }
        let (backend, model) = config.as_ref().map_or_else(Default::default, |config| {
            let choice = &config.choice;
            (choice.kind.as_str().to_owned(), choice.model.name.clone())
        });
        let launch = Launch {
            run_id,
            message_id,
            // In an ephemeral session a plan would be for nobody.
            plans: plans && !self.ahead.summary.ephemeral,
            consent: self.answerable(consent),
            from: StartPoint::Start { again, steps },
            config,
            profile_id: self.ahead.summary.profile_id.clone(),
            model: self.ahead.summary.model.clone(),
            before_seq: self.ahead.last_seq,
        };
        self.write(Write::RunStarted(RunRow {
            run_id,
            parent_run_id: None,
            call_id: None,
            message_id,
            profile_id: self.ahead.summary.profile_id.clone(),
            backend,
            model,
            started_at: now,
        }));
        self.out.then.push(Effect::Launch(Box::new(launch)));
    }

    /// What becomes of calls that a person would be asked about, where it is to be `consent`.
    /// Nobody sees an ephemeral session: nobody could answer.
    pub(super) fn answerable(&self, consent: PlainConsent) -> PlainConsent {
        match consent {
            PlainConsent::Ask if self.ahead.summary.ephemeral => PlainConsent::Deny,
            consent => consent,
        }
    }

    /// The foreground run ended: who waits for it is answered. [`Session::next`] follows.
    pub(super) fn end_run(&mut self, run_id: RunId, summary: &RunSummary, now: DateTime<Utc>) {
        self.close_approvals(|_| true, now);
        self.answers.clear();
        self.close_children(now);
        // Reasoning that no message came of is open to the end.
        self.out.change.closed.push(Closed::Run(run_id));
        for to in std::mem::take(&mut self.plain) {
            let answer = self.plain_answer(run_id, &summary.end);
            let answer = answer.map(Reply::Plain).map_err(Refused::Error);
            self.out.then.push(Effect::Reply(to, answer));
        }
        if self.ahead.is_held() && summary.end != RunEnd::Stopped {
            // It ended otherwise as it was stopped, and looks so: what waits is not begun even so.
            self.tell(None, Event::notice(QUEUE_HELD, PhraseCode::QueueHeld));
        }
        self.out.then.push(Effect::Release(run_id));
        self.after_turn(run_id, &summary.end);
        self.write(ended(run_id, summary, now));
        self.write(Write::Active(now));
    }

    /// Goes on with what waits, if nothing goes: the next message, or the session's own end.
    pub(super) fn next(&mut self, now: DateTime<Utc>) {
        if self.closing.is_some() {
            self.leave_when_done(now);
            return;
        }
        if self.ahead.running().is_some() || self.ahead.held {
            return;
        }
        let Some(queued) = self.ahead.queue.front().cloned() else {
            return;
        };
        let (message_id, run_id) = (queued.message_id, queued.run_id);
        self.write(Write::Dequeue(message_id));
        let message = self.message_of(queued, run_id, now);
        self.write(Write::Message(Arc::new(message)));
        self.write(Write::Active(now));
        self.begin(NewRun::turn(run_id, message_id), now);
    }

    /// Starts the run that goes on from the last one: with all that was done and said so far,
    /// and first with the calls that a crash cut off and that may be made again.
    ///
    /// # Errors
    /// Where there is nothing to go on from.
    pub(super) fn go_on(
        &mut self,
        events: Vec<Event>,
        now: DateTime<Utc>,
    ) -> Result<RunId, Refused> {
        let can_continue = self.is_idle() && self.ahead.can_continue();
        let Some(last) = self.ahead.last_run.clone().filter(|_| can_continue) else {
            return Err(Refused::error(
                ErrorCode::NothingToContinue,
                "there is no interrupted, limited or failed run to go on from, or another one goes",
            ));
        };
        let run_id = RunId::new();
        let decisions = &self.ahead.context().decisions;
        let plan = self.ahead.plan.as_ref();
        let mut steps = plan.map_or_else(ToolSteps::default, |plan| ToolSteps::of(&plan.steps));
        steps.on_todo(&self.ahead.todo);
        let new = NewRun {
            // It goes on from the plan that there is.
            plans: false,
            steps,
            again: recovery::calls_again(&self.ahead.run_messages, decisions),
            ..NewRun::turn(run_id, last.message_id)
        };
        self.write(Write::Active(now));
        self.begin(new, now);
        for event in events {
            self.tell(Some(Origin::foreground(run_id)), event);
        }
        Ok(run_id)
    }

    /// Goes on from the last run, or with what a stop held back: with that alone where `queue` says so.
    pub(super) fn continue_with(
        &mut self,
        queue: bool,
        now: DateTime<Utc>,
    ) -> Result<RunId, Refused> {
        if queue {
            return self.release_queue(now).ok_or_else(|| {
                Refused::error(
                    ErrorCode::NothingToContinue,
                    "no message is held back by a stop, or a run goes",
                )
            });
        }
        self.go_on(Vec::new(), now)
            .or_else(|refused| self.release_queue(now).ok_or(refused))
    }

    /// Begins what a stop held back. The run that does, if there is any.
    fn release_queue(&mut self, now: DateTime<Utc>) -> Option<RunId> {
        if !(self.is_idle() && self.ahead.is_held()) {
            return None;
        }
        self.hold(false);
        self.next(now);
        self.running_id()
    }

    /// Cancels the run that goes. With `hold`, nothing begins by itself from here on: not even where
    /// the run comes to its end before it is cut off, or its process does.
    pub(super) fn stop(&mut self, hold: bool, to: ReplyTo) {
        let run_id = self.running_id();
        let found = Reply::Found(run_id.is_some());
        self.out.now.extend(run_id.map(Effect::Cancel));
        self.stopping = run_id;
        if hold && run_id.is_some() {
            self.hold(true);
            // Whoever is told so may rely on it, whatever comes.
            self.reply(to, found);
        } else {
            self.reply_now(to, found);
        }
    }

    pub(super) fn stop_only(&mut self, run_id: RunId, hold: bool, to: ReplyTo) {
        if self.running_id() == Some(run_id) {
            self.stop(hold, to);
        } else {
            self.reply_now(to, Reply::Found(false));
        }
    }

    /// Whether a person asked this run to stop.
    pub(super) fn is_stopping(&self, run_id: RunId) -> bool {
        self.stopping == Some(run_id)
    }

    pub(super) fn hold(&mut self, held: bool) {
        if self.ahead.held != held {
            self.write(Write::Held(held));
        }
    }

    /// The foreground run's actor died.
    pub(super) fn run_died(
        &mut self,
        run_id: RunId,
        unfinished: &[UnfinishedPart],
        reads: &HashSet<CallId>,
        now: DateTime<Utc>,
    ) {
        if self.running_id() != Some(run_id) {
            return;
        }
        let end = if self.is_stopping(run_id) || self.ahead.held {
            RunEnd::Stopped
        } else {
            RunEnd::Failed(NaviError::said(
                ErrorCode::RunFailed,
                PhraseCode::RunMistaken,
            ))
        };
        self.close_dead_run(run_id, unfinished, reads, end, now);
        self.next(now);
    }

    /// Gives a run that nobody drives any more its end.
    pub(super) fn close_dead_run(
        &mut self,
        run_id: RunId,
        unfinished: &[UnfinishedPart],
        reads: &HashSet<CallId>,
        end: RunEnd,
        now: DateTime<Utc>,
    ) {
        let dead = DeadRun {
            run_id,
            messages: &self.ahead.run_messages,
            unfinished,
            started: &self.ahead.started_calls,
            reads,
            used: self.ahead.running().map(|run| run.used).unwrap_or_default(),
        };
        for record in recovery::close(&dead, end, now) {
            self.record(Origin::foreground(run_id), record, now);
        }
    }

    /// What a plain run's sender is told of its end.
    fn plain_answer(&self, run_id: RunId, end: &RunEnd) -> Result<PlainAnswer, NaviError> {
        if let RunEnd::Failed(error) = end {
            return Err(error.clone());
        }
        let mut messages = self.ahead.run_messages.iter().rev();
        let last = messages.find(|message| message.role == Role::Assistant);
        Ok(PlainAnswer {
            run_id,
            message_id: last.map_or_else(MessageId::new, |message| message.id),
            content: last
                .and_then(|message| message.content.clone())
                .unwrap_or_default(),
            completed: *end == RunEnd::Answered,
            context_tokens: self.ahead.summary.context_token_count,
        })
    }
}
