//! What Navi remembers of a user: facts, their earlier values, a summary, and how far each
//! session has been read for facts.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    big_integer, big_pk_auto, boolean, double, pk_uuid, text, timestamp_with_time_zone,
    timestamp_with_time_zone_null, uuid, uuid_null,
};

/// Memory.
pub(crate) struct Memory;

impl MigrationName for Memory {
    fn name(&self) -> &'static str {
        "m0004_memory"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Memory {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [facts(), history(), forgotten(), summary(), session_state()] {
            manager.create_table(table).await?;
        }
        let of_fact = Index::create()
            .name("idx_memory_fact_history_fact")
            .table("memory_fact_history")
            .col("user_id")
            .col("category")
            .col("key")
            .col("id")
            .take();
        manager.create_index(of_fact).await?;
        // A purged session is taken out of the facts that came from it.
        for table in ["memory_facts", "memory_fact_history"] {
            let of_session = Index::create()
                .name(format!("idx_{table}_source_session_id"))
                .table(table)
                .col("source_session_id")
                .take();
            manager.create_index(of_session).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [
            "session_memory_state",
            "memory_summary",
            "memory_forgotten",
            "memory_fact_history",
            "memory_facts",
        ] {
            manager
                .drop_table(Table::drop().table(table).to_owned())
                .await?;
        }
        Ok(())
    }
}

/// `updated_at` is when the value was said, which may be long before it was read.
fn facts() -> TableCreateStatement {
    Table::create()
        .table("memory_facts")
        .col(uuid("user_id"))
        .col(text("category"))
        .col(text("key"))
        .col(text("value"))
        .col(uuid_null("source_session_id"))
        .col(uuid_null("source_message_id"))
        .col(double("confidence"))
        .col(timestamp_with_time_zone("created_at"))
        .col(timestamp_with_time_zone("updated_at"))
        .primary_key(Index::create().col("user_id").col("category").col("key"))
        .foreign_key(&mut of_user("memory_facts"))
        .foreign_key(&mut from_session("memory_facts"))
        .take()
}

/// Earlier values. They go with their fact.
fn history() -> TableCreateStatement {
    Table::create()
        .table("memory_fact_history")
        .col(big_pk_auto("id"))
        .col(uuid("user_id"))
        .col(text("category"))
        .col(text("key"))
        .col(text("value"))
        .col(uuid_null("source_session_id"))
        .col(uuid_null("source_message_id"))
        .col(double("confidence"))
        .col(timestamp_with_time_zone("replaced_at"))
        .foreign_key(
            ForeignKey::create()
                .name("fk_memory_fact_history_fact")
                .from("memory_fact_history", ("user_id", "category", "key"))
                .to("memory_facts", ("user_id", "category", "key"))
                .on_delete(ForeignKeyAction::Cascade),
        )
        .foreign_key(&mut from_session("memory_fact_history"))
        .take()
}

/// Names of facts that were deleted, without their values: an older conversation that is
/// read later must not bring them back.
fn forgotten() -> TableCreateStatement {
    Table::create()
        .table("memory_forgotten")
        .col(uuid("user_id"))
        .col(text("category"))
        .col(text("key"))
        .col(timestamp_with_time_zone("forgotten_at"))
        .primary_key(Index::create().col("user_id").col("category").col("key"))
        .foreign_key(&mut of_user("memory_forgotten"))
        .take()
}

/// `revision` counts the changes of the user's facts: a summary that a model wrote counts
/// only where no fact changed meanwhile. `is_draft` where no model has written it yet.
fn summary() -> TableCreateStatement {
    Table::create()
        .table("memory_summary")
        .col(pk_uuid("user_id"))
        .col(text("text"))
        .col(boolean("is_draft"))
        .col(big_integer("revision"))
        .col(timestamp_with_time_zone("updated_at"))
        .foreign_key(&mut of_user("memory_summary"))
        .take()
}

/// Messages below `read_ordinal` have been read, the last of them from `extracted_at`.
/// `failures` counts the tries in a row that failed while the session had `failed_count`
/// messages.
fn session_state() -> TableCreateStatement {
    Table::create()
        .table("session_memory_state")
        .col(pk_uuid("session_id"))
        .col(timestamp_with_time_zone_null("extracted_at"))
        .col(big_integer("read_ordinal"))
        .col(big_integer("failures"))
        .col(big_integer("failed_count"))
        .foreign_key(
            ForeignKey::create()
                .name("fk_session_memory_state_session_id")
                .from("session_memory_state", "session_id")
                .to("sessions", "id")
                .on_delete(ForeignKeyAction::Cascade),
        )
        .take()
}

fn of_user(table: &'static str) -> ForeignKeyCreateStatement {
    ForeignKey::create()
        .name(format!("fk_{table}_user_id"))
        .from(table, "user_id")
        .to("users", "id")
        .on_delete(ForeignKeyAction::Cascade)
        .take()
}

fn from_session(table: &'static str) -> ForeignKeyCreateStatement {
    ForeignKey::create()
        .name(format!("fk_{table}_source_session_id"))
        .from(table, "source_session_id")
        .to("sessions", "id")
        .on_delete(ForeignKeyAction::SetNull)
        .take()
}
