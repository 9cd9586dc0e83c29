//! Branches of a conversation, the plan beside it, and subagents' runs; and the indexes that
//! keep what a turn costs the same however long its session is.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    big_integer, big_integer_null, text, text_null, timestamp_with_time_zone, uuid, uuid_null,
};

use crate::m0001_initial::{belongs_to, index};

/// What every session that is there already starts with.
const ROOT_BRANCHES: &str = "\
    INSERT INTO branches (session_id, id, parent_id, fork_ordinal, context, created_at) \
    SELECT id, 0, NULL, 0, '{}', created_at FROM sessions";

/// See the module.
pub(crate) struct Branches;

impl MigrationName for Branches {
    fn name(&self) -> &'static str {
        "m0002_branches"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Branches {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(branches()).await?;
        for (table, column) in columns() {
            let add = Table::alter().table(table).add_column(column).take();
            manager.alter_table(add).await?;
        }
        // The index of a session's runs by their state stands in for it.
        drop_index(manager, &runs_of_session()).await?;
        for index in indexes() {
            manager.create_index(index).await?;
        }
        let db = manager.get_connection();
        db.execute_unprepared(ROOT_BRANCHES).await?;
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for index in indexes() {
            drop_index(manager, &index).await?;
        }
        manager.create_index(runs_of_session()).await?;
        for (table, column) in columns().into_iter().rev() {
            let drop = Table::alter()
                .table(table)
                .drop_column(column.get_column_name())
                .take();
            manager.alter_table(drop).await?;
        }
        manager
            .drop_table(Table::drop().table("branches").take())
            .await
    }
}

/// A branch's id counts from 0 within its session.
fn branches() -> TableCreateStatement {
    Table::create()
        .table("branches")
        .col(uuid("session_id"))
        .col(big_integer("id"))
        .col(big_integer_null("parent_id"))
        .col(big_integer("fork_ordinal"))
        .col(text("context"))
        .col(timestamp_with_time_zone("created_at"))
        .primary_key(Index::create().col("session_id").col("id"))
        .foreign_key(&mut belongs_to("branches", "session_id", "sessions"))
        .take()
}

fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![
        // The branch that is shown.
        ("sessions", big_integer("branch_id").default(0).take()),
        ("sessions", text_null("plan")),
        // The branch that was shown when the message was written.
        ("messages", big_integer("branch_id").default(0).take()),
        ("queued_messages", text("mode").default("queue").take()),
        ("chunks", uuid_null("parent_run_id")),
        // The `spawn_agent` call that a child answers.
        ("runs", text_null("call_id")),
        ("runs", big_integer("leaked_calls").default(0).take()),
    ]
}

fn indexes() -> Vec<IndexCreateStatement> {
    vec![
        // What a run said and did.
        index("messages", &["session_id", "run_id", "ordinal"]),
        // A stretch of a conversation's path.
        index("messages", &["session_id", "branch_id", "ordinal"]),
        // What was told of a run.
        index("events", &["run_id", "seq"]),
        index("runs", &["session_id", "state"]),
        index("runs", &["parent_run_id"])
            .and_where(Expr::col("parent_run_id").is_not_null())
            .take(),
    ]
}

fn runs_of_session() -> IndexCreateStatement {
    index("runs", &["session_id"])
}

pub(crate) async fn drop_index(
    manager: &SchemaManager<'_>,
    created: &IndexCreateStatement,
) -> Result<(), DbErr> {
    let name = created.get_index_spec().get_name().unwrap_or_default();
    manager
        .drop_index(Index::drop().name(name).to_owned())
        .await
}
