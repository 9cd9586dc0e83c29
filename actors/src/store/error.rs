//! Why the store could not do something, and how a database's own words become that.

use std::path::PathBuf;
use std::time::Duration;

use sea_orm::{DbErr, RuntimeErr, SqlxError};

/// Why the store could not do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another owner has the session: nothing of this commit was written.
    #[error("the session is owned by another process")]
    Fenced,
    #[error("no such session")]
    SessionNotFound,
    /// The database is locked, full, gone or away. Nothing of this commit was written,
    /// except where the connection broke while PostgreSQL was committing: nobody can know
    /// then, and a commit with events may simply be sent again.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// It did not answer in time: nobody knows whether this commit was written or still will be.
    #[error("the database did not say whether it has written this: {0}")]
    Unsettled(String),
    #[error("the database holds something unexpected: {0}")]
    Corrupt(String),
}

/// How long somebody waits for what is found or changed in a moment.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// What the store says, where it says it within this limit.
///
/// # Errors
/// What it says; [`StoreError::Unavailable`] where it says nothing in time.
pub async fn answered<T>(
    limit: Duration,
    asked: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let answer = tokio::time::timeout(limit, asked).await;
    answer.unwrap_or_else(|_| {
        let limit = limit.as_secs();
        Err(StoreError::Unavailable(format!(
            "no answer within {limit} s"
        )))
    })
}

/// Why the store could not be opened. Each says what to do; none holds a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error(
        "cannot write the database {}: {reason}; make it and its directory writable for this user, or set DB_PATH to a place that is",
        path.display()
    )]
    NotWritable { path: PathBuf, reason: String },
    #[error(
        "{} is not a Navi database ({reason}); set DB_PATH to another file, or move this one away",
        path.display()
    )]
    NotADatabase { path: PathBuf, reason: String },
    #[error(
        "the database {place} was written by a newer Navi (it has {migration}); start that version, or use another database"
    )]
    Newer { place: String, migration: String },
    #[error(
        "DATABASE_URL is not usable: {0}; it has the form postgres://user:password@host:5432/database"
    )]
    InvalidUrl(String),
    #[error(
        "cannot reach the database {place}: {reason}; check that it runs, and the host, user, password and database in DATABASE_URL"
    )]
    Unreachable { place: String, reason: String },
    #[error(
        "the database {place} is locked by another program: {reason}; close what holds it and start again"
    )]
    Locked { place: String, reason: String },
    #[error("the database {place} could not be brought up to date: {reason}")]
    Schema { place: String, reason: String },
}

/// What kind of failure a database's error is, for those who can act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Another transaction was in the way; the same one may pass if tried again.
    Contention,
    /// What was written breaks a rule of the schema. Trying again would not help.
    Refused,
    /// The file is no SQLite database, or a broken one.
    NotADatabase,
    /// The file or its directory cannot be written.
    NotWritable,
    /// The database file is not where it was opened.
    Moved,
    /// Anything else: the disk is full, the server went away, …
    Unavailable,
}

/// SQLite's primary result codes, the low byte of what it reports
/// (<https://www.sqlite.org/rescode.html>).
mod sqlite {
    pub(super) const PERM: i32 = 3;
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const READONLY: i32 = 8;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const CANTOPEN: i32 = 14;
    pub(super) const CONSTRAINT: i32 = 19;
    pub(super) const NOTADB: i32 = 26;
    /// The hook that is asked before each commit refuses it: an extended code.
    pub(super) const COMMITHOOK: i32 = 531;
}

/// Tells what kind of failure this is.
pub(super) fn classify(error: &DbErr) -> Failure {
    let (DbErr::Conn(RuntimeErr::SqlxError(error))
    | DbErr::Exec(RuntimeErr::SqlxError(error))
    | DbErr::Query(RuntimeErr::SqlxError(error))) = error
    else {
        return Failure::Unavailable;
    };
    let SqlxError::Database(error) = error.as_ref() else {
        return Failure::Unavailable;
    };
    let code = error.code().unwrap_or_default();
    // PostgreSQL's codes have five characters
    // (<https://www.postgresql.org/docs/current/errcodes-appendix.html>), SQLite's at most four.
    if code.len() == 5 {
        return match code.as_ref() {
            // Serialisation failure, deadlock, lock not available.
            "40001" | "40P01" | "55P03" => Failure::Contention,
            // Constraints; text or numbers that a column cannot hold.
            code if code.starts_with("23") || code.starts_with("22") => Failure::Refused,
            _ => Failure::Unavailable,
        };
    }
    let code = code.parse::<i32>().unwrap_or_default();
    if code == sqlite::COMMITHOOK {
        return Failure::Moved;
    }
    match code & 0xff {
        sqlite::BUSY | sqlite::LOCKED => Failure::Contention,
        sqlite::CONSTRAINT => Failure::Refused,
        sqlite::NOTADB | sqlite::CORRUPT => Failure::NotADatabase,
        sqlite::PERM | sqlite::READONLY | sqlite::CANTOPEN => Failure::NotWritable,
        _ => Failure::Unavailable,
    }
}

impl From<DbErr> for StoreError {
    fn from(error: DbErr) -> Self {
        match (&error, classify(&error)) {
            (_, Failure::Refused | Failure::NotADatabase)
            | (DbErr::Type(_) | DbErr::Json(_) | DbErr::TryIntoErr { .. }, _) => {
                Self::Corrupt(error.to_string())
            }
            _ => Self::unavailable(&error),
        }
    }
}

impl StoreError {
    pub(super) fn unavailable(error: &DbErr) -> Self {
        Self::Unavailable(match classify(error) {
            // SQLite calls it a constraint.
            Failure::Moved => {
                "its file was removed or replaced while navi runs; put it back, or start navi again"
                    .to_owned()
            }
            _ => error.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_store_that_says_nothing_is_away_once_its_time_is_up() {
        let limit = Duration::from_secs(3);
        let asked = std::future::pending::<Result<(), _>>();
        let away = StoreError::Unavailable("no answer within 3 s".to_owned());
        assert_eq!(answered(limit, asked).await, Err(away));
        assert_eq!(answered(limit, async { Ok(7) }).await, Ok(7));
    }
}
