//! Users, sessions, their conversation, runs and event log, and the keys to the door.
//!
//! JSON is kept as text: the database never looks inside it, and gives back the very bytes
//! that it got. Whatever belongs to a session goes with it.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    big_integer, big_integer_null, big_pk_auto, binary_len, boolean, pk_uuid, text, text_null,
    timestamp_with_time_zone, timestamp_with_time_zone_null, uuid, uuid_null,
};

/// The schema of the first release.
pub(crate) struct Initial;

impl MigrationName for Initial {
    fn name(&self) -> &'static str {
        "m0001_initial"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Initial {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [
            users(),
            sessions(),
            messages(),
            queued_messages(),
            runs(),
            events(),
            chunks(),
            api_tokens(),
            web_logins(),
        ] {
            manager.create_table(table).await?;
        }
        for index in indexes() {
            manager.create_index(index).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [
            "web_logins",
            "api_tokens",
            "chunks",
            "events",
            "runs",
            "queued_messages",
            "messages",
            "sessions",
            "users",
        ] {
            manager
                .drop_table(Table::drop().table(table).to_owned())
                .await?;
        }
        Ok(())
    }
}

fn users() -> TableCreateStatement {
    Table::create()
        .table("users")
        .col(pk_uuid("id"))
        .col(text("name"))
        .col(text("role"))
        .col(timestamp_with_time_zone("created_at"))
        .take()
}

/// `last_seq`, `message_count` and `last_run_id` are what each commit would otherwise have
/// to look up; the row is written by every commit anyway, as the check of `owner` and `epoch`.
fn sessions() -> TableCreateStatement {
    Table::create()
        .table("sessions")
        .col(pk_uuid("id"))
        .col(uuid("user_id"))
        .col(text("title"))
        .col(text("profile_id"))
        .col(boolean("pinned"))
        .col(text("todo"))
        .col(text("scratchpad"))
        .col(big_integer("context_token_count"))
        .col(big_integer("last_seq"))
        .col(big_integer("message_count"))
        .col(uuid_null("last_run_id"))
        .col(text_null("owner"))
        .col(big_integer("epoch"))
        .col(timestamp_with_time_zone_null("deleted_at"))
        .col(timestamp_with_time_zone("created_at"))
        .col(timestamp_with_time_zone("last_active"))
        .foreign_key(&mut belongs_to("sessions", "user_id", "users"))
        .take()
}

fn messages() -> TableCreateStatement {
    Table::create()
        .table("messages")
        .col(pk_uuid("id"))
        .col(uuid("session_id"))
        .col(big_integer("ordinal"))
        .col(uuid("run_id"))
        .col(text("role"))
        .col(text_null("content"))
        .col(text_null("images"))
        .col(text_null("tool_calls"))
        .col(text_null("tool_call_id"))
        .col(text_null("name"))
        .col(text_null("outcome"))
        .col(big_integer_null("duration_ms"))
        .col(text_null("thinking"))
        .col(text("state"))
        .col(boolean("is_summary"))
        .col(boolean("is_plan"))
        .col(text_null("client_id"))
        .col(timestamp_with_time_zone("created_at"))
        .foreign_key(&mut belongs_to("messages", "session_id", "sessions"))
        .take()
}

fn queued_messages() -> TableCreateStatement {
    Table::create()
        .table("queued_messages")
        .col(big_pk_auto("id"))
        .col(uuid("session_id"))
        .col(uuid("message_id"))
        .col(uuid("run_id"))
        .col(text("content"))
        .col(text_null("images"))
        .col(text_null("client_id"))
        .col(timestamp_with_time_zone("created_at"))
        .foreign_key(&mut belongs_to("queued_messages", "session_id", "sessions"))
        .take()
}

fn runs() -> TableCreateStatement {
    Table::create()
        .table("runs")
        .col(pk_uuid("id"))
        .col(uuid("session_id"))
        .col(uuid_null("parent_run_id"))
        .col(uuid("message_id"))
        .col(text("profile_id"))
        .col(text("backend"))
        .col(text("model"))
        .col(text("state"))
        .col(text_null("reason"))
        .col(big_integer("iterations"))
        .col(big_integer("prompt_tokens"))
        .col(big_integer("completion_tokens"))
        .col(timestamp_with_time_zone("started_at"))
        .col(timestamp_with_time_zone_null("ended_at"))
        .foreign_key(&mut belongs_to("runs", "session_id", "sessions"))
        .take()
}

fn events() -> TableCreateStatement {
    Table::create()
        .table("events")
        .col(uuid("session_id"))
        .col(big_integer("seq"))
        .col(uuid_null("run_id"))
        .col(text("kind"))
        .col(text("json"))
        .col(timestamp_with_time_zone("at"))
        .primary_key(Index::create().col("session_id").col("seq"))
        .foreign_key(&mut belongs_to("events", "session_id", "sessions"))
        .take()
}

pub(crate) fn chunks() -> TableCreateStatement {
    Table::create()
        .table("chunks")
        .col(big_pk_auto("id"))
        .col(uuid("session_id"))
        .col(big_integer("after_seq"))
        .col(uuid("run_id"))
        .col(uuid("message_id"))
        .col(text("part_id"))
        .col(text("kind"))
        .col(big_integer("offset"))
        .col(text("text"))
        .foreign_key(&mut belongs_to("chunks", "session_id", "sessions"))
        .take()
}

fn api_tokens() -> TableCreateStatement {
    Table::create()
        .table("api_tokens")
        .col(pk_uuid("id"))
        .col(binary_len("hash", 32))
        .col(uuid("user_id"))
        .col(text("name"))
        .col(timestamp_with_time_zone("created_at"))
        .col(timestamp_with_time_zone_null("last_used_at"))
        .foreign_key(&mut belongs_to("api_tokens", "user_id", "users"))
        .take()
}

fn web_logins() -> TableCreateStatement {
    Table::create()
        .table("web_logins")
        .col(binary_len("hash", 32).primary_key())
        .col(uuid("user_id"))
        .col(timestamp_with_time_zone("created_at"))
        .col(timestamp_with_time_zone("expires_at"))
        .foreign_key(&mut belongs_to("web_logins", "user_id", "users"))
        .take()
}

pub(crate) fn belongs_to(
    table: &'static str,
    column: &'static str,
    parent: &'static str,
) -> ForeignKeyCreateStatement {
    ForeignKey::create()
        .name(format!("fk_{table}_{column}"))
        .from(table, column)
        .to(parent, "id")
        .on_delete(ForeignKeyAction::Cascade)
        .take()
}

fn indexes() -> Vec<IndexCreateStatement> {
    vec![
        // The session list.
        index("sessions", &["user_id", "deleted_at"]),
        unique("messages", &["session_id", "ordinal"]),
        // Sending twice is sending once.
        unique("messages", &["session_id", "client_id"]),
        // Every call has exactly one result, whatever goes wrong above.
        unique("messages", &["session_id", "tool_call_id"]),
        unique("queued_messages", &["message_id"]),
        unique("queued_messages", &["session_id", "client_id"]),
        index("runs", &["session_id"]),
        // Few runs are running: recovery at start finds them without reading the rest.
        index("runs", &["state"])
            .and_where(Expr::col("state").eq("running"))
            .take(),
        index("chunks", &["session_id", "after_seq", "id"]),
        // A piece that is sent again after a lost acknowledgement is the same piece.
        unique("chunks", &["run_id", "part_id", "offset"]),
        unique("api_tokens", &["hash"]),
        index("api_tokens", &["user_id"]),
        index("web_logins", &["user_id"]),
        index("web_logins", &["expires_at"]),
    ]
}

pub(crate) fn index(table: &'static str, columns: &[&'static str]) -> IndexCreateStatement {
    let mut index = Index::create();
    index
        .name(format!("idx_{table}_{}", columns.join("_")))
        .table(table);
    for column in columns {
        index.col(*column);
    }
    index
}

pub(crate) fn unique(table: &'static str, columns: &[&'static str]) -> IndexCreateStatement {
    index(table, columns).unique().take()
}
