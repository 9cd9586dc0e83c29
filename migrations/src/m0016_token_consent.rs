//! A token may be allowed to answer requests for consent.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::boolean;

/// See the module.
pub(crate) struct TokenConsent;

impl MigrationName for TokenConsent {
    fn name(&self) -> &'static str {
        "m0016_token_consent"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for TokenConsent {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let add = Table::alter()
            .table("api_tokens")
            .add_column(boolean("may_consent").default(false))
            .take();
        manager.alter_table(add).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Table::alter()
            .table("api_tokens")
            .drop_column("may_consent")
            .take();
        manager.alter_table(drop).await
    }
}
