//! A session read whole, as its actor starts from it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use sea_orm::sea_query::{CaseStatement, Expr, ExprTrait};
use sea_orm::{
    ColumnTrait, DatabaseTransaction, EntityTrait, QueryFilter, QueryOrder, QuerySelect,
};
use uuid::Uuid;

use super::entities::{chunk, event, message, queued_message, run, session};
use super::rows::{
    SummaryRow, chunk_from_row, message_from_row, queued_from_row, run_from_row, summary_from_row,
};
use super::sessions::require_session;
use super::types::{ChunkRow, LoadedSession};
use super::values::{DbText, from_db, from_json, name_of, named};
use super::{Store, StoreError};
use crate::protocol::event::PartKind;
use crate::protocol::ids::{CallId, MessageId, OwnerId, PartId, SessionId};
use crate::protocol::message::Message;
use crate::protocol::session::{QueuedMessage, RunState};

/// A message that a client sent before under the same id.
#[derive(Clone, Debug, PartialEq)]
pub enum KnownMessage {
    Sent(Message),
    /// It still waits for the run before it.
    Queued(QueuedMessage),
}

impl Store {
    /// Makes `owner` the session's owner and gives it all that the session's actor starts
    /// from. The epoch moves on where the owner changes, which fences the one before it.
    ///
    /// The reads see one moment, after the change of owner: an owner that was fenced by it
    /// can no longer change what is read.
    ///
    /// # Errors
    /// [`StoreError::SessionNotFound`], and as the store's other calls.
    pub async fn take_session(
        &self,
        id: SessionId,
        owner: &OwnerId,
    ) -> Result<LoadedSession, StoreError> {
        let owner = DbText::from(owner.0.as_str());
        let same_owner = session::Column::Owner.eq(owner.clone());
        let epoch = CaseStatement::new()
            .case(same_owner, Expr::col(session::Column::Epoch))
            .finally(Expr::col(session::Column::Epoch).add(1));
        let taken = session::Entity::update_many()
            .col_expr(session::Column::Epoch, epoch.into())
            .col_expr(session::Column::Owner, Expr::value(owner))
            .filter(session::Column::Id.eq(id.0))
            .filter(session::Column::DeletedAt.is_null())
            .exec(&self.write)
            .await?;
        if taken.rows_affected == 0 {
            return Err(StoreError::SessionNotFound);
        }
        let moment = self.begin_read().await?;
        let loaded = load(&moment, id).await?;
        moment.commit().await?;
        Ok(loaded)
    }

    /// The whole conversation, in order.
    ///
    /// # Errors
    /// [`StoreError::SessionNotFound`], and as the store's other reads.
    pub async fn messages(&self, id: SessionId) -> Result<Vec<Message>, StoreError> {
        let moment = self.begin_read().await?;
        require_session(&moment, id).await?;
        let messages = messages(&moment, id).await?;
        moment.commit().await?;
        Ok(messages)
    }

    /// The message that a client sent under this id, wherever it is now.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn message_by_client_id(
        &self,
        id: SessionId,
        client_id: &str,
    ) -> Result<Option<KnownMessage>, StoreError> {
        let moment = self.begin_read().await?;
        let sent = message::Entity::find()
            .filter(message::Column::SessionId.eq(id.0))
            .filter(message::Column::ClientId.eq(DbText::from(client_id)))
            .one(&moment)
            .await?;
        if let Some(row) = sent {
            return message_from_row(row).map(KnownMessage::Sent).map(Some);
        }
        let queued = queued_message::Entity::find()
            .filter(queued_message::Column::SessionId.eq(id.0))
            .filter(queued_message::Column::ClientId.eq(DbText::from(client_id)))
            .one(&moment)
            .await?;
        queued
            .map(|row| queued_from_row(row).map(KnownMessage::Queued))
            .transpose()
    }
}

async fn load(moment: &DatabaseTransaction, id: SessionId) -> Result<LoadedSession, StoreError> {
    let row = session::Entity::find_by_id(id.0)
        .one(moment)
        .await?
        .ok_or(StoreError::SessionNotFound)?;
    let last_run = match row.last_run_id {
        Some(run_id) => run::Entity::find_by_id(run_id).one(moment).await?,
        None => None,
    };
    let messages = messages(moment, id).await?;
    let queue = queued_message::Entity::find()
        .filter(queued_message::Column::SessionId.eq(id.0))
        .order_by_asc(queued_message::Column::Id)
        .all(moment)
        .await?
        .into_iter()
        .map(queued_from_row)
        .collect::<Result<_, _>>()?;
    let unfinished_parts = unfinished_parts(moment, id, &messages).await?;
    let started_calls = match &last_run {
        Some(run) if run.state == name_of(&RunState::Running)? => {
            started_calls(moment, id, run.id).await?
        }
        _ => Vec::new(),
    };
    Ok(LoadedSession {
        todo: from_json("sessions.todo", &row.todo)?,
        scratchpad: from_json("sessions.scratchpad", &row.scratchpad)?,
        last_seq: from_db("sessions.last_seq", row.last_seq)?,
        epoch: row.epoch,
        summary: summary_from_row(SummaryRow {
            id: row.id,
            user_id: row.user_id,
            title: row.title,
            profile_id: row.profile_id,
            pinned: row.pinned,
            context_token_count: row.context_token_count,
            created_at: row.created_at,
            last_active: row.last_active,
            run_state: last_run.as_ref().map(|run| run.state.clone()),
        })?,
        messages,
        queue,
        last_run: last_run.map(run_from_row).transpose()?,
        unfinished_parts,
        started_calls,
    })
}

/// The calls of a run whose start was told, whether or not they have a result.
async fn started_calls(
    moment: &DatabaseTransaction,
    id: SessionId,
    run_id: Uuid,
) -> Result<Vec<CallId>, StoreError> {
    #[derive(serde::Deserialize)]
    struct Started {
        call_id: CallId,
    }
    let events: Vec<DbText> = event::Entity::find()
        .select_only()
        .column(event::Column::Json)
        .filter(event::Column::SessionId.eq(id.0))
        .filter(event::Column::RunId.eq(run_id))
        .filter(event::Column::Kind.eq("tool_started"))
        .into_tuple()
        .all(moment)
        .await?;
    events
        .iter()
        .map(|json| from_json("events.json", &json.0).map(|Started { call_id }| call_id))
        .collect()
}

async fn messages(moment: &DatabaseTransaction, id: SessionId) -> Result<Vec<Message>, StoreError> {
    message::Entity::find()
        .filter(message::Column::SessionId.eq(id.0))
        .order_by_asc(message::Column::Ordinal)
        .all(moment)
        .await?
        .into_iter()
        .map(message_from_row)
        .collect()
}

/// The text that runs which are still marked as running streamed, and that no message holds.
async fn unfinished_parts(
    moment: &DatabaseTransaction,
    id: SessionId,
    messages: &[Message],
) -> Result<Vec<ChunkRow>, StoreError> {
    let running: Vec<Uuid> = run::Entity::find()
        .select_only()
        .column(run::Column::Id)
        .filter(run::Column::SessionId.eq(id.0))
        .filter(run::Column::State.eq(name_of(&RunState::Running)?))
        .into_tuple()
        .all(moment)
        .await?;
    if running.is_empty() {
        return Ok(Vec::new());
    }
    // First which parts there are, so that the output of tools that ended is not read.
    let parts: Vec<(DbText, Uuid, String)> = chunk::Entity::find()
        .select_only()
        .columns([
            chunk::Column::PartId,
            chunk::Column::MessageId,
            chunk::Column::Kind,
        ])
        .distinct()
        .filter(chunk::Column::RunId.is_in(running.iter().copied()))
        .into_tuple()
        .all(moment)
        .await?;
    let held = Held::by(messages);
    let mut open = Vec::new();
    for (part_id, message_id, kind) in parts {
        let kind = named("chunks.kind", kind)?;
        if !held.part(kind, &part_id, MessageId(message_id)) {
            open.push(part_id);
        }
    }
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let pieces = chunk::Entity::find()
        .filter(chunk::Column::RunId.is_in(running))
        .filter(chunk::Column::PartId.is_in(open))
        .order_by_asc(chunk::Column::Id)
        .all(moment)
        .await?;
    let pieces = pieces.into_iter().map(chunk_from_row);
    Ok(join_parts(pieces.collect::<Result<_, _>>()?))
}

/// What text the messages hold.
struct Held {
    messages: HashSet<MessageId>,
    outputs: HashSet<PartId>,
}

impl Held {
    fn by(messages: &[Message]) -> Self {
        Self {
            messages: messages.iter().map(|message| message.id).collect(),
            outputs: messages
                .iter()
                .filter_map(|message| message.tool_call_id.as_ref())
                .map(PartId::output)
                .collect(),
        }
    }

    /// A message that is there holds its text and reasoning; the output of its calls is held
    /// by their results.
    fn part(&self, kind: PartKind, part_id: &DbText, message_id: MessageId) -> bool {
        match kind {
            PartKind::Text | PartKind::Thinking => self.messages.contains(&message_id),
            PartKind::ToolOutput => self.outputs.contains(&PartId(part_id.0.clone())),
        }
    }
}

/// Pieces of several parts, in order of arrival, into the parts.
fn join_parts(pieces: Vec<ChunkRow>) -> Vec<ChunkRow> {
    let mut parts: Vec<ChunkRow> = Vec::new();
    let mut places = HashMap::new();
    for piece in pieces {
        match places.entry(piece.part_id.clone()) {
            Entry::Vacant(place) => {
                place.insert(parts.len());
                parts.push(piece);
            }
            Entry::Occupied(place) => {
                let part = &mut parts[*place.get()];
                part.text.push_str(&piece.text);
                part.after_seq = piece.after_seq;
            }
        }
    }
    parts
}
