//! Sessions that are put away.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::boolean;

/// See the module.
pub(crate) struct Archived;

impl MigrationName for Archived {
    fn name(&self) -> &'static str {
        "m0011_archived"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Archived {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let add = Table::alter()
            .table("sessions")
            .add_column(boolean("archived").default(false))
            .take();
        manager.alter_table(add).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Table::alter()
            .table("sessions")
            .drop_column("archived")
            .take();
        manager.alter_table(drop).await
    }
}
