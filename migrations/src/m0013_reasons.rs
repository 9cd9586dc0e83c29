//! The list of what was allowed says by which rule, and why a person denied it.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::text_null;

/// See the module.
pub(crate) struct Reasons;

impl MigrationName for Reasons {
    fn name(&self) -> &'static str {
        "m0013_reasons"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Reasons {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in COLUMNS {
            let add = Table::alter()
                .table("consent_log")
                .add_column(text_null(column))
                .take();
            manager.alter_table(add).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in COLUMNS.into_iter().rev() {
            let drop = Table::alter()
                .table("consent_log")
                .drop_column(column)
                .take();
            manager.alter_table(drop).await?;
        }
        Ok(())
    }
}

/// Null where no rule decided, and where nobody said why.
const COLUMNS: [&str; 2] = ["rule", "note"];
