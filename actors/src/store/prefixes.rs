//! Model calls of a run as they follow each other, for who asks what broke a request's beginning.

use std::collections::BTreeMap;

use sea_orm::sea_query::Query;
use sea_orm::{ColumnTrait, DerivePartialModel, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::entities::{message, model_call, run};
use super::load::branches;
use super::values::{DbText, from_db, from_json, name_of};
use super::{Store, StoreError};
use crate::domain::history::{Branch, Segment, path};
use crate::domain::model_calls::Recipe;
use crate::protocol::chat::Usage;
use crate::protocol::ids::{MessageId, RunId, SessionId};
use crate::protocol::inspect::{CallKind, RunInfo};
use crate::protocol::message::Message;

/// A call of a loop that a model read.
#[derive(Clone, Debug)]
pub struct ReadCall {
    pub id: i64,
    pub backend: String,
    pub model: String,
    pub usage: Usage,
    /// The message that its reply became.
    pub message_id: Option<MessageId>,
    pub recipe: Recipe,
}

/// Where messages of a session stand.
#[derive(Clone, Debug)]
pub struct Places {
    branches: Vec<Branch>,
    /// Ordinal and branch.
    at: BTreeMap<MessageId, (u64, u32)>,
}

impl Places {
    /// The way of the conversation up to this message. None where it is not known.
    #[must_use]
    pub fn way_to(&self, message: MessageId) -> Option<Vec<Segment>> {
        let (ordinal, branch) = *self.at.get(&message)?;
        let mut way = path(&self.branches, branch);
        way.last_mut()?.below = Some(ordinal + 1);
        Some(way)
    }
}

#[derive(Debug, DerivePartialModel)]
#[sea_orm(entity = "model_call::Entity")]
struct Row {
    id: i64,
    backend: DbText,
    model: DbText,
    prompt_tokens: Option<i64>,
    completion_tokens: Option<i64>,
    cached_tokens: Option<i64>,
    message_id: Option<Uuid>,
    recipe: DbText,
}

impl Store {
    /// The calls of a run's loop that a model read, in order, and before them the last one of the
    /// session's own runs before it; a subagent begins its own.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn read_calls(&self, run: &RunInfo) -> Result<Vec<ReadCall>, StoreError> {
        let moment = self.begin_read().await?;
        let of_loops = || -> Result<_, StoreError> {
            Ok(model_call::Entity::find()
                .filter(model_call::Column::Kind.eq(name_of(&CallKind::Turn)?))
                .filter(model_call::Column::PromptTokens.is_not_null()))
        };
        let mut rows: Vec<Row> = of_loops()?
            .filter(model_call::Column::RunId.eq(run.run_id.0))
            .order_by_asc(model_call::Column::Id)
            .into_partial_model()
            .all(&moment)
            .await?;
        if let (Some(first), None) = (rows.first(), run.parent_run_id) {
            let own_runs = Query::select()
                .column(run::Column::Id)
                .from(run::Entity)
                .and_where(run::Column::SessionId.eq(run.session_id.0))
                .and_where(run::Column::ParentRunId.is_null())
                .take();
            let before: Option<Row> = of_loops()?
                .filter(model_call::Column::SessionId.eq(run.session_id.0))
                .filter(model_call::Column::RunId.in_subquery(own_runs))
                .filter(model_call::Column::Id.lt(first.id))
                .order_by_desc(model_call::Column::Id)
                .into_partial_model()
                .one(&moment)
                .await?;
            rows.splice(0..0, before);
        }
        moment.commit().await?;
        rows.into_iter().map(read_call).collect()
    }

    /// The ids of a run's calls of any kind, in order: their places are the calls' numbers.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn call_ids(&self, run: RunId) -> Result<Vec<i64>, StoreError> {
        Ok(model_call::Entity::find()
            .select_only()
            .column(model_call::Column::Id)
            .filter(model_call::Column::RunId.eq(run.0))
            .order_by_asc(model_call::Column::Id)
            .into_tuple()
            .all(&self.read)
            .await?)
    }

    /// Where these messages of a session stand.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn places(
        &self,
        session: SessionId,
        messages: &[MessageId],
    ) -> Result<Places, StoreError> {
        let moment = self.begin_read().await?;
        let rows: Vec<(Uuid, i64, i64)> = message::Entity::find()
            .select_only()
            .column(message::Column::Id)
            .column(message::Column::Ordinal)
            .column(message::Column::BranchId)
            .filter(message::Column::SessionId.eq(session.0))
            .filter(message::Column::Id.is_in(messages.iter().map(|id| id.0)))
            .into_tuple()
            .all(&moment)
            .await?;
        let branches = branches(&moment, session).await?;
        moment.commit().await?;
        let at = rows.into_iter().map(|(id, ordinal, branch)| {
            let ordinal = from_db("messages.ordinal", ordinal)?;
            let branch = from_db("messages.branch_id", branch)?;
            Ok((MessageId(id), (ordinal, branch)))
        });
        Ok(Places {
            branches,
            at: at.collect::<Result<_, StoreError>>()?,
        })
    }

    /// The messages of a way that ends, from this ordinal on.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn messages_of_way(
        &self,
        session: SessionId,
        way: &[Segment],
        from: u64,
    ) -> Result<Vec<Message>, StoreError> {
        let end = way.last().and_then(|last| last.below).unwrap_or(from);
        let messages = self.path_messages(session, way, from..end).await?;
        Ok(messages.into_iter().map(|(_, message)| message).collect())
    }
}

fn read_call(row: Row) -> Result<ReadCall, StoreError> {
    let count = |column, tokens: Option<i64>| from_db(column, tokens.unwrap_or(0));
    let cached = row.cached_tokens;
    let cached = cached.map(|tokens| from_db("model_calls.cached_tokens", tokens));
    Ok(ReadCall {
        id: row.id,
        backend: row.backend.0,
        model: row.model.0,
        usage: Usage {
            prompt_tokens: count("model_calls.prompt_tokens", row.prompt_tokens)?,
            completion_tokens: count("model_calls.completion_tokens", row.completion_tokens)?,
            cached_tokens: cached.transpose()?,
        },
        message_id: row.message_id.map(MessageId),
        recipe: from_json("model_calls.recipe", &row.recipe.0)?,
    })
}
