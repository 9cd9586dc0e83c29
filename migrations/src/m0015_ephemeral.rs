//! A session may be there for one answer alone.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::boolean;

/// See the module.
pub(crate) struct Ephemeral;

impl MigrationName for Ephemeral {
    fn name(&self) -> &'static str {
        "m0015_ephemeral"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Ephemeral {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let add = Table::alter()
            .table("sessions")
            .add_column(boolean("ephemeral").default(false))
            .take();
        manager.alter_table(add).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Table::alter()
            .table("sessions")
            .drop_column("ephemeral")
            .take();
        manager.alter_table(drop).await
    }
}
