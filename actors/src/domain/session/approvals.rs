//! What a session's user is asked, and what they answer.
//!
//! A request is committed before anyone sees it, and so is its answer before the run hears of
//! it. The first answer counts, whoever gives it: a person in any tab or over REST, the time
//! limit, or the end of the run. A change of mode leaves what waits waiting: it was asked.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use super::Session;
use super::command::ApprovalAnswer;
use super::transition::{Answered, Effect, Refused, Reply, ReplyTo};
use super::write::{ConsentRow, NewRule, Write};
use crate::domain::consent::{Answer, Asking};
use crate::protocol::approval::{
    ConsentEntry, ConsentMode, ConsentRule, DecidedBy, EntryPhrases, Permission, PermittedBy,
    Resolution,
};
use crate::protocol::command::Decision;
use crate::protocol::error::ErrorCode;
use crate::protocol::event::Event;
use crate::protocol::ids::{ApprovalId, CallId, Origin, RuleId, RunId, UserId};
use crate::protocol::people::PersonRef;

/// What was answered to requests of the runs that go; older ones are in the store.
pub(super) type Answers = HashMap<ApprovalId, (RunId, Answer)>;

/// How the session stands to consent, before calls of a run begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsentState {
    pub mode: ConsentMode,
    /// When the session first read text from outside.
    pub tainted_at: Option<DateTime<Utc>>,
    /// How many requests wait for an answer.
    pub waiting: usize,
}

impl Session {
    /// See [`ConsentState`].
    #[must_use]
    pub fn consent(&self) -> ConsentState {
        ConsentState {
            mode: self.ahead.mode,
            tainted_at: self.ahead.tainted_at,
            waiting: self.ahead.approvals.len(),
        }
    }

    pub(super) fn set_mode(&mut self, mode: ConsentMode, to: ReplyTo) -> Result<(), Refused> {
        if self.closing.is_some() {
            return Err(Refused::shutting_down());
        }
        if self.ahead.mode != mode {
            self.write(Write::Mode(mode));
            self.tell(None, Event::ModeChanged { mode });
        }
        self.reply(to, Reply::Done(()));
        Ok(())
    }

    pub(super) fn answer_approval(
        &mut self,
        id: ApprovalId,
        (answering, author): (ApprovalAnswer, Option<PersonRef>),
        to: ReplyTo,
        now: DateTime<Utc>,
    ) -> Result<(), Refused> {
        let Some(asking) = self.open_approval(id) else {
            let known = self.answers.get(&id);
            let known = known.map_or(Answered::Unknown, |(_, answer)| {
                Answered::Before(answer.resolution)
            });
            self.reply(to, Reply::Answered(known));
            return Ok(());
        };
        if self.closing.is_some() {
            return Err(Refused::shutting_down());
        }
        let has_rule = asking.rule_key.is_some();
        let decision = match answering.decision {
            // Such calls are always asked about: it counts for this one.
            Decision::Always if !has_rule => Decision::Once,
            Decision::Never if !has_rule => {
                return Err(Refused::error(
                    ErrorCode::InvalidField,
                    "decision: this cannot be forbidden once and for all, such calls are always asked about; deny this one",
                ));
            }
            decision => decision,
        };
        let answer = Answer {
            resolution: Resolution {
                decision,
                by: DecidedBy::User,
            },
            note: answering.note,
        };
        self.resolve(id, answer, author, now);
        self.reply(to, Reply::Answered(Answered::Now));
        Ok(())
    }

    pub(super) fn expire(&mut self, id: ApprovalId, now: DateTime<Utc>) {
        self.resolve(id, denial(DecidedBy::Timeout), None, now);
    }

    pub(super) fn await_answer(
        &mut self,
        run_id: RunId,
        id: ApprovalId,
        to: ReplyTo,
    ) -> Result<(), Refused> {
        if let Some(asking) = self.open_approval(id) {
            if asking.pending.run_id != run_id {
                return Err(Refused::RunGone);
            }
            self.awaiting.insert(id, to);
            return Ok(());
        }
        let known = self.answers.get(&id).filter(|(run, _)| *run == run_id);
        let answer = known.map(|(_, answer)| answer.clone());
        let answer = answer.ok_or(Refused::RunGone)?;
        self.reply(to, Reply::Answer(answer));
        Ok(())
    }

    pub(super) fn close_approvals_of_call(&mut self, call_id: &CallId, now: DateTime<Utc>) {
        self.close_approvals(|asking| asking.pending.call_id == *call_id, now);
    }

    /// These runs are over: nobody can answer their requests any more.
    pub(super) fn close_approvals_of(&mut self, runs: &[RunId], now: DateTime<Utc>) {
        self.close_approvals(|asking| runs.contains(&asking.pending.run_id), now);
        self.answers.retain(|_, (run_id, _)| !runs.contains(run_id));
    }

    pub(super) fn close_approvals(
        &mut self,
        is_over: impl Fn(&Asking) -> bool,
        now: DateTime<Utc>,
    ) {
        let open = self.ahead.approvals.iter();
        let over: Vec<ApprovalId> = open
            .filter(|asking| is_over(asking))
            .map(|asking| asking.pending.approval_id)
            .collect();
        for id in over {
            self.resolve(id, denial(DecidedBy::Stop), None, now);
        }
    }

    fn open_approval(&self, id: ApprovalId) -> Option<&Asking> {
        let mut open = self.ahead.approvals.iter();
        open.find(|asking| asking.pending.approval_id == id)
    }

    /// The first answer to a request; later ones change nothing.
    fn resolve(
        &mut self,
        id: ApprovalId,
        answer: Answer,
        author: Option<PersonRef>,
        now: DateTime<Utc>,
    ) {
        let Some(asking) = self.open_approval(id).cloned() else {
            return;
        };
        let user_id = self.ahead.summary.user_id;
        let Resolution { decision, by } = answer.resolution;
        let rule = decision
            .rule()
            .and_then(|permission| rule_of(&asking, user_id, permission, now));
        let pending = asking.pending;
        let origin = self.ahead.origin_of(pending.run_id);
        let origin = origin.unwrap_or_else(|| Origin::foreground(pending.run_id));
        self.write(Write::ApprovalResolved {
            approval_id: id,
            resolution: answer.resolution,
            at: now,
        });
        self.write(Write::Consented(ConsentRow {
            user_id,
            entry: ConsentEntry {
                id: 0,
                at: now,
                session_id: self.id,
                run_id: pending.run_id,
                call_id: pending.call_id.clone(),
                tool: pending.tool,
                effect: pending.request.effect,
                summary: pending.request.summary,
                decision: decision.permission(),
                by: PermittedBy::from(by),
                rule: None,
                phrases: pending.request.phrases.map(|phrases| EntryPhrases {
                    summary: phrases.summary,
                    rule: None,
                }),
                note: answer.note.clone(),
                author: author.clone(),
            },
        }));
        if let Some(rule) = rule {
            self.write(Write::ConsentRule(rule));
        }
        let event = Event::ApprovalResolved {
            approval_id: id,
            call_id: pending.call_id,
            decision,
            by,
            note: answer.note.clone(),
            author,
            is_subagent: origin.is_subagent(),
        };
        self.tell(Some(origin), event);
        self.answers.insert(id, (pending.run_id, answer.clone()));
        if let Some(waits) = self.awaiting.remove(&id) {
            let answer = Reply::Answer(answer);
            self.out.then.push(Effect::Reply(waits, Ok(answer)));
        }
    }
}

/// The answer that stands where no person gave one.
fn denial(by: DecidedBy) -> Answer {
    Answer {
        resolution: Resolution {
            decision: Decision::Deny,
            by,
        },
        note: None,
    }
}

/// The rule that an answer makes, where one can be made.
fn rule_of(
    asking: &Asking,
    user_id: UserId,
    decision: Permission,
    at: DateTime<Utc>,
) -> Option<NewRule> {
    Some(NewRule {
        user_id,
        key: asking.rule_key.clone()?,
        rule: ConsentRule {
            id: RuleId::new(),
            tool: asking.pending.tool.clone(),
            words: asking.pending.request.always.clone()?,
            phrase: asking.pending.request.phrases.as_ref()?.always.clone(),
            decision,
            created_at: at,
        },
    })
}
