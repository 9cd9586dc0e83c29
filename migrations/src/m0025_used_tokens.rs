//! Tokens that a person used and that no run tells any more: those of conversations that are gone, and
//! of small tasks.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, timestamp_with_time_zone, uuid};

use crate::m0001_initial::belongs_to;

/// See the module.
pub(crate) struct UsedTokens;

impl MigrationName for UsedTokens {
    fn name(&self) -> &'static str {
        "m0025_used_tokens"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for UsedTokens {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let used = Table::create()
            .table("used_tokens")
            .col(uuid("user_id"))
            // When the few minutes begin that are added up.
            .col(timestamp_with_time_zone("began_at"))
            .col(big_integer("tokens"))
            .primary_key(Index::create().col("user_id").col("began_at"))
            .foreign_key(&mut belongs_to("used_tokens", "user_id", "users"))
            .take();
        manager.create_table(used).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .drop_table(Table::drop().table("used_tokens").to_owned())
            .await
    }
}
