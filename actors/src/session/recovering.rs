//! What a session finds open when it is read from the store. A run that waited for a person
//! waits on; every other run was cut off, and gets its end.

use std::collections::HashSet;

use actix::Context;

use super::{Foreground, Phase, SessionActor};
use crate::domain::consent::Asking;
use crate::domain::recovery::{self, UnfinishedPart, Wreck};
use crate::domain::run_loop::{Record, RunEnd, RunLoop, Since};
use crate::protocol::command::PlainConsent;
use crate::protocol::event::Event;
use crate::protocol::ids::{CallId, Origin, RunId};
use crate::protocol::session::RunState;
use crate::protocol::tool::Effect;
use crate::run::From;
use crate::services::{ResumePolicy, now};
use crate::session::sequencer::Submission;
use crate::store::{ChildCall, LoadedSession, RunRow};

/// A turn that was cut off more often than this is not resumed unasked: it may be what brings
/// the service down.
const RESUMES: u32 = 3;

/// A run that the store still has as running when its session is loaded.
#[derive(Debug)]
pub(super) struct Recovery {
    run: RunRow,
    unfinished: Vec<UnfinishedPart>,
    children: Vec<RunRow>,
    child_calls: Vec<ChildCall>,
    /// What it asked and nobody answered.
    approvals: Vec<Asking>,
    /// How often a run of this turn was cut off before.
    interruptions: u32,
    /// Its loop, where it waited for a person or was left to go on; its first event.
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
        let run_loop = run.loop_state.as_deref();
        let run_loop = run_loop.and_then(|json| match serde_json::from_str::<RunLoop>(json) {
            Ok(run_loop) => Some(Box::new(run_loop)),
            Err(error) => {
                // Another release wrote it: the run ends as if it had not waited.
                tracing::warn!(%error, run = %run_id, "a run that waits cannot be read");
                None
            }
        });
        // What it stored when it once waited, and went on from, means nothing any more.
        let run_loop = run_loop.filter(|run_loop| waits || run_loop.is_parked());
        Some(Self {
            interruptions: loaded.interruptions,
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
                    let resumes = found.interruptions < RESUMES;
                    self.when_settled(ctx, move |actor, ctx| {
                        if resumes {
                            actor.resume_by_itself(ctx);
                        }
                        actor.start_next(ctx);
                    });
                    return;
                }
            }
        }
        self.when_settled(ctx, Self::start_next);
    }

    /// Goes on from the run that was cut off, where that is wished and nothing is unclear.
    fn resume_by_itself(&mut self, ctx: &mut Context<Self>) {
        let wished = self.services.resume == ResumePolicy::Reads;
        if !wished || !self.state.unknown_calls().is_empty() {
            return;
        }
        let notice = Event::Notice {
            code: "run_resumed".to_owned(),
            message: "Navi was restarted in the middle of this; it goes on by itself".to_owned(),
            is_subagent: false,
        };
        self.go_on(ctx, vec![notice], |_| {});
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
            reads: &self.calls_that_read(),
        };
        let records = recovery::close(&wreck, end, now());
        self.record(ctx, run_id, records, |_| {});
    }

    /// The calls under way that only read. One that cannot be looked up any more may have
    /// changed something.
    fn calls_that_read(&self) -> HashSet<CallId> {
        let registry = self.services.toolbox.now();
        let calls = self.state.run_messages.iter();
        calls
            .flat_map(|message| &message.tool_calls)
            .filter(|call| self.state.started_calls.contains(&call.id))
            .filter(|call| {
                let named = std::slice::from_ref(&call.name);
                let found = registry.prepare(&call.name, &call.arguments, named);
                // A call that would be refused was.
                found.map_or(registry.has(&call.name), |ready| {
                    ready.effect == Effect::Read
                })
            })
            .map(|call| call.id.clone())
            .collect()
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
                // It was asked by another process, perhaps: the clock is all that both have.
                let left = (pending.expires_at - now()).to_std().unwrap_or_default();
                let left = left.min(self.services.consent.timeout);
                self.expire(ctx, pending.approval_id, left);
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
        let mut records = run_loop.resume(&since, now());
        // From here on it goes, and no second restart may take it up from where it stood.
        match serde_json::to_string(&run_loop) {
            Ok(json) => records.push(Record::Waits(json)),
            Err(error) => tracing::error!(%error, "a loop could not be stored"),
        }
        let stop = self.given_up.child_token();
        self.phase = Phase::Running(Foreground {
            run_id,
            message_id: found.run.message_id,
            plans: false,
            // Whoever waited over REST has lost its connection: a tab can answer.
            consent: PlainConsent::Ask,
            from: From::Stored(Box::new(run_loop)),
            model: found.run.model.clone(),
            started_at: found.run.started_at,
            before_seq: first_seq.saturating_sub(1),
            _kill: stop.clone().drop_guard(),
            stop,
            actor: None,
            waiting: Vec::new(),
        });
        self.record(ctx, run_id, records, |_| {});
        self.when_settled(ctx, move |actor, ctx| actor.launch(ctx, run_id));
    }
}
