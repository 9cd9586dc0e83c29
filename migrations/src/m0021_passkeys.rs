//! Passkeys: what a person signs in by without a password.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    binary_len, text, timestamp_with_time_zone, timestamp_with_time_zone_null, uuid,
};

use crate::m0001_initial::{belongs_to, index};

/// See the module.
pub(crate) struct Passkeys;

impl MigrationName for Passkeys {
    fn name(&self) -> &'static str {
        "m0021_passkeys"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Passkeys {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(passkeys()).await?;
        let once = index("passkeys", &["credential_hash"]).unique().take();
        manager.create_index(once).await?;
        manager.create_index(index("passkeys", &["user_id"])).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .drop_table(Table::drop().table("passkeys").to_owned())
            .await
    }
}

fn passkeys() -> TableCreateStatement {
    Table::create()
        .table("passkeys")
        .col(uuid("id").primary_key())
        .col(uuid("user_id"))
        // By what an authenticator knows the person: it says nothing of them, and is no other
        // installation's.
        .col(uuid("handle"))
        // SHA-256 of the credential's id, which no two people have.
        .col(binary_len("credential_hash", 32))
        // The host that it is bound to.
        .col(text("host"))
        .col(text("name"))
        // The public key and its counter, as the library writes them.
        .col(text("credential"))
        .col(timestamp_with_time_zone("created_at"))
        .col(timestamp_with_time_zone_null("last_used_at"))
        .foreign_key(&mut belongs_to("passkeys", "user_id", "users"))
        .take()
}
