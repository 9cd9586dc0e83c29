//! How much of a prompt a model server had read before, as it says itself: those tokens may cost
//! less.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null};

/// See the module.
pub(crate) struct CachedTokens;

impl MigrationName for CachedTokens {
    fn name(&self) -> &'static str {
        "m0028_cached_tokens"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for CachedTokens {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // Null where the server said nothing of it.
        let of_call = big_integer_null(COLUMN);
        let of_run = big_integer(COLUMN).default(0).take();
        for (table, column) in [("model_calls", of_call), ("runs", of_run)] {
            let add = Table::alter().table(table).add_column(column).take();
            manager.alter_table(add).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["runs", "model_calls"] {
            let drop = Table::alter().table(table).drop_column(COLUMN).take();
            manager.alter_table(drop).await?;
        }
        Ok(())
    }
}

const COLUMN: &str = "cached_tokens";
