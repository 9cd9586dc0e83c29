//! The tokens that runs used, by model; and those that a person used, though no run tells it any
//! more.

use std::collections::BTreeMap;
use std::ops::Range;

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, OnConflict, Query};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DerivePartialModel, EntityTrait,
    ExprTrait as _, FromQueryResult, QueryFilter, QueryOrder, QuerySelect, Select,
};
use uuid::Uuid;

use super::entities::{run, session, used_token};
use super::run_log::with_descendants;
use super::values::{DbText, corrupt, db_time, from_db, to_db};
use super::{Store, StoreError, delete};
use crate::domain::prices::Used;
use crate::protocol::ids::{RunId, SessionId, UserId};

/// So much of a person's time is one row.
const STEP: TimeDelta = TimeDelta::minutes(10);

impl Store {
    /// What a run used, and all runs under it.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn used_by_run(&self, run_id: RunId) -> Result<Vec<Used>, StoreError> {
        let moment = self.begin_read().await?;
        let family = with_descendants(&moment, run_id).await?;
        let runs = run::Entity::find().filter(run::Column::Id.is_in(family));
        let used = used_by(&moment, runs).await?;
        moment.commit().await?;
        Ok(used)
    }

    /// What all runs of a session used.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn used_by_session(&self, id: SessionId) -> Result<Vec<Used>, StoreError> {
        let moment = self.begin_read().await?;
        let runs = run::Entity::find().filter(run::Column::SessionId.eq(id.0));
        let used = used_by(&moment, runs).await?;
        moment.commit().await?;
        Ok(used)
    }

    /// What all runs of a user's used that began within this time.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn used_within(
        &self,
        user: UserId,
        time: Range<DateTime<Utc>>,
    ) -> Result<Vec<Used>, StoreError> {
        let moment = self.begin_read().await?;
        let runs = runs_of(user)
            .filter(run::Column::StartedAt.gte(db_time(time.start)))
            .filter(run::Column::StartedAt.lt(db_time(time.end)));
        let used = used_by(&moment, runs).await?;
        moment.commit().await?;
        Ok(used)
    }

    /// What the runs of a session used that began since then, each with all runs under it.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn used_by_runs(
        &self,
        session: SessionId,
        since: DateTime<Utc>,
    ) -> Result<BTreeMap<RunId, Vec<Used>>, StoreError> {
        let runs: Vec<RunUse> = run::Entity::find()
            .filter(run::Column::SessionId.eq(session.0))
            .filter(run::Column::StartedAt.gte(db_time(since)))
            .order_by_asc(run::Column::StartedAt)
            .order_by_asc(run::Column::Id)
            .into_partial_model()
            .all(&self.read)
            .await?;
        // A run begins after the one that started it.
        let mut first: BTreeMap<Uuid, Uuid> = BTreeMap::new();
        let mut used: BTreeMap<RunId, Vec<Used>> = BTreeMap::new();
        for run in runs {
            let parent = run.parent_run_id.and_then(|parent| first.get(&parent));
            let own = parent.copied().unwrap_or(run.id);
            first.insert(run.id, own);
            used.entry(RunId(own)).or_default().push(Used {
                backend: run.backend.0,
                model: run.model.0,
                prompt_tokens: from_db("runs.prompt_tokens", run.prompt_tokens)?,
                completion_tokens: from_db("runs.completion_tokens", run.completion_tokens)?,
                cached_tokens: from_db("runs.cached_tokens", run.cached_tokens)?,
            });
        }
        Ok(used)
    }

    /// How many tokens a person used since then, with those that no run tells any more.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn tokens_since(
        &self,
        user: UserId,
        since: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        // One moment: a session that goes has its tokens here or there.
        let moment = self.begin_read().await?;
        let runs = runs_of(user).filter(run::Column::StartedAt.gte(db_time(since)));
        let used = used_by(&moment, runs).await?;
        let sum = used_token::Column::Tokens.sum().cast_as("BIGINT");
        let kept: Option<Option<i64>> = kept_since(since)?
            .filter(used_token::Column::UserId.eq(user.0))
            .select_only()
            .column_as(sum, "tokens")
            .into_tuple()
            .one(&moment)
            .await?;
        moment.commit().await?;
        let kept: u64 = from_db("used_tokens.tokens", kept.flatten().unwrap_or(0))?;
        let of_runs = used
            .iter()
            .map(|it| it.prompt_tokens + it.completion_tokens);
        Ok(kept + of_runs.sum::<u64>())
    }

    /// Counts tokens as used by a person, beside their runs.
    ///
    /// # Errors
    /// As the store's other writes.
    pub async fn count_tokens(
        &self,
        user: UserId,
        tokens: u64,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        count(&self.write, user, step_of(at)?, to_db(tokens)?).await
    }

    /// Forgets what was used before this time and no run tells.
    ///
    /// # Errors
    /// As the store's other writes.
    pub async fn forget_used_tokens(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        let old = used_token::Column::BeganAt.lt(step_of(before)?);
        delete::<used_token::Entity>(&self.write, old).await?;
        Ok(())
    }
}

fn runs_of(user: UserId) -> Select<run::Entity> {
    let own = Query::select()
        .column(session::Column::Id)
        .from(session::Entity)
        .and_where(session::Column::UserId.eq(user.0))
        .take();
    run::Entity::find().filter(run::Column::SessionId.in_subquery(own))
}

/// Those rows of what no run tells that may be of this time or later.
pub(super) fn kept_since(since: DateTime<Utc>) -> Result<Select<used_token::Entity>, StoreError> {
    Ok(used_token::Entity::find().filter(used_token::Column::BeganAt.gte(step_of(since)?)))
}

/// Keeps what the runs of a session used that goes for good, of those that began since then.
pub(super) async fn keep_used(
    transaction: &DatabaseTransaction,
    owner: UserId,
    id: SessionId,
    since: DateTime<Utc>,
) -> Result<(), StoreError> {
    let runs: Vec<(DateTime<Utc>, i64, i64)> = run::Entity::find()
        .select_only()
        .column(run::Column::StartedAt)
        .column(run::Column::PromptTokens)
        .column(run::Column::CompletionTokens)
        .filter(run::Column::SessionId.eq(id.0))
        .filter(run::Column::StartedAt.gte(db_time(since)))
        .into_tuple()
        .all(transaction)
        .await?;
    let mut steps: BTreeMap<DateTime<Utc>, i64> = BTreeMap::new();
    for (began, asked, said) in runs {
        *steps.entry(step_of(began)?).or_default() += asked + said;
    }
    for (began_at, tokens) in steps {
        count(transaction, owner, began_at, tokens).await?;
    }
    Ok(())
}

async fn count(
    db: &impl ConnectionTrait,
    user: UserId,
    began_at: DateTime<Utc>,
    tokens: i64,
) -> Result<(), StoreError> {
    let sum = Expr::col((used_token::Entity, used_token::Column::Tokens)).add(tokens);
    let add = OnConflict::columns([used_token::Column::UserId, used_token::Column::BeganAt])
        .value(used_token::Column::Tokens, sum)
        .to_owned();
    used_token::Entity::insert(used_token::ActiveModel {
        user_id: Set(user.0),
        began_at: Set(began_at),
        tokens: Set(tokens),
    })
    .on_conflict(add)
    .exec_without_returning(db)
    .await?;
    Ok(())
}

/// When the row's time begins that this is in.
fn step_of(at: DateTime<Utc>) -> Result<DateTime<Utc>, StoreError> {
    let step = at.duration_trunc(STEP);
    step.map_err(|error| corrupt("used_tokens.began_at", error))
}

#[derive(Debug, DerivePartialModel)]
#[sea_orm(entity = "run::Entity")]
struct RunUse {
    id: Uuid,
    parent_run_id: Option<Uuid>,
    backend: DbText,
    model: DbText,
    prompt_tokens: i64,
    completion_tokens: i64,
    cached_tokens: i64,
}

#[derive(Debug, FromQueryResult)]
struct Row {
    backend: DbText,
    model: DbText,
    prompt_tokens: i64,
    completion_tokens: i64,
    cached_tokens: i64,
}

async fn used_by(
    moment: &DatabaseTransaction,
    runs: Select<run::Entity>,
) -> Result<Vec<Used>, StoreError> {
    // PostgreSQL's sum of these is no whole number by its type.
    let sum = |column: run::Column| column.sum().cast_as("BIGINT");
    let rows = runs
        .select_only()
        .column(run::Column::Backend)
        .column(run::Column::Model)
        .column_as(sum(run::Column::PromptTokens), "prompt_tokens")
        .column_as(sum(run::Column::CompletionTokens), "completion_tokens")
        .column_as(sum(run::Column::CachedTokens), "cached_tokens")
        .group_by(run::Column::Backend)
        .group_by(run::Column::Model)
        .into_model::<Row>()
        .all(moment)
        .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Used {
                backend: row.backend.0,
                model: row.model.0,
                prompt_tokens: from_db("runs.prompt_tokens", row.prompt_tokens)?,
                completion_tokens: from_db("runs.completion_tokens", row.completion_tokens)?,
                cached_tokens: from_db("runs.cached_tokens", row.cached_tokens)?,
            })
        })
        .collect()
}
