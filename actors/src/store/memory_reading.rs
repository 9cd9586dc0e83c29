//! How far sessions have been read for facts. The facts of a session and its mark are one
//! transaction: nothing is marked as read that was not stored.

use chrono::{DateTime, Utc};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, Func, OnConflict};
use sea_orm::{
    ColumnTrait, Condition, DatabaseTransaction, DbErr, EntityTrait, JoinType, QueryFilter,
    QueryOrder, QuerySelect, RelationDef,
};
use uuid::Uuid;

use super::entities::{message, session, session_memory};
use super::memory_facts::{lock, put, refresh};
use super::sessions::require_session;
use super::values::{DbText, db_time, from_db, name_of, named, to_db};
use super::{Store, StoreError};
use crate::domain::memory::NewFact;
use crate::domain::memory::extraction::{Said, Speaker, USER_CHARS};
use crate::protocol::ids::{MessageId, SessionId, UserId};
use crate::protocol::message::Role;

/// As many tries as a session has until it changes.
const MAX_FAILURES: i64 = 3;
/// The most messages that are read at once.
const MESSAGES: u64 = 200;

/// A session with something to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadSession {
    pub session_id: SessionId,
    /// Messages from this ordinal on have not been read.
    pub from: u64,
}

/// Messages that have not been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadMessages {
    /// What was said in them, in order.
    pub said: Vec<Said>,
    /// They stand below this ordinal.
    pub up_to: u64,
    /// When the last of them was said.
    pub until: Option<DateTime<Utc>>,
    /// Whether there are more beyond them.
    pub has_more: bool,
}

/// What was read of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    pub session_id: SessionId,
    pub from: u64,
    pub up_to: u64,
    pub until: Option<DateTime<Utc>>,
}

/// What became of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// Stored and marked; so many facts changed.
    Stored { changed: usize },
    /// The session was read, or taken as read, by someone else meanwhile. Nothing was stored.
    Stale,
}

impl Store {
    /// A user's sessions that have been idle since `idle_before` and hold messages that were
    /// not read, the longest idle first. Those that failed too often are left out until they
    /// change; those that are shared, or were, for good: others wrote in them.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn unread_sessions(
        &self,
        user: UserId,
        idle_before: DateTime<Utc>,
        limit: u64,
    ) -> Result<Vec<UnreadSession>, StoreError> {
        use session_memory::Column;
        let state: RelationDef = session::Entity::belongs_to(session_memory::Entity)
            .from(session::Column::Id)
            .to(Column::SessionId)
            .into();
        let count = || Expr::col((session::Entity, session::Column::MessageCount));
        let has_more = count().gt(Expr::col((session_memory::Entity, Column::ReadOrdinal)));
        let may_be_tried = Condition::any()
            .add(Column::Failures.lt(MAX_FAILURES))
            .add(count().ne(Expr::col((session_memory::Entity, Column::FailedCount))));
        let unread = Condition::any()
            .add(Column::SessionId.is_null())
            .add(Condition::all().add(has_more).add(may_be_tried));
        let rows: Vec<(Uuid, Option<i64>)> = session::Entity::find()
            .select_only()
            .column(session::Column::Id)
            .column(Column::ReadOrdinal)
            .join(JoinType::LeftJoin, state)
            .filter(session::Column::UserId.eq(user.0))
            .filter(session::Column::DeletedAt.is_null())
            .filter(session::Column::Ephemeral.eq(false))
            .filter(session::Column::SharedAt.is_null())
            .filter(session::Column::LastActive.lte(db_time(idle_before)))
            .filter(session::Column::MessageCount.gt(0))
            .filter(unread)
            .order_by_asc(session::Column::LastActive)
            .order_by_asc(session::Column::Id)
            .limit(limit)
            .into_tuple()
            .all(&self.read)
            .await?;
        rows.into_iter()
            .map(|(id, read)| {
                Ok(UnreadSession {
                    session_id: SessionId(id),
                    from: from_db("session_memory_state.read_ordinal", read.unwrap_or(0))?,
                })
            })
            .collect()
    }

    /// What was said in a session from the ordinal `from` on, as much of it as the prompt shows
    /// whole in `most_bytes`, and at least one message.
    ///
    /// # Errors
    /// [`StoreError::SessionNotFound`], and as the store's other reads.
    pub async fn unread_messages(
        &self,
        id: SessionId,
        from: u64,
        most_bytes: usize,
    ) -> Result<UnreadMessages, StoreError> {
        use message::Column;
        let moment = self.begin_read().await?;
        let (count, tainted_at) = length(&moment, id).await?;
        // Tools are left out here already: what they brought is never read.
        let roles = [name_of(&Role::User)?, name_of(&Role::Assistant)?];
        let start = Func::cust("substr").args([
            Expr::col((message::Entity, Column::Content)),
            Expr::value(1_i32),
            Expr::value(i32::try_from(USER_CHARS).unwrap_or(i32::MAX)),
        ]);
        let rows: Vec<(Uuid, i64, String, DateTime<Utc>, DbText)> = message::Entity::find()
            .select_only()
            .columns([Column::Id, Column::Ordinal, Column::Role, Column::CreatedAt])
            .expr_as(start, "start")
            .filter(Column::SessionId.eq(id.0))
            .filter(Column::Ordinal.gte(to_db(from)?))
            .filter(Column::Role.is_in(roles))
            .filter(Column::Content.is_not_null())
            .filter(Column::IsSummary.eq(false))
            .filter(Column::IsPlan.eq(false))
            .order_by_asc(Column::Ordinal)
            .limit(MESSAGES)
            .into_tuple()
            .all(&moment)
            .await?;
        moment.commit().await?;
        let mut unread = UnreadMessages {
            said: Vec::new(),
            up_to: count,
            until: None,
            has_more: false,
        };
        let is_full_page = rows.len() as u64 == MESSAGES;
        let (mut bytes, mut last) = (0, from);
        for (id, ordinal, role, at, text) in rows {
            let by = match named("messages.role", role)? {
                Role::User => Speaker::User,
                Role::Assistant | Role::Tool | Role::System => Speaker::Assistant,
            };
            let mut said = Said::new(MessageId(id), by, &text.0, at);
            said.tainted = tainted_at.is_some_and(|since| at >= since);
            let before = bytes;
            bytes += said.shown().len();
            if bytes > most_bytes && before > 0 {
                unread.has_more = true;
                break;
            }
            last = from_db::<u64>("messages.ordinal", ordinal)? + 1;
            unread.until = Some(at);
            if !said.text.is_empty() {
                unread.said.push(said);
            }
        }
        unread.has_more |= is_full_page && last < count;
        if unread.has_more {
            unread.up_to = last;
        }
        Ok(unread)
    }

    /// Stores the facts of a reading and marks what was read, or neither. Facts beyond what
    /// a user may have are left out.
    ///
    /// # Errors
    /// [`StoreError::SessionNotFound`] where the session was deleted meanwhile;
    /// [`StoreError::Unavailable`].
    pub async fn finish_reading(
        &self,
        user: UserId,
        reading: Reading,
        facts: Vec<NewFact>,
        now: DateTime<Utc>,
    ) -> Result<Finished, StoreError> {
        let transaction = self.begin_write().await?;
        lock(&transaction, user, now).await?;
        require_session(&transaction, reading.session_id).await?;
        if is_shared(&transaction, reading.session_id).await? {
            return Ok(Finished::Stale);
        }
        let known = state(&transaction, reading.session_id).await?;
        let read = known.as_ref().map_or(0, |state| state.read_ordinal);
        if read != to_db(reading.from)? {
            return Ok(Finished::Stale);
        }
        let mut changed = 0;
        for fact in facts {
            let saved = put(&transaction, user, fact).await?;
            changed += usize::from(saved.changed());
        }
        let extracted_at = reading
            .until
            .map(db_time)
            .or(known.and_then(|state| state.extracted_at));
        write_state(
            &transaction,
            session_memory::ActiveModel {
                session_id: Set(reading.session_id.0),
                extracted_at: Set(extracted_at),
                read_ordinal: Set(to_db(reading.up_to)?),
                failures: Set(0),
                failed_count: Set(0),
            },
        )
        .await?;
        if changed > 0 {
            refresh(&transaction, user, now).await?;
        }
        transaction.commit().await?;
        Ok(Finished::Stored { changed })
    }

    /// Notes that a session could not be read. After three times in a row it is left alone
    /// until it changes.
    ///
    /// # Errors
    /// [`StoreError::SessionNotFound`], [`StoreError::Unavailable`].
    pub async fn note_unreadable(&self, id: SessionId) -> Result<(), StoreError> {
        let transaction = self.begin_write().await?;
        let (count, _) = length(&transaction, id).await?;
        let count = to_db(count)?;
        let known = state(&transaction, id).await?;
        let failures = known
            .as_ref()
            .filter(|state| state.failed_count == count)
            .map_or(0, |state| state.failures);
        write_state(
            &transaction,
            session_memory::ActiveModel {
                session_id: Set(id.0),
                extracted_at: Set(known.as_ref().and_then(|state| state.extracted_at)),
                read_ordinal: Set(known.map_or(0, |state| state.read_ordinal)),
                failures: Set(failures + 1),
                failed_count: Set(count),
            },
        )
        .await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// Whether others take part in a session, or did.
async fn is_shared(db: &DatabaseTransaction, id: SessionId) -> Result<bool, DbErr> {
    let shared = session::Entity::find_by_id(id.0)
        .filter(session::Column::SharedAt.is_not_null())
        .select_only()
        .column(session::Column::Id)
        .into_tuple::<Uuid>();
    Ok(shared.one(db).await?.is_some())
}

/// How many messages a session has, and since when it has read text from outside.
async fn length(
    db: &DatabaseTransaction,
    id: SessionId,
) -> Result<(u64, Option<DateTime<Utc>>), StoreError> {
    let found: Option<(i64, Option<DateTime<Utc>>)> = session::Entity::find_by_id(id.0)
        .filter(session::Column::DeletedAt.is_null())
        .select_only()
        .columns([session::Column::MessageCount, session::Column::TaintedAt])
        .into_tuple()
        .one(db)
        .await?;
    let (count, tainted_at) = found.ok_or(StoreError::SessionNotFound)?;
    Ok((from_db("sessions.message_count", count)?, tainted_at))
}

async fn state(
    db: &DatabaseTransaction,
    id: SessionId,
) -> Result<Option<session_memory::Model>, DbErr> {
    session_memory::Entity::find_by_id(id.0).one(db).await
}

/// Takes the messages that a session begins with as read.
pub(super) async fn take_as_read(
    db: &DatabaseTransaction,
    id: SessionId,
    count: i64,
) -> Result<(), DbErr> {
    let read = session_memory::ActiveModel {
        session_id: Set(id.0),
        extracted_at: Set(None),
        read_ordinal: Set(count),
        failures: Set(0),
        failed_count: Set(0),
    };
    write_state(db, read).await
}

async fn write_state(
    db: &DatabaseTransaction,
    row: session_memory::ActiveModel,
) -> Result<(), DbErr> {
    use session_memory::Column;
    session_memory::Entity::insert(row)
        .on_conflict(
            OnConflict::column(Column::SessionId)
                .update_columns([
                    Column::ExtractedAt,
                    Column::ReadOrdinal,
                    Column::Failures,
                    Column::FailedCount,
                ])
                .to_owned(),
        )
        .exec_without_returning(db)
        .await?;
    Ok(())
}
