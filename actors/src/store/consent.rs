//! Requests for consent, rules, and the list of what was allowed: their rows, and what is
//! asked of them beside a session's own writes.

use chrono::{DateTime, Utc};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::{
    ColumnTrait, Condition, DatabaseTransaction, EntityTrait, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect,
};
use uuid::Uuid;

use super::entities::{approval, consent_entry, consent_rule};
use super::rows::person_ref;
use super::values::{
    DbText, db_time, from_json, name_of, named, option_from_json, option_to_json, to_json,
};
use super::{Store, StoreError, delete};
use crate::domain::consent::Asking;
use crate::domain::session::write::{ConsentRow, NewRule};
use crate::protocol::approval::{
    ConsentEntry, ConsentRule, DecidedBy, PendingApproval, Resolution,
};
use crate::protocol::command::Decision;
use crate::protocol::ids::{ApprovalId, CallId, RuleId, RunId, SessionId, UserId};

/// As many lines of the list as are kept of a user.
const MAX_ENTRIES: u64 = 10_000;

impl Store {
    /// The user's rule for calls of this tool with this key.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn consent_rule(
        &self,
        user_id: UserId,
        tool: &str,
        key: &str,
    ) -> Result<Option<ConsentRule>, StoreError> {
        consent_rule::Entity::find()
            .filter(consent_rule::Column::UserId.eq(user_id.0))
            .filter(consent_rule::Column::Tool.eq(DbText::from(tool)))
            .filter(consent_rule::Column::Key.eq(DbText::from(key)))
            .one(&self.read)
            .await?
            .map(rule_from_row)
            .transpose()
    }

    /// When a call of this tool with this key was last allowed once and for all in this session.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn always_given(
        &self,
        session_id: SessionId,
        tool: &str,
        key: &str,
    ) -> Result<Option<DateTime<Utc>>, StoreError> {
        Ok(approval::Entity::find()
            .select_only()
            .column(approval::Column::DecidedAt)
            .filter(approval::Column::SessionId.eq(session_id.0))
            .filter(approval::Column::Tool.eq(DbText::from(tool)))
            .filter(approval::Column::RuleKey.eq(DbText::from(key)))
            .filter(approval::Column::Decision.eq(name_of(&Decision::Always)?))
            .filter(approval::Column::DecidedAt.is_not_null())
            .order_by_desc(approval::Column::DecidedAt)
            .into_tuple()
            .one(&self.read)
            .await?)
    }

    /// All rules of this user, newest first.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn consent_rules(&self, user_id: UserId) -> Result<Vec<ConsentRule>, StoreError> {
        consent_rule::Entity::find()
            .filter(consent_rule::Column::UserId.eq(user_id.0))
            .order_by_desc(consent_rule::Column::CreatedAt)
            .order_by_desc(consent_rule::Column::Id)
            .all(&self.read)
            .await?
            .into_iter()
            .map(rule_from_row)
            .collect()
    }

    /// How many rules this user has.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn count_consent_rules(&self, user_id: UserId) -> Result<u64, StoreError> {
        Ok(consent_rule::Entity::find()
            .filter(consent_rule::Column::UserId.eq(user_id.0))
            .count(&self.read)
            .await?)
    }

    /// Takes a rule of this user's away. Says whether it was there.
    ///
    /// # Errors
    /// As the store's other writes.
    pub async fn delete_consent_rule(
        &self,
        user_id: UserId,
        id: RuleId,
    ) -> Result<bool, StoreError> {
        let deleted = consent_rule::Entity::delete_many()
            .filter(consent_rule::Column::Id.eq(id.0))
            .filter(consent_rule::Column::UserId.eq(user_id.0))
            .exec(&self.write)
            .await?;
        Ok(deleted.rows_affected > 0)
    }

    /// How a request of this session was answered. The outer none: there is no such request;
    /// the inner: it waits.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn approval_resolution(
        &self,
        session_id: SessionId,
        id: ApprovalId,
    ) -> Result<Option<Option<Resolution>>, StoreError> {
        let row = approval::Entity::find_by_id(id.0)
            .filter(approval::Column::SessionId.eq(session_id.0))
            .one(&self.read)
            .await?;
        row.map(|row| match (row.decision, row.decided_by) {
            (Some(decision), Some(by)) => Ok(Some(Resolution {
                decision: named::<Decision>("approvals.decision", decision)?,
                by: named::<DecidedBy>("approvals.decided_by", by)?,
            })),
            _ => Ok(None),
        })
        .transpose()
    }

    /// What was allowed or denied in this user's sessions, newest first: at most `limit` lines,
    /// those before the one with the id `before`.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn consent_log(
        &self,
        user_id: UserId,
        before: Option<i64>,
        limit: u64,
    ) -> Result<Vec<ConsentEntry>, StoreError> {
        let mut of_user = Condition::all().add(consent_entry::Column::UserId.eq(user_id.0));
        if let Some(before) = before {
            of_user = of_user.add(consent_entry::Column::Id.lt(before));
        }
        consent_entry::Entity::find()
            .filter(of_user)
            .order_by_desc(consent_entry::Column::Id)
            .limit(limit)
            .all(&self.read)
            .await?
            .into_iter()
            .map(entry_from_row)
            .collect()
    }

    /// Drops lines of the list from before this time, and of each user all but the newest.
    ///
    /// # Errors
    /// As the store's other writes.
    pub async fn purge_consent_log(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        let old = consent_entry::Column::At.lt(db_time(before));
        delete::<consent_entry::Entity>(&self.write, old).await?;
        let users: Vec<Uuid> = consent_entry::Entity::find()
            .select_only()
            .column(consent_entry::Column::UserId)
            .distinct()
            .into_tuple()
            .all(&self.read)
            .await?;
        for user in users {
            let of_user = consent_entry::Column::UserId.eq(user);
            let first_too_old: Option<i64> = consent_entry::Entity::find()
                .select_only()
                .column(consent_entry::Column::Id)
                .filter(of_user.clone())
                .order_by_desc(consent_entry::Column::Id)
                .offset(MAX_ENTRIES)
                .limit(1)
                .into_tuple()
                .one(&self.read)
                .await?;
            if let Some(id) = first_too_old {
                consent_entry::Entity::delete_many()
                    .filter(of_user)
                    .filter(consent_entry::Column::Id.lte(id))
                    .exec(&self.write)
                    .await?;
            }
        }
        Ok(())
    }
}

/// The requests of a session that wait, oldest first.
pub(super) async fn waiting(
    moment: &DatabaseTransaction,
    id: SessionId,
) -> Result<Vec<Asking>, StoreError> {
    approval::Entity::find()
        .filter(approval::Column::SessionId.eq(id.0))
        .filter(approval::Column::Decision.is_null())
        .order_by_asc(approval::Column::Id)
        .all(moment)
        .await?
        .into_iter()
        .map(approval_from_row)
        .collect()
}

pub(super) fn approval_to_row(
    session_id: SessionId,
    approval: Asking,
) -> Result<approval::ActiveModel, StoreError> {
    let Asking {
        pending,
        digest,
        rule_key,
    } = approval;
    Ok(approval::ActiveModel {
        id: Set(pending.approval_id.0),
        session_id: Set(session_id.0),
        run_id: Set(pending.run_id.0),
        call_id: Set(pending.call_id.0.into()),
        tool: Set(pending.tool.into()),
        request: Set(to_json(&pending.request)?.into()),
        digest: Set(digest),
        rule_key: Set(rule_key.map(Into::into)),
        requested_at: Set(db_time(pending.requested_at)),
        expires_at: Set(db_time(pending.expires_at)),
        decision: Set(None),
        decided_by: Set(None),
        decided_at: Set(None),
    })
}

fn approval_from_row(row: approval::Model) -> Result<Asking, StoreError> {
    Ok(Asking {
        pending: PendingApproval {
            approval_id: ApprovalId(row.id),
            run_id: RunId(row.run_id),
            call_id: CallId(row.call_id.0),
            tool: row.tool.0,
            request: from_json("approvals.request", &row.request.0)?,
            requested_at: row.requested_at,
            expires_at: row.expires_at,
            // A child's is over by the time that it would be read.
            is_subagent: false,
        },
        digest: row.digest,
        rule_key: row.rule_key.map(|key| key.0),
    })
}

/// The change of a row that an answer makes.
pub(super) fn resolved(
    resolution: Resolution,
    at: DateTime<Utc>,
) -> Result<approval::ActiveModel, StoreError> {
    Ok(approval::ActiveModel {
        decision: Set(Some(name_of(&resolution.decision)?)),
        decided_by: Set(Some(name_of(&resolution.by)?)),
        decided_at: Set(Some(db_time(at))),
        ..Default::default()
    })
}

pub(super) fn rule_to_row(new: NewRule) -> Result<consent_rule::ActiveModel, StoreError> {
    let NewRule { user_id, key, rule } = new;
    Ok(consent_rule::ActiveModel {
        id: Set(rule.id.0),
        user_id: Set(user_id.0),
        tool: Set(rule.tool.into()),
        key: Set(key.into()),
        words: Set(rule.words.into()),
        phrase: Set(option_to_json(rule.phrase.as_ref())?),
        decision: Set(name_of(&rule.decision)?),
        created_at: Set(db_time(rule.created_at)),
    })
}

fn rule_from_row(row: consent_rule::Model) -> Result<ConsentRule, StoreError> {
    Ok(ConsentRule {
        id: RuleId(row.id),
        tool: row.tool.0,
        words: row.words.0,
        phrase: option_from_json("consent_rules.phrase", row.phrase)?,
        decision: named("consent_rules.decision", row.decision)?,
        created_at: row.created_at,
    })
}

pub(super) fn entry_to_row(row: ConsentRow) -> Result<consent_entry::ActiveModel, StoreError> {
    let ConsentRow { user_id, entry } = row;
    Ok(consent_entry::ActiveModel {
        id: NotSet,
        user_id: Set(user_id.0),
        session_id: Set(entry.session_id.0),
        run_id: Set(entry.run_id.0),
        call_id: Set(entry.call_id.0.into()),
        tool: Set(entry.tool.into()),
        effect: Set(name_of(&entry.effect)?),
        summary: Set(entry.summary.into()),
        decision: Set(name_of(&entry.decision)?),
        decided_by: Set(name_of(&entry.by)?),
        at: Set(db_time(entry.at)),
        rule: Set(entry.rule.map(Into::into)),
        phrases: Set(option_to_json(entry.phrases.as_ref())?),
        note: Set(entry.note.map(Into::into)),
        author_id: Set(entry.author.as_ref().map(|author| author.id.0)),
        author_name: Set(entry.author.map(|author| author.name.into())),
    })
}

fn entry_from_row(row: consent_entry::Model) -> Result<ConsentEntry, StoreError> {
    Ok(ConsentEntry {
        id: row.id,
        at: row.at,
        session_id: SessionId(row.session_id),
        run_id: RunId(row.run_id),
        call_id: CallId(row.call_id.0),
        tool: row.tool.0,
        effect: named("consent_log.effect", row.effect)?,
        summary: row.summary.0,
        decision: named("consent_log.decision", row.decision)?,
        by: named("consent_log.decided_by", row.decided_by)?,
        rule: row.rule.map(|rule| rule.0),
        phrases: option_from_json("consent_log.phrases", row.phrases)?,
        note: row.note.map(|note| note.0),
        author: person_ref(row.author_id, row.author_name),
    })
}
