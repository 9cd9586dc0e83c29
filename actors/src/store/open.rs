//! Opening the database: where it is, how its connections are set, and what to tell a
//! person when it does not open.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backon::{ConstantBuilder, Retryable};
use navi_migrations::{MigrateError, Migrator};
use sea_orm::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sea_orm::sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions,
    SqliteSynchronous, SqliteTransactionManager,
};
use sea_orm::sqlx::{ConnectOptions, Connection, Executor};
use sea_orm::{DatabaseConnection, DbErr, RuntimeErr, SqlxError};
use sqlx_core::transaction::TransactionManager as _;
use tokio::time::{sleep, timeout};

use super::database_file::DatabaseFile;
use super::error::{Failure, classify};
use super::{OpenError, Store};

/// How long a writer waits for another process to finish before it is told "locked".
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a caller waits for a free connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(15);
const SQLITE_READERS: u32 = 4;
/// Of a new database. A commit is a few short rows in many tables and indexes, and writes each
/// page that it touches whole: with SQLite's 4 KB it writes three times as much.
const PAGE_BYTES: u32 = 1024;
/// How many rows SQLite's thread may be ahead of who reads them.
const ROWS_AHEAD: usize = 4096;
/// After so many pages SQLite takes its write-ahead log into the database: 4 MB, as is usual, and
/// 16 MB in one that an older Navi made.
const WAL_PAGES: &str = "4000";
const POSTGRES_CONNECTIONS: u32 = 10;
/// Between two tries of a server that is not up yet.
const POSTGRES_PAUSE: Duration = Duration::from_millis(250);

/// How to open the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    pub location: Location,
}

/// Where the database is.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// SQLite in this file, which is created where it does not exist.
    Sqlite(PathBuf),
    /// PostgreSQL at this URL. It may hold a password, so it is never shown.
    Postgres(String),
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
            Self::Postgres(url) => {
                let place = PgConnectOptions::from_str(url).map_or_else(
                    |_| "an invalid URL".to_owned(),
                    |options| postgres_place(&options),
                );
                f.debug_tuple("Postgres").field(&place).finish()
            }
        }
    }
}

impl Store {
    /// Opens the database, creates it where it does not exist, and brings its schema up to
    /// date.
    ///
    /// # Errors
    /// [`OpenError`]; nothing was changed then.
    pub async fn open(config: &StoreConfig) -> Result<Self, OpenError> {
        let (store, place) = connect(config).await?;
        prepare(&store, &place).await.inspect_err(|error| {
            tracing::debug!(%error, "the database could not be prepared");
        })?;
        Ok(store)
    }

    /// Opens the database and leaves its schema as it is: for looking after it, not for use.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open_as_it_is(config: &StoreConfig) -> Result<Self, OpenError> {
        connect(config).await.map(|(store, _)| store)
    }
}

async fn connect(config: &StoreConfig) -> Result<(Store, DatabaseName), OpenError> {
    match &config.location {
        Location::Sqlite(path) => Ok((open_sqlite(path).await?, DatabaseName::File(path.clone()))),
        Location::Postgres(url) => {
            let (store, name) = open_postgres(url).await?;
            Ok((store, DatabaseName::Server(name)))
        }
    }
}

/// What a person calls the database; never with a password in it.
enum DatabaseName {
    File(PathBuf),
    Server(String),
}

impl fmt::Display for DatabaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Server(name) => f.write_str(name),
        }
    }
}

impl DatabaseName {
    fn explain(&self, error: &DbErr) -> OpenError {
        let (place, reason) = (self.to_string(), reason(error));
        match (self, classify(error)) {
            (_, Failure::Contention) => OpenError::Locked { place, reason },
            (Self::File(path), Failure::NotADatabase) => OpenError::NotADatabase {
                path: path.clone(),
                reason,
            },
            (Self::File(path), Failure::NotWritable) => OpenError::NotWritable {
                path: path.clone(),
                reason,
            },
            (Self::Server(_), Failure::Unavailable) => OpenError::Unreachable { place, reason },
            _ => OpenError::Schema { place, reason },
        }
    }
}

/// The driver's own words, without the layers around them.
fn reason(error: &DbErr) -> String {
    match error {
        DbErr::Conn(RuntimeErr::SqlxError(error))
        | DbErr::Exec(RuntimeErr::SqlxError(error))
        | DbErr::Query(RuntimeErr::SqlxError(error)) => match error.as_ref() {
            SqlxError::Database(error) => error.message().to_owned(),
            SqlxError::Io(error) => error.to_string(),
            other => other.to_string(),
        },
        other => other.to_string(),
    }
}

async fn prepare(store: &Store, place: &DatabaseName) -> Result<(), OpenError> {
    let migrated = navi_migrations::up::<Migrator>(&store.write).await;
    migrated.map_err(|error| match error {
        MigrateError::Newer(migration) => OpenError::Newer {
            place: place.to_string(),
            migration,
        },
        MigrateError::Database(error) => place.explain(&error),
    })?;
    store
        .ensure_somebody()
        .await
        .map_err(|error| place.explain(&error))
}

async fn open_sqlite(path: &Path) -> Result<Store, OpenError> {
    let owned = path.to_owned();
    let found = tokio::task::spawn_blocking(move || {
        create_private(&owned)?;
        DatabaseFile::find(&owned)
    });
    let file = found
        .await
        .map_err(std::io::Error::other)
        .and_then(|found| found.map(Arc::new))
        .map_err(|error| OpenError::NotWritable {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
    let place = DatabaseName::File(path.to_owned());
    let options = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true)
        .synchronous(SqliteSynchronous::Full)
        .page_size(PAGE_BYTES)
        .row_buffer_size(ROWS_AHEAD)
        .pragma("wal_autocheckpoint", WAL_PAGES)
        .disable_statement_logging();
    // Of the one connection that writes.
    let reads_only = Arc::new(AtomicBool::new(false));
    // Going over to WAL needs the file for a moment, and SQLite does not wait for that
    // where another process has it: a second start beside the first.
    let write = (|| async {
        let (connected, acquired) = (Arc::clone(&reads_only), Arc::clone(&reads_only));
        let (file, kept) = (Arc::clone(&file), Arc::clone(&file));
        SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .idle_timeout(None)
            .max_lifetime(None)
            .after_connect(move |connection, _| {
                let (connected, file) = (Arc::clone(&connected), Arc::clone(&file));
                Box::pin(async move {
                    let reads_only = is_refused_writing(connection).await;
                    connected.store(reads_only, Ordering::Relaxed);
                    let mut handle = connection.lock_handle().await?;
                    handle.set_commit_hook(move || file.is_there());
                    Ok(())
                })
            })
            .test_before_acquire(false)
            .before_acquire(move |connection, _| {
                let reads_only = acquired.load(Ordering::Relaxed);
                let was_refused = kept.was_missed() && !is_settled(connection);
                Box::pin(async move {
                    if was_refused {
                        take_back(connection).await?;
                    }
                    Ok(!reads_only && is_settled(connection))
                })
            })
            .connect_with(options.clone().journal_mode(SqliteJournalMode::Wal))
            .await
            .map_err(|error| DbErr::Conn(RuntimeErr::SqlxError(error.into())))
    })
    .retry(ConstantBuilder::default().with_delay(Duration::from_millis(100)))
    .when(|error| classify(error) == Failure::Contention)
    .await
    .map_err(|error| place.explain(&error))?;
    let read = SqlitePoolOptions::new()
        .max_connections(SQLITE_READERS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .max_lifetime(None)
        .test_before_acquire(false)
        .before_acquire(|connection, _| {
            let serves = is_settled(connection);
            Box::pin(async move { Ok(serves) })
        })
        .connect_lazy_with(options.pragma("query_only", "ON"));
    Ok(Store {
        write: DatabaseConnection::from(write),
        read: DatabaseConnection::from(read),
        file: Some(file),
        recent: Arc::default(),
    })
}

/// Whether a connection will never write. SQLite opens a file for reading where it cannot be
/// opened for more, tells nobody, and stays with that when the disk can be written again.
async fn is_refused_writing(connection: &mut SqliteConnection) -> bool {
    match connection.execute("BEGIN IMMEDIATE; ROLLBACK").await {
        Ok(_) => false,
        Err(error) => {
            let error = DbErr::Conn(RuntimeErr::SqlxError(error.into()));
            classify(&error) == Failure::NotWritable
        }
    }
}

/// Whether a connection may serve again. Where the disk fails it, SQLite ends a transaction by
/// itself: sqlx finds nothing to roll back then, counts it as open for ever, and makes every
/// later transaction a savepoint in it, whose commit makes nothing durable. Asked of one that
/// was given back: sqlx had it answer then, so that all it was asked before, a roll-back too, is
/// done; a connection within this process needs no other test.
fn is_settled(connection: &SqliteConnection) -> bool {
    !connection.is_in_transaction()
}

/// Settles a connection whose commit was refused, since the file was not in its place: sqlx takes
/// back a transaction that is begun for it, in place of the one that SQLite took back. A connection
/// in its place would open whatever file is there by now, and take the log of ours for its own.
async fn take_back(connection: &mut SqliteConnection) -> Result<(), SqlxError> {
    connection.execute("BEGIN").await?;
    SqliteTransactionManager::rollback(connection).await
}

/// Makes sure that the file is there and writable, before SQLite would create it for
/// everybody to read. Its journals take over its permissions.
fn create_private(path: &Path) -> std::io::Result<()> {
    let mut directories = std::fs::DirBuilder::new();
    directories.recursive(true);
    let mut file = std::fs::OpenOptions::new();
    file.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        directories.mode(0o700);
        file.mode(0o600);
    }
    if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        directories.create(parent)?;
    }
    file.open(path).map(drop)
}

async fn open_postgres(url: &str) -> Result<(Store, String), OpenError> {
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(OpenError::InvalidUrl("it is no PostgreSQL URL".to_owned()));
    }
    // The parser's own words may quote the URL, password and all.
    let options = PgConnectOptions::from_str(url)
        .map_err(|_| OpenError::InvalidUrl("it is no valid URL".to_owned()))?
        .application_name("navi")
        .disable_statement_logging();
    let name = postgres_place(&options);
    let reached = wait_for(&options, &name).await;
    reached.map_err(|error| {
        let error = DbErr::Conn(RuntimeErr::SqlxError(error.into()));
        OpenError::Unreachable {
            place: name.clone(),
            reason: reason(&error),
        }
    })?;
    let pool = PgPoolOptions::new()
        .max_connections(POSTGRES_CONNECTIONS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .connect_lazy_with(options);
    let connection = DatabaseConnection::from(pool);
    let store = Store {
        write: connection.clone(),
        read: connection,
        file: None,
        recent: Arc::default(),
    };
    Ok((store, name))
}

/// Waits for a server that comes up, and tells at once that it does. A pool would wait as long, and
/// then tell nothing but that.
///
/// # Errors
/// Why it could not be reached the last time.
async fn wait_for(options: &PgConnectOptions, place: &str) -> Result<(), SqlxError> {
    let mut last: Option<SqlxError> = None;
    let reached = timeout(ACQUIRE_TIMEOUT, async {
        loop {
            match options.connect().await {
                Ok(connection) => {
                    // It answers, however this one ends.
                    let _ = connection.close().await;
                    return Ok(());
                }
                Err(error) if comes_up(&error) => {
                    if last.is_none() {
                        tracing::warn!(place, %error, "the database does not answer yet; it is waited for");
                    }
                    last = Some(error);
                }
                Err(error) => return Err(error),
            }
            sleep(POSTGRES_PAUSE).await;
        }
    });
    match reached.await {
        Ok(reached) => reached,
        Err(_) => Err(last.unwrap_or_else(|| SqlxError::Io(ErrorKind::TimedOut.into()))),
    }
}

/// Whether a server refuses as one does that is on its way up.
fn comes_up(error: &SqlxError) -> bool {
    match error {
        SqlxError::Io(error) => error.kind() == ErrorKind::ConnectionRefused,
        SqlxError::Database(error) => error.is_transient_in_connect_phase(),
        _ => false,
    }
}

fn postgres_place(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or(options.get_username());
    let (host, port) = (options.get_host(), options.get_port());
    format!("{database} on {host}:{port}")
}
