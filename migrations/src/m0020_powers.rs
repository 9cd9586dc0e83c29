//! What an admin granted, to a person or to all users.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_pk_auto, text, uuid_null};

use crate::m0001_initial::{belongs_to, index};

/// See the module.
pub(crate) struct Powers;

impl MigrationName for Powers {
    fn name(&self) -> &'static str {
        "m0020_powers"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Powers {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let powers = Table::create()
            .table("powers")
            .col(big_pk_auto("id"))
            // Null: every user's.
            .col(uuid_null("user_id"))
            .col(text("power"))
            .foreign_key(&mut belongs_to("powers", "user_id", "users"))
            .take();
        manager.create_table(powers).await?;
        manager.create_index(index("powers", &["user_id"])).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .drop_table(Table::drop().table("powers").to_owned())
            .await
    }
}
