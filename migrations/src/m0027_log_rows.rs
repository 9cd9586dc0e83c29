//! A row of streamed text takes in the pieces that follow: a commit writes one page of it then,
//! and no index.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, big_integer_null, integer, text, uuid, uuid_null};
use sea_orm_migration::sea_orm::{ConnectionTrait, DbBackend};

use crate::m0001_initial::{belongs_to, chunks as first_chunks, index, unique};
use crate::m0002_branches::drop_index;

/// Those that both shapes have.
const KEPT: &str = r#""id", "session_id", "after_seq", "run_id", "message_id", "part_id", "kind",
    "offset", "text", "parent_run_id", "text_bytes""#;

/// See the module.
pub(crate) struct LogRows;

impl MigrationName for LogRows {
    fn name(&self) -> &'static str {
        "m0027_log_rows"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for LogRows {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        match manager.get_database_backend() {
            DbBackend::Sqlite => remake(manager, chunks(), Vec::new()).await,
            _ => {
                let add = Table::alter().table("chunks").add_column(pieces()).take();
                manager.alter_table(add).await
            }
        }
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        match manager.get_database_backend() {
            DbBackend::Sqlite => {
                let added = vec![
                    uuid_null("parent_run_id"),
                    big_integer_null("text_bytes").take(),
                ];
                remake(manager, first_chunks(), added).await
            }
            _ => {
                let drop = Table::alter().table("chunks").drop_column("pieces").take();
                manager.alter_table(drop).await
            }
        }
    }
}

/// SQLite cannot take `AUTOINCREMENT` from a table: one that is otherwise made takes its rows.
async fn remake(
    manager: &SchemaManager<'_>,
    table: TableCreateStatement,
    added: Vec<ColumnDef>,
) -> Result<(), DbErr> {
    let db = manager.get_connection();
    for index in indexes() {
        drop_index(manager, &index).await?;
    }
    db.execute_unprepared("ALTER TABLE chunks RENAME TO chunks_before")
        .await?;
    manager.create_table(table).await?;
    for column in added {
        let add = Table::alter().table("chunks").add_column(column).take();
        manager.alter_table(add).await?;
    }
    let copy = format!("INSERT INTO chunks ({KEPT}) SELECT {KEPT} FROM chunks_before");
    db.execute_unprepared(&copy).await?;
    db.execute_unprepared("DROP TABLE chunks_before").await?;
    for index in indexes() {
        manager.create_index(index).await?;
    }
    Ok(())
}

/// Without `AUTOINCREMENT`, which writes a page of its own with each commit, whether or not it
/// adds a row: within a session rows keep the highest of the ids that they had.
fn chunks() -> TableCreateStatement {
    Table::create()
        .table("chunks")
        .col(integer("id").primary_key())
        .col(uuid("session_id"))
        .col(big_integer("after_seq"))
        .col(uuid("run_id"))
        .col(uuid("message_id"))
        .col(text("part_id"))
        .col(text("kind"))
        .col(big_integer("offset"))
        .col(text("text"))
        .col(uuid_null("parent_run_id"))
        .col(big_integer_null("text_bytes"))
        .col(pieces())
        .foreign_key(&mut belongs_to("chunks", "session_id", "sessions"))
        .take()
}

/// How many a row has taken in: one that is sent again is known by it.
fn pieces() -> ColumnDef {
    big_integer("pieces").default(1).take()
}

fn indexes() -> [IndexCreateStatement; 2] {
    [
        index("chunks", &["session_id", "after_seq", "id"]),
        unique("chunks", &["run_id", "part_id", "offset"]),
    ]
}
