//! Which tools from outside of Navi were allowed, and as what.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{text, timestamp_with_time_zone, uuid_null};

/// Tools from outside.
pub(crate) struct Tools;

impl MigrationName for Tools {
    fn name(&self) -> &'static str {
        "m0007_tools"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Tools {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(pins()).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .drop_table(Table::drop().table("tool_pins").to_owned())
            .await
    }
}

/// `source` is `user`, or `mcp:` and the server's name. `allowed_by` is null where nobody was
/// asked: for what a server said when it was first seen.
fn pins() -> TableCreateStatement {
    Table::create()
        .table("tool_pins")
        .col(text("name").primary_key())
        .col(text("source"))
        .col(text("sha256"))
        .col(uuid_null("allowed_by"))
        .col(timestamp_with_time_zone("allowed_at"))
        .foreign_key(
            ForeignKey::create()
                .name("fk_tool_pins_allowed_by")
                .from("tool_pins", "allowed_by")
                .to("users", "id")
                .on_delete(ForeignKeyAction::SetNull),
        )
        .take()
}
