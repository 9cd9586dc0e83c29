//! What a run hands to its session: records to commit, text to stream, commands of its tools.

use actix::{AsyncContext, Context, Handler, ResponseFuture};
use futures_util::FutureExt;
use tokio::sync::oneshot;

use super::messages::{ChangeScratchpad, ChangeTodo, Commit, RunGone, Stream};
use super::{LOG_EVERY, SessionActor};
use crate::domain::run_loop::{Record, RunSummary};
use crate::domain::{scratchpad, todo};
use crate::protocol::event::Event;
use crate::protocol::ids::{CallId, RunId};
use crate::protocol::todo::{Scratchpad, TodoItem};
use crate::services::now;
use crate::store::Write;
use crate::tools::ToolError;

/// What records come to in the session's terms.
#[derive(Debug, Default)]
struct Step {
    events: Vec<Event>,
    writes: Vec<Write>,
    started: Vec<CallId>,
    model: Option<String>,
    over: Option<RunSummary>,
}

impl SessionActor {
    /// Commits records of a run in one step and tells them; `then` runs after that.
    pub(super) fn record(
        &mut self,
        ctx: &mut Context<Self>,
        run_id: RunId,
        records: Vec<Record>,
        then: impl FnOnce() + 'static,
    ) {
        let step = self.step(run_id, records);
        let (started, model, over) = (step.started, step.model, step.over);
        self.submit(
            ctx,
            Some(run_id),
            step.events,
            step.writes,
            move |actor, ctx| {
                actor.state.started_calls.extend(started);
                if let (Some(model), Some(run)) = (model, actor.foreground_mut()) {
                    run.model = model;
                }
                then();
                if let Some(summary) = over {
                    actor.run_over(ctx, run_id, &summary);
                }
            },
        );
    }

    fn step(&self, run_id: RunId, records: Vec<Record>) -> Step {
        let now = now();
        let mut step = Step::default();
        for record in records {
            match record {
                Record::Event(event) => {
                    if let Event::ToolStarted { call_id, .. } = &event {
                        step.started.push(call_id.clone());
                    }
                    step.events.push(event);
                }
                Record::Message(message) => step.writes.push(Write::Message(message)),
                Record::ContextTokens(tokens) => step.writes.push(Write::ContextTokens(tokens)),
                Record::Began { backend, model } => {
                    if let Some(run) = self.foreground() {
                        step.events.push(Event::StreamStart {
                            message_id: run.message_id,
                            model: model.clone(),
                            profile_id: self.state.summary.profile_id.clone(),
                        });
                    }
                    step.model = Some(model.clone());
                    step.writes.push(Write::RunModel {
                        run_id,
                        backend,
                        model,
                    });
                }
                Record::Ended(summary) => {
                    step.writes.push(Write::RunEnded {
                        run_id,
                        state: summary.end.state(),
                        reason: summary.end.reason(),
                        iterations: summary.iterations,
                        prompt_tokens: summary.prompt_tokens,
                        completion_tokens: summary.completion_tokens,
                        at: now,
                    });
                    step.writes.push(Write::Active(now));
                    step.over = Some(summary);
                }
            }
        }
        step
    }

    fn is_foreground(&self, run_id: RunId) -> bool {
        self.foreground().is_some_and(|run| run.run_id == run_id)
    }

    /// Sees to it that streamed text reaches the log before long.
    fn log_soon(&mut self, ctx: &mut Context<Self>) {
        if self.log_timer.is_none() && self.sequencer.has_unlogged() {
            self.log_timer = Some(ctx.run_later(LOG_EVERY, |actor, ctx| {
                actor.log_timer = None;
                actor.sequencer.log_chunks();
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
    type Result = ResponseFuture<Result<(), RunGone>>;

    fn handle(&mut self, commit: Commit, ctx: &mut Self::Context) -> Self::Result {
        if !self.is_foreground(commit.run_id) {
            return Box::pin(async { Err(RunGone) });
        }
        let (tx, rx) = oneshot::channel();
        self.record(ctx, commit.run_id, commit.records, move || {
            // The run may have died meanwhile.
            let _ = tx.send(());
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
            if !self.is_foreground(piece.run_id) {
                return Box::pin(async { Err(RunGone) });
            }
            let told = self.sequencer.delta(piece, now);
            self.tell(told, ctx);
        }
        // Text that filled a chunk is in the backlog now.
        self.advance(ctx);
        self.log_soon(ctx);
        if !self.sequencer.is_congested() {
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
        if !self.is_foreground(change.run_id) {
            return Box::pin(async { Err(lost()) });
        }
        match todo::apply(&self.draft.todo, change.command) {
            Err(problem) => Box::pin(async { Err(ToolError(problem)) }),
            Ok(items) if items == self.draft.todo => Box::pin(async { Ok(items) }),
            Ok(items) => {
                self.draft.todo.clone_from(&items);
                let event = Event::TodoUpdated {
                    items: items.clone(),
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
        if !self.is_foreground(change.run_id) {
            return Box::pin(async { Err(lost()) });
        }
        let sections = self
            .services
            .profiles
            .find(&self.state.summary.profile_id)
            .map(|profile| profile.scratchpad_sections.clone())
            .unwrap_or_default();
        match scratchpad::apply(&self.draft.scratchpad, change.command, &sections) {
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

fn lost() -> ToolError {
    ToolError("this could not be stored; nothing was changed".to_owned())
}
