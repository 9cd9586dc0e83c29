//! A session may have a model of its own.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::text_null;

/// See the module.
pub(crate) struct SessionModel;

impl MigrationName for SessionModel {
    fn name(&self) -> &'static str {
        "m0014_session_model"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for SessionModel {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let add = Table::alter()
            .table("sessions")
            // Null: its profile's.
            .add_column(text_null("model"))
            .take();
        manager.alter_table(add).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Table::alter().table("sessions").drop_column("model").take();
        manager.alter_table(drop).await
    }
}
