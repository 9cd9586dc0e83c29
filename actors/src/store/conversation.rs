//! The conversation: as it is shown, as the model sees it, and single messages of it.

use std::future::poll_fn;
use std::ops::Range;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt as _;
use sea_orm::{
    ColumnTrait, Condition, DatabaseTransaction, EntityTrait, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect, Select,
};
use tokio::time::sleep;
use uuid::Uuid;

use super::entities::{message, queued_message, run, session};
use super::load::branches;
use super::recent::Numbered;
use super::rows::{message_from_row, numbered_message, queued_from_row, run_from_row};
use super::values::{DbText, from_db, name_of, named, to_db};
use super::{Store, StoreError};
use crate::domain::history::{MessagePosition, Place, Segment, page_start, path};
use crate::domain::run_loop::EndReason;
use crate::protocol::ids::{MessageId, RunId, SessionId};
use crate::protocol::message::{Message, Role};
use crate::protocol::session::{QueuedMessage, RunState};

/// A message that a client sent before under the same id.
#[derive(Clone, Debug, PartialEq)]
pub enum KnownMessage {
    Sent(Message),
    /// It still waits for the run before it.
    Queued(QueuedMessage),
}

/// How a run ended, and the last that its model said.
#[derive(Clone, Debug, PartialEq)]
pub struct RunOutcome {
    pub state: RunState,
    pub reason: Option<EndReason>,
    pub message: Option<Message>,
}

/// Messages of a conversation as it is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stretch {
    /// In order, with their ordinals.
    pub messages: Vec<(u64, Message)>,
    /// No message of the path stands between this ordinal and the first of them.
    pub from: u64,
    /// How many stand before them.
    pub earlier: u64,
}

/// Above the ordinal of any message.
pub(super) const MAX_ORDINAL: u64 = i64::MAX.cast_unsigned();

impl Store {
    /// The whole conversation as it is shown, in order.
    ///
    /// # Errors
    /// [`StoreError::SessionNotFound`], and as the store's other reads.
    pub async fn messages(&self, id: SessionId) -> Result<Vec<Message>, StoreError> {
        let moment = self.begin_read().await?;
        let shown = shown_branch(&moment, id).await?;
        let path = path(&branches(&moment, id).await?, shown);
        let messages = match on_path(id, &path, 0..MAX_ORDINAL)? {
            Some(on_path) => numbered(read_long(on_path.all(&moment)).await?)?,
            None => Vec::new(),
        };
        moment.commit().await?;
        Ok(messages.into_iter().map(|(_, message)| message).collect())
    }

    /// The messages of a path below this ordinal: the newest `most`, from where a turn begins
    /// (see [`page_start`]), or all of them. A path that is not there has none.
    ///
    /// # Errors
    /// [`StoreError::SessionNotFound`], and as the store's other reads.
    pub async fn conversation(
        &self,
        id: SessionId,
        path: &[Segment],
        below: u64,
        most: Option<u32>,
    ) -> Result<Stretch, StoreError> {
        let moment = self.begin_read().await?;
        shown_branch(&moment, id).await?;
        let mut stretch = Stretch::default();
        if let Some(most) = most {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            let newest = newest_places(&moment, id, path, below, most).await?;
            stretch.from = page_start(&newest, most);
            if let Some(before) = on_path(id, path, 0..stretch.from)? {
                stretch.earlier = before.count(&moment).await?;
            }
        }
        if let Some(wanted) = on_path(id, path, stretch.from..below)? {
            stretch.messages = numbered(read_long(wanted.all(&moment)).await?)?;
        }
        moment.commit().await?;
        Ok(stretch)
    }

    /// The first message of a path with one of these ordinals.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn first_message(
        &self,
        id: SessionId,
        path: &[Segment],
        ordinals: Range<u64>,
    ) -> Result<Option<MessageId>, StoreError> {
        for segment in path {
            let first: Option<Uuid> = of_segment(id, *segment, ordinals.clone())?
                .select_only()
                .column(message::Column::Id)
                .order_by_asc(message::Column::Ordinal)
                .into_tuple()
                .one(&self.read)
                .await?;
            if let Some(first) = first {
                return Ok(Some(MessageId(first)));
            }
        }
        Ok(None)
    }

    /// The messages of a path with these ordinals, in order, with their ordinals. One query
    /// that reads nothing else, however long the conversation before it is, and no more than
    /// what is not known yet; none where they all are. A session that is not there has none.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn context_messages(
        &self,
        id: SessionId,
        path: &[Segment],
        ordinals: Range<u64>,
    ) -> Result<Numbered, StoreError> {
        let Range { start, end } = ordinals;
        let mut messages = self.recent.get(id, path, start);
        let next = messages.last().map_or(start, |(ordinal, _)| ordinal + 1);
        let came = self.path_messages(id, path, next..end).await?;
        messages.extend(came.into_iter().map(|(at, message)| (at, message.into())));
        self.recent.put(id, path, start, &messages);
        messages.truncate(messages.partition_point(|(at, _)| *at < end));
        Ok(messages)
    }

    pub(super) async fn path_messages(
        &self,
        id: SessionId,
        path: &[Segment],
        ordinals: Range<u64>,
    ) -> Result<Vec<(u64, Message)>, StoreError> {
        match on_path(id, path, ordinals)? {
            Some(on_path) => numbered(read_long(on_path.all(&self.read)).await?),
            None => Ok(Vec::new()),
        }
    }

    /// Frees what is kept of a conversation: nobody uses it for now, or it is deleted.
    pub fn rest(&self, id: SessionId) {
        self.recent.forget(id);
    }

    /// A message of this session, where it stands: its ordinal and its branch.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn message_ordinal(
        &self,
        id: SessionId,
        message_id: MessageId,
    ) -> Result<Option<(u64, u32, Message)>, StoreError> {
        let row = message::Entity::find_by_id(message_id.0)
            .filter(message::Column::SessionId.eq(id.0))
            .one(&self.read)
            .await?;
        row.map(|row| {
            let branch_id = from_db("messages.branch_id", row.branch_id)?;
            numbered_message(row).map(|(ordinal, message)| (ordinal, branch_id, message))
        })
        .transpose()
    }

    /// The last message of a path below this ordinal; none where the path begins there.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn message_before(
        &self,
        id: SessionId,
        path: &[Segment],
        ordinal: u64,
    ) -> Result<Option<MessagePosition>, StoreError> {
        for segment in path.iter().rev() {
            let last: Option<i64> = of_segment(id, *segment, 0..ordinal)?
                .select_only()
                .column(message::Column::Ordinal)
                .order_by_desc(message::Column::Ordinal)
                .into_tuple()
                .one(&self.read)
                .await?;
            if let Some(ordinal) = last {
                return Ok(Some(MessagePosition {
                    branch: segment.branch,
                    ordinal: from_db("messages.ordinal", ordinal)?,
                }));
            }
        }
        Ok(None)
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

    /// What a run of this session came to. None where there is no such run.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn answer_of(
        &self,
        id: SessionId,
        run_id: RunId,
    ) -> Result<Option<RunOutcome>, StoreError> {
        let moment = self.begin_read().await?;
        let row = run::Entity::find_by_id(run_id.0)
            .filter(run::Column::SessionId.eq(id.0))
            .one(&moment)
            .await?;
        let Some(row) = row else {
            return Ok(None);
        };
        let said = message::Entity::find()
            .filter(message::Column::SessionId.eq(id.0))
            .filter(message::Column::RunId.eq(run_id.0))
            .filter(message::Column::Role.eq(name_of(&Role::Assistant)?))
            .order_by_desc(message::Column::Ordinal)
            .one(&moment)
            .await?;
        moment.commit().await?;
        let run = run_from_row(row)?;
        Ok(Some(RunOutcome {
            state: run.state,
            reason: run.reason,
            message: said.map(message_from_row).transpose()?,
        }))
    }
}

/// Reads what may be many rows. SQLite's thread wakes whoever reads for each of them, and on one
/// processor the two would take turns row by row: after the first ones the reader looks by itself,
/// and takes all that came meanwhile.
async fn read_long<T>(read: impl Future<Output = T>) -> T {
    const FIRST_WAKES: u32 = 100;
    const PAUSE: Duration = Duration::from_millis(1);
    let mut read = pin!(read);
    let mut wakes = 0;
    let short = poll_fn(|cx| match read.as_mut().poll(cx) {
        Poll::Ready(all) => Poll::Ready(Some(all)),
        Poll::Pending if wakes == FIRST_WAKES => Poll::Ready(None),
        Poll::Pending => {
            wakes += 1;
            Poll::Pending
        }
    });
    if let Some(all) = short.await {
        return all;
    }
    loop {
        sleep(PAUSE).await;
        if let Some(all) = read.as_mut().now_or_never() {
            return all;
        }
    }
}

/// The branch that a session shows. Refuses one that does not exist or is deleted.
async fn shown_branch(moment: &DatabaseTransaction, id: SessionId) -> Result<u32, StoreError> {
    let shown: Option<i64> = session::Entity::find_by_id(id.0)
        .filter(session::Column::DeletedAt.is_null())
        .select_only()
        .column(session::Column::BranchId)
        .into_tuple()
        .one(moment)
        .await?;
    from_db(
        "sessions.branch_id",
        shown.ok_or(StoreError::SessionNotFound)?,
    )
}

/// The newest messages of a path below an ordinal, newest first: one more than twice as many as
/// a page is to hold.
async fn newest_places(
    moment: &DatabaseTransaction,
    id: SessionId,
    path: &[Segment],
    below: u64,
    most: usize,
) -> Result<Vec<Place>, StoreError> {
    let wanted = most.saturating_mul(2).saturating_add(1);
    let mut newest = Vec::new();
    for segment in path.iter().rev() {
        let rows: Vec<(i64, String, Uuid)> = of_segment(id, *segment, 0..below)?
            .select_only()
            .column(message::Column::Ordinal)
            .column(message::Column::Role)
            .column(message::Column::RunId)
            .order_by_desc(message::Column::Ordinal)
            .limit(u64::try_from(wanted - newest.len()).unwrap_or(u64::MAX))
            .into_tuple()
            .all(moment)
            .await?;
        for (ordinal, role, run_id) in rows {
            newest.push(Place {
                ordinal: from_db("messages.ordinal", ordinal)?,
                role: named("messages.role", role)?,
                run_id: RunId(run_id),
            });
        }
        if newest.len() == wanted {
            break;
        }
    }
    Ok(newest)
}

/// The messages of one stretch of a path with these ordinals: a range of the index.
fn of_segment(
    id: SessionId,
    segment: Segment,
    ordinals: Range<u64>,
) -> Result<Select<message::Entity>, StoreError> {
    Ok(message::Entity::find().filter(in_segment(id, segment, ordinals)?))
}

fn in_segment(
    id: SessionId,
    segment: Segment,
    ordinals: Range<u64>,
) -> Result<Condition, StoreError> {
    let below = segment.below.unwrap_or(ordinals.end).min(ordinals.end);
    Ok(Condition::all()
        .add(message::Column::SessionId.eq(id.0))
        .add(message::Column::BranchId.eq(segment.branch))
        .add(message::Column::Ordinal.gte(to_db(ordinals.start)?))
        .add(message::Column::Ordinal.lt(to_db(below)?)))
}

/// The messages of a path with these ordinals, in order. None where the path has none there.
fn on_path(
    id: SessionId,
    path: &[Segment],
    ordinals: Range<u64>,
) -> Result<Option<Select<message::Entity>>, StoreError> {
    let mut any = Condition::any();
    for segment in path {
        let goes_so_far = segment.below.is_none_or(|below| below > ordinals.start);
        if goes_so_far && !ordinals.is_empty() {
            // Each stretch is a range of the index by itself.
            any = any.add(in_segment(id, *segment, ordinals.clone())?);
        }
    }
    Ok((!any.is_empty()).then(|| {
        message::Entity::find()
            .filter(any)
            .order_by_asc(message::Column::Ordinal)
    }))
}

fn numbered(rows: Vec<message::Model>) -> Result<Vec<(u64, Message)>, StoreError> {
    rows.into_iter().map(numbered_message).collect()
}
