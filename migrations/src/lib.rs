//! Navi's database schema, up and down, for SQLite and PostgreSQL.
//!
//! All pending migrations run in one transaction: a process that is killed in the middle
//! leaves the old schema, never half of the new one.

mod m0001_initial;
mod m0002_branches;
mod m0003_search;
mod m0004_memory;
mod m0005_consent;
mod m0006_files;
mod m0007_tools;
mod m0008_model_calls;
mod m0009_log;
mod m0010_lean_commits;
mod m0011_archived;
mod m0012_tags;
mod m0013_reasons;
mod m0014_session_model;
mod m0015_ephemeral;
mod m0016_token_consent;
mod m0017_people;
mod m0018_sign_on;
mod m0019_shares;
mod m0020_powers;
mod m0021_passkeys;
mod m0022_person_limits;
mod m0023_sandbox_uids;
mod m0024_invitation_makers;
mod m0025_used_tokens;
mod m0026_phrases;
mod m0027_log_rows;
mod m0028_cached_tokens;
mod m0029_held;

use sea_orm_migration::MigrationStatus;
use sea_orm_migration::prelude::{MigrationTrait, MigratorTrait, SchemaManager};
use sea_orm_migration::sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, EntityTrait,
    SqliteTransactionMode, TransactionOptions, TransactionTrait,
};
use sea_orm_migration::seaql_migrations;

/// Every migration there is, oldest first.
#[derive(Debug)]
pub struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m0001_initial::Initial),
            Box::new(m0002_branches::Branches),
            Box::new(m0003_search::Search),
            Box::new(m0004_memory::Memory),
            Box::new(m0005_consent::Consent),
            Box::new(m0006_files::Files),
            Box::new(m0007_tools::Tools),
            Box::new(m0008_model_calls::ModelCalls),
            Box::new(m0009_log::Log),
            Box::new(m0010_lean_commits::LeanCommits),
            Box::new(m0011_archived::Archived),
            Box::new(m0012_tags::Tags),
            Box::new(m0013_reasons::Reasons),
            Box::new(m0014_session_model::SessionModel),
            Box::new(m0015_ephemeral::Ephemeral),
            Box::new(m0016_token_consent::TokenConsent),
            Box::new(m0017_people::People),
            Box::new(m0018_sign_on::SignOn),
            Box::new(m0019_shares::Shares),
            Box::new(m0020_powers::Powers),
            Box::new(m0021_passkeys::Passkeys),
            Box::new(m0022_person_limits::PersonLimits),
            Box::new(m0023_sandbox_uids::SandboxUids),
            Box::new(m0024_invitation_makers::InvitationMakers),
            Box::new(m0025_used_tokens::UsedTokens),
            Box::new(m0026_phrases::Phrases),
            Box::new(m0027_log_rows::LogRows),
            Box::new(m0028_cached_tokens::CachedTokens),
            Box::new(m0029_held::Held),
        ]
    }
}

/// Why the schema could not be brought up to date. It is as it was.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MigrateError {
    /// The database was written by a newer program.
    #[error("the database has the migration {0}, which this program does not know")]
    Newer(String),
    #[error(transparent)]
    Database(#[from] DbErr),
}

/// Names what PostgreSQL's advisory lock is held for: the bytes of "navi".
const ADVISORY_LOCK: i64 = 0x6e61_7669;

/// Applies every pending migration of `M`, or none.
///
/// # Errors
/// [`MigrateError::Newer`] where the database has a migration that `M` lacks;
/// [`MigrateError::Database`] where one fails.
pub async fn up<M: MigratorTrait>(db: &DatabaseConnection) -> Result<(), MigrateError> {
    let transaction = begin(db).await?;
    refuse_newer::<M>(&transaction).await?;
    M::up(&transaction, None).await?;
    transaction.commit().await?;
    Ok(())
}

/// Takes every migration of `M` back, or none. The data goes with the tables.
///
/// # Errors
/// As [`up`].
pub async fn down<M: MigratorTrait>(db: &DatabaseConnection) -> Result<(), MigrateError> {
    let transaction = begin(db).await?;
    refuse_newer::<M>(&transaction).await?;
    M::down(&transaction, None).await?;
    transaction.commit().await?;
    Ok(())
}

/// Every migration of `M`, oldest first, and whether it is applied. Changes nothing.
///
/// # Errors
/// [`MigrateError::Database`].
pub async fn status<M: MigratorTrait>(
    db: &DatabaseConnection,
) -> Result<Vec<(String, bool)>, MigrateError> {
    let migrations = M::get_migration_with_status_read_only(db).await?;
    Ok(migrations
        .into_iter()
        .map(|migration| {
            let applied = migration.status() == MigrationStatus::Applied;
            (migration.name().to_owned(), applied)
        })
        .collect())
}

/// Opens a transaction that no other process can migrate beside: two that start at once
/// take turns.
async fn begin(db: &DatabaseConnection) -> Result<DatabaseTransaction, DbErr> {
    let transaction = db
        .begin_with_options(TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        })
        .await?;
    if transaction.get_database_backend() == DbBackend::Postgres {
        transaction
            .execute_unprepared(&format!("SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"))
            .await?;
    }
    Ok(transaction)
}

async fn refuse_newer<M: MigratorTrait>(
    transaction: &DatabaseTransaction,
) -> Result<(), MigrateError> {
    let manager = SchemaManager::new(transaction);
    if !manager.has_table("seaql_migrations").await? {
        return Ok(());
    }
    let known = M::migrations();
    let applied = seaql_migrations::Entity::find().all(transaction).await?;
    match applied
        .into_iter()
        .find(|row| !known.iter().any(|m| m.name() == row.version))
    {
        Some(row) => Err(MigrateError::Newer(row.version)),
        None => Ok(()),
    }
}
