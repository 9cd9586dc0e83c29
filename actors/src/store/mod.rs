//! The only place that knows SQL. Entities never leave it.
//!
//! One code path for SQLite and PostgreSQL. A session's rows are written by its owner
//! alone, through [`Store::commit_group`]; everything else here reads, or changes what has
//! no owner (users, keys, the existence of a session).

mod batch;
mod commit;
mod consent;
mod conversation;
mod database_file;
mod entities;
mod error;
mod files;
mod held_text;
mod identities;
mod imports;
mod invitations;
mod limits;
mod load;
mod log;
mod log_upkeep;
mod logins;
mod memory;
mod memory_facts;
mod memory_reading;
mod model_calls;
mod open;
mod passkeys;
mod people;
mod powers;
mod prefixes;
mod prepare;
mod recent;
mod record;
mod recovery_codes;
mod removed_people;
mod rows;
mod run_log;
mod sandbox_uids;
mod search;
mod sessions;
mod shares;
mod streamed;
mod tool_pins;
mod trip;
mod types;
mod upkeep;
mod usage;
mod values;
mod ways_in;

pub use conversation::{KnownMessage, RunOutcome};
pub use error::{ANSWER_LIMIT, OpenError, StoreError, answered};
pub use files::{ExpiredFile, FileQuota, NewFile, StoredFile, StoredText};
pub use identities::{JoinedBy, Joins, Linked, MAX_IDENTITIES, NewIdentity, Unlinked};
pub use invitations::Accepted;
pub use limits::Held;
pub use log_upkeep::LogLimits;
pub use memory::{Memory, NamedFormerFact, SavedFact, StoredSummary};
pub use memory_reading::{Finished, Reading, UnreadMessages, UnreadSession};
pub use open::{Location, StoreConfig};
pub use passkeys::{AddedPasskey, Passkey, RemovedPasskey};
pub use people::{Changed, Credentials, KeptLogins, LOCAL_USER};
pub use powers::{Holder, MAX_POWERS};
pub use prefixes::{Places, ReadCall};
pub use recent::Numbered;
pub use search::MAX_HITS;
pub use shares::Added;
pub use tool_pins::ToolPin;
pub use types::{
    ApiToken, Commit, Found, Identity, IdentityKey, Invitation, KeyOwner, LinkRow, Listed,
    LogCursor, LogItem, LogPage, LogRange, NewSession, NewToken, PageLimits, Person, RecordEntry,
    RecordRow, SecretHash, SignOn, StoredCall, User, WebLogin,
};
pub use upkeep::AppliedMigration;
pub use ways_in::WaysIn;

use std::sync::Arc;

use sea_orm::sea_query::IntoCondition;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, EntityTrait,
    IsolationLevel, QueryFilter, SqliteTransactionMode, TransactionOptions, TransactionTrait,
};

use self::database_file::DatabaseFile;
use self::recent::Recent;

/// The database, open. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Store {
    /// On SQLite a single connection: its writers take turns in this process instead of
    /// finding the file locked.
    write: DatabaseConnection,
    /// On PostgreSQL the same pool as `write`.
    read: DatabaseConnection,
    /// None on PostgreSQL, and where the database is only looked at.
    file: Option<Arc<DatabaseFile>>,
    recent: Arc<Recent>,
}

impl Store {
    /// The same, keeping so many bytes of conversations that were read last.
    #[must_use]
    pub fn keeping(self, bytes: usize) -> Self {
        Self {
            recent: Arc::new(Recent::up_to(bytes)),
            ..self
        }
    }

    /// Tells each statement's SQL from here on, of this store and of clones made after: so that
    /// what something costs can be measured.
    pub fn on_statement(&mut self, tell: impl Fn(&str) + Send + Sync + Clone + 'static) {
        for connection in [&mut self.write, &mut self.read] {
            let tell = tell.clone();
            connection.set_metric_callback(move |info| tell(&info.statement.sql));
        }
    }

    /// Asks the database for an answer.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] where none comes.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.read.ping().await?;
        Ok(())
    }

    /// The database, as OpenTelemetry names it.
    #[must_use]
    pub fn system(&self) -> &'static str {
        match self.write.get_database_backend() {
            DbBackend::Postgres => "postgresql",
            _ => "sqlite",
        }
    }

    /// What the database takes up on the disk. None where it is no file.
    pub async fn bytes(&self) -> Option<u64> {
        Some(self.file.as_ref()?.bytes().await)
    }

    /// Closes every connection, of all clones. What was committed is on disk already.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] where the database would not let go.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.read.close_by_ref().await?;
        self.write.close_by_ref().await?;
        Ok(())
    }

    /// A transaction that has the right to write from its first statement on. SQLite's
    /// default takes it at the first write, and then fails instead of waiting where
    /// another writer was faster.
    async fn begin_write(&self) -> Result<DatabaseTransaction, DbErr> {
        let options = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        begin(&self.write, options).await
    }

    /// A transaction whose reads all see the same moment. SQLite's always do, and it warns
    /// where it is asked for it.
    async fn begin_read(&self) -> Result<DatabaseTransaction, DbErr> {
        let isolation_level = (self.read.get_database_backend() == DbBackend::Postgres)
            .then_some(IsolationLevel::RepeatableRead);
        let options = TransactionOptions {
            isolation_level,
            ..TransactionOptions::default()
        };
        begin(&self.read, options).await
    }
}

/// Begins a transaction, and does not leave that half done where nobody waits for it any more.
/// SQLite's driver takes such a one back. PostgreSQL's takes a `BEGIN` that is on its way for none,
/// and gives the connection with an open transaction to the next who asks for one: the pool's limits
/// on time end that.
async fn begin(
    connection: &DatabaseConnection,
    options: TransactionOptions,
) -> Result<DatabaseTransaction, DbErr> {
    if connection.get_database_backend() == DbBackend::Sqlite {
        return connection.begin_with_options(options).await;
    }
    let connection = connection.clone();
    let begun = tokio::spawn(async move { connection.begin_with_options(options).await });
    begun
        .await
        .unwrap_or_else(|error| Err(DbErr::Custom(error.to_string())))
}

/// Deletes the rows of a table that are so. Gives back how many.
async fn delete<E: EntityTrait>(
    db: &impl ConnectionTrait,
    so: impl IntoCondition,
) -> Result<u64, DbErr> {
    let deleted = E::delete_many().filter(so).exec(db).await?;
    Ok(deleted.rows_affected)
}

#[cfg(test)]
mod branch_tests;
#[cfg(test)]
mod child_tests;
#[cfg(test)]
mod commit_tests;
#[cfg(test)]
mod consent_tests;
#[cfg(test)]
mod cost_tests;
#[cfg(test)]
mod identity_tests;
#[cfg(test)]
mod import_tests;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod log_rows_tests;
#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod log_upkeep_tests;
#[cfg(test)]
mod login_tests;
#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod migration_tests;
#[cfg(test)]
mod model_call_tests;
#[cfg(test)]
mod open_tests;
#[cfg(test)]
mod passkey_tests;
#[cfg(test)]
mod people_tests;
#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod session_tests;
#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod streamed_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tool_pin_tests;
#[cfg(test)]
mod usage_tests;
