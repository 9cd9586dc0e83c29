//! Files of a session: what its user sent in, and images that tools gave back.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    big_integer, boolean, pk_uuid, string, text, text_null, timestamp_with_time_zone,
    timestamp_with_time_zone_null, uuid,
};

use crate::m0001_initial::{belongs_to, index};

/// See the module.
pub(crate) struct Files;

impl MigrationName for Files {
    fn name(&self) -> &'static str {
        "m0006_files"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Files {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(files()).await?;
        let by_path = index("session_files", &["session_id", "path"])
            .unique()
            .take();
        manager.create_index(by_path).await?;
        let by_use = index("session_files", &["last_used_at"])
            .and_where(Expr::col("gone_at").is_null())
            .take();
        manager.create_index(by_use).await?;
        for table in ["messages", "queued_messages"] {
            let add = Table::alter()
                .table(table)
                .add_column(text_null("files"))
                .take();
            manager.alter_table(add).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["queued_messages", "messages"] {
            let drop = Table::alter().table(table).drop_column("files").take();
            manager.alter_table(drop).await?;
        }
        manager
            .drop_table(Table::drop().table("session_files").take())
            .await
    }
}

/// `content_text` is the beginning of the file's text, as the model is shown it; `text_bytes`
/// how much there is in all. A row stays when its file has gone (`gone_at`): the conversation
/// goes on reading the same.
fn files() -> TableCreateStatement {
    Table::create()
        .table("session_files")
        .col(pk_uuid("id"))
        .col(uuid("session_id"))
        .col(text("name"))
        .col(text("path"))
        .col(text("media_type"))
        .col(big_integer("bytes"))
        .col(string("source"))
        .col(boolean("has_image"))
        .col(text_null("content_text"))
        .col(big_integer("text_bytes"))
        .col(text_null("problem"))
        .col(timestamp_with_time_zone("created_at"))
        .col(timestamp_with_time_zone("last_used_at"))
        .col(timestamp_with_time_zone_null("gone_at"))
        .foreign_key(&mut belongs_to("session_files", "session_id", "sessions"))
        .take()
}
