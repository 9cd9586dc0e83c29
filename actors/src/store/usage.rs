//! The tokens that runs used, by model.

use std::ops::Range;

use chrono::{DateTime, Utc};
use sea_orm::sea_query::Query;
use sea_orm::{
    ColumnTrait, DatabaseTransaction, EntityTrait, ExprTrait as _, FromQueryResult, QueryFilter,
    QuerySelect, Select,
};

use super::entities::{run, session};
use super::run_log::with_descendants;
use super::values::{DbText, db_time, from_db};
use super::{Store, StoreError};
use crate::domain::prices::Used;
use crate::protocol::ids::{RunId, SessionId, UserId};

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
        let own = Query::select()
            .column(session::Column::Id)
            .from(session::Entity)
            .and_where(session::Column::UserId.eq(user.0))
            .take();
        let moment = self.begin_read().await?;
        let runs = run::Entity::find()
            .filter(run::Column::SessionId.in_subquery(own))
            .filter(run::Column::StartedAt.gte(db_time(time.start)))
            .filter(run::Column::StartedAt.lt(db_time(time.end)));
        let used = used_by(&moment, runs).await?;
        moment.commit().await?;
        Ok(used)
    }
}

#[derive(Debug, FromQueryResult)]
struct Row {
    backend: DbText,
    model: DbText,
    prompt_tokens: i64,
    completion_tokens: i64,
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
            })
        })
        .collect()
}
