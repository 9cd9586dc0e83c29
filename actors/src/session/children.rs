//! The child runs of a session's foreground run, while they go.
//!
//! A child's conversation is not stored; its events stand in the session's log. Whatever
//! ends a child, its frame is closed before the result of the call that asked for it is told.

use std::collections::HashMap;

use actix::{Context, Handler, ResponseFuture};
use futures_util::FutureExt;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::SessionActor;
use super::messages::{RunGone, StartChild, StopChild};
use super::sequencer::{Closed, Submission};
use crate::domain::run_loop::OUTCOME_UNKNOWN;
use crate::protocol::event::Event;
use crate::protocol::ids::{CallId, Origin, RunId};
use crate::protocol::message::ToolOutcome;
use crate::protocol::session::RunState;
use crate::services::now;
use crate::store::{ChildCall, RunRow, Write};

/// Those that go.
#[derive(Debug, Default)]
pub(super) struct Children(HashMap<RunId, Child>);

#[derive(Debug)]
struct Child {
    origin: Origin,
    /// The call that it answers.
    call_id: CallId,
    stop: CancellationToken,
    /// Its own calls that have begun and have no result.
    open_calls: Vec<OpenCall>,
}

#[derive(Debug)]
struct OpenCall {
    call_id: CallId,
    tool: String,
    args: Value,
}

impl Children {
    pub(super) fn origin_of(&self, run_id: RunId) -> Option<Origin> {
        self.0.get(&run_id).map(|child| child.origin)
    }

    /// Keeps in mind which calls of a child are open.
    pub(super) fn heard(&mut self, run_id: RunId, event: &Event) {
        let Some(child) = self.0.get_mut(&run_id) else {
            return;
        };
        match event {
            Event::ToolStarted {
                tool,
                args,
                call_id,
                ..
            } => child.open_calls.push(OpenCall {
                call_id: call_id.clone(),
                tool: tool.clone(),
                args: args.clone(),
            }),
            Event::ToolCall { call_id, .. } => {
                child.open_calls.retain(|open| open.call_id != *call_id);
            }
            _ => {}
        }
    }

    /// A run and all that were started below it.
    pub(super) fn family(&self, run_id: RunId) -> Vec<RunId> {
        let mut family = vec![run_id];
        let mut at = 0;
        while let Some(parent) = family.get(at).copied() {
            let children = self.0.values().map(|child| child.origin);
            let children = children.filter(|origin| origin.parent_run_id == Some(parent));
            family.extend(children.map(|origin| origin.run_id));
            at += 1;
        }
        family
    }

    /// The child that answers this call, if it still goes.
    pub(super) fn answering(&self, call_id: &CallId) -> Option<RunId> {
        self.0
            .values()
            .find(|child| child.call_id == *call_id)
            .map(|child| child.origin.run_id)
    }

    /// A child ended in order: its frame is closed.
    pub(super) fn ended(&mut self, run_id: RunId, completed: bool, into: &mut Submission) {
        let Some(child) = self.0.remove(&run_id) else {
            return;
        };
        self.close_below(run_id, into);
        into.closed.push(Closed::Run(run_id));
        into.events.push((
            Some(child.origin),
            Event::SubagentFinished {
                call_id: child.call_id,
                completed_normally: completed,
                is_subagent: true,
            },
        ));
    }

    /// The result of a call is about to be told: what is left of its child goes before it.
    pub(super) fn close_for(&mut self, call_id: &CallId, into: &mut Submission) {
        if let Some(run_id) = self.answering(call_id) {
            self.close(run_id, into);
        }
    }

    /// Closes all that is left.
    pub(super) fn close_all(&mut self, into: &mut Submission) {
        while let Some(run_id) = self.0.keys().next().copied() {
            self.close(run_id, into);
        }
    }

    fn close_below(&mut self, run_id: RunId, into: &mut Submission) {
        let below = |child: &&Child| child.origin.parent_run_id == Some(run_id);
        while let Some(child) = self.0.values().find(below) {
            let run_id = child.origin.run_id;
            self.close(run_id, into);
        }
    }

    /// Closes a child that did not end by itself, and all that it had started.
    fn close(&mut self, run_id: RunId, into: &mut Submission) {
        self.close_below(run_id, into);
        let Some(child) = self.0.get_mut(&run_id) else {
            return;
        };
        child.stop.cancel();
        for open in child.open_calls.drain(..) {
            into.events.push((
                Some(child.origin),
                Event::ToolCall {
                    tool: open.tool,
                    args: open.args,
                    result: "ended with its subagent; it may have taken effect in part".to_owned(),
                    success: false,
                    outcome: ToolOutcome::Stopped,
                    is_subagent: true,
                    call_id: open.call_id,
                    duration_ms: 0,
                    files: Vec::new(),
                },
            ));
        }
        into.writes.push(left(run_id));
        self.ended(run_id, false, into);
    }
}

/// The row of a child that did not end by itself.
fn left(run_id: RunId) -> Write {
    Write::RunEnded {
        run_id,
        state: RunState::Stopped,
        reason: None,
        iterations: 0,
        prompt_tokens: 0,
        completion_tokens: 0,
        leaked_calls: 0,
        at: now(),
    }
}

impl SessionActor {
    /// The place of a run that goes: the foreground run, or a child.
    pub(super) fn origin_of(&self, run_id: RunId) -> Option<Origin> {
        let foreground = self.foreground().filter(|run| run.run_id == run_id);
        foreground
            .map(|run| Origin::foreground(run.run_id))
            .or_else(|| self.children.origin_of(run_id))
    }
}

impl SessionActor {
    /// Closes the frames of children that a crash cut off, innermost first.
    pub(super) fn close_lost_children(
        &mut self,
        ctx: &mut Context<Self>,
        lost: Vec<RunRow>,
        calls: &[ChildCall],
    ) {
        let mut submission = Submission::default();
        for row in lost.into_iter().rev() {
            submission.writes.push(left(row.run_id));
            let origin = Origin {
                run_id: row.run_id,
                parent_run_id: row.parent_run_id,
            };
            for call in calls.iter().filter(|call| call.run_id == row.run_id) {
                let event = Event::ToolCall {
                    tool: call.tool.clone(),
                    args: call.args.clone(),
                    result: OUTCOME_UNKNOWN.to_owned(),
                    success: false,
                    outcome: ToolOutcome::OutcomeUnknown,
                    is_subagent: true,
                    call_id: call.call_id.clone(),
                    duration_ms: 0,
                    files: Vec::new(),
                };
                submission.events.push((Some(origin), event));
            }
            if let Some(call_id) = row.call_id {
                let event = Event::SubagentFinished {
                    call_id,
                    completed_normally: false,
                    is_subagent: true,
                };
                submission.events.push((Some(origin), event));
            }
        }
        self.submit_all(ctx, submission, |_, _| {});
    }
}

impl Handler<StartChild> for SessionActor {
    type Result = ResponseFuture<Result<(), RunGone>>;

    fn handle(&mut self, start: StartChild, ctx: &mut Context<Self>) -> Self::Result {
        let origin = start.origin;
        let parent = origin
            .parent_run_id
            .and_then(|parent| self.origin_of(parent));
        let Some(message_id) = parent.and(self.foreground().map(|run| run.message_id)) else {
            return Box::pin(async { Err(RunGone) });
        };
        let row = RunRow {
            run_id: origin.run_id,
            parent_run_id: origin.parent_run_id,
            message_id,
            call_id: Some(start.call_id.clone()),
            profile_id: start.profile_id.clone(),
            backend: String::new(),
            model: String::new(),
            started_at: now(),
        };
        self.children.0.insert(
            origin.run_id,
            Child {
                origin,
                call_id: start.call_id.clone(),
                stop: start.stop,
                open_calls: Vec::new(),
            },
        );
        let event = Event::SubagentStarted {
            call_id: start.call_id,
            profile_id: start.profile_id,
            task: start.task,
            is_subagent: true,
        };
        let (tx, rx) = oneshot::channel();
        let submission = Submission {
            events: vec![(Some(origin), event)],
            writes: vec![Write::RunStarted(row)],
            closed: Vec::new(),
        };
        self.submit_all(ctx, submission, move |_, _| {
            // The parent may have ended meanwhile.
            let _ = tx.send(());
        });
        Box::pin(rx.map(|done| done.map_err(|_| RunGone)))
    }
}

impl Handler<StopChild> for SessionActor {
    type Result = bool;

    fn handle(&mut self, StopChild(run_id): StopChild, _: &mut Context<Self>) -> bool {
        match self.children.0.get(&run_id) {
            Some(child) => {
                child.stop.cancel();
                true
            }
            None => false,
        }
    }
}
