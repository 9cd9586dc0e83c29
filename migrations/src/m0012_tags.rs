//! What sessions are filed under: a JSON array of texts.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::text;

/// See the module.
pub(crate) struct Tags;

impl MigrationName for Tags {
    fn name(&self) -> &'static str {
        "m0012_tags"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Tags {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let add = Table::alter()
            .table("sessions")
            .add_column(text("tags").default("[]"))
            .take();
        manager.alter_table(add).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Table::alter().table("sessions").drop_column("tags").take();
        manager.alter_table(drop).await
    }
}
