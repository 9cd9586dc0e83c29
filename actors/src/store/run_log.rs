//! The log of one run and its subagents, for a page that opens them later.

use sea_orm::sea_query::Query;
use sea_orm::{
    ColumnTrait, DatabaseTransaction, EntityTrait, FromQueryResult, QueryFilter, QueryOrder,
    QuerySelect,
};
use uuid::Uuid;

use super::entities::{event, run};
use super::log::{Scope, page};
use super::sessions::require_session;
use super::types::{LogCursor, LogPage, LogRange, PageLimits};
use super::values::{DbText, from_db, from_json, to_db};
use super::{Store, StoreError};
use crate::protocol::ids::{RunId, SessionId};
use crate::protocol::session::RunNotice;

impl Store {
    /// One page of what was told of a run and of all runs under it, in the order in which it
    /// was told, after `from` (the default for the first page). Text of the same part that
    /// follows itself is joined, and pages end anywhere, as with [`Store::log_page`]. None
    /// where the session has no such run.
    ///
    /// Of a run that still goes this is what it has told up to its last event.
    ///
    /// # Errors
    /// [`StoreError::SessionNotFound`], and as the store's other reads.
    pub async fn run_events(
        &self,
        id: SessionId,
        run_id: RunId,
        from: LogCursor,
        limits: PageLimits,
    ) -> Result<Option<LogPage>, StoreError> {
        let moment = self.begin_read().await?;
        require_session(&moment, id).await?;
        let found = run::Entity::find_by_id(run_id.0)
            .filter(run::Column::SessionId.eq(id.0))
            .one(&moment)
            .await?;
        if found.is_none() {
            return Ok(None);
        }
        let runs = with_descendants(&moment, run_id).await?;
        let range = match told_between(&moment, &runs).await? {
            // The rest of the session's log is not looked at.
            Some((first, last)) => LogRange {
                from: from.max(LogCursor {
                    seq: first.saturating_sub(1),
                    chunk: 0,
                }),
                to_seq: last,
            },
            None => LogRange { from, to_seq: 0 },
        };
        let scope = Scope {
            id,
            runs: Some(&runs),
        };
        let page = page(&moment, &scope, range, limits).await?;
        moment.commit().await?;
        Ok(Some(page))
    }
}

/// How many notices a snapshot has at the most.
const NOTICES: u64 = 20;

impl Store {
    /// The newest 20 notices that runs of a session told by event `upto`, oldest first.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn notices(
        &self,
        id: SessionId,
        upto: u64,
    ) -> Result<Vec<(RunId, RunNotice)>, StoreError> {
        let told: Vec<(Uuid, DbText)> = event::Entity::find()
            .select_only()
            .columns([event::Column::RunId, event::Column::Json])
            .filter(event::Column::SessionId.eq(id.0))
            .filter(event::Column::RunId.is_not_null())
            .filter(event::Column::Kind.eq("notice"))
            .filter(event::Column::Seq.lte(to_db(upto)?))
            .order_by_desc(event::Column::Seq)
            .limit(NOTICES)
            .into_tuple()
            .all(&self.read)
            .await?;
        let told = told.iter().rev();
        told.map(|(run_id, json)| Ok((RunId(*run_id), from_json("events.json", &json.0)?)))
            .collect()
    }
}

/// The last branch that a run told of which answers the same message as this one.
pub(super) async fn told_branch(
    moment: &DatabaseTransaction,
    run: &run::Model,
) -> Result<Option<i64>, StoreError> {
    #[derive(serde::Deserialize)]
    struct BranchChanged {
        branch_id: i64,
    }
    let same_message = Query::select()
        .column(run::Column::Id)
        .from(run::Entity)
        .and_where(run::Column::SessionId.eq(run.session_id))
        .and_where(run::Column::MessageId.eq(run.message_id))
        .and_where(run::Column::ParentRunId.is_null())
        .take();
    let told: Option<DbText> = event::Entity::find()
        .select_only()
        .column(event::Column::Json)
        .filter(event::Column::RunId.in_subquery(same_message))
        .filter(event::Column::Kind.eq("branch_changed"))
        .order_by_desc(event::Column::Seq)
        .limit(1)
        .into_tuple()
        .one(moment)
        .await?;
    let told = told.map(|json| from_json::<BranchChanged>("events.json", &json.0));
    Ok(told.transpose()?.map(|changed| changed.branch_id))
}

/// The run, its children, theirs, and so on.
pub(super) async fn with_descendants(
    moment: &DatabaseTransaction,
    run_id: RunId,
) -> Result<Vec<Uuid>, StoreError> {
    let mut all = vec![run_id.0];
    let mut parents = 0;
    while parents < all.len() {
        let children: Vec<Uuid> = run::Entity::find()
            .select_only()
            .column(run::Column::Id)
            .filter(run::Column::ParentRunId.is_in(all[parents..].iter().copied()))
            .into_tuple()
            .all(moment)
            .await?;
        parents = all.len();
        all.extend(children);
    }
    Ok(all)
}

/// The first and the last event of these runs; none where nothing was told of them.
async fn told_between(
    moment: &DatabaseTransaction,
    runs: &[Uuid],
) -> Result<Option<(u64, u64)>, StoreError> {
    #[derive(FromQueryResult)]
    struct Bounds {
        first: Option<i64>,
        last: Option<i64>,
    }
    let bounds = event::Entity::find()
        .select_only()
        .column_as(event::Column::Seq.min(), "first")
        .column_as(event::Column::Seq.max(), "last")
        .filter(event::Column::RunId.is_in(runs.iter().copied()))
        .into_model::<Bounds>()
        .one(moment)
        .await?;
    let Some(Bounds {
        first: Some(first),
        last: Some(last),
    }) = bounds
    else {
        return Ok(None);
    };
    Ok(Some((
        from_db("events.seq", first)?,
        from_db("events.seq", last)?,
    )))
}
