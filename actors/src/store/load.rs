//! A session as its actor starts from it. What is read does not grow with the conversation:
//! the newest run, what waits, and what is open.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use sea_orm::sea_query::{CaseStatement, Expr, ExprTrait};
use sea_orm::{
    ColumnTrait, DatabaseTransaction, EntityTrait, PaginatorTrait, QueryFilter, QueryOrder,
    QuerySelect,
};
use uuid::Uuid;

use super::consent::waiting;
use super::entities::{branch, chunk, event, message, model_call, queued_message, run, session};
use super::rows::{
    SummaryRow, branch_from_row, chunk_from_row, message_from_row, queued_from_row, run_from_row,
    summary_from_row,
};
use super::run_log::{told_branch, with_descendants};
use super::values::{DbText, from_db, from_json, name_of, named};
use super::{Store, StoreError, shares};
use crate::domain::history::Branch;
use crate::domain::session::state::TokensUsed;
use crate::domain::session::stored::{
    AcceptedId, CLIENT_IDS, ChildCall, LoadedSession, MAX_SPANS, Span, StartedCall,
};
use crate::domain::session::write::ChunkRow;
use crate::protocol::event::PartKind;
use crate::protocol::ids::{CallId, MessageId, OwnerId, PartId, RunId, SessionId};
use crate::protocol::inspect::CallKind;
use crate::protocol::message::Message;
use crate::protocol::session::RunState;

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
        let same_owner = session::Column::Owner.eq(DbText::from(owner.0.as_str()));
        let epoch = CaseStatement::new()
            .case(same_owner, Expr::col(session::Column::Epoch))
            .finally(Expr::col(session::Column::Epoch).add(1));
        self.take(id, owner, epoch.into()).await
    }

    /// The same, and the epoch moves on in any case: whatever the same owner wrote before this
    /// and is not written yet never will be.
    ///
    /// # Errors
    /// As [`Store::take_session`].
    pub async fn seize_session(
        &self,
        id: SessionId,
        owner: &OwnerId,
    ) -> Result<LoadedSession, StoreError> {
        let epoch = Expr::col(session::Column::Epoch).add(1);
        self.take(id, owner, epoch).await
    }

    async fn take(
        &self,
        id: SessionId,
        owner: &OwnerId,
        epoch: Expr,
    ) -> Result<LoadedSession, StoreError> {
        let owner = DbText::from(owner.0.as_str());
        let taken = session::Entity::update_many()
            .col_expr(session::Column::Epoch, epoch)
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
    let rows = match &last_run {
        Some(run) => run_messages(moment, id, run).await?,
        None => Vec::new(),
    };
    let last_run_branch = match &last_run {
        Some(run) => run_branch(moment, &row, run, &rows).await?,
        None => 0,
    };
    let messages: Vec<Message> = rows
        .into_iter()
        .map(message_from_row)
        .collect::<Result<_, _>>()?;
    let queue = queued_message::Entity::find()
        .filter(queued_message::Column::SessionId.eq(id.0))
        .order_by_asc(queued_message::Column::Id)
        .all(moment)
        .await?
        .into_iter()
        .map(queued_from_row)
        .collect::<Result<_, _>>()?;
    let running = running(moment, id).await?;
    let unfinished_parts = unfinished_parts(moment, &running, &messages).await?;
    let last_seq = from_db("sessions.last_seq", row.last_seq)?;
    let spans = match &last_run {
        Some(run) => spans(moment, RunId(run.id), last_seq, &unfinished_parts).await?,
        None => Vec::new(),
    };
    let child_calls = child_calls(moment, &running).await?;
    let used = used(moment, &running).await?;
    let started_calls = match &last_run {
        Some(run) if run.state == name_of(&RunState::Running)? => {
            started_calls(moment, run.id).await?
        }
        _ => Vec::new(),
    };
    let approvals = waiting(moment, id).await?;
    let (run_first_seq, interruptions) = match &last_run {
        Some(run) if run.state == name_of(&RunState::Running)? => (
            first_seq(moment, run.id).await?,
            interruptions(moment, run).await?,
        ),
        _ => (None, 0),
    };
    let asks = i64::try_from(approvals.len()).unwrap_or(i64::MAX);
    let mut loaded = LoadedSession {
        mode: row
            .consent_mode
            .map(|name| named("sessions.consent_mode", name))
            .transpose()?,
        tainted_at: row.tainted_at,
        held: row.held,
        approvals,
        run_first_seq,
        interruptions,
        todo: from_json("sessions.todo", &row.todo)?,
        scratchpad: from_json("sessions.scratchpad", &row.scratchpad)?,
        last_seq,
        epoch: row.epoch,
        summary: summary_from_row(SummaryRow {
            id: row.id,
            user_id: row.user_id,
            title: row.title,
            profile_id: row.profile_id,
            model: row.model,
            pinned: row.pinned,
            archived: row.archived,
            ephemeral: row.ephemeral,
            tags: row.tags,
            shared_at: row.shared_at,
            context_token_count: row.context_token_count,
            created_at: row.created_at,
            last_active: row.last_active,
            run_state: last_run.as_ref().map(|run| run.state.clone()),
            asks,
        })?,
        message_count: from_db("sessions.message_count", row.message_count)?,
        sent: sent(moment, id).await?,
        branches: branches(moment, id).await?,
        branch_id: from_db("sessions.branch_id", row.branch_id)?,
        plan: row
            .plan
            .map(|json| from_json("sessions.plan", &json))
            .transpose()?,
        running_children: running
            .into_iter()
            .filter(|run| run.parent_run_id.is_some())
            .map(|run| run_from_row(run).map(|run| run.row))
            .collect::<Result<_, _>>()?,
        messages,
        queue,
        last_run: last_run.map(run_from_row).transpose()?,
        last_run_branch: from_db("messages.branch_id", last_run_branch)?,
        unfinished_parts,
        spans,
        started_calls,
        child_calls,
        used,
    };
    shares::fill(moment, std::slice::from_mut(&mut loaded.summary)).await?;
    Ok(loaded)
}

/// See [`LoadedSession::sent`].
async fn sent(
    moment: &DatabaseTransaction,
    id: SessionId,
) -> Result<Option<Vec<AcceptedId>>, StoreError> {
    let sent: Vec<(DbText, Uuid, Uuid)> = message::Entity::find()
        .select_only()
        .columns([
            message::Column::ClientId,
            message::Column::Id,
            message::Column::RunId,
        ])
        .filter(message::Column::SessionId.eq(id.0))
        .filter(message::Column::ClientId.is_not_null())
        .limit(CLIENT_IDS as u64 + 1)
        .into_tuple()
        .all(moment)
        .await?;
    let sent = sent.into_iter().map(|(client_id, id, run_id)| AcceptedId {
        client_id: client_id.0,
        message_id: MessageId(id),
        run_id: RunId(run_id),
    });
    let sent: Vec<_> = sent.collect();
    Ok((sent.len() <= CLIENT_IDS).then_some(sent))
}

/// How many runs that answered the same message were interrupted.
async fn interruptions(moment: &DatabaseTransaction, run: &run::Model) -> Result<u32, StoreError> {
    let count = run::Entity::find()
        .filter(run::Column::SessionId.eq(run.session_id))
        .filter(run::Column::MessageId.eq(run.message_id))
        .filter(run::Column::ParentRunId.is_null())
        .filter(run::Column::State.eq(name_of(&RunState::Interrupted)?))
        .count(moment)
        .await?;
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The first event of a run.
async fn first_seq(moment: &DatabaseTransaction, run_id: Uuid) -> Result<Option<u64>, StoreError> {
    let first: Option<i64> = event::Entity::find()
        .select_only()
        .column(event::Column::Seq)
        .filter(event::Column::RunId.eq(run_id))
        .order_by_asc(event::Column::Seq)
        .limit(1)
        .into_tuple()
        .one(moment)
        .await?;
    first.map(|seq| from_db("events.seq", seq)).transpose()
}

/// The calls of a run whose start was told, whether or not they have a result.
async fn started_calls(
    moment: &DatabaseTransaction,
    run_id: Uuid,
) -> Result<Vec<StartedCall>, StoreError> {
    let events: Vec<DbText> = event::Entity::find()
        .select_only()
        .column(event::Column::Json)
        .filter(event::Column::RunId.eq(run_id))
        .filter(event::Column::Kind.eq("tool_started"))
        .into_tuple()
        .all(moment)
        .await?;
    events
        .iter()
        .map(|json| from_json("events.json", &json.0))
        .collect()
}

/// The calls of these runs' children that began and did not end, in order. Those of the
/// foreground run are messages.
async fn child_calls(
    moment: &DatabaseTransaction,
    running: &[run::Model],
) -> Result<Vec<ChildCall>, StoreError> {
    let children = running.iter().filter(|run| run.parent_run_id.is_some());
    let children: Vec<Uuid> = children.map(|run| run.id).collect();
    if children.is_empty() {
        return Ok(Vec::new());
    }
    #[derive(serde::Deserialize)]
    struct StartedCall {
        call_id: CallId,
        #[serde(default)]
        tool: String,
        #[serde(default)]
        args: serde_json::Value,
    }
    let events: Vec<(String, Uuid, DbText)> = event::Entity::find()
        .select_only()
        .columns([
            event::Column::Kind,
            event::Column::RunId,
            event::Column::Json,
        ])
        .filter(event::Column::RunId.is_in(children))
        .filter(event::Column::Kind.is_in(["tool_started", "tool_call"]))
        .order_by_asc(event::Column::Seq)
        .into_tuple()
        .all(moment)
        .await?;
    let mut open: Vec<ChildCall> = Vec::new();
    for (kind, run_id, json) in events {
        let told: StartedCall = from_json("events.json", &json.0)?;
        if kind == "tool_started" {
            open.push(ChildCall {
                run_id: RunId(run_id),
                call_id: told.call_id,
                tool: told.tool,
                args: told.args,
            });
        } else {
            open.retain(|known| known.call_id != told.call_id);
        }
    }
    Ok(open)
}

/// What the model calls of these runs used.
async fn used(
    moment: &DatabaseTransaction,
    running: &[run::Model],
) -> Result<BTreeMap<RunId, TokensUsed>, StoreError> {
    use model_call::Column;
    type Sums = (Uuid, Option<i64>, Option<i64>, Option<i64>);
    if running.is_empty() {
        return Ok(BTreeMap::new());
    }
    // PostgreSQL's sum of these is no whole number by its type.
    let sum = |column: Column| column.sum().cast_as("BIGINT");
    let rows: Vec<Sums> = model_call::Entity::find()
        .select_only()
        .column(Column::RunId)
        .column_as(sum(Column::PromptTokens), "prompt_tokens")
        .column_as(sum(Column::CompletionTokens), "completion_tokens")
        .column_as(sum(Column::CachedTokens), "cached_tokens")
        .filter(Column::RunId.is_in(running.iter().map(|run| run.id)))
        .filter(Column::Kind.ne(name_of(&CallKind::Summary)?))
        .group_by(Column::RunId)
        .into_tuple()
        .all(moment)
        .await?;
    rows.into_iter()
        .map(|(run_id, prompt, completion, cached)| {
            let used = TokensUsed {
                prompt: from_db("model_calls.prompt_tokens", prompt.unwrap_or(0))?,
                completion: from_db("model_calls.completion_tokens", completion.unwrap_or(0))?,
                cached: from_db("model_calls.cached_tokens", cached.unwrap_or(0))?,
            };
            Ok((RunId(run_id), used))
        })
        .collect()
}

/// What the run said, after the message that it answers.
async fn run_messages(
    moment: &DatabaseTransaction,
    id: SessionId,
    run: &run::Model,
) -> Result<Vec<message::Model>, StoreError> {
    let mut rows = message::Entity::find()
        .filter(message::Column::SessionId.eq(id.0))
        .filter(message::Column::RunId.eq(run.id))
        .order_by_asc(message::Column::Ordinal)
        .all(moment)
        .await?;
    // A run that goes on from another one answers that one's message.
    if rows.iter().all(|row| row.id != run.message_id)
        && let Some(answered) = message::Entity::find_by_id(run.message_id)
            .filter(message::Column::SessionId.eq(id.0))
            .one(moment)
            .await?
    {
        rows.insert(0, answered);
    }
    Ok(rows)
}

/// The branch that a run began on. `rows` are its messages, after the one that it answers.
async fn run_branch(
    moment: &DatabaseTransaction,
    row: &session::Model,
    run: &run::Model,
    rows: &[message::Model],
) -> Result<i64, StoreError> {
    let newest = rows.last();
    if let Some(own) = newest.filter(|message| message.run_id == run.id) {
        return Ok(own.branch_id);
    }
    // No other branch can be shown while it goes.
    if run.state == name_of(&RunState::Running)? {
        return Ok(row.branch_id);
    }
    // It said nothing: it answered anew on a branch that it told of, or went on from one that did.
    let told = told_branch(moment, run).await?;
    Ok(told.unwrap_or_else(|| newest.map_or(0, |answered| answered.branch_id)))
}

/// The runs that are still marked as running, oldest first.
async fn running(
    moment: &DatabaseTransaction,
    id: SessionId,
) -> Result<Vec<run::Model>, StoreError> {
    Ok(run::Entity::find()
        .filter(run::Column::SessionId.eq(id.0))
        .filter(run::Column::State.eq(name_of(&RunState::Running)?))
        .order_by_asc(run::Column::Id)
        .all(moment)
        .await?)
}

/// A session's branches, oldest first.
pub(super) async fn branches(
    moment: &DatabaseTransaction,
    id: SessionId,
) -> Result<Vec<Branch>, StoreError> {
    branch::Entity::find()
        .filter(branch::Column::SessionId.eq(id.0))
        .order_by_asc(branch::Column::Id)
        .all(moment)
        .await?
        .iter()
        .map(branch_from_row)
        .collect()
}

/// The text that these runs streamed, and that no message holds.
async fn unfinished_parts(
    moment: &DatabaseTransaction,
    running: &[run::Model],
    messages: &[Message],
) -> Result<Vec<ChunkRow>, StoreError> {
    if running.is_empty() {
        return Ok(Vec::new());
    }
    let running: Vec<Uuid> = running.iter().map(|run| run.id).collect();
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

/// See [`LoadedSession::spans`]. What is unfinished ends with an event to come, and what is
/// not, with the last one at the latest.
async fn spans(
    moment: &DatabaseTransaction,
    run_id: RunId,
    last_seq: u64,
    unfinished: &[ChunkRow],
) -> Result<Vec<Span>, StoreError> {
    let starts: Vec<(DbText, i64)> = chunk::Entity::find()
        .select_only()
        .columns([chunk::Column::PartId, chunk::Column::AfterSeq])
        .filter(chunk::Column::RunId.is_in(with_descendants(moment, run_id).await?))
        .filter(chunk::Column::Offset.eq(0))
        .order_by_desc(chunk::Column::Id)
        .limit(MAX_SPANS as u64)
        .into_tuple()
        .all(moment)
        .await?;
    let mut spans = Vec::new();
    for (part_id, after_seq) in starts.into_iter().rev() {
        let part_id = PartId(part_id.0);
        let is_unfinished = unfinished.iter().any(|part| part.part_id == part_id);
        let after = from_db("chunks.after_seq", after_seq)?;
        let until = last_seq.saturating_sub(u64::from(!is_unfinished));
        if after < until {
            spans.push(Span {
                part_id,
                after,
                until,
            });
        }
    }
    Ok(spans)
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
