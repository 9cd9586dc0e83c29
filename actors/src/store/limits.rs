//! Limits of single people, and what each has of what is limited.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Condition, IntoCondition as _, OnConflict};
use sea_orm::{
    ColumnTrait, EntityTrait, ExprTrait as _, JoinType, QueryFilter, QuerySelect, RelationDef,
};
use uuid::Uuid;

use super::entities::{person_limit, run, session, session_file, used_token};
use super::people::is_held;
use super::usage::kept_since;
use super::values::{db_time, from_db, to_db};
use super::{Store, StoreError};
use crate::protocol::ids::UserId;
use crate::protocol::limits::{LimitsChange, OwnLimits};

/// What a person has, as the database counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub sessions: u64,
    pub file_bytes: u64,
    /// Since the time that was asked for.
    pub tokens: u64,
}

impl Store {
    /// The limits of all who have some of their own.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn own_limits(&self) -> Result<HashMap<UserId, OwnLimits>, StoreError> {
        let rows = person_limit::Entity::find().all(&self.read).await?;
        let all = rows.into_iter();
        all.map(|row| Ok((UserId(row.user_id), from_row(&row)?)))
            .collect()
    }

    /// Changes a person's own limits, and tells what they are then; none where there is no such
    /// person.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn change_limits(
        &self,
        of: UserId,
        change: LimitsChange,
    ) -> Result<Option<OwnLimits>, StoreError> {
        let transaction = self.begin_write().await?;
        if !is_held(&transaction, of).await? {
            return Ok(None);
        }
        let found = person_limit::Entity::find_by_id(of.0)
            .one(&transaction)
            .await?;
        let own = found.as_ref().map(from_row).transpose()?;
        let own = own.unwrap_or_default();
        let own = change.of(own);
        if own == OwnLimits::default() {
            person_limit::Entity::delete_by_id(of.0)
                .exec(&transaction)
                .await?;
        } else {
            use person_limit::Column::{FilesMb, Runs, Sessions, Tabs, TokensADay, Uploads};
            let instead = OnConflict::column(person_limit::Column::UserId)
                .update_columns([Runs, Uploads, Sessions, FilesMb, TokensADay, Tabs])
                .to_owned();
            person_limit::Entity::insert(to_row(of, own)?)
                .on_conflict(instead)
                .exec_without_returning(&transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(Some(own))
    }

    /// What people have: one, or all who have anything. Of tokens those are counted that runs used
    /// which began since then, and those of that time that no run tells any more.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn held_by_people(
        &self,
        of: Option<UserId>,
        since: DateTime<Utc>,
    ) -> Result<HashMap<UserId, Held>, StoreError> {
        let whose = || match of {
            Some(user) => session::Column::UserId.eq(user.0).into_condition(),
            None => Condition::all(),
        };
        // One moment, and one connection.
        let moment = self.begin_read().await?;
        let sessions = session::Entity::find()
            .select_only()
            .column(session::Column::UserId)
            .column_as(session::Column::Id.count(), "sessions")
            .filter(whose())
            .filter(session::Column::Ephemeral.eq(false))
            .filter(session::Column::DeletedAt.is_null())
            .group_by(session::Column::UserId)
            .into_tuple::<(Uuid, i64)>()
            .all(&moment)
            .await?;
        let of_session: RelationDef = session_file::Entity::belongs_to(session::Entity)
            .from(session_file::Column::SessionId)
            .to(session::Column::Id)
            .into();
        // SUM of integers is a NUMERIC on PostgreSQL.
        let bytes = session_file::Column::Bytes.sum().cast_as("BIGINT");
        let files = session_file::Entity::find()
            .select_only()
            .column(session::Column::UserId)
            .column_as(bytes, "bytes")
            .join(JoinType::InnerJoin, of_session)
            .filter(whose())
            .filter(session_file::Column::GoneAt.is_null())
            .group_by(session::Column::UserId)
            .into_tuple::<(Uuid, i64)>()
            .all(&moment)
            .await?;
        let in_session: RelationDef = run::Entity::belongs_to(session::Entity)
            .from(run::Column::SessionId)
            .to(session::Column::Id)
            .into();
        let sum = |column: run::Column| column.sum().cast_as("BIGINT");
        let tokens = run::Entity::find()
            .select_only()
            .column(session::Column::UserId)
            .column_as(sum(run::Column::PromptTokens), "prompt_tokens")
            .column_as(sum(run::Column::CompletionTokens), "completion_tokens")
            .join(JoinType::InnerJoin, in_session)
            .filter(whose())
            .filter(run::Column::StartedAt.gte(db_time(since)))
            .group_by(session::Column::UserId)
            .into_tuple::<(Uuid, i64, i64)>()
            .all(&moment)
            .await?;
        let of_kept = match of {
            Some(user) => used_token::Column::UserId.eq(user.0).into_condition(),
            None => Condition::all(),
        };
        let kept = kept_since(since)?
            .select_only()
            .column(used_token::Column::UserId)
            .column_as(used_token::Column::Tokens.sum().cast_as("BIGINT"), "tokens")
            .filter(of_kept)
            .group_by(used_token::Column::UserId)
            .into_tuple::<(Uuid, i64)>()
            .all(&moment)
            .await?;
        moment.commit().await?;
        let mut held: HashMap<UserId, Held> = HashMap::new();
        for (user, count) in sessions {
            held.entry(UserId(user)).or_default().sessions = from_db("sessions", count)?;
        }
        for (user, bytes) in files {
            let bytes = from_db("session_files.bytes", bytes)?;
            held.entry(UserId(user)).or_default().file_bytes = bytes;
        }
        for (user, asked, said) in tokens {
            let asked: u64 = from_db("runs.prompt_tokens", asked)?;
            let said: u64 = from_db("runs.completion_tokens", said)?;
            held.entry(UserId(user)).or_default().tokens = asked + said;
        }
        for (user, tokens) in kept {
            let tokens: u64 = from_db("used_tokens.tokens", tokens)?;
            held.entry(UserId(user)).or_default().tokens += tokens;
        }
        Ok(held)
    }
}

fn from_row(row: &person_limit::Model) -> Result<OwnLimits, StoreError> {
    let small = |number: Option<i64>| number.map(|it| from_db("person_limits", it)).transpose();
    Ok(OwnLimits {
        runs: small(row.runs)?,
        uploads: small(row.uploads)?,
        sessions: small(row.sessions)?,
        files_mb: small(row.files_mb)?,
        tokens_a_day: row
            .tokens_a_day
            .map(|it| from_db("person_limits.tokens_a_day", it))
            .transpose()?,
        tabs: small(row.tabs)?,
    })
}

fn to_row(of: UserId, own: OwnLimits) -> Result<person_limit::ActiveModel, StoreError> {
    Ok(person_limit::ActiveModel {
        user_id: Set(of.0),
        runs: Set(own.runs.map(i64::from)),
        uploads: Set(own.uploads.map(i64::from)),
        sessions: Set(own.sessions.map(i64::from)),
        files_mb: Set(own.files_mb.map(i64::from)),
        tokens_a_day: Set(own.tokens_a_day.map(to_db).transpose()?),
        tabs: Set(own.tabs.map(i64::from)),
    })
}
