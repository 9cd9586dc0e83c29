//! What a session's user is asked, and what they answer.
//!
//! A request is committed before anyone sees it, and so is its answer before the run hears of
//! it. The first answer counts, whoever gives it: a person in any tab or over REST, the time
//! limit, or the end of the run. A change of mode leaves what waits waiting: it was asked.

use std::collections::HashMap;
use std::time::Duration;

use actix::{AsyncContext, Context, Handler, ResponseFuture};
use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use tokio::sync::oneshot;

use super::messages::{
    AnswerApproval, Answered, AwaitAnswer, GetStanding, Park, RunGone, SetMode, Standing,
};
use super::replies::{Reply, answer, committed, shutting_down};
use super::sequencer::Submission;
use super::{Phase, SessionActor};
use crate::domain::consent::{Answer, Asking};
use crate::protocol::approval::{
    ConsentEntry, ConsentRule, DecidedBy, Permission, PermittedBy, Resolution,
};
use crate::protocol::command::Decision;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::Event;
use crate::protocol::ids::{ApprovalId, CallId, Origin, RuleId, RunId, SessionId, UserId};
use crate::services::now;
use crate::store::{ConsentRow, NewRule, Write};

/// The requests of the runs that go.
#[derive(Debug, Default)]
pub(super) struct Approvals {
    open: HashMap<ApprovalId, Open>,
    /// Of the runs that go; older ones are in the store.
    answered: HashMap<ApprovalId, (RunId, Answer)>,
}

#[derive(Debug)]
struct Open {
    origin: Origin,
    asking: Asking,
    /// The run that waits for the answer.
    waiting: Option<oneshot::Sender<Answer>>,
}

/// Whose session it is, for rules and the list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    pub(super) user_id: UserId,
    pub(super) session_id: SessionId,
}

impl Approvals {
    /// A run asks. Its request is committed with what is submitted.
    pub(super) fn ask(&mut self, origin: Origin, asking: Asking, into: &mut Submission) {
        into.writes.push(Write::ApprovalRequested(asking.clone()));
        self.take_in(origin, asking);
    }

    /// A request that is in the store already.
    pub(super) fn take_in(&mut self, origin: Origin, asking: Asking) {
        let open = Open {
            origin,
            asking,
            waiting: None,
        };
        self.open.insert(open.asking.pending.approval_id, open);
    }

    /// The call that was asked about gets its result another way.
    pub(super) fn close_for(&mut self, call_id: &CallId, owner: Owner, into: &mut Submission) {
        self.close_where(owner, into, |open| open.asking.pending.call_id == *call_id);
    }

    /// These runs are over: nobody can answer their requests any more.
    pub(super) fn close_runs(&mut self, runs: &[RunId], owner: Owner, into: &mut Submission) {
        self.close_where(owner, into, |open| runs.contains(&open.origin.run_id));
        self.answered
            .retain(|_, (run_id, _)| !runs.contains(run_id));
    }

    /// Every run is over.
    pub(super) fn close_all(&mut self, owner: Owner, into: &mut Submission) {
        self.close_where(owner, into, |_| true);
        self.answered.clear();
    }

    fn close_where(
        &mut self,
        owner: Owner,
        into: &mut Submission,
        is_over: impl Fn(&Open) -> bool,
    ) {
        let mut over: Vec<ApprovalId> = self
            .open
            .iter()
            .filter(|(_, open)| is_over(open))
            .map(|(id, _)| *id)
            .collect();
        over.sort_unstable();
        for id in over {
            let answer = Answer {
                resolution: Resolution {
                    decision: Decision::Deny,
                    by: DecidedBy::Stop,
                },
                note: None,
            };
            self.resolve(id, answer, owner, into);
        }
    }

    /// The first answer to a request. Gives back who waits for it.
    fn resolve(
        &mut self,
        id: ApprovalId,
        answer: Answer,
        owner: Owner,
        into: &mut Submission,
    ) -> Option<oneshot::Sender<Answer>> {
        let open = self.open.remove(&id)?;
        let at = now();
        let Resolution { decision, by } = answer.resolution;
        let pending = &open.asking.pending;
        into.events.push((
            Some(open.origin),
            Event::ApprovalResolved {
                approval_id: id,
                call_id: pending.call_id.clone(),
                decision,
                by,
                is_subagent: open.origin.is_subagent(),
            },
        ));
        into.writes.push(Write::ApprovalResolved {
            approval_id: id,
            resolution: answer.resolution,
            at,
        });
        into.writes.push(Write::Consented(ConsentRow {
            user_id: owner.user_id,
            entry: ConsentEntry {
                id: 0,
                at,
                session_id: owner.session_id,
                run_id: pending.run_id,
                call_id: pending.call_id.clone(),
                tool: pending.tool.clone(),
                effect: pending.request.effect,
                summary: pending.request.summary.clone(),
                decision: decision.permission(),
                by: PermittedBy::from(by),
            },
        }));
        if let (Decision::Always, Some(rule)) =
            (decision, open.asking.rule(owner, Permission::Allow, at))
        {
            into.writes.push(Write::ConsentRule(rule));
        }
        self.answered.insert(id, (open.origin.run_id, answer));
        open.waiting
    }
}

impl Asking {
    fn rule(&self, owner: Owner, decision: Permission, at: DateTime<Utc>) -> Option<NewRule> {
        Some(NewRule {
            user_id: owner.user_id,
            key: self.rule_key.clone()?,
            rule: ConsentRule {
                id: RuleId::new(),
                tool: self.pending.tool.clone(),
                words: self.pending.request.always.clone()?,
                decision,
                created_at: at,
            },
        })
    }
}

impl SessionActor {
    pub(super) fn owner(&self) -> Owner {
        Owner {
            user_id: self.state.summary.user_id,
            session_id: self.id,
        }
    }

    /// Sees to it that a request that nobody answers is denied when its time is up, in `left`.
    pub(super) fn expire(&self, ctx: &mut Context<Self>, id: ApprovalId, left: Duration) {
        ctx.run_later(left, move |actor, ctx| {
            let resolution = Resolution {
                decision: Decision::Deny,
                by: DecidedBy::Timeout,
            };
            let answer = Answer {
                resolution,
                note: None,
            };
            actor.resolve(ctx, id, answer, None, || {});
        });
    }

    /// Commits the first answer, and tells it to the run that waits.
    fn resolve(
        &mut self,
        ctx: &mut Context<Self>,
        id: ApprovalId,
        answer: Answer,
        rule: Option<NewRule>,
        then: impl FnOnce() + 'static,
    ) {
        let mut submission = Submission::default();
        let owner = self.owner();
        let waiting = self
            .approvals
            .resolve(id, answer.clone(), owner, &mut submission);
        if submission.events.is_empty() {
            return;
        }
        submission.writes.extend(rule.map(Write::ConsentRule));
        self.submit_all(ctx, submission, move |_, _| {
            if let Some(waiting) = waiting {
                // The run may have been stopped meanwhile.
                let _ = waiting.send(answer);
            }
            then();
        });
    }

    fn answer_approval(
        &mut self,
        ctx: &mut Context<Self>,
        answering: AnswerApproval,
        reply: Reply<Answered>,
    ) {
        let id = answering.approval_id;
        let Some(open) = self.approvals.open.get(&id) else {
            let known = self.approvals.answered.get(&id);
            let known = known.map_or(Answered::Unknown, |(_, answer)| {
                Answered::Before(answer.resolution)
            });
            answer(Some(reply), Ok(known));
            return;
        };
        if matches!(self.phase, Phase::Closing(_)) {
            answer(Some(reply), Err(shutting_down()));
            return;
        }
        let has_rule = open.asking.rule_key.is_some();
        if answering.forbids && !has_rule {
            let error = NaviError::new(
                ErrorCode::InvalidField,
                "decision: this cannot be forbidden once and for all, such calls are always asked about; deny this one",
            );
            answer(Some(reply), Err(error));
            return;
        }
        let decision = match answering.decision {
            // Such calls are always asked about: it counts for this one.
            Decision::Always if !has_rule => Decision::Once,
            decision => decision,
        };
        let forbids = answering
            .forbids
            .then(|| open.asking.rule(self.owner(), Permission::Deny, now()))
            .flatten();
        let given = Answer {
            resolution: Resolution {
                decision,
                by: DecidedBy::User,
            },
            note: answering.note,
        };
        self.resolve(ctx, id, given, forbids, move || {
            answer(Some(reply), Ok(Answered::Now));
        });
    }
}

impl Handler<AnswerApproval> for SessionActor {
    type Result = ResponseFuture<Result<Answered, NaviError>>;

    fn handle(&mut self, answering: AnswerApproval, ctx: &mut Self::Context) -> Self::Result {
        let (tx, rx) = oneshot::channel();
        self.answer_approval(ctx, answering, tx);
        Box::pin(committed(rx))
    }
}

impl Handler<AwaitAnswer> for SessionActor {
    type Result = ResponseFuture<Result<Answer, RunGone>>;

    fn handle(&mut self, asked: AwaitAnswer, ctx: &mut Self::Context) -> Self::Result {
        let id = asked.approval_id;
        let is_theirs = |run_id: RunId| run_id == asked.run_id;
        let (tx, rx) = oneshot::channel();
        if let Some(open) = self.approvals.open.get_mut(&id) {
            if is_theirs(open.origin.run_id) {
                open.waiting = Some(tx);
            }
        } else if let Some((run_id, answer)) = self.approvals.answered.get(&id)
            && is_theirs(*run_id)
        {
            let answer = answer.clone();
            // It may be on its way to the store just now.
            self.when_settled(ctx, move |_, _| {
                // The run may have been stopped meanwhile.
                let _ = tx.send(answer);
            });
        }
        Box::pin(rx.map(|answer| answer.map_err(|_| RunGone)))
    }
}

impl Handler<GetStanding> for SessionActor {
    type Result = Result<Standing, RunGone>;

    fn handle(&mut self, GetStanding(run_id): GetStanding, _: &mut Self::Context) -> Self::Result {
        if self.origin_of(run_id).is_none() {
            return Err(RunGone);
        }
        Ok(Standing {
            mode: self.state.mode,
            tainted_at: self.state.tainted_at,
            waiting: self.approvals.open.len(),
        })
    }
}

impl Handler<SetMode> for SessionActor {
    type Result = ResponseFuture<Result<(), NaviError>>;

    fn handle(&mut self, SetMode(mode): SetMode, ctx: &mut Self::Context) -> Self::Result {
        let (tx, rx) = oneshot::channel();
        if matches!(self.phase, Phase::Closing(_)) {
            answer(Some(tx), Err(shutting_down()));
        } else if self.state.mode == mode {
            self.when_settled(ctx, |_, _| answer(Some(tx), Ok(())));
        } else {
            let events = vec![Event::ModeChanged { mode }];
            self.submit(ctx, None, events, vec![Write::Mode(mode)], |_, _| {
                answer(Some(tx), Ok(()));
            });
        }
        Box::pin(committed(rx))
    }
}

impl Handler<Park> for SessionActor {
    type Result = ();

    /// Only a session that closes lets its run go: the store has it as running, with what it
    /// waits for, and the next start goes on from there.
    fn handle(&mut self, Park(run_id): Park, ctx: &mut Self::Context) {
        let parks = matches!(&self.phase, Phase::Closing(Some(run)) if run.run_id == run_id)
            && self.deleting.is_empty();
        if !parks {
            return;
        }
        if let Phase::Closing(Some(run)) = std::mem::replace(&mut self.phase, Phase::Closing(None))
        {
            for waiting in run.waiting {
                // The one who waited may have hung up.
                let _ = waiting.send(Err(shutting_down()));
            }
        }
        self.leave_when_done(ctx);
    }
}
