//! Files of sessions: what is kept of each, its last use and its end.
//!
//! A use and the expiry meet in one row: [`Store::use_files`] moves `last_used_at` of files that
//! are there, [`Store::retire_file`] marks a file as gone that nobody used since. Whichever is
//! first wins, so a file that was used is there for as long as it was promised.

use chrono::{DateTime, Utc};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, Query, SimpleExpr};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DerivePartialModel, EntityTrait, FromQueryResult, QueryFilter,
    QueryOrder, QuerySelect, Select,
};
use uuid::Uuid;

use super::entities::{session, session_file};
use super::sessions::require_session;
use super::values::{
    DbText, db_time, from_db, name_of, named, option_from_json, option_to_json, to_db,
};
use super::{Store, StoreError};
use crate::protocol::file::{AttachedFile, FileSource};
use crate::protocol::ids::{FileId, SessionId, UserId};
use crate::protocol::phrase::Phrase;

/// A file as it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    pub file: AttachedFile,
    pub source: FileSource,
    /// The beginning of its text.
    pub text: Option<String>,
    /// How much text it has in all, in bytes.
    pub text_bytes: u64,
    /// Why the model gets nothing of it.
    pub problem: Option<Phrase>,
}

/// A file that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    pub file: AttachedFile,
    pub source: FileSource,
    pub has_text: bool,
    pub problem: Option<Phrase>,
    pub created_at: DateTime<Utc>,
    pub last_used_at: DateTime<Utc>,
}

/// What the model reads of a file, whether the file is still there or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredText {
    pub file_id: FileId,
    pub text: Option<String>,
    pub text_bytes: u64,
    pub problem: Option<Phrase>,
    pub gone: bool,
}

/// A file that nobody used for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiredFile {
    pub session_id: SessionId,
    pub file_id: FileId,
    pub path: String,
}

/// How much a session may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileQuota {
    pub files: u64,
    pub bytes: u64,
}

/// A file's row without its text, which may be long.
#[derive(Debug, DerivePartialModel)]
#[sea_orm(entity = "session_file::Entity")]
struct HeadRow {
    id: Uuid,
    name: DbText,
    path: String,
    media_type: String,
    bytes: i64,
    source: String,
    has_image: bool,
    text_bytes: i64,
    problem: Option<DbText>,
    problem_phrase: Option<DbText>,
    created_at: DateTime<Utc>,
    last_used_at: DateTime<Utc>,
}

#[derive(Debug, FromQueryResult)]
struct Held {
    files: i64,
    bytes: Option<i64>,
}

impl Store {
    /// Adds files to a session, all or none. `Ok(false)` where they would take it over its quota.
    ///
    /// # Errors
    /// [`StoreError::SessionNotFound`], and as the store's other writes.
    pub async fn add_files(
        &self,
        session_id: SessionId,
        files: Vec<NewFile>,
        quota: FileQuota,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let transaction = self.begin_write().await?;
        // Takes turns with other uploads into this session, on PostgreSQL too.
        session::Entity::find_by_id(session_id.0)
            .select_only()
            .column(session::Column::Id)
            .lock_exclusive()
            .into_tuple::<Uuid>()
            .one(&transaction)
            .await?;
        require_session(&transaction, session_id).await?;
        let held = held(&transaction, of_session(session_id)).await?;
        let bytes: u64 = files.iter().map(|new| new.file.bytes).sum();
        if held.files.saturating_add(files.len() as u64) > quota.files
            || held.bytes.saturating_add(bytes) > quota.bytes
        {
            transaction.rollback().await?;
            return Ok(false);
        }
        for new in files {
            session_file::Entity::insert(to_row(session_id, new, now)?)
                .exec_without_returning(&transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// What a session holds now.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn files_held(&self, session_id: SessionId) -> Result<FileQuota, StoreError> {
        held(&self.read, of_session(session_id)).await
    }

    /// How many bytes the files of all of a person's sessions have that are there.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn file_bytes_of(&self, user: UserId) -> Result<u64, StoreError> {
        let own = Query::select()
            .column(session::Column::Id)
            .from(session::Entity)
            .and_where(session::Column::UserId.eq(user.0))
            .take();
        let theirs = session_file::Column::SessionId.in_subquery(own);
        Ok(held(&self.read, theirs).await?.bytes)
    }

    /// A session's files that are there, oldest first.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn files(&self, session_id: SessionId) -> Result<Vec<StoredFile>, StoreError> {
        let rows = heads(session_id)
            .order_by_asc(session_file::Column::CreatedAt)
            .order_by_asc(session_file::Column::Id)
            .into_partial_model::<HeadRow>()
            .all(&self.read)
            .await?;
        rows.into_iter().map(from_head).collect()
    }

    /// One of them.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn file(
        &self,
        session_id: SessionId,
        file_id: FileId,
    ) -> Result<Option<StoredFile>, StoreError> {
        heads(session_id)
            .filter(session_file::Column::Id.eq(file_id.0))
            .into_partial_model::<HeadRow>()
            .one(&self.read)
            .await?
            .map(from_head)
            .transpose()
    }

    /// Those of them that stand at these paths, in no order.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn files_at(
        &self,
        session_id: SessionId,
        paths: &[String],
    ) -> Result<Vec<StoredFile>, StoreError> {
        let rows = heads(session_id)
            .filter(session_file::Column::Path.is_in(paths))
            .into_partial_model::<HeadRow>()
            .all(&self.read)
            .await?;
        rows.into_iter().map(from_head).collect()
    }

    /// Notes that files are used, and tells which of them are there: those stay for as long as
    /// files are kept after a use.
    ///
    /// # Errors
    /// As the store's other writes.
    pub async fn use_files(
        &self,
        session_id: SessionId,
        files: &[FileId],
        now: DateTime<Utc>,
    ) -> Result<Vec<FileId>, StoreError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<Uuid> = files.iter().map(|id| id.0).collect();
        let transaction = self.begin_write().await?;
        session_file::Entity::update_many()
            .set(session_file::ActiveModel {
                last_used_at: Set(db_time(now)),
                ..Default::default()
            })
            .filter(there(session_id))
            .filter(session_file::Column::Id.is_in(ids.clone()))
            .exec(&transaction)
            .await?;
        let present: Vec<Uuid> = session_file::Entity::find()
            .select_only()
            .column(session_file::Column::Id)
            .filter(there(session_id))
            .filter(session_file::Column::Id.is_in(ids))
            .into_tuple()
            .all(&transaction)
            .await?;
        transaction.commit().await?;
        Ok(present.into_iter().map(FileId).collect())
    }

    /// What the model reads of these files. A deleted one is not among them.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn file_texts(
        &self,
        session_id: SessionId,
        files: &[FileId],
    ) -> Result<Vec<StoredText>, StoreError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let rows = session_file::Entity::find()
            .filter(session_file::Column::SessionId.eq(session_id.0))
            .filter(session_file::Column::Id.is_in(files.iter().map(|id| id.0)))
            .all(&self.read)
            .await?;
        rows.into_iter()
            .map(|row| {
                Ok(StoredText {
                    file_id: FileId(row.id),
                    text: row.content_text.map(|text| text.0),
                    text_bytes: from_db("session_files.text_bytes", row.text_bytes)?,
                    problem: problem_from_row(row.problem, row.problem_phrase)?,
                    gone: row.gone_at.is_some(),
                })
            })
            .collect()
    }

    /// Removes a file's row: its user deleted it. Gives back what it was.
    ///
    /// # Errors
    /// As the store's other writes.
    pub async fn delete_file(
        &self,
        session_id: SessionId,
        file_id: FileId,
    ) -> Result<Option<StoredFile>, StoreError> {
        let known = self.file(session_id, file_id).await?;
        let deleted = session_file::Entity::delete_many()
            .filter(there(session_id))
            .filter(session_file::Column::Id.eq(file_id.0))
            .exec(&self.write)
            .await?;
        Ok(known.filter(|_| deleted.rows_affected > 0))
    }

    /// Files whose last use was before `time`, the longest unused first, at most `limit`.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn files_unused_since(
        &self,
        time: DateTime<Utc>,
        limit: u64,
    ) -> Result<Vec<ExpiredFile>, StoreError> {
        let rows: Vec<(Uuid, Uuid, String)> = session_file::Entity::find()
            .select_only()
            .column(session_file::Column::SessionId)
            .column(session_file::Column::Id)
            .column(session_file::Column::Path)
            .filter(session_file::Column::GoneAt.is_null())
            .filter(session_file::Column::LastUsedAt.lt(db_time(time)))
            .order_by_asc(session_file::Column::LastUsedAt)
            .limit(limit)
            .into_tuple()
            .all(&self.read)
            .await?;
        Ok(rows
            .into_iter()
            .map(|(session, file, path)| ExpiredFile {
                session_id: SessionId(session),
                file_id: FileId(file),
                path,
            })
            .collect())
    }

    /// Marks a file as gone, unless it was used since `time` or is gone already: then the caller
    /// may not take it.
    ///
    /// # Errors
    /// As the store's other writes.
    pub async fn retire_file(
        &self,
        file_id: FileId,
        time: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let retired = session_file::Entity::update_many()
            .col_expr(
                session_file::Column::GoneAt,
                Expr::value(Some(db_time(now))),
            )
            .filter(session_file::Column::Id.eq(file_id.0))
            .filter(session_file::Column::GoneAt.is_null())
            .filter(session_file::Column::LastUsedAt.lt(db_time(time)))
            .exec(&self.write)
            .await?;
        Ok(retired.rows_affected > 0)
    }

    /// Which of these files are there.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn files_there(&self, files: &[FileId]) -> Result<Vec<FileId>, StoreError> {
        let present: Vec<Uuid> = session_file::Entity::find()
            .select_only()
            .column(session_file::Column::Id)
            .filter(session_file::Column::GoneAt.is_null())
            .filter(session_file::Column::Id.is_in(files.iter().map(|id| id.0)))
            .into_tuple()
            .all(&self.read)
            .await?;
        Ok(present.into_iter().map(FileId).collect())
    }

    /// Which of these sessions there are, deleted ones that can be had back among them.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn sessions_known(
        &self,
        sessions: &[SessionId],
    ) -> Result<Vec<SessionId>, StoreError> {
        let known: Vec<Uuid> = session::Entity::find()
            .select_only()
            .column(session::Column::Id)
            .filter(session::Column::Id.is_in(sessions.iter().map(|id| id.0)))
            .into_tuple()
            .all(&self.read)
            .await?;
        Ok(known.into_iter().map(SessionId).collect())
    }
}

async fn held(db: &impl ConnectionTrait, whose: SimpleExpr) -> Result<FileQuota, StoreError> {
    // SUM of integers is a NUMERIC on PostgreSQL.
    let sum = Expr::col(session_file::Column::Bytes)
        .sum()
        .cast_as("BIGINT");
    let held = session_file::Entity::find()
        .select_only()
        .column_as(session_file::Column::Id.count(), "files")
        .column_as(sum, "bytes")
        .filter(whose)
        .filter(session_file::Column::GoneAt.is_null())
        .into_model::<Held>()
        .one(db)
        .await?
        .unwrap_or(Held {
            files: 0,
            bytes: None,
        });
    Ok(FileQuota {
        files: from_db("session_files", held.files)?,
        bytes: from_db("session_files.bytes", held.bytes.unwrap_or(0))?,
    })
}

fn of_session(session_id: SessionId) -> SimpleExpr {
    session_file::Column::SessionId.eq(session_id.0)
}

fn there(session_id: SessionId) -> sea_orm::Condition {
    sea_orm::Condition::all()
        .add(of_session(session_id))
        .add(session_file::Column::GoneAt.is_null())
}

fn heads(session_id: SessionId) -> Select<session_file::Entity> {
    session_file::Entity::find().filter(there(session_id))
}

/// A row from before there were codes has the text alone.
fn problem_from_row(
    text: Option<DbText>,
    phrase: Option<DbText>,
) -> Result<Option<Phrase>, StoreError> {
    let phrase = option_from_json("session_files.problem_phrase", phrase)?;
    Ok(phrase.or_else(|| text.map(|text| Phrase::plain(text.0))))
}

fn from_head(row: HeadRow) -> Result<StoredFile, StoreError> {
    Ok(StoredFile {
        file: AttachedFile {
            file_id: FileId(row.id),
            name: row.name.0,
            path: row.path,
            media_type: row.media_type,
            bytes: from_db("session_files.bytes", row.bytes)?,
            image: row.has_image,
        },
        source: named("session_files.source", row.source)?,
        has_text: row.text_bytes > 0,
        problem: problem_from_row(row.problem, row.problem_phrase)?,
        created_at: row.created_at,
        last_used_at: row.last_used_at,
    })
}

fn to_row(
    session_id: SessionId,
    new: NewFile,
    now: DateTime<Utc>,
) -> Result<session_file::ActiveModel, StoreError> {
    Ok(session_file::ActiveModel {
        id: Set(new.file.file_id.0),
        session_id: Set(session_id.0),
        name: Set(new.file.name.into()),
        path: Set(new.file.path),
        media_type: Set(new.file.media_type),
        bytes: Set(to_db(new.file.bytes)?),
        source: Set(name_of(&new.source)?),
        has_image: Set(new.file.image),
        content_text: Set(new.text.map(Into::into)),
        text_bytes: Set(to_db(new.text_bytes)?),
        problem_phrase: Set(option_to_json(new.problem.as_ref())?),
        problem: Set(new.problem.map(|problem| problem.to_string().into())),
        created_at: Set(db_time(now)),
        last_used_at: Set(db_time(now)),
        gone_at: Set(None),
    })
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
