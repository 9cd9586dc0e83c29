//! The log refers to the text of messages, and does not repeat it.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer_null, uuid_null};

/// Few events are notices, and a snapshot has the newest.
const NOTICES: &str = "events_notices";

/// See the module.
pub(crate) struct Log;

impl MigrationName for Log {
    fn name(&self) -> &'static str {
        "m0009_log"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Log {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in columns() {
            let add = Table::alter().table(table).add_column(column).take();
            manager.alter_table(add).await?;
        }
        let notices =
            format!("CREATE INDEX {NOTICES} ON events (session_id, seq) WHERE kind = 'notice'");
        manager
            .get_connection()
            .execute_unprepared(&notices)
            .await?;
        Ok(())
    }

    /// What was told before stays told: what refers to a message goes, as its text cannot be put
    /// back in SQL.
    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        db.execute_unprepared(&format!("DROP INDEX {NOTICES}"))
            .await?;
        for table in ["events", "chunks"] {
            let refers = format!("DELETE FROM {table} WHERE text_bytes > 0");
            db.execute_unprepared(&refers).await?;
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

/// Of an event: the message whose text belongs into `json`, at which byte, and how long it is.
/// Of a chunk: null while its part is open; then how much of its message's text it stands for,
/// and 0 where no message has it and `text` does.
fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![
        ("events", uuid_null("message_id").take()),
        ("events", big_integer_null("text_at").take()),
        ("events", big_integer_null("text_bytes").take()),
        ("chunks", big_integer_null("text_bytes").take()),
    ]
}
