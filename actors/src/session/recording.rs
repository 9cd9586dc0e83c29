//! What a run hands to its session: records to commit, text to stream, commands of its tools.

use std::sync::Arc;

use actix::{AsyncContext, Context, Handler, ResponseFuture};
use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use tokio::sync::oneshot;

use super::approvals::Owner;
use super::messages::{
    ChangeScratchpad, ChangeTodo, Checkpoint, Commit, RunGone, Stream, Surroundings, SwitchProfile,
};
use super::sequencer::{Closed, Submission};
use super::{LOG_EVERY, SessionActor};
use crate::domain::model_calls::ModelCall;
use crate::domain::run_loop::{Record, RunEnd, RunSummary};
use crate::domain::todo::TodoCommand;
use crate::domain::{scratchpad, todo};
use crate::protocol::approval::ConsentEntry;
use crate::protocol::command::SendMode;
use crate::protocol::event::Event;
use crate::protocol::ids::{ApprovalId, CallId, Origin, RunId};
use crate::protocol::message::Message;
use crate::protocol::plan::Plan;
use crate::protocol::profile::Profile;
use crate::protocol::session::QueuedMessage;
use crate::protocol::todo::{Scratchpad, TodoItem};
use crate::services::now;
use crate::store::{ConsentRow, Write};
use crate::tools::ToolError;

/// What records come to in the session's terms.
#[derive(Debug, Default)]
struct Step {
    submission: Submission,
    started: Vec<CallId>,
    /// The requests that are made with it.
    asked: Vec<ApprovalId>,
    model: Option<String>,
    over: Option<RunSummary>,
}

impl SessionActor {
    /// Commits records of a run in one step and tells them; `then` runs after that, with the
    /// number of the last event that was told.
    pub(super) fn record(
        &mut self,
        ctx: &mut Context<Self>,
        run_id: RunId,
        records: Vec<Record>,
        then: impl FnOnce(u64) + 'static,
    ) {
        let step = match self.children.origin_of(run_id) {
            Some(origin) => self.child_step(origin, records),
            None => self.step(run_id, records),
        };
        let (started, model, over) = (step.started, step.model, step.over);
        let asked = step.asked;
        self.submit_all(ctx, step.submission, move |actor, ctx| {
            for id in asked {
                actor.expire(ctx, id, actor.services.consent.timeout);
            }
            actor.state.started_calls.extend(started);
            if let (Some(model), Some(run)) = (model, actor.foreground_mut()) {
                run.model = model;
            }
            then(actor.telling.sequencer().told_seq());
            if let Some(summary) = over {
                actor.run_over(ctx, run_id, &summary);
            }
        });
    }

    /// Records of the foreground run.
    fn step(&mut self, run_id: RunId, records: Vec<Record>) -> Step {
        let now = now();
        let origin = Origin::foreground(run_id);
        let mut step = Step::default();
        let owner = self.owner();
        for record in records {
            let into = &mut step.submission;
            match record {
                Record::Event(event) => {
                    match &event {
                        Event::ToolStarted { call_id, .. } => step.started.push(call_id.clone()),
                        Event::ToolCall { call_id, .. } => self.close_call(call_id, into),
                        _ => {}
                    }
                    into.events.push((Some(origin), event));
                }
                Record::Message(message) => {
                    into.closed.push(closed_by(&message));
                    into.writes.push(Write::Message(message));
                }
                Record::Plan(plan) => self.take_plan(origin, plan, into),
                Record::ContextTokens(tokens) => into.writes.push(Write::ContextTokens(tokens)),
                Record::Context(context) => into.writes.push(Write::Context(context)),
                Record::Began { backend, model } => {
                    if let Some(run) = self.foreground() {
                        let event = Event::StreamStart {
                            message_id: run.message_id,
                            model: model.clone(),
                            profile_id: self.state.summary.profile_id.clone(),
                        };
                        into.events.push((Some(origin), event));
                    }
                    step.model = Some(model.clone());
                    into.writes.push(Write::RunModel {
                        run_id,
                        backend,
                        model,
                    });
                }
                Record::Ask(asking) => {
                    step.asked.push(asking.pending.approval_id);
                    self.approvals.ask(origin, *asking, into);
                }
                Record::Consented(entry) => into.writes.push(consented(owner, entry)),
                Record::Tainted => self.taint(into),
                Record::Called(call) => self.keep_call(run_id, call, into),
                Record::Waits(json) => into.writes.push(Write::RunLoop { run_id, json }),
                Record::Ended(summary) => {
                    self.approvals.close_all(owner, into);
                    self.children.close_all(into);
                    // Reasoning that no message came of is open to the end.
                    into.closed.push(Closed::Run(run_id));
                    into.writes.push(ended(run_id, &summary, now));
                    into.writes.push(Write::Active(now));
                    step.over = Some(summary);
                }
            }
        }
        step
    }

    /// Records of a child: its events are the session's, its conversation is not.
    fn child_step(&mut self, origin: Origin, records: Vec<Record>) -> Step {
        let mut step = Step::default();
        let into = &mut step.submission;
        let owner = self.owner();
        for record in records {
            match record {
                Record::Event(event) => {
                    if let Event::ToolCall { call_id, .. } = &event {
                        self.close_call(call_id, into);
                    }
                    self.children.heard(origin.run_id, &event);
                    into.events.push((Some(origin), event));
                }
                Record::Message(message) => into.closed.push(closed_by(&message)),
                Record::Began { backend, model } => into.writes.push(Write::RunModel {
                    run_id: origin.run_id,
                    backend,
                    model,
                }),
                Record::Ended(summary) => {
                    into.writes.push(ended(origin.run_id, &summary, now()));
                    let completed = summary.end == RunEnd::Answered;
                    let family = self.children.family(origin.run_id);
                    self.approvals.close_runs(&family, owner, into);
                    self.children.ended(origin.run_id, completed, into);
                }
                Record::Ask(asking) => {
                    step.asked.push(asking.pending.approval_id);
                    self.approvals.ask(origin, *asking, into);
                }
                Record::Consented(entry) => into.writes.push(consented(owner, entry)),
                // What a child read, its parent is told of.
                Record::Tainted => self.taint(into),
                Record::Called(call) => self.keep_call(origin.run_id, call, into),
                Record::Plan(_)
                | Record::ContextTokens(_)
                | Record::Context(_)
                | Record::Waits(_) => {}
            }
        }
        step
    }

    /// A call has its result: whatever of it was still open is closed before that is told.
    fn close_call(&mut self, call_id: &CallId, into: &mut Submission) {
        let owner = self.owner();
        self.approvals.close_for(call_id, owner, into);
        if let Some(child) = self.children.answering(call_id) {
            let family = self.children.family(child);
            self.approvals.close_runs(&family, owner, into);
        }
        self.children.close_for(call_id, into);
    }

    /// The session has read text from outside, and will always have.
    pub(super) fn taint(&self, into: &mut Submission) {
        if self.state.tainted_at.is_none() {
            into.writes.push(Write::Tainted(now()));
        }
    }

    /// A model call came to its end. What its request has in common with others is written once.
    pub(super) fn keep_call(
        &mut self,
        run_id: RunId,
        mut call: Box<ModelCall>,
        into: &mut Submission,
    ) {
        call.after_seq
            .get_or_insert_with(|| self.telling.sequencer().last_seq());
        let known = &mut self.prompt_parts;
        call.prompt
            .parts
            .retain(|part| known.insert(part.sha256.clone()));
        into.writes.push(Write::ModelCall { run_id, call });
    }

    /// A plan becomes the todo list, a step an item.
    fn take_plan(&mut self, origin: Origin, plan: Plan, into: &mut Submission) {
        let texts = plan.steps.iter().map(|step| step.text.clone()).collect();
        match todo::apply(&self.draft.todo, TodoCommand::Replace { texts }, false) {
            Ok(items) => {
                self.draft.todo.clone_from(&items);
                into.writes.push(Write::Todo(items.clone()));
                let event = Event::TodoUpdated {
                    items,
                    is_subagent: origin.is_subagent(),
                };
                into.events.push((Some(origin), event));
            }
            Err(problem) => tracing::warn!(problem, "a plan did not fit the todo list"),
        }
        into.writes.push(Write::Plan(Some(plan)));
    }

    /// Sees to it that streamed text reaches the log before long.
    fn log_soon(&mut self, ctx: &mut Context<Self>) {
        if self.log_timer.is_none() && self.telling.sequencer().has_unlogged() {
            self.log_timer = Some(ctx.run_later(LOG_EVERY, |actor, ctx| {
                actor.log_timer = None;
                actor.telling.log_chunks();
                actor.advance(ctx);
            }));
        }
    }

    fn change<T: Clone + 'static>(
        &mut self,
        ctx: &mut Context<Self>,
        run_id: RunId,
        events: Vec<Event>,
        write: Write,
        changed: T,
    ) -> ResponseFuture<Result<T, ToolError>> {
        let (tx, rx) = oneshot::channel();
        self.submit(ctx, Some(run_id), events, vec![write], move |_, _| {
            // The tool may have been stopped meanwhile.
            let _ = tx.send(changed);
        });
        Box::pin(rx.map(|done| done.map_err(|_| lost())))
    }
}

impl Handler<Commit> for SessionActor {
    type Result = ResponseFuture<Result<u64, RunGone>>;

    fn handle(&mut self, commit: Commit, ctx: &mut Self::Context) -> Self::Result {
        if self.origin_of(commit.run_id).is_none() {
            return Box::pin(async { Err(RunGone) });
        }
        let (tx, rx) = oneshot::channel();
        self.record(ctx, commit.run_id, commit.records, move |last_seq| {
            // The run may have died meanwhile.
            let _ = tx.send(last_seq);
        });
        Box::pin(rx.map(|done| done.map_err(|_| RunGone)))
    }
}

impl Handler<Stream> for SessionActor {
    type Result = ResponseFuture<Result<(), RunGone>>;

    fn handle(&mut self, Stream(pieces): Stream, ctx: &mut Self::Context) -> Self::Result {
        fail::fail_point!("session::stream");
        let now = now();
        for piece in pieces {
            if self.origin_of(piece.origin.run_id).is_none() {
                self.tell(ctx);
                return Box::pin(async { Err(RunGone) });
            }
            self.telling.delta(piece, now);
        }
        self.tell(ctx);
        // Text that filled a chunk is in the backlog now.
        self.advance(ctx);
        self.log_soon(ctx);
        if !self.telling.sequencer().is_congested() {
            return Box::pin(async { Ok(()) });
        }
        // The log is slower than the model: so is the run from here on, and the backend's socket.
        let (tx, rx) = oneshot::channel();
        self.when_settled(ctx, move |_, _| {
            // The run may have died meanwhile.
            let _ = tx.send(());
        });
        Box::pin(rx.map(|done| done.map_err(|_| RunGone)))
    }
}

impl Handler<ChangeTodo> for SessionActor {
    type Result = ResponseFuture<Result<Vec<TodoItem>, ToolError>>;

    fn handle(&mut self, change: ChangeTodo, ctx: &mut Self::Context) -> Self::Result {
        if self.origin_of(change.run_id).is_none() {
            return Box::pin(async { Err(lost()) });
        }
        let step_validation = change.profile.flags.step_validation_enabled;
        match todo::apply(&self.draft.todo, change.command, step_validation) {
            Err(problem) => Box::pin(async { Err(ToolError(problem)) }),
            Ok(items) if items == self.draft.todo => Box::pin(async { Ok(items) }),
            Ok(items) => {
                self.draft.todo.clone_from(&items);
                let event = Event::TodoUpdated {
                    items: items.clone(),
                    is_subagent: false,
                };
                let write = Write::Todo(items.clone());
                self.change(ctx, change.run_id, vec![event], write, items)
            }
        }
    }
}

impl Handler<ChangeScratchpad> for SessionActor {
    type Result = ResponseFuture<Result<Scratchpad, ToolError>>;

    fn handle(&mut self, change: ChangeScratchpad, ctx: &mut Self::Context) -> Self::Result {
        if self.origin_of(change.run_id).is_none() {
            return Box::pin(async { Err(lost()) });
        }
        let sections = &change.profile.scratchpad_sections;
        match scratchpad::apply(&self.draft.scratchpad, change.command, sections) {
            Err(problem) => Box::pin(async { Err(ToolError(problem)) }),
            Ok(notes) if notes == self.draft.scratchpad => Box::pin(async { Ok(notes) }),
            Ok(notes) => {
                self.draft.scratchpad.clone_from(&notes);
                let write = Write::Scratchpad(notes.clone());
                self.change(ctx, change.run_id, Vec::new(), write, notes)
            }
        }
    }
}

impl Handler<SwitchProfile> for SessionActor {
    type Result = ResponseFuture<Result<Arc<Profile>, ToolError>>;

    fn handle(&mut self, switch: SwitchProfile, ctx: &mut Self::Context) -> Self::Result {
        if self
            .foreground()
            .is_none_or(|run| run.run_id != switch.run_id)
        {
            return Box::pin(async {
                Err(ToolError(
                    "only the conversation itself can change its profile".to_owned(),
                ))
            });
        }
        let profile = match self.services.profiles.find(&switch.profile_id) {
            Ok(profile) => profile,
            Err(error) => return Box::pin(async { Err(ToolError(error.message)) }),
        };
        if self.state.summary.profile_id == profile.id {
            let name = profile.name.clone();
            return Box::pin(async move {
                Err(ToolError(format!(
                    "you are {name} already; go on with the task"
                )))
            });
        }
        let event = Event::ProfileSwitched {
            profile_id: profile.id.clone(),
            profile_name: profile.name.clone(),
        };
        let write = Write::Profile(profile.id.clone());
        self.change(ctx, switch.run_id, vec![event], write, profile)
    }
}

impl Handler<Checkpoint> for SessionActor {
    type Result = ResponseFuture<Result<Surroundings, RunGone>>;

    fn handle(&mut self, Checkpoint(run_id): Checkpoint, ctx: &mut Self::Context) -> Self::Result {
        let Some(origin) = self.origin_of(run_id) else {
            return Box::pin(async { Err(RunGone) });
        };
        let mut submission = Submission::default();
        let mut steered = Vec::new();
        if !origin.is_subagent() {
            let waiting = self.state.queue.iter();
            for queued in waiting.filter(|queued| queued.mode == SendMode::Steer) {
                let message = queued_message(queued, run_id);
                submission.events.push((
                    Some(origin),
                    Event::MessageSteered {
                        message_id: queued.message_id,
                    },
                ));
                submission.writes.push(Write::Dequeue(queued.message_id));
                submission.writes.push(Write::Message(message.clone()));
                steered.push(message);
            }
        }
        self.steered
            .extend(steered.iter().map(|message| message.id));
        let (tx, rx) = oneshot::channel();
        self.submit_all(ctx, submission, move |actor, _| {
            for message in &steered {
                actor.steered.remove(&message.id);
            }
            // The run may have died meanwhile.
            let _ = tx.send(Surroundings {
                todo: actor.draft.todo.clone(),
                profile_id: actor.state.summary.profile_id.clone(),
                steered,
                last_seq: actor.telling.sequencer().told_seq(),
            });
        });
        Box::pin(rx.map(|done| done.map_err(|_| RunGone)))
    }
}

/// The message that a waiting one becomes.
pub(super) fn queued_message(queued: &QueuedMessage, run_id: RunId) -> Message {
    let mut message = Message::user(queued.message_id, run_id, queued.content.clone(), now());
    message.images.clone_from(&queued.images);
    message.files.clone_from(&queued.files);
    message.client_id.clone_from(&queued.client_id);
    message
}

/// The streamed text that a message puts an end to.
fn closed_by(message: &Message) -> Closed {
    match &message.tool_call_id {
        Some(call_id) => Closed::Output(call_id.clone()),
        None => Closed::Message(message.id),
    }
}

fn ended(run_id: RunId, summary: &RunSummary, at: DateTime<Utc>) -> Write {
    Write::RunEnded {
        run_id,
        state: summary.end.state(),
        reason: summary.end.reason(),
        iterations: summary.iterations,
        prompt_tokens: summary.prompt_tokens,
        completion_tokens: summary.completion_tokens,
        leaked_calls: summary.leaked_calls,
        at,
    }
}

fn consented(owner: Owner, entry: ConsentEntry) -> Write {
    Write::Consented(ConsentRow {
        user_id: owner.user_id,
        entry,
    })
}

fn lost() -> ToolError {
    ToolError("this could not be stored; nothing was changed".to_owned())
}
