//! Looking after the database: what `navi doctor` and `navi migrate` ask for.

use navi_migrations::{MigrateError, Migrator};
use sea_orm::{ConnectionTrait, DbBackend, Statement};

use super::{Store, StoreError};

/// A step of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedMigration {
    pub name: String,
    pub applied: bool,
}

impl Store {
    /// The steps of the schema, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn migrations(&self) -> Result<Vec<AppliedMigration>, StoreError> {
        let status = navi_migrations::status::<Migrator>(&self.read)
            .await
            .map_err(migrate_error)?;
        Ok(status
            .into_iter()
            .map(|(name, applied)| AppliedMigration { name, applied })
            .collect())
    }

    /// Takes the whole schema back. The data goes with it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]; nothing was changed then.
    pub async fn drop_schema(&self) -> Result<(), StoreError> {
        navi_migrations::down::<Migrator>(&self.write)
            .await
            .map_err(migrate_error)
    }

    /// What is damaged in the file; empty where nothing is. PostgreSQL looks after its own
    /// files, so there it is only asked for an answer.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn damage(&self) -> Result<Vec<String>, StoreError> {
        if self.read.get_database_backend() != DbBackend::Sqlite {
            self.ping().await?;
            return Ok(Vec::new());
        }
        let check = Statement::from_string(DbBackend::Sqlite, "PRAGMA quick_check(10)");
        let mut found = Vec::new();
        for row in self.read.query_all_raw(check).await? {
            let line: String = row.try_get_by_index(0)?;
            if line != "ok" {
                found.push(line);
            }
        }
        Ok(found)
    }
}

fn migrate_error(error: MigrateError) -> StoreError {
    match error {
        MigrateError::Newer(migration) => StoreError::Corrupt(format!(
            "it has the migration {migration}, which this program does not know"
        )),
        MigrateError::Database(error) => StoreError::from(error),
    }
}
