//! What a session finds open when it is read from the store. A run that waited for a person
//! waits on; every other run was cut off, and gets its end.

use std::collections::HashSet;

use actix::Context;
use tokio_util::sync::CancellationToken;

use super::{Foreground, Phase, SessionActor};
use crate::domain::consent::Asking;
use crate::domain::recovery::{self, UnfinishedPart, Wreck};
use crate::domain::run_loop::{RunEnd, RunLoop, Since};
use crate::protocol::command::PlainConsent;
use crate::protocol::ids::{CallId, Origin, RunId};
use crate::protocol::session::RunState;
use crate::services::now;
use crate::session::sequencer::Submission;
use crate::store::{ChildCall, LoadedSession, RunRow};

/// A run that the store still has as running when its session is loaded.
#[derive(Debug)]
pub(super) struct Recovery {
    run: RunRow,
    unfinished: Vec<UnfinishedPart>,
    children: Vec<RunRow>,
    child_calls: Vec<ChildCall>,
    /// What it asked and nobody answered.
    approvals: Vec<Asking>,
    /// Its loop, where it waited for a person; its first event.
    waits: Option<(Box<RunLoop>, u64)>,
}

impl Recovery {
    pub(super) fn of(loaded: &LoadedSession) -> Option<Self> {
        let run = loaded
            .last_run
            .as_ref()
            .filter(|run| run.state == RunState::Running)?;
        let run_id = run.row.run_id;
        let waits = loaded
            .approvals
            .iter()
            .any(|asking| asking.pending.run_id == run_id);
        let run_loop = run.loop_state.as_deref().filter(|_| waits);
        let run_loop = run_loop.and_then(|json| match serde_json::from_str(json) {
            Ok(run_loop) => Some(Box::new(run_loop)),
            Err(error) => {
                // Another release wrote it: the run ends as if it had not waited.
                tracing::warn!(%error, run = %run_id, "a run that waits cannot be read");
                None
            }
        });
        Some(Self {
            children: loaded.running_children.clone(),
            child_calls: loaded.child_calls.clone(),
            approvals: loaded.approvals.clone(),
            waits: run_loop.zip(Some(loaded.run_first_seq.unwrap_or(loaded.last_seq))),
            unfinished: loaded
                .unfinished_parts
                .iter()
                // What a child had said is no message.
                .filter(|part| part.parent_run_id.is_none())
                .map(|part| UnfinishedPart {
                    message_id: part.message_id,
                    kind: part.kind,
                    text: part.text.clone(),
                })
                .collect(),
            run: run.row.clone(),
        })
    }
}

impl SessionActor {
    /// Gives a run that a crash cut off its end, or lets it wait on, and goes on with what
    /// waits.
    pub(super) fn recover(&mut self, ctx: &mut Context<Self>) {
        if let Some(mut found) = self.recovery.take() {
            let run_id = found.run.run_id;
            self.take_in_approvals(ctx, &found);
            let children = std::mem::take(&mut found.children);
            self.close_lost_children(ctx, children, &found.child_calls);
            match found.waits.take() {
                Some((run_loop, first_seq)) => self.wait_on(ctx, &found, *run_loop, first_seq),
                None => {
                    let end = RunEnd::Interrupted {
                        reason: "Navi went down while this ran".to_owned(),
                    };
                    self.close_wreck(ctx, run_id, &found.unfinished, end);
                }
            }
        }
        self.when_settled(ctx, Self::start_next);
    }

    pub(super) fn close_wreck(
        &mut self,
        ctx: &mut Context<Self>,
        run_id: RunId,
        unfinished: &[UnfinishedPart],
        end: RunEnd,
    ) {
        let wreck = Wreck {
            run_id,
            messages: &self.state.run_messages,
            unfinished,
            started: &self.state.started_calls,
        };
        let records = recovery::close(&wreck, end, now());
        self.record(ctx, run_id, records, || {});
    }

    /// Requests of the run itself wait on where it does; what a child asked is over: its
    /// conversation was in no store.
    fn take_in_approvals(&mut self, ctx: &mut Context<Self>, found: &Recovery) {
        let run_id = found.run.run_id;
        let owner = self.owner();
        let mut over = Vec::new();
        for asking in &found.approvals {
            let asked_by = asking.pending.run_id;
            let parent = found
                .children
                .iter()
                .find(|row| row.run_id == asked_by)
                .and_then(|row| row.parent_run_id);
            let origin = Origin {
                run_id: asked_by,
                parent_run_id: parent.filter(|_| asked_by != run_id),
            };
            self.approvals.take_in(origin, asking.clone());
            if asked_by == run_id && found.waits.is_some() {
                let pending = &asking.pending;
                self.expire(ctx, pending.approval_id, pending.expires_at);
            } else {
                over.push(asked_by);
            }
        }
        let mut submission = Submission::default();
        self.approvals.close_runs(&over, owner, &mut submission);
        self.submit_all(ctx, submission, |_, _| {});
    }

    /// Starts a run that waited for a person where it stood.
    fn wait_on(
        &mut self,
        ctx: &mut Context<Self>,
        found: &Recovery,
        mut run_loop: RunLoop,
        first_seq: u64,
    ) {
        let run_id = found.run.run_id;
        let messages = self.state.run_messages.iter();
        let answered: HashSet<CallId> = messages
            .filter_map(|message| message.tool_call_id.clone())
            .collect();
        let waiting = found.approvals.iter();
        let waiting = waiting.map(|asking| asking.pending.approval_id).collect();
        let since = Since {
            answered: &answered,
            begun: &self.state.started_calls,
            waiting: &waiting,
        };
        let records = run_loop.resume(&since, now());
        let stop = CancellationToken::new();
        self.phase = Phase::Running(Foreground {
            run_id,
            message_id: found.run.message_id,
            plans: false,
            // Whoever waited over REST has lost its connection: a tab can answer.
            consent: PlainConsent::Ask,
            resumed: Some(Box::new(run_loop)),
            model: found.run.model.clone(),
            started_at: found.run.started_at,
            before_seq: first_seq.saturating_sub(1),
            _kill: stop.clone().drop_guard(),
            stop,
            actor: None,
            waiting: Vec::new(),
        });
        self.record(ctx, run_id, records, || {});
        self.when_settled(ctx, move |actor, ctx| actor.launch(ctx, run_id));
    }
}
