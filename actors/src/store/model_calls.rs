//! Runs and their model calls, for those who look into them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::sea_query::Query;
use sea_orm::{
    ColumnTrait, Condition, DatabaseTransaction, DerivePartialModel, EntityTrait, QueryFilter,
    QueryOrder, QuerySelect, Select,
};
use uuid::Uuid;

use super::conversation::MAX_ORDINAL;
use super::entities::{message, model_call, prompt_part, run, session};
use super::load::branches;
use super::rows::message_from_row;
use super::types::StoredCall;
use super::values::{
    DbText, db_time, from_db, from_json, name_of, named, option_from_json, to_db, to_json,
};
use super::{Store, StoreError};
use crate::domain::history::path;
use crate::domain::model_calls::{MAX_OWN_BYTES, ModelCall, Part};
use crate::protocol::ids::{MessageId, RunId, SessionId, UserId};
use crate::protocol::inspect::{CallInfo, CallReply, RunDetails, RunInfo};
use crate::protocol::message::Message;

/// The most runs that one page lists.
const RUNS: u64 = 50;

impl Store {
    /// The runs of a session of the user's, newest first, without those of subagents: up to 50
    /// that began before the run `before`.
    ///
    /// # Errors
    /// [`StoreError::SessionNotFound`], and as the store's other reads.
    pub async fn session_runs(
        &self,
        user: UserId,
        id: SessionId,
        before: Option<RunId>,
    ) -> Result<Vec<RunInfo>, StoreError> {
        self.find_session(user, id).await?;
        let mut runs = run::Entity::find().filter(run::Column::SessionId.eq(id.0));
        if let Some(before) = before {
            let Some(before) = run::Entity::find_by_id(before.0)
                .filter(run::Column::SessionId.eq(id.0))
                .one(&self.read)
                .await?
            else {
                return Ok(Vec::new());
            };
            // Two that began in the same moment are told apart by their ids.
            runs = runs.filter(
                Condition::any()
                    .add(run::Column::StartedAt.lt(before.started_at))
                    .add(
                        Condition::all()
                            .add(run::Column::StartedAt.eq(before.started_at))
                            .add(run::Column::Id.lt(before.id)),
                    ),
            );
        }
        self.newest(runs).await
    }

    /// The user's newest runs, of all sessions, without those of subagents.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn newest_runs(&self, user: UserId) -> Result<Vec<RunInfo>, StoreError> {
        let own = Query::select()
            .column(session::Column::Id)
            .from(session::Entity)
            .and_where(session::Column::UserId.eq(user.0))
            .and_where(session::Column::DeletedAt.is_null())
            .take();
        let runs = run::Entity::find().filter(run::Column::SessionId.in_subquery(own));
        self.newest(runs).await
    }

    async fn newest(&self, runs: Select<run::Entity>) -> Result<Vec<RunInfo>, StoreError> {
        runs.filter(run::Column::ParentRunId.is_null())
            .order_by_desc(run::Column::StartedAt)
            .order_by_desc(run::Column::Id)
            .limit(RUNS)
            .all(&self.read)
            .await?
            .into_iter()
            .map(info_of)
            .collect()
    }

    /// The session that a run is of.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn session_of_run(&self, run_id: RunId) -> Result<Option<SessionId>, StoreError> {
        let row = run::Entity::find_by_id(run_id.0).one(&self.read).await?;
        Ok(row.map(|row| SessionId(row.session_id)))
    }

    /// A run of the user's with its model calls, and the runs that it started. None where the
    /// user has no such run.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn run_details(
        &self,
        user: UserId,
        run_id: RunId,
    ) -> Result<Option<RunDetails>, StoreError> {
        let moment = self.begin_read().await?;
        let Some(row) = run_of(&moment, user, run_id).await? else {
            return Ok(None);
        };
        let calls = calls_of(&moment, run_id).await?;
        let children: Vec<Uuid> = run::Entity::find()
            .select_only()
            .column(run::Column::Id)
            .filter(run::Column::ParentRunId.eq(run_id.0))
            .order_by_asc(run::Column::StartedAt)
            .order_by_asc(run::Column::Id)
            .into_tuple()
            .all(&moment)
            .await?;
        moment.commit().await?;
        Ok(Some(RunDetails {
            run: info_of(row)?,
            calls: calls
                .into_iter()
                .map(|(n, call)| call_info(n, call))
                .collect::<Result<_, _>>()?,
            children: children.into_iter().map(RunId).collect(),
            spent: None,
        }))
    }

    /// One model call of a run of the user's. None where there is no such call.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn model_call(
        &self,
        user: UserId,
        run_id: RunId,
        n: u32,
    ) -> Result<Option<StoredCall>, StoreError> {
        let moment = self.begin_read().await?;
        if run_of(&moment, user, run_id).await?.is_none() {
            return Ok(None);
        }
        let mut calls = calls_of(&moment, run_id).await?.into_iter();
        let Some((n, outline)) = calls.find(|(number, _)| *number == n) else {
            return Ok(None);
        };
        let row = model_call::Entity::find_by_id(outline.id);
        let Some(row) = row.one(&moment).await? else {
            return Ok(None);
        };
        let reply = match (&row.reply, row.message_id) {
            (Some(reply), _) => from_json("model_calls.reply", &reply.0)?,
            (None, Some(id)) => reply_of(&moment, row.session_id, id).await?,
            (None, None) => CallReply::default(),
        };
        moment.commit().await?;
        Ok(Some(StoredCall {
            info: call_info(n, outline)?,
            recipe: from_json("model_calls.recipe", &row.recipe.0)?,
            sha256: row.sha256,
            reply,
        }))
    }

    /// Parts of a session's requests, by their SHA-256. Those that are not there are left out.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn prompt_parts(
        &self,
        id: SessionId,
        names: &[&str],
    ) -> Result<BTreeMap<String, String>, StoreError> {
        let rows = prompt_part::Entity::find()
            .filter(prompt_part::Column::SessionId.eq(id.0))
            .filter(prompt_part::Column::Sha256.is_in(names.iter().copied()))
            .all(&self.read)
            .await?;
        Ok(rows
            .into_iter()
            .map(|row| (row.sha256, row.body.0))
            .collect())
    }

    /// The messages on the way to `last`, that one too, from this ordinal on. None are where it
    /// is none, or is not there.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn messages_up_to(
        &self,
        id: SessionId,
        from: u64,
        last: Option<MessageId>,
    ) -> Result<Vec<Message>, StoreError> {
        let Some(last) = last else {
            return Ok(Vec::new());
        };
        let Some((ordinal, branch, _)) = self.message_ordinal(id, last).await? else {
            return Ok(Vec::new());
        };
        let moment = self.begin_read().await?;
        let branches = branches(&moment, id).await?;
        moment.commit().await?;
        let mut path = path(&branches, branch);
        if let Some(segment) = path.last_mut() {
            segment.below = Some(ordinal + 1);
        }
        let messages = self.path_messages(id, &path, from..MAX_ORDINAL).await?;
        Ok(messages.into_iter().map(|(_, message)| message).collect())
    }

    /// What the conversation of a subagent's run had gained by its `n`th call, as far as it was
    /// kept.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn own_messages(&self, run_id: RunId, n: u32) -> Result<Vec<Message>, StoreError> {
        let kept: Vec<Option<DbText>> = model_call::Entity::find()
            .select_only()
            .column(model_call::Column::OwnMessages)
            .filter(model_call::Column::RunId.eq(run_id.0))
            .order_by_asc(model_call::Column::Id)
            .limit(u64::from(n))
            .into_tuple()
            .all(&self.read)
            .await?;
        let mut all = Vec::new();
        for own in kept.into_iter().flatten() {
            let own: Vec<Message> = from_json("model_calls.own_messages", &own.0)?;
            all.extend(own);
        }
        Ok(all)
    }
}

/// The run, where it is this user's and its session is not deleted.
async fn run_of(
    moment: &DatabaseTransaction,
    user: UserId,
    run_id: RunId,
) -> Result<Option<run::Model>, StoreError> {
    let Some(row) = run::Entity::find_by_id(run_id.0).one(moment).await? else {
        return Ok(None);
    };
    let own: Option<Uuid> = session::Entity::find_by_id(row.session_id)
        .filter(session::Column::UserId.eq(user.0))
        .filter(session::Column::DeletedAt.is_null())
        .select_only()
        .column(session::Column::Id)
        .into_tuple()
        .one(moment)
        .await?;
    Ok(own.map(|_| row))
}

/// A call without what it was made of.
#[derive(Debug, DerivePartialModel)]
#[sea_orm(entity = "model_call::Entity")]
struct Outline {
    id: i64,
    kind: String,
    after_seq: i64,
    started_at: DateTime<Utc>,
    first_chunk_ms: Option<i64>,
    duration_ms: i64,
    model: DbText,
    prompt_tokens: Option<i64>,
    completion_tokens: Option<i64>,
    cached_tokens: Option<i64>,
    outcome: String,
}

/// A run's calls, numbered in their order.
async fn calls_of(
    moment: &DatabaseTransaction,
    run_id: RunId,
) -> Result<Vec<(u32, Outline)>, StoreError> {
    let calls = model_call::Entity::find()
        .filter(model_call::Column::RunId.eq(run_id.0))
        .order_by_asc(model_call::Column::Id)
        .into_partial_model::<Outline>()
        .all(moment)
        .await?;
    Ok((1..).zip(calls).collect())
}

/// What a message of the session's says; nothing where it was never written.
async fn reply_of(
    moment: &DatabaseTransaction,
    session_id: Uuid,
    id: Uuid,
) -> Result<CallReply, StoreError> {
    let row = message::Entity::find_by_id(id)
        .filter(message::Column::SessionId.eq(session_id))
        .one(moment)
        .await?;
    let said = row.map(message_from_row).transpose()?;
    Ok(said.map_or_else(CallReply::default, |said| CallReply {
        content: said.content,
        thinking: said.thinking,
        tool_calls: said.tool_calls,
    }))
}

fn info_of(row: run::Model) -> Result<RunInfo, StoreError> {
    Ok(RunInfo {
        run_id: RunId(row.id),
        session_id: SessionId(row.session_id),
        parent_run_id: row.parent_run_id.map(RunId),
        message_id: MessageId(row.message_id),
        profile_id: row.profile_id.0,
        backend: row.backend.0,
        model: row.model.0,
        state: named("runs.state", row.state)?,
        reason: row.reason.map(|text| text.0),
        reason_phrase: option_from_json("runs.reason_phrase", row.reason_phrase)?,
        started_at: row.started_at,
        ended_at: row.ended_at,
        iterations: from_db("runs.iterations", row.iterations)?,
        prompt_tokens: from_db("runs.prompt_tokens", row.prompt_tokens)?,
        completion_tokens: from_db("runs.completion_tokens", row.completion_tokens)?,
        cost: None,
    })
}

fn call_info(n: u32, row: Outline) -> Result<CallInfo, StoreError> {
    let tokens = |column, count: Option<i64>| count.map(|count| from_db(column, count)).transpose();
    Ok(CallInfo {
        n,
        kind: named("model_calls.kind", row.kind)?,
        started_at: row.started_at,
        first_chunk_ms: row
            .first_chunk_ms
            .map(|ms| from_db("model_calls.first_chunk_ms", ms))
            .transpose()?,
        duration_ms: from_db("model_calls.duration_ms", row.duration_ms)?,
        model: row.model.0,
        prompt_tokens: tokens("model_calls.prompt_tokens", row.prompt_tokens)?,
        completion_tokens: tokens("model_calls.completion_tokens", row.completion_tokens)?,
        cached_tokens: tokens("model_calls.cached_tokens", row.cached_tokens)?,
        prefix: None,
        outcome: named("model_calls.outcome", row.outcome)?,
        after_seq: from_db("model_calls.after_seq", row.after_seq)?,
    })
}

pub(super) fn part_to_row(session_id: SessionId, part: Part) -> prompt_part::ActiveModel {
    prompt_part::ActiveModel {
        session_id: Set(session_id.0),
        sha256: Set(part.sha256),
        body: Set(String::from(part.body).into()),
    }
}

pub(super) fn call_to_row(
    session_id: SessionId,
    run_id: RunId,
    call: ModelCall,
) -> Result<model_call::ActiveModel, StoreError> {
    let own = (!call.own.is_empty())
        .then(|| to_json(&call.own.iter().map(|own| &**own).collect::<Vec<&Message>>()))
        .transpose()?
        // Without them the calls from here on are not made again as they were, and say so.
        .filter(|json| json.len() <= MAX_OWN_BYTES);
    Ok(model_call::ActiveModel {
        id: NotSet,
        session_id: Set(session_id.0),
        run_id: Set(run_id.0),
        kind: Set(name_of(&call.kind)?),
        after_seq: Set(to_db(call.after_seq.unwrap_or_default())?),
        started_at: Set(db_time(call.started_at)),
        first_chunk_ms: Set(call.first_chunk_ms.map(to_db).transpose()?),
        duration_ms: Set(to_db(call.duration_ms)?),
        backend: Set(call.backend.into()),
        model: Set(call.model.into()),
        prompt_tokens: Set(call.usage.map(|usage| usage.prompt_tokens.into())),
        completion_tokens: Set(call.usage.map(|usage| usage.completion_tokens.into())),
        cached_tokens: Set(call
            .usage
            .and_then(|usage| usage.cached_tokens)
            .map(Into::into)),
        outcome: Set(name_of(&call.outcome)?),
        attempts: Set(call.attempts.into()),
        message_id: Set(call.message_id.map(|id| id.0)),
        reply: Set(call
            .reply
            .as_ref()
            .map(to_json)
            .transpose()?
            .map(Into::into)),
        recipe: Set(call.prompt.recipe.into()),
        own_messages: Set(own.map(Into::into)),
        sha256: Set(call.prompt.sha256),
    })
}
