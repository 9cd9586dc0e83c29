//! What of the log, and of what models were sent, is past its time. Messages stay.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DatabaseTransaction, EntityTrait, QueryFilter,
    QueryOrder, QuerySelect, QueryTrait,
};
use uuid::Uuid;

use super::entities::{chunk, event, model_call, prompt_part, run, session};
use super::log::{first_event, last_seq};
use super::values::{DbText, db_time, from_json, name_of, to_db};
use super::{Store, StoreError, delete};
use crate::domain::model_calls::Recipe;
use crate::protocol::ids::SessionId;
use crate::protocol::session::RunState;

/// The most rows of a table that one transaction takes out: those who write wait for it.
const ROWS: u64 = 500;

/// How long the log is kept, and what models were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// None: for as long as its session.
    pub keep: Option<TimeDelta>,
    /// How many model calls of a session are kept; none: all.
    pub calls: Option<u64>,
    /// How long the record of who came in goes back.
    pub record: TimeDelta,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self {
            keep: Some(TimeDelta::days(30)),
            calls: Some(1_000),
            record: TimeDelta::days(365),
        }
    }
}

impl Store {
    /// Sessions in the order of their ids, after this one.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn sessions_after(
        &self,
        after: Option<SessionId>,
        limit: u64,
    ) -> Result<Vec<SessionId>, StoreError> {
        let after = after.map(|id| session::Column::Id.gt(id.0));
        let ids: Vec<Uuid> = session::Entity::find()
            .select_only()
            .column(session::Column::Id)
            .filter(Condition::all().add_option(after))
            .order_by_asc(session::Column::Id)
            .limit(limit)
            .into_tuple()
            .all(&self.read)
            .await?;
        Ok(ids.into_iter().map(SessionId).collect())
    }

    /// Takes out of a session's log the beginning that was told before `before`, some of it at a
    /// time. What a run told that still goes stays. Gives back whether there may be more.
    ///
    /// # Errors
    /// As the store's other calls; nothing was changed then.
    pub async fn shorten_log(
        &self,
        id: SessionId,
        before: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        if !is_log_old(&self.read, id, before).await? {
            return Ok(false);
        }
        let transaction = self.begin_write().await?;
        let events_left = remove_events(&transaction, id, before).await?;
        let chunks_left = remove_chunks(&transaction, id).await?;
        transaction.commit().await?;
        Ok(events_left || chunks_left)
    }

    /// Takes out model calls of a session that began before `before` or are not among its newest
    /// `most`, some at a time, and the parts of requests that no call of it names any more. Gives
    /// back whether there may be more.
    ///
    /// # Errors
    /// As the store's other calls; nothing was changed then.
    pub async fn forget_calls(
        &self,
        id: SessionId,
        before: Option<DateTime<Utc>>,
        most: Option<u64>,
    ) -> Result<bool, StoreError> {
        let Some(upto) = last_to_forget(&self.read, id, before, most).await? else {
            return Ok(false);
        };
        let transaction = self.begin_write().await?;
        // No commit of the session names a part meanwhile that is about to go.
        session::Entity::find_by_id(id.0)
            .lock_exclusive()
            .one(&transaction)
            .await?;
        let ids: Vec<i64> = model_call::Entity::find()
            .select_only()
            .column(model_call::Column::Id)
            .filter(model_call::Column::SessionId.eq(id.0))
            .filter(model_call::Column::Id.lte(upto))
            .order_by_asc(model_call::Column::Id)
            .limit(ROWS)
            .into_tuple()
            .all(&transaction)
            .await?;
        let is_more = ids.last().is_some_and(|last| *last < upto);
        delete::<model_call::Entity>(&transaction, model_call::Column::Id.is_in(ids)).await?;
        if !is_more {
            remove_unnamed_parts(&transaction, id).await?;
        }
        transaction.commit().await?;
        Ok(is_more)
    }
}

/// Whether anything of the log was told before `before`, or is left of what was.
async fn is_log_old(
    db: &impl ConnectionTrait,
    id: SessionId,
    before: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let oldest: Option<DateTime<Utc>> = event::Entity::find()
        .select_only()
        .column(event::Column::At)
        .filter(event::Column::SessionId.eq(id.0))
        .order_by_asc(event::Column::Seq)
        .limit(1)
        .into_tuple()
        .one(db)
        .await?;
    Ok(oldest.is_some_and(|at| at < before) || !loose_chunks(db, id, 1).await?.is_empty())
}

/// Takes out the first events, as far as they are old. Gives back whether there may be more.
async fn remove_events(
    transaction: &DatabaseTransaction,
    id: SessionId,
    before: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let runs_from = first_of_running(transaction, id).await?;
    let oldest: Vec<(i64, DateTime<Utc>)> = event::Entity::find()
        .select_only()
        .columns([event::Column::Seq, event::Column::At])
        .filter(event::Column::SessionId.eq(id.0))
        .order_by_asc(event::Column::Seq)
        .limit(ROWS)
        .into_tuple()
        .all(transaction)
        .await?;
    let found = oldest.len();
    let old: Vec<i64> = oldest
        .into_iter()
        .take_while(|(seq, at)| *at < before && runs_from.is_none_or(|from| *seq < from))
        .map(|(seq, _)| seq)
        .collect();
    if let Some(last) = old.last() {
        event::Entity::delete_many()
            .filter(event::Column::SessionId.eq(id.0))
            .filter(event::Column::Seq.lte(*last))
            .exec(transaction)
            .await?;
    }
    Ok(old.len() == found && found as u64 == ROWS)
}

/// The first event of the runs that are still marked as running.
async fn first_of_running(
    transaction: &DatabaseTransaction,
    id: SessionId,
) -> Result<Option<i64>, StoreError> {
    let running: Vec<Uuid> = run::Entity::find()
        .select_only()
        .column(run::Column::Id)
        .filter(run::Column::SessionId.eq(id.0))
        .filter(run::Column::State.eq(name_of(&RunState::Running)?))
        .into_tuple()
        .all(transaction)
        .await?;
    Ok(event::Entity::find()
        .select_only()
        .column(event::Column::Seq)
        .filter(event::Column::RunId.is_in(running))
        .order_by_asc(event::Column::Seq)
        .limit(1)
        .into_tuple()
        .one(transaction)
        .await?)
}

/// Pieces of text that were streamed before the last event that went. What follows on that one
/// belongs to the events that are left.
async fn loose_chunks(
    db: &impl ConnectionTrait,
    id: SessionId,
    limit: u64,
) -> Result<Vec<i64>, StoreError> {
    let first_kept = match first_event(db, id, 0).await? {
        Some(seq) => seq,
        None => last_seq(db, id).await? + 1,
    };
    Ok(chunk::Entity::find()
        .select_only()
        .column(chunk::Column::Id)
        .filter(chunk::Column::SessionId.eq(id.0))
        .filter(chunk::Column::AfterSeq.lt(to_db(first_kept.saturating_sub(1))?))
        .limit(limit)
        .into_tuple()
        .all(db)
        .await?)
}

async fn remove_chunks(
    transaction: &DatabaseTransaction,
    id: SessionId,
) -> Result<bool, StoreError> {
    let ids = loose_chunks(transaction, id, ROWS).await?;
    let is_full = ids.len() as u64 == ROWS;
    delete::<chunk::Entity>(transaction, chunk::Column::Id.is_in(ids)).await?;
    Ok(is_full)
}

/// The last of a session's calls that are past their time, or too many; none where none is.
async fn last_to_forget(
    db: &impl ConnectionTrait,
    id: SessionId,
    before: Option<DateTime<Utc>>,
    most: Option<u64>,
) -> Result<Option<i64>, StoreError> {
    let newest = || {
        model_call::Entity::find()
            .select_only()
            .column(model_call::Column::Id)
            .filter(model_call::Column::SessionId.eq(id.0))
            .order_by_desc(model_call::Column::Id)
            .limit(1)
    };
    let mut last: Option<i64> = None;
    if let Some(before) = before {
        let old = newest().filter(model_call::Column::StartedAt.lt(db_time(before)));
        last = old.into_tuple().one(db).await?;
    }
    if let Some(most) = most {
        let surplus: Option<i64> = newest().offset(most).into_tuple().one(db).await?;
        last = last.max(surplus);
    }
    // A run goes whole, once it is over: what was left of one could not be made again, and its
    // calls are counted from the first.
    while let Some(upto) = last {
        let first = first_of_runs_beyond(db, id, upto).await?;
        let Some(first) = first.filter(|first| *first <= upto) else {
            break;
        };
        let before = newest().filter(model_call::Column::Id.lt(first));
        last = before.into_tuple().one(db).await?;
    }
    Ok(last)
}

/// The first call of the runs of which a call came after `upto` or may come.
async fn first_of_runs_beyond(
    db: &impl ConnectionTrait,
    id: SessionId,
    upto: i64,
) -> Result<Option<i64>, StoreError> {
    let of_session = || {
        model_call::Entity::find()
            .select_only()
            .filter(model_call::Column::SessionId.eq(id.0))
    };
    let beyond = of_session()
        .column(model_call::Column::RunId)
        .filter(model_call::Column::Id.gt(upto))
        .into_query();
    let running = run::Entity::find()
        .select_only()
        .column(run::Column::Id)
        .filter(run::Column::SessionId.eq(id.0))
        .filter(run::Column::State.eq(name_of(&RunState::Running)?))
        .into_query();
    let goes_on = Condition::any()
        .add(model_call::Column::RunId.in_subquery(beyond))
        .add(model_call::Column::RunId.in_subquery(running));
    Ok(of_session()
        .column(model_call::Column::Id)
        .filter(goes_on)
        .order_by_asc(model_call::Column::Id)
        .limit(1)
        .into_tuple()
        .one(db)
        .await?)
}

async fn remove_unnamed_parts(
    transaction: &DatabaseTransaction,
    id: SessionId,
) -> Result<(), StoreError> {
    let recipes: Vec<DbText> = model_call::Entity::find()
        .select_only()
        .column(model_call::Column::Recipe)
        .filter(model_call::Column::SessionId.eq(id.0))
        .into_tuple()
        .all(transaction)
        .await?;
    let mut named = HashSet::new();
    for recipe in &recipes {
        let recipe: Recipe = from_json("model_calls.recipe", &recipe.0)?;
        named.extend(recipe.names().into_iter().map(str::to_owned));
    }
    let there: Vec<String> = prompt_part::Entity::find()
        .select_only()
        .column(prompt_part::Column::Sha256)
        .filter(prompt_part::Column::SessionId.eq(id.0))
        .into_tuple()
        .all(transaction)
        .await?;
    let unnamed: Vec<String> = there.into_iter().filter(|it| !named.contains(it)).collect();
    for some in unnamed.chunks(ROWS as usize) {
        prompt_part::Entity::delete_many()
            .filter(prompt_part::Column::SessionId.eq(id.0))
            .filter(prompt_part::Column::Sha256.is_in(some))
            .exec(transaction)
            .await?;
    }
    Ok(())
}
