//! Facts, their earlier values, and the summary (SPEC section 9).
//!
//! Every change of a user's facts is one transaction with a new draft of the summary and a
//! new revision, so that no summary outlives a fact that was deleted, and a model that was
//! asked before a change cannot write after it.

use chrono::{DateTime, TimeDelta, Utc};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, OnConflict, Query};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, EntityTrait, QueryFilter, QueryOrder,
    QuerySelect,
};

use super::entities::{
    memory_fact, memory_forgotten, memory_former, memory_summary, session, session_memory,
};
use super::memory_facts::{
    changed_at, facts, find, former_from_row, former_of, is, lock, refresh, save,
};
use super::values::db_time;
use super::{Store, StoreError, delete};
use crate::domain::memory::{FactName, MAX_FORGOTTEN, NewFact};
use crate::protocol::ids::UserId;
use crate::protocol::memory::{Fact, FormerFact};

/// All that is remembered of a user, at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// By category and key.
    pub facts: Vec<Fact>,
    /// None where there is nothing to say.
    pub summary: Option<StoredSummary>,
    /// Moves on with every change of the facts.
    pub revision: i64,
}

/// A summary as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSummary {
    pub text: String,
    /// Written without a model.
    pub is_draft: bool,
    pub updated_at: DateTime<Utc>,
}

/// What became of a fact that was to be saved.
#[derive(Clone, Debug, PartialEq)]
pub enum SavedFact {
    /// It was known so, or something newer or more certain is. The fact as it stands; none
    /// where it was forgotten after this was said.
    Kept(Option<Fact>),
    Created(Fact),
    Confirmed(Fact),
    Replaced {
        fact: Fact,
        former: Fact,
    },
    /// The user has as many facts as there may be.
    Full,
}

impl SavedFact {
    /// Whether it changed anything.
    #[must_use]
    pub fn changed(&self) -> bool {
        match self {
            Self::Created(_) | Self::Confirmed(_) | Self::Replaced { .. } => true,
            Self::Kept(_) | Self::Full => false,
        }
    }
}

/// An earlier value, with the fact that it is of.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedFormerFact {
    pub name: FactName,
    pub former: FormerFact,
}

impl Store {
    /// All that is remembered of a user.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn memory(&self, user: UserId) -> Result<Memory, StoreError> {
        let moment = self.begin_read().await?;
        let facts = facts(&moment, user).await?;
        let row = memory_summary::Entity::find_by_id(user.0)
            .one(&moment)
            .await?;
        moment.commit().await?;
        Ok(Memory {
            facts,
            revision: row.as_ref().map_or(0, |row| row.revision),
            summary: row
                .filter(|row| !row.text.0.is_empty())
                .map(|row| StoredSummary {
                    text: row.text.0,
                    is_draft: row.is_draft,
                    updated_at: row.updated_at,
                }),
        })
    }

    /// The summary's text; none where nothing is known of the user.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn memory_summary(&self, user: UserId) -> Result<Option<String>, StoreError> {
        let row = memory_summary::Entity::find_by_id(user.0)
            .one(&self.read)
            .await?;
        Ok(row.map(|row| row.text.0).filter(|text| !text.is_empty()))
    }

    /// The earlier values of a fact, newest first; none where there is no such fact.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn fact_history(
        &self,
        user: UserId,
        name: &FactName,
    ) -> Result<Option<Vec<FormerFact>>, StoreError> {
        let moment = self.begin_read().await?;
        if find(&moment, user, name).await?.is_none() {
            return Ok(None);
        }
        let rows = memory_former::Entity::find()
            .filter(former_of(user, name))
            .order_by_desc(memory_former::Column::Id)
            .all(&moment)
            .await?;
        moment.commit().await?;
        Ok(Some(rows.into_iter().map(former_from_row).collect()))
    }

    /// The earlier values of all facts, each fact's newest first.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn whole_fact_history(
        &self,
        user: UserId,
    ) -> Result<Vec<NamedFormerFact>, StoreError> {
        let rows = memory_former::Entity::find()
            .filter(memory_former::Column::UserId.eq(user.0))
            .order_by_desc(memory_former::Column::Id)
            .all(&self.read)
            .await?;
        let mut all: Vec<NamedFormerFact> = rows
            .into_iter()
            .map(|row| NamedFormerFact {
                name: FactName {
                    category: row.category.clone(),
                    key: row.key.clone(),
                },
                former: former_from_row(row),
            })
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// Saves a fact: newer wins, the old value goes into the history.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where the user or the source session is unknown;
    /// [`StoreError::Unavailable`].
    pub async fn save_fact(&self, user: UserId, new: NewFact) -> Result<SavedFact, StoreError> {
        let transaction = self.begin_write().await?;
        lock(&transaction, user, new.at).await?;
        save(transaction, user, new).await
    }

    /// Saves a fact as its user wants it: that stands, though the clock was ahead when the fact
    /// was last changed or forgotten.
    ///
    /// # Errors
    /// As [`Store::save_fact`].
    pub async fn correct_fact(
        &self,
        user: UserId,
        mut new: NewFact,
    ) -> Result<SavedFact, StoreError> {
        let transaction = self.begin_write().await?;
        lock(&transaction, user, new.at).await?;
        if let Some(changed) = changed_at(&transaction, user, &new.name).await? {
            new.at = new.at.max(changed + TimeDelta::microseconds(1));
        }
        save(transaction, user, new).await
    }

    /// Forgets a fact and its history. Tells whether it was there.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn forget_fact(
        &self,
        user: UserId,
        name: &FactName,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let transaction = self.begin_write().await?;
        lock(&transaction, user, now).await?;
        // The history goes with its fact.
        let deleted = delete::<memory_fact::Entity>(&transaction, is(user, name)).await?;
        if deleted == 0 {
            return Ok(false);
        }
        note_forgotten(&transaction, user, name, now).await?;
        refresh(&transaction, user, now).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Forgets everything: facts, history, summary. What was said until now is taken as
    /// read, so that it does not come back from conversations that nobody has read yet.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn forget_all(&self, user: UserId, now: DateTime<Utc>) -> Result<(), StoreError> {
        let transaction = self.begin_write().await?;
        lock(&transaction, user, now).await?;
        delete::<memory_fact::Entity>(&transaction, memory_fact::Column::UserId.eq(user.0)).await?;
        let theirs = memory_forgotten::Column::UserId.eq(user.0);
        delete::<memory_forgotten::Entity>(&transaction, theirs).await?;
        take_all_as_read(&transaction, user, now).await?;
        refresh(&transaction, user, now).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Writes what a model made of the facts as they stood at `revision`. Tells whether it
    /// was written: where a fact changed meanwhile, it was not.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn write_summary(
        &self,
        user: UserId,
        revision: i64,
        text: &str,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let written = memory_summary::Entity::update_many()
            .set(memory_summary::ActiveModel {
                text: Set(text.into()),
                is_draft: Set(false),
                updated_at: Set(db_time(now)),
                ..Default::default()
            })
            .filter(memory_summary::Column::UserId.eq(user.0))
            .filter(memory_summary::Column::Revision.eq(revision))
            .exec(&self.write)
            .await?;
        Ok(written.rows_affected > 0)
    }
}

async fn note_forgotten(
    transaction: &DatabaseTransaction,
    user: UserId,
    name: &FactName,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    use memory_forgotten::Column;
    memory_forgotten::Entity::insert(memory_forgotten::ActiveModel {
        user_id: Set(user.0),
        category: Set(name.category.clone()),
        key: Set(name.key.clone()),
        forgotten_at: Set(db_time(now)),
    })
    .on_conflict(
        OnConflict::columns([Column::UserId, Column::Category, Column::Key])
            .update_column(Column::ForgottenAt)
            .to_owned(),
    )
    .exec_without_returning(transaction)
    .await?;
    let first_too_old: Option<DateTime<Utc>> = memory_forgotten::Entity::find()
        .select_only()
        .column(Column::ForgottenAt)
        .filter(Column::UserId.eq(user.0))
        .order_by_desc(Column::ForgottenAt)
        .offset(MAX_FORGOTTEN)
        .limit(1)
        .into_tuple()
        .one(transaction)
        .await?;
    if let Some(time) = first_too_old {
        memory_forgotten::Entity::delete_many()
            .filter(Column::UserId.eq(user.0))
            .filter(Column::ForgottenAt.lte(time))
            .exec(transaction)
            .await?;
    }
    Ok(())
}

async fn take_all_as_read(
    transaction: &DatabaseTransaction,
    user: UserId,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    use session_memory::Column;
    let sessions = Query::select()
        .column(session::Column::Id)
        .expr(Expr::value(db_time(now)))
        .column(session::Column::MessageCount)
        .expr(Expr::value(0_i64))
        .expr(Expr::value(0_i64))
        .from(session::Entity)
        .and_where(session::Column::UserId.eq(user.0))
        .take();
    let mut insert = Query::insert();
    insert
        .into_table(session_memory::Entity)
        .columns([
            Column::SessionId,
            Column::ExtractedAt,
            Column::ReadOrdinal,
            Column::Failures,
            Column::FailedCount,
        ])
        .select_from(sessions)
        .map_err(|error| StoreError::Corrupt(error.to_string()))?
        .on_conflict(
            OnConflict::column(Column::SessionId)
                .update_columns([Column::ExtractedAt, Column::ReadOrdinal])
                .to_owned(),
        );
    transaction.execute(&insert).await?;
    Ok(())
}
