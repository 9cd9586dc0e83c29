//! Search over a user's sessions, by the database's own full-text index.

use chrono::{DateTime, Utc};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, FromQueryResult, Statement, Value};
use uuid::Uuid;

use super::values::{DbText, from_db, named};
use super::{Store, StoreError};
use crate::domain::search::{Phrase, SearchQuery};
use crate::protocol::ids::{MessageId, SessionId, UserId};
use crate::protocol::search::SearchHit;

/// The most hits that are told at once.
pub const MAX_HITS: u32 = 50;

/// How much of a message is looked at for its snippet, in characters: as much as is indexed.
const SEARCHED: u32 = 100_000;

impl Store {
    /// Where the words of `query` stand in the sessions that this user reaches, on any branch of them:
    /// titles first, the session that was active last before the others, then messages,
    /// the newest first. Skips the first `offset` hits and gives at most `limit`, which is
    /// no more than [`MAX_HITS`]. A query without a word finds nothing.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn search(
        &self,
        user_id: UserId,
        query: &str,
        limit: u32,
        offset: u32,
    ) -> Result<Vec<SearchHit>, StoreError> {
        let Some(query) = SearchQuery::parse(query) else {
            return Ok(Vec::new());
        };
        let limit = limit.min(MAX_HITS);
        let moment = self.begin_read().await?;
        let ask = Ask {
            moment: &moment,
            user_id,
            query: &query,
        };
        let mut rows = ask.rows(Kind::Titles, limit, offset).await?;
        let taken = u32::try_from(rows.len()).unwrap_or(MAX_HITS);
        if taken < limit {
            // All titles were passed: the rest of the offset is of messages.
            let titles = match (offset, taken) {
                (0, taken) => taken,
                (offset, 0) => ask.count_titles().await?.min(offset),
                (offset, taken) => offset.saturating_add(taken),
            };
            let offset = offset.saturating_sub(titles);
            rows.extend(ask.rows(Kind::Messages, limit - taken, offset).await?);
        }
        moment.commit().await?;
        rows.into_iter().map(|row| row.hit(&query)).collect()
    }
}

/// The user's own, and those in which they take part.
const REACHED: &str =
    "(s.user_id = $2 OR s.id IN (SELECT p.session_id FROM session_people p WHERE p.user_id = $2))";

#[derive(Clone, Copy, Debug)]
enum Kind {
    Titles,
    Messages,
}

impl Kind {
    /// What is read, from where, which of it is the user's, and in what order. `$1` is what
    /// is looked for, `$2` the user.
    fn select(self, backend: DbBackend) -> (String, &'static str, &'static str) {
        let columns = match self {
            Self::Titles => "s.id AS session_id, s.title AS title, s.archived AS archived, \
                             s.last_active AS at, s.title AS text, NULL AS message_id, NULL AS branch_id, NULL AS role"
                .to_owned(),
            Self::Messages => format!(
                "s.id AS session_id, s.title AS title, s.archived AS archived, \
                 m.created_at AS at,                  substr(m.content, 1, {SEARCHED}) AS text, m.id AS message_id, \
                 m.branch_id AS branch_id, m.role AS role"
            ),
        };
        let (from, order) = match (self, backend) {
            (Self::Titles, DbBackend::Sqlite) => (
                "search_words CROSS JOIN search_docs d ON d.id = search_words.rowid \
                 JOIN sessions s ON s.id = d.session_id WHERE search_words MATCH $1",
                "s.last_active DESC, s.id DESC",
            ),
            // The index gives the newest first, so that no more than a page is read.
            (Self::Messages, DbBackend::Sqlite) => (
                "search_words CROSS JOIN search_docs d ON d.id = search_words.rowid \
                 CROSS JOIN messages m ON m.id = d.message_id \
                 CROSS JOIN sessions s ON s.id = d.session_id WHERE search_words MATCH $1",
                "search_words.rowid DESC",
            ),
            (Self::Titles, _) => (
                "sessions s WHERE s.title_words @@ search_query($1)",
                "s.last_active DESC, s.id DESC",
            ),
            (Self::Messages, _) => (
                "messages m JOIN sessions s ON s.id = m.session_id \
                 WHERE m.words @@ search_query($1)",
                "m.created_at DESC, m.id DESC",
            ),
        };
        (columns, from, order)
    }
}

/// One search.
struct Ask<'a> {
    moment: &'a DatabaseTransaction,
    user_id: UserId,
    query: &'a SearchQuery,
}

impl Ask<'_> {
    async fn rows(&self, kind: Kind, limit: u32, offset: u32) -> Result<Vec<Row>, StoreError> {
        let backend = self.moment.get_database_backend();
        let (columns, from, order) = kind.select(backend);
        let sql = format!(
            "SELECT {columns} FROM {from} AND {REACHED} AND s.deleted_at IS NULL AND NOT s.ephemeral \
             ORDER BY {order} LIMIT $3 OFFSET $4"
        );
        let mut values = self.values(kind);
        values.extend([i64::from(limit).into(), i64::from(offset).into()]);
        let ask = Statement::from_sql_and_values(backend, sql, values);
        Ok(Row::find_by_statement(ask).all(self.moment).await?)
    }

    async fn count_titles(&self) -> Result<u32, StoreError> {
        let backend = self.moment.get_database_backend();
        let (_, from, _) = Kind::Titles.select(backend);
        let sql = format!(
            "SELECT COUNT(*) FROM {from} AND {REACHED} AND s.deleted_at IS NULL AND NOT s.ephemeral"
        );
        let ask = Statement::from_sql_and_values(backend, sql, self.values(Kind::Titles));
        let row = self.moment.query_one_raw(ask).await?;
        let count: i64 = row.map_or(Ok(0), |row| row.try_get_by(0))?;
        from_db("COUNT(*)", count)
    }

    fn values(&self, kind: Kind) -> Vec<Value> {
        let wanted = match (self.moment.get_database_backend(), kind) {
            (DbBackend::Sqlite, Kind::Titles) => format!("title : ({})", fts5(self.query)),
            (DbBackend::Sqlite, Kind::Messages) => format!("body : ({})", fts5(self.query)),
            _ => tsquery(self.query),
        };
        vec![wanted.into(), self.user_id.0.into()]
    }
}

/// In FTS5's terms. Words hold no quotation mark, and within them nothing else has a meaning.
fn fts5(query: &SearchQuery) -> String {
    let phrases = query.phrases.iter().map(|Phrase { words, is_open }| {
        let open = if *is_open { " *" } else { "" };
        format!("\"{}\"{open}", words.join(" "))
    });
    phrases.collect::<Vec<_>>().join(" AND ")
}

/// In PostgreSQL's terms: likewise.
fn tsquery(query: &SearchQuery) -> String {
    let phrases = query.phrases.iter().map(|Phrase { words, is_open }| {
        let open = if *is_open { ":*" } else { "" };
        format!("'{}'{open}", words.join("' <-> '"))
    });
    phrases.collect::<Vec<_>>().join(" & ")
}

/// What was found.
#[derive(Debug, FromQueryResult)]
struct Row {
    session_id: Uuid,
    title: DbText,
    archived: bool,
    at: DateTime<Utc>,
    text: DbText,
    message_id: Option<Uuid>,
    branch_id: Option<i64>,
    role: Option<String>,
}

impl Row {
    fn hit(self, query: &SearchQuery) -> Result<SearchHit, StoreError> {
        Ok(SearchHit {
            session_id: SessionId(self.session_id),
            session_title: self.title.0,
            session_archived: self.archived,
            message_id: self.message_id.map(MessageId),
            branch_id: self
                .branch_id
                .map(|id| from_db("messages.branch_id", id))
                .transpose()?,
            role: self
                .role
                .map(|name| named("messages.role", name))
                .transpose()?,
            snippet: query.snippet(&self.text.0),
            at: self.at,
        })
    }
}
