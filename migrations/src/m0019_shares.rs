//! Conversations that are shared: who takes part, links to look, and who wrote and answered what.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    binary_len, boolean, text_null, timestamp_with_time_zone, timestamp_with_time_zone_null, uuid,
    uuid_null,
};

use crate::m0001_initial::{belongs_to, index};

/// See the module.
pub(crate) struct Shares;

impl MigrationName for Shares {
    fn name(&self) -> &'static str {
        "m0019_shares"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Shares {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in columns() {
            let add = Table::alter().table(table).add_column(column).take();
            manager.alter_table(add).await?;
        }
        for table in [people(), links()] {
            manager.create_table(table).await?;
        }
        for (table, column) in [
            ("session_people", "user_id"),
            ("session_links", "session_id"),
            ("session_links", "expires_at"),
        ] {
            manager.create_index(index(table, &[column])).await?;
        }
        manager
            .create_index(index("session_links", &["id"]).unique().take())
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["session_links", "session_people"] {
            manager
                .drop_table(Table::drop().table(table).to_owned())
                .await?;
        }
        for (table, column) in columns().into_iter().rev() {
            let drop = Table::alter()
                .table(table)
                .drop_column(column.get_column_name())
                .take();
            manager.alter_table(drop).await?;
        }
        Ok(())
    }
}

/// Who wrote something is named as they were called then: it outlives them.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![
        // When somebody else first took part. It stays, though nobody does any more.
        ("sessions", timestamp_with_time_zone_null("shared_at")),
        ("messages", uuid_null("author_id")),
        ("messages", text_null("author_name")),
        // Whether the model is told.
        ("messages", boolean("names_author").default(false).take()),
        ("queued_messages", uuid_null("author_id")),
        ("queued_messages", text_null("author_name")),
        ("consent_log", uuid_null("author_id")),
        ("consent_log", text_null("author_name")),
    ]
}

/// Those who take part in another's conversation.
fn people() -> TableCreateStatement {
    Table::create()
        .table("session_people")
        .col(uuid("session_id"))
        .col(uuid("user_id"))
        .col(timestamp_with_time_zone("added_at"))
        .primary_key(Index::create().col("session_id").col("user_id"))
        .foreign_key(&mut belongs_to("session_people", "session_id", "sessions"))
        .foreign_key(&mut belongs_to("session_people", "user_id", "users"))
        .take()
}

/// Links by which somebody looks at a conversation, known by the hash of their secret.
fn links() -> TableCreateStatement {
    Table::create()
        .table("session_links")
        .col(binary_len("hash", 32).primary_key())
        .col(uuid("id"))
        .col(uuid("session_id"))
        .col(timestamp_with_time_zone("created_at"))
        .col(timestamp_with_time_zone("expires_at"))
        .foreign_key(&mut belongs_to("session_links", "session_id", "sessions"))
        .take()
}
