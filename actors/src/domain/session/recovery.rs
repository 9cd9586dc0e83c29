//! What a session finds open when it is read from the store. A run that waited for a person
//! waits on; every other run was cut off, and gets its end.

use std::collections::HashSet;

use chrono::{DateTime, Utc};

use super::Session;
use super::stored::LoadedSession;
use super::transition::{Effect, Launch, StartPoint, Transition};
use super::write::RunRow;
use crate::domain::recovery::UnfinishedPart;
use crate::domain::run_loop::{Record, RunEnd, RunLoop, Since};
use crate::protocol::command::PlainConsent;
use crate::protocol::event::Event;
use crate::protocol::ids::{ApprovalId, CallId, Origin, RunId};
use crate::protocol::phrase::PhraseCode;
use crate::protocol::session::RunState;

/// A turn that was cut off more often than this is not resumed unasked: it may be what brings
/// the service down.
const RESUMES: u32 = 3;

/// A run that the store still has as running when its session is loaded.
#[derive(Debug)]
pub struct Recovery {
    run: RunRow,
    unfinished: Vec<UnfinishedPart>,
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

impl Session {
    /// Gives a run that a crash cut off its end, or lets it wait on, and goes on with what
    /// waits. `reads` are the calls under way that only read.
    pub fn recover(
        &mut self,
        found: Option<Recovery>,
        reads: &HashSet<CallId>,
        now: DateTime<Utc>,
    ) -> Transition {
        if let Some(found) = found {
            let run_id = found.run.run_id;
            // One that somebody stopped does not go on.
            let waits = found.waits.filter(|_| !self.ahead.held);
            self.take_in_approvals(run_id, waits.is_some(), now);
            self.close_lost_children(now);
            match waits {
                Some((run_loop, first_seq)) => self.wait_on(&found.run, run_loop, first_seq, now),
                None => {
                    // One that was stopped is that, though nobody was left to cut it off.
                    let end = if self.ahead.held {
                        RunEnd::Stopped
                    } else {
                        RunEnd::Interrupted {
                            reason: PhraseCode::RunWentDown.english().to_owned(),
                        }
                    };
                    self.close_dead_run(run_id, &found.unfinished, reads, end, now);
                    if found.interruptions < RESUMES {
                        self.resume_by_itself(now);
                    }
                }
            }
        }
        self.next(now);
        std::mem::take(&mut self.out)
    }

    /// Goes on from the run that was cut off, where that is wished and nothing is unclear.
    fn resume_by_itself(&mut self, now: DateTime<Utc>) {
        if !self.policy.resumes || self.ahead.held || !self.ahead.unknown_calls().is_empty() {
            return;
        }
        let notice = Event::Notice {
            code: "run_resumed".to_owned(),
            message: "Navi was restarted in the middle of this; it goes on by itself".to_owned(),
            phrase: None,
            is_subagent: false,
        };
        if let Err(refused) = self.go_on(vec![notice], now) {
            tracing::debug!(?refused, "nothing to resume");
        }
    }

    /// Requests of the run itself wait on where it does; what a child asked is over: its
    /// conversation was in no store.
    fn take_in_approvals(&mut self, run_id: RunId, waits: bool, now: DateTime<Utc>) {
        let waits_on = |asked_by: RunId| asked_by == run_id && waits;
        for asking in &self.ahead.approvals {
            let pending = &asking.pending;
            if waits_on(pending.run_id) {
                // It was asked by another process, perhaps: the clock is all that both have.
                let left = (pending.expires_at - now).to_std().unwrap_or_default();
                let left = left.min(self.policy.consent_timeout);
                self.out
                    .then
                    .push(Effect::ExpireLater(pending.approval_id, left));
            }
        }
        self.close_approvals(|asking| !waits_on(asking.pending.run_id), now);
    }

    /// Starts a run that waited for a person where it stood.
    fn wait_on(
        &mut self,
        run: &RunRow,
        mut run_loop: Box<RunLoop>,
        first_seq: u64,
        now: DateTime<Utc>,
    ) {
        let run_id = run.run_id;
        let messages = self.ahead.run_messages.iter();
        let answered: HashSet<CallId> = messages
            .filter_map(|message| message.tool_call_id.clone())
            .collect();
        let begun: HashSet<CallId> = self.ahead.started_calls.keys().cloned().collect();
        let waiting = self.ahead.approvals.iter();
        let waiting: HashSet<ApprovalId> =
            waiting.map(|asking| asking.pending.approval_id).collect();
        let since = Since {
            answered: &answered,
            begun: &begun,
            waiting: &waiting,
        };
        let mut records = run_loop.resume(&since, now);
        // From here on it goes, and no second restart may take it up from where it stood.
        match serde_json::to_string(&run_loop) {
            Ok(json) => records.push(Record::Waits(json)),
            Err(error) => tracing::error!(%error, "a loop could not be stored"),
        }
        for record in records {
            self.record(Origin::foreground(run_id), record, now);
        }
        self.out.then.push(Effect::Launch(Box::new(Launch {
            config: None,
            run_id,
            message_id: run.message_id,
            plans: false,
            // Whoever waited over REST has lost its connection: a tab can answer.
            consent: self.answerable(PlainConsent::Ask),
            from: StartPoint::Stored(run_loop),
            profile_id: self.ahead.summary.profile_id.clone(),
            model: self.ahead.summary.model.clone(),
            before_seq: first_seq.saturating_sub(1),
        })));
    }
}
