//! Before a call begins: whether it may, whom that is asked, and what the answer is bound to.
//! What comes of it is decided in `domain::consent`.

use std::pin::Pin;
use std::sync::Arc;

use itertools::Itertools as _;

use super::FileChanges;
use super::driver::Driver;
use super::live_output;
use super::proposals::{bound_to, line, propose, rule_key, shown};
use crate::domain::consent::{self, Answer, Asking, Question, Rule, Verdict};
use crate::domain::files::FileViews;
use crate::domain::model_choice::RunConfig;
use crate::domain::run_loop::{CallPlan, CallResult, PlannedCall, Record};
use crate::domain::session::ConsentState;
use crate::domain::session::command::Command;
use crate::protocol::approval::{
    ApprovalRequest, ConsentEntry, ConsentRule, DecidedBy, EntryPhrases, PendingApproval,
    Permission, PermittedBy, RequestPhrases,
};
use crate::protocol::event::{Event, WaitReason};
use crate::protocol::ids::{ApprovalId, CallId};
use crate::protocol::message::ToolOutcome;
use crate::protocol::phrase::{Phrase, PhraseCode};
use crate::protocol::tool::Effect;
use crate::services::now;
use crate::session::messages::{Ask, GetConsent, RunGone};
use crate::store::StoreError;
use crate::tools::registry::PreparedCall;
use crate::tools::{Agents, Proposal};

/// What happens to the calls of a group, one after the other.
pub(super) enum CallProgress {
    Ended(CallId, CallResult, FileViews),
    Answered(CallId, Result<Answer, RunGone>),
}

pub(super) type CallFuture = Pin<Box<dyn Future<Output = CallProgress> + Send>>;

/// A group whose calls have begun, or wait for a person, or have their result already.
pub(super) struct Opened {
    /// With the rule that each was allowed by, where it was.
    pub(super) begun: Vec<(PlannedCall, Option<Approval>)>,
    pub(super) asked: Vec<(CallId, ApprovalId)>,
    /// See [`ToolContext::untrusted`](crate::tools::ToolContext::untrusted).
    pub(super) untrusted: bool,
}

/// What a person's consent holds for, which a call is held to right before it runs.
pub(super) enum Approval {
    /// An answer to a question about this very call.
    Answer {
        /// See [`bound_to`].
        digest: String,
        /// How many changes of files there had been when it was asked.
        changes: Option<u64>,
    },
    /// A rule for calls with this key.
    Rule(String),
}

impl Approval {
    /// Whether it holds for a call as it is proposed now.
    pub(super) fn holds(
        &self,
        call: &PreparedCall,
        proposal: &Proposal,
        changes: &FileChanges,
    ) -> bool {
        match self {
            Self::Answer {
                digest,
                changes: then,
            } => {
                let changed = then.is_some_and(|then| then != changes.count());
                bound_to(call, proposal) == *digest
                    && !(changed && call.tool.hangs_on_files(&call.args))
            }
            Self::Rule(key) => rule_key(call, proposal).as_ref() == Some(key),
        }
    }
}

/// Whether there is a rule cannot be told: it may be one that forbids.
struct RuleUnknown;

const UNKNOWN_RULE: &str = "the database does not answer, so it cannot be told whether the user forbids this; nothing was done";

/// What is to become of one call.
enum Ruling {
    Run(Option<ConsentEntry>, Option<Approval>),
    Ask(Box<Asking>),
    Refuse(CallResult, Option<ConsentEntry>),
}

impl Driver {
    /// Decides on each call of a group, and has that committed: which begin, which wait.
    pub(super) async fn open_group(
        &mut self,
        config: &RunConfig,
        group: &[PlannedCall],
        agents: &Arc<dyn Agents>,
    ) -> Result<Opened, RunGone> {
        let mut consent = self.consent_state().await?;
        let mut opened = Opened {
            begun: Vec::new(),
            asked: Vec::new(),
            untrusted: consent.tainted_at.is_some(),
        };
        let mut records = Vec::new();
        let mut waits_for = None;
        for planned in group {
            let call_id = &planned.call.id;
            if let Some(asked) = self.run_loop.asked(call_id) {
                opened.asked.push((call_id.clone(), asked.approval_id));
                continue;
            }
            let changes = self.changes.count();
            let ruling = tokio::select! {
                biased;
                // Nothing of this group has begun: the caller sees the same and ends the run.
                () = self.ends.stop.cancelled() => break,
                () = self.ends.interrupt.cancelled() => break,
                ruling = self.rule_on(config, planned, &consent, agents) => ruling,
            };
            match ruling {
                Ruling::Run(entry, approval) => {
                    let one = std::slice::from_ref(planned);
                    records.extend(self.run_loop.on_tools_started(one));
                    records.extend(entry.map(Record::Consented));
                    records.extend(self.taint_of(call_id));
                    opened.begun.push((planned.clone(), approval));
                }
                Ruling::Ask(asking) => {
                    consent.waiting += 1;
                    self.changes_when_asked.insert(call_id.clone(), changes);
                    waits_for = Some(asking.pending.request.summary_phrase());
                    opened
                        .asked
                        .push((call_id.clone(), asking.pending.approval_id));
                    records.extend(self.run_loop.on_asked(*asking));
                }
                Ruling::Refuse(result, entry) => {
                    records.extend(entry.map(Record::Consented));
                    records.extend(self.run_loop.on_refused(planned, result, now()));
                }
            }
        }
        if let Some(summary) = waits_for {
            let asks = Phrase::from(PhraseCode::AsksWhether).with("summary", summary);
            records.push(Record::Event(Event::waiting(
                WaitReason::Approval,
                asks,
                self.origin.is_subagent(),
            )));
            records.extend(self.waits());
        }
        if opened.asked.is_empty() && self.only_reads(group) {
            // Made again after a crash, they do no harm.
            self.tell_soon(records).await?;
        } else {
            self.commit(records).await?;
        }
        Ok(opened)
    }

    /// Whether none of these calls changes anything.
    pub(super) fn only_reads(&self, group: &[PlannedCall]) -> bool {
        group.iter().all(|planned| {
            let prepared = self.prepared.get(&planned.call.id);
            prepared.is_none_or(|it| it.effect == Effect::Read)
        })
    }

    async fn consent_state(&self) -> Result<ConsentState, RunGone> {
        let asked = self.session.send(GetConsent(self.origin.run_id));
        asked.await.unwrap_or(Err(RunGone))
    }

    async fn rule_on(
        &self,
        config: &RunConfig,
        planned: &PlannedCall,
        consent: &ConsentState,
        agents: &Arc<dyn Agents>,
    ) -> Ruling {
        let call = &planned.call;
        if let CallPlan::Refuse(reason) = &planned.plan {
            return Ruling::Refuse(refused(reason.clone()), None);
        }
        let Some(prepared) = self.prepared.get(&call.id) else {
            // Its result says that it was lost.
            return Ruling::Run(None, None);
        };
        // As it is now: the plan may be from before a restart.
        let effect = prepared.effect;
        if consent::is_free(&call.name, effect) {
            return Ruling::Run(None, None);
        }
        let mut context = self.tool_context(
            config,
            &call.id,
            consent.tainted_at.is_some(),
            agents,
            live_output::unseen(),
        );
        let means = &self.services.means;
        context.means = means.of_call(self.user_id, &call.name, effect).await;
        let proposal = propose(prepared, &context).await;
        let key = proposal.as_ref().ok();
        let key = key.and_then(|proposal| rule_key(prepared, proposal));
        let rule = match &key {
            None => None,
            Some(key) => match self.rule(&call.name, key).await {
                Ok(rule) => rule,
                Err(RuleUnknown) => return Ruling::Refuse(refused(UNKNOWN_RULE.to_owned()), None),
            },
        };
        let (rule, rule_told) = rule.unzip();
        let by_word = prepared.tool.by_word(&prepared.args);
        let question = Question {
            tool: &call.name,
            effect,
            mode: consent.mode,
            by_word: by_word.as_ref(),
            consent: self.consent,
            tainted_at: consent.tainted_at,
            rule,
        };
        let verdict = consent::decide(&question);
        let phrase = proposal.as_ref().map_or_else(
            |_| Phrase::new(PhraseCode::Call, [("tool", call.name.clone())]),
            |proposal| proposal.summary.clone(),
        );
        let summary = line(&phrase.to_string());
        let phrase = phrase.shown(line);
        let decides = |by| rule_told.as_ref().filter(|_| by == PermittedBy::Rule);
        let entry = |decision, by| ConsentEntry {
            id: 0,
            at: now(),
            session_id: self.session_id,
            run_id: self.origin.run_id,
            call_id: call.id.clone(),
            tool: call.name.clone(),
            effect,
            summary: summary.clone(),
            decision,
            by,
            rule: decides(by).map(|rule| rule.words.clone()),
            phrases: Some(EntryPhrases {
                summary: phrase.clone(),
                rule: decides(by).and_then(|rule| rule.phrase.clone()),
            }),
            note: None,
            author: None,
        };
        match (verdict, proposal) {
            (Verdict::Free, _) => Ruling::Run(None, None),
            // One that cannot say what it would do may be one that a rule forbids.
            (Verdict::Allow(_) | Verdict::Ask { .. }, Err(error)) => {
                let mut result = refused(error.0);
                result.outside = self.origins(&context).is_outside(prepared).await;
                Ruling::Refuse(result, None)
            }
            (Verdict::Allow(by), Ok(_)) => {
                let by_rule = key.filter(|_| by == PermittedBy::Rule);
                let entry = entry(Permission::Allow, by);
                Ruling::Run(Some(entry), by_rule.map(Approval::Rule))
            }
            (Verdict::Deny { message, by }, _) => Ruling::Refuse(
                refused(format!("{message} (the call: {summary})")),
                Some(entry(Permission::Deny, by)),
            ),
            (Verdict::Ask { .. }, Ok(_)) if consent.waiting >= consent::MAX_WAITING => {
                let denied = entry(Permission::Deny, PermittedBy::Mode);
                Ruling::Refuse(refused(consent::TOO_MANY.to_owned()), Some(denied))
            }
            (Verdict::Ask { reason }, Ok(proposal)) => {
                let digest = bound_to(prepared, &proposal);
                let details = match shown(proposal.details) {
                    Ok(details) => details,
                    Err(bytes) => {
                        let denied = entry(Permission::Deny, PermittedBy::Mode);
                        return Ruling::Refuse(refused(consent::too_long(bytes)), Some(denied));
                    }
                };
                let phrases = RequestPhrases {
                    summary: phrase.clone(),
                    reason: reason.into_iter().map(|it| it.shown(line)).collect(),
                    always: proposal.rule.map(|subject| subject.words.shown(line)),
                };
                let requested_at = now();
                Ruling::Ask(Box::new(Asking {
                    pending: PendingApproval {
                        approval_id: ApprovalId::new(),
                        run_id: self.origin.run_id,
                        call_id: call.id.clone(),
                        tool: call.name.clone(),
                        request: ApprovalRequest {
                            summary,
                            effect,
                            reason: phrases.reason.iter().join("; "),
                            details,
                            always: phrases.always.as_ref().map(|it| line(&it.to_string())),
                            phrases: Some(phrases),
                        },
                        requested_at,
                        expires_at: requested_at + self.services.consent.timeout,
                        is_subagent: self.origin.is_subagent(),
                    },
                    digest,
                    rule_key: key,
                }))
            }
        }
    }

    /// The user's rule for such calls, and the same as it is told.
    async fn rule(
        &self,
        tool: &str,
        key: &str,
    ) -> Result<Option<(Rule, ConsentRule)>, RuleUnknown> {
        let store = &self.services.store;
        let found = async {
            let Some(rule) = store.consent_rule(self.user_id, tool, key).await? else {
                return Ok(None);
            };
            let found = Rule {
                decision: rule.decision,
                given_here: store.always_given(self.session_id, tool, key).await?,
            };
            Ok(Some((found, rule)))
        };
        found.await.map_err(|error: StoreError| {
            tracing::error!(%error, "a rule could not be looked up");
            RuleUnknown
        })
    }

    /// Waits for a person's answer, or for what comes instead of it.
    pub(super) fn answering(&self, (call_id, approval_id): (CallId, ApprovalId)) -> CallFuture {
        let session = self.session.clone();
        let run_id = self.origin.run_id;
        Box::pin(async move {
            let asked = Command::AwaitAnswer {
                run_id,
                approval_id,
            };
            let answer = match session.send(Ask::new(asked)).await {
                Ok(answer) => answer.map_err(RunGone::from),
                Err(_) => Err(RunGone),
            };
            CallProgress::Answered(call_id, answer)
        })
    }

    /// A person answered. Where they allowed it the call's start is committed, and this gives
    /// back what the answer holds for, and whether the session has read text from outside.
    pub(super) async fn on_answer(
        &mut self,
        planned: &PlannedCall,
        answer: Answer,
    ) -> Result<Option<(Approval, bool)>, RunGone> {
        let call_id = &planned.call.id;
        let allowed = answer.resolution.decision.permission() == Permission::Allow;
        if allowed && !self.may_begin(planned).await {
            // It ends as not begun, or is asked about anew.
            return Ok(None);
        }
        let asked = self.run_loop.asked(call_id).cloned().ok_or(RunGone)?;
        if allowed {
            let one = std::slice::from_ref(planned);
            let mut records = self.run_loop.on_tools_started(one);
            records.extend(self.taint_of(call_id));
            self.commit(records).await?;
            let consent = self.consent_state().await?;
            let approval = Approval::Answer {
                digest: asked.digest,
                changes: self.changes_when_asked.remove(call_id),
            };
            return Ok(Some((approval, consent.tainted_at.is_some())));
        }
        let reason = match answer.resolution.by {
            DecidedBy::User | DecidedBy::Stop => consent::denied(&asked.summary, &answer),
            DecidedBy::Timeout => consent::unanswered(&asked.summary),
        };
        let mut records = self.run_loop.on_refused(planned, refused(reason), now());
        // It may be kept until a call before it has ended.
        records.extend(self.waits());
        self.commit(records).await?;
        Ok(None)
    }

    /// Whether a call that was allowed may begin, once it is the run's turn to work. Not where the
    /// run is to end, or to be left.
    async fn may_begin(&mut self, planned: &PlannedCall) -> bool {
        if !planned.waits_for_program() {
            self.turn.take(&mut self.deadline).await;
            if !self.turn.is_taken() {
                return false;
            }
        }
        !self.is_leaving()
    }
}

fn refused(reason: String) -> CallResult {
    CallResult {
        outcome: ToolOutcome::Failed,
        text: reason,
        outside: false,
        files: Vec::new(),
        duration_ms: 0,
    }
}
