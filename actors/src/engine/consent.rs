//! What a door asks about consent: requests, modes, rules, and the list of what was allowed.

use super::Engine;
use crate::domain::consent::{MAX_NOTE_CHARS, MAX_RULES};
use crate::domain::session::command::{ApprovalAnswer, Command};
use crate::domain::session::transition::Answered;
use crate::domain::unseen::is_moving;
use crate::protocol::approval::{
    ConsentEntry, ConsentMode, ConsentRule, DecidedBy, PendingApproval, Permission, Resolution,
};
use crate::protocol::command::Decision;
use crate::protocol::error::{ErrorCode, NaviError, invalid};
use crate::protocol::ids::{ApprovalId, RuleId, SessionId, UserId};
use crate::protocol::phrase::{Phrase, PhraseCode};
use crate::root::OpenSession;
use crate::session::messages::GetSnapshot;

/// The most lines of one page of the list.
pub const MAX_LOG_PAGE: u64 = 200;

impl Engine {
    /// What the session's user is asked just now, oldest first.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn approvals(
        &self,
        user: UserId,
        session: SessionId,
    ) -> Result<Vec<PendingApproval>, NaviError> {
        let open = OpenSession::as_participant(user, session);
        let outline = self.ask(open, || GetSnapshot).await?;
        Ok(outline.session.approvals)
    }

    /// Answers a request. Answered when that is committed; the run goes on then.
    ///
    /// # Errors
    /// `approval_not_found`: this session never asked it; `approval_resolved`: another answer
    /// was first; `forbidden`: another's session makes no rules; `invalid_field`: it cannot be forbidden once and for all, or the note is too
    /// long, of more than one line, or no denial's; `too_many_rules`. Nothing is changed then.
    pub async fn approve(
        &self,
        user: UserId,
        session: SessionId,
        approval_id: ApprovalId,
        given: ApprovalAnswer,
    ) -> Result<(), NaviError> {
        let note = note(given.note, given.decision)?;
        let open = if given.decision.rule().is_some() {
            OpenSession::as_owner(user, session)
        } else {
            OpenSession::as_participant(user, session)
        };
        if given.decision.rule().is_some() {
            // Before anything is said of the rules that there are.
            self.find(open).await?;
            let count =
                async move |store: crate::store::Store| store.count_consent_rules(user).await;
            if self.stored(count).await? >= MAX_RULES {
                let rules = [("n", MAX_RULES.to_string())];
                return Err(NaviError::said(
                    ErrorCode::TooManyRules,
                    Phrase::new(PhraseCode::RulesFull, rules),
                ));
            }
        }
        let answering = Command::Answer {
            approval_id,
            answer: ApprovalAnswer { note, ..given },
            author: self.author(user).await?,
        };
        match self.request(open, answering).await? {
            Answered::Now => Ok(()),
            Answered::Before(resolution) => Err(resolved_before(resolution)),
            Answered::Unknown => {
                let known = self.stored(async move |store| {
                    store.approval_resolution(session, approval_id).await
                });
                Err(match known.await? {
                    Some(Some(resolution)) => resolved_before(resolution),
                    Some(None) | None => NaviError::new(
                        ErrorCode::ApprovalNotFound,
                        format!("nothing waits for approval under {approval_id} in this session"),
                    ),
                })
            }
        }
    }

    /// Sets how much the session may do without asking, from here on. What waits already
    /// waits on.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn set_mode(
        &self,
        user: UserId,
        session: SessionId,
        mode: ConsentMode,
    ) -> Result<(), NaviError> {
        let open = OpenSession::as_owner(user, session);
        self.request(open, Command::SetMode(mode)).await
    }

    /// What the user allowed or forbade once and for all, newest first.
    ///
    /// # Errors
    /// What the store says.
    pub async fn consent_rules(&self, user: UserId) -> Result<Vec<ConsentRule>, NaviError> {
        self.stored(async move |store| store.consent_rules(user).await)
            .await
    }

    /// Takes a rule back: such calls are asked about again.
    ///
    /// # Errors
    /// `rule_not_found`.
    pub async fn delete_consent_rule(&self, user: UserId, id: RuleId) -> Result<(), NaviError> {
        let deleted = self
            .stored(async move |store| store.delete_consent_rule(user, id).await)
            .await?;
        if deleted {
            return Ok(());
        }
        Err(NaviError::said(
            ErrorCode::RuleNotFound,
            PhraseCode::NoSuchRule,
        ))
    }

    /// What was allowed or denied, and by whom, newest first: a page of at most 200 lines,
    /// those before the one with the id `before`. Calls that only read are not in it. Lines
    /// are kept for 90 days, and the newest 10,000.
    ///
    /// # Errors
    /// `invalid_field` where the limit is not 1 to 200.
    pub async fn consent_log(
        &self,
        user: UserId,
        before: Option<i64>,
        limit: u64,
    ) -> Result<Vec<ConsentEntry>, NaviError> {
        if !(1..=MAX_LOG_PAGE).contains(&limit) {
            return Err(invalid(format!("limit: a number from 1 to {MAX_LOG_PAGE}")));
        }
        self.stored(async move |store| store.consent_log(user, before, limit).await)
            .await
    }
}

fn note(note: Option<String>, decision: Decision) -> Result<Option<String>, NaviError> {
    let note = note.unwrap_or_default();
    let chars = note.chars().count();
    let note = note.trim();
    if note.is_empty() && chars <= MAX_NOTE_CHARS {
        return Ok(None);
    }
    let problem = if chars > MAX_NOTE_CHARS {
        format!("at most {MAX_NOTE_CHARS} characters; this one has {chars}")
    } else if note.chars().any(is_moving) {
        "one line, without control characters and marks of direction".to_owned()
    } else if decision.permission() == Permission::Allow {
        "it says why not, and goes with a denial alone; leave it out".to_owned()
    } else {
        return Ok(Some(note.to_owned()));
    };
    Err(invalid(format!("note: {problem}")))
}

fn resolved_before(resolution: Resolution) -> NaviError {
    let what = match resolution.decision.permission() {
        Permission::Allow => "allowed",
        Permission::Deny => "denied",
    };
    let by = match resolution.by {
        DecidedBy::User => "the user",
        DecidedBy::Timeout => "the time limit",
        DecidedBy::Stop => "the end of its run",
    };
    NaviError::new(
        ErrorCode::ApprovalResolved,
        format!("this was answered already: {what} by {by}"),
    )
}
