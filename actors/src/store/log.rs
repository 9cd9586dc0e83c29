//! The event log as a tab that catches up reads it, page by page.

use sea_orm::sea_query::{Expr, ExprTrait, Func, IntoColumnRef};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DatabaseTransaction, EntityTrait, QueryFilter,
    QueryOrder, QuerySelect,
};
use uuid::Uuid;

use super::entities::{chunk, event, session};
use super::held_text::HeldTexts;
use super::rows::{chunk_from_row, event_from_row};
use super::sessions::require_session;
use super::types::{LogCursor, LogItem, LogPage, LogRange, PageLimits};
use super::values::{DbText, from_db, to_db};
use super::{Store, StoreError};
use crate::domain::session::write::{ChunkRow, EventRow};
use crate::protocol::event::utf16_len;
use crate::protocol::ids::SessionId;

/// How many rows of each table a page looks at. Text that is joined is one item, so that a
/// page can hold more rows than items.
const ROWS_PER_PAGE: usize = 4096;

impl Store {
    /// One page of a session's log: events, and between them the text that was streamed
    /// there, with pieces of one part that follow each other joined. Pages end anywhere, so
    /// the next one may go on with the part that the last one ended with.
    ///
    /// No more is read into memory than `limits` allow, except for the one item that a
    /// page always has. None where the log does not go back to the range's beginning any more.
    ///
    /// # Errors
    /// [`StoreError::SessionNotFound`], and as the store's other reads.
    pub async fn log_page(
        &self,
        id: SessionId,
        range: LogRange,
        limits: PageLimits,
    ) -> Result<Option<LogPage>, StoreError> {
        let moment = self.begin_read().await?;
        require_session(&moment, id).await?;
        let from = range.from.seq;
        // Events are numbered without a gap.
        let is_gone = match first_event(&moment, id, from).await? {
            Some(first) => first > from + 1,
            None => last_seq(&moment, id).await? > from,
        };
        if is_gone {
            return Ok(None);
        }
        let page = page(&moment, &Scope { id, runs: None }, range, limits).await?;
        moment.commit().await?;
        Ok(Some(page))
    }
}

/// The first event after this one that the log still has.
pub(super) async fn first_event(
    db: &impl ConnectionTrait,
    id: SessionId,
    after: u64,
) -> Result<Option<u64>, StoreError> {
    let first: Option<i64> = event::Entity::find()
        .select_only()
        .column(event::Column::Seq)
        .filter(event::Column::SessionId.eq(id.0))
        .filter(event::Column::Seq.gt(to_db(after)?))
        .order_by_asc(event::Column::Seq)
        .limit(1)
        .into_tuple()
        .one(db)
        .await?;
    first.map(|seq| from_db("events.seq", seq)).transpose()
}

/// The last event that a session ever told.
pub(super) async fn last_seq(db: &impl ConnectionTrait, id: SessionId) -> Result<u64, StoreError> {
    let last: Option<i64> = session::Entity::find_by_id(id.0)
        .select_only()
        .column(session::Column::LastSeq)
        .into_tuple()
        .one(db)
        .await?;
    from_db("sessions.last_seq", last.unwrap_or_default())
}

/// Whose log is read.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    pub(super) id: SessionId,
    /// These runs' alone; none for the whole session's.
    pub(super) runs: Option<&'a [Uuid]>,
}

/// See [`Store::log_page`].
pub(super) async fn page(
    moment: &DatabaseTransaction,
    scope: &Scope<'_>,
    range: LogRange,
    limits: PageLimits,
) -> Result<LogPage, StoreError> {
    let (entries, is_all) = outline(moment, scope, range).await?;
    let taken = fitting(&entries, limits);
    Ok(match entries[..taken].last() {
        Some(last) => LogPage {
            items: items(moment, scope, range.from, last.at).await?,
            next: (!is_all || taken < entries.len()).then_some(last.at),
        },
        None => LogPage {
            items: Vec::new(),
            next: None,
        },
    })
}

/// A row of the log without its text. Rows stand in the order of their cursors: event `n`
/// at `(n, 0)`, the pieces that follow it at `(n, row id)`.
#[derive(Debug)]
struct Entry {
    at: LogCursor,
    bytes: usize,
    /// Of a piece of text: whose.
    part_id: Option<DbText>,
}

/// What the range holds, in order, up to [`ROWS_PER_PAGE`]; and whether that is all.
async fn outline(
    moment: &DatabaseTransaction,
    scope: &Scope<'_>,
    range: LogRange,
) -> Result<(Vec<Entry>, bool), StoreError> {
    let end = LogCursor {
        seq: range.to_seq,
        chunk: 0,
    };
    let events: Vec<(i64, i64)> = event::Entity::find()
        .select_only()
        .column(event::Column::Seq)
        .expr(size(event::Column::Json, event::Column::TextBytes))
        .filter(scope.events(range.from, end)?)
        .order_by_asc(event::Column::Seq)
        .limit(ROWS_PER_PAGE as u64)
        .into_tuple()
        .all(moment)
        .await?;
    let chunks: Vec<(i64, i64, DbText, i64)> = chunk::Entity::find()
        .select_only()
        .columns([
            chunk::Column::AfterSeq,
            chunk::Column::Id,
            chunk::Column::PartId,
        ])
        .expr(size(chunk::Column::Text, chunk::Column::TextBytes))
        .filter(scope.chunks(range.from, end)?)
        .order_by_asc(chunk::Column::AfterSeq)
        .order_by_asc(chunk::Column::Id)
        .limit(ROWS_PER_PAGE as u64)
        .into_tuple()
        .all(moment)
        .await?;
    let is_all = events.len() < ROWS_PER_PAGE && chunks.len() < ROWS_PER_PAGE;

    let mut entries = Vec::with_capacity(events.len() + chunks.len());
    // Beyond the last row of a table that was not read to its end, rows may be missing.
    let mut horizon = end;
    for (seq, bytes) in events {
        entries.push(Entry {
            at: LogCursor {
                seq: from_db("events.seq", seq)?,
                chunk: 0,
            },
            bytes: from_db("octet_length", bytes)?,
            part_id: None,
        });
    }
    if let Some(last) = entries.get(ROWS_PER_PAGE - 1) {
        horizon = last.at;
    }
    let events_read = entries.len();
    for (after_seq, chunk, part_id, bytes) in chunks {
        entries.push(Entry {
            at: LogCursor {
                seq: from_db("chunks.after_seq", after_seq)?,
                chunk,
            },
            bytes: from_db("octet_length", bytes)?,
            part_id: Some(part_id),
        });
    }
    if let Some(last) = entries.get(events_read + ROWS_PER_PAGE - 1) {
        horizon = horizon.min(last.at);
    }
    entries.retain(|entry| entry.at <= horizon);
    entries.sort_by_key(|entry| entry.at);
    Ok((entries, is_all))
}

/// How many of the first rows a page holds: at least one, where there is one.
fn fitting(entries: &[Entry], limits: PageLimits) -> usize {
    let (mut items, mut bytes) = (0_usize, 0_usize);
    let mut part_id = None;
    for (index, entry) in entries.iter().enumerate() {
        let joins = entry.part_id.is_some() && entry.part_id.as_ref() == part_id;
        items += usize::from(!joins);
        bytes = bytes.saturating_add(entry.bytes);
        if index > 0 && (items > limits.items || bytes > limits.bytes) {
            return index;
        }
        part_id = entry.part_id.as_ref();
    }
    entries.len()
}

async fn items(
    moment: &DatabaseTransaction,
    scope: &Scope<'_>,
    after: LogCursor,
    end: LogCursor,
) -> Result<Vec<LogItem>, StoreError> {
    let mut events = event::Entity::find()
        .filter(scope.events(after, end)?)
        .order_by_asc(event::Column::Seq)
        .all(moment)
        .await?;
    let mut chunks = chunk::Entity::find()
        .filter(scope.chunks(after, end)?)
        .order_by_asc(chunk::Column::AfterSeq)
        .order_by_asc(chunk::Column::Id)
        .all(moment)
        .await?;
    let held = HeldTexts::of_log(moment, &events, &chunks).await?;
    for row in &mut events {
        held.complete_event(row)?;
    }
    for row in &mut chunks {
        held.complete_chunk(row)?;
    }
    let mut items = Items::default();
    let mut chunks = chunks.into_iter().peekable();
    for row in events {
        while let Some(piece) = chunks.next_if(|chunk| chunk.after_seq < row.seq) {
            items.push_piece(chunk_from_row(piece)?);
        }
        items.push_event(event_from_row(row)?);
    }
    for piece in chunks {
        items.push_piece(chunk_from_row(piece)?);
    }
    Ok(items.list)
}

/// A page as it grows.
#[derive(Debug, Default)]
struct Items {
    list: Vec<LogItem>,
    /// Where the last piece ends, in UTF-16 code units of its part.
    end: u64,
}

impl Items {
    fn push_event(&mut self, event: EventRow) {
        self.list.push(LogItem::Event(event));
    }

    /// Joins the piece to the one before it where it goes on from there.
    fn push_piece(&mut self, piece: ChunkRow) {
        let end = piece.offset + utf16_len(&piece.text);
        match self.list.last_mut() {
            Some(LogItem::Chunk(last))
                if last.part_id == piece.part_id && self.end == piece.offset =>
            {
                last.text.push_str(&piece.text);
            }
            _ => self.list.push(LogItem::Chunk(piece)),
        }
        self.end = end;
    }
}

impl Scope<'_> {
    /// Events after one place and up to another.
    fn events(&self, after: LogCursor, end: LogCursor) -> Result<Condition, StoreError> {
        Ok(Condition::all()
            .add(event::Column::SessionId.eq(self.id.0))
            .add(event::Column::Seq.gt(to_db(after.seq)?))
            .add(event::Column::Seq.lte(to_db(end.seq)?))
            .add_option(self.of_runs(event::Column::RunId)))
    }

    /// Pieces after one place and up to another. The outer bounds are for the index.
    fn chunks(&self, after: LogCursor, end: LogCursor) -> Result<Condition, StoreError> {
        let (after_seq, end_seq) = (to_db(after.seq)?, to_db(end.seq)?);
        Ok(Condition::all()
            .add(chunk::Column::SessionId.eq(self.id.0))
            .add(chunk::Column::AfterSeq.between(after_seq, end_seq))
            .add(
                Condition::any()
                    .add(chunk::Column::AfterSeq.gt(after_seq))
                    .add(chunk::Column::Id.gt(after.chunk)),
            )
            .add(
                Condition::any()
                    .add(chunk::Column::AfterSeq.lt(end_seq))
                    .add(chunk::Column::Id.lte(end.chunk)),
            )
            .add_option(self.of_runs(chunk::Column::RunId)))
    }

    fn of_runs(&self, column: impl ColumnTrait) -> Option<Expr> {
        self.runs.map(|runs| column.is_in(runs.iter().copied()))
    }
}

/// The size of a text, without reading it, with what it has from a message.
fn size(text: impl IntoColumnRef, referred: impl IntoColumnRef) -> Expr {
    let referred = Func::coalesce([Expr::col(referred), Expr::value(0_i64)]);
    let own = Func::cust("octet_length").arg(Expr::col(text));
    Expr::from(own).add(Expr::from(referred))
}
