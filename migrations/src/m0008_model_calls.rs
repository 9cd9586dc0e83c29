//! What the model was sent at each call of a run, as far as it stands nowhere else.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    big_integer, big_integer_null, big_pk_auto, text, text_null, timestamp_with_time_zone, uuid,
    uuid_null,
};

use crate::m0001_initial::{belongs_to, index};

/// See the module.
pub(crate) struct ModelCalls;

impl MigrationName for ModelCalls {
    fn name(&self) -> &'static str {
        "m0008_model_calls"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for ModelCalls {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(prompt_parts()).await?;
        manager.create_table(model_calls()).await?;
        for index in [
            // The calls of a run, in order.
            index("model_calls", &["run_id", "id"]),
            // What goes with a session.
            index("model_calls", &["session_id"]),
        ] {
            manager.create_index(index).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["model_calls", "prompt_parts"] {
            manager
                .drop_table(Table::drop().table(table).take())
                .await?;
        }
        Ok(())
    }
}

/// What is long and stands in many requests of a session: written once, named by its SHA-256.
fn prompt_parts() -> TableCreateStatement {
    Table::create()
        .table("prompt_parts")
        .col(uuid("session_id"))
        .col(text("sha256"))
        .col(text("body"))
        .primary_key(Index::create().col("session_id").col("sha256"))
        .foreign_key(&mut belongs_to("prompt_parts", "session_id", "sessions"))
        .take()
}

/// `id` orders a run's calls. `recipe` says how the request is made again, `sha256` is that of
/// the request as it was sent. `reply` is null where a message (`message_id`) holds it;
/// `own_messages` has what a subagent's conversation gained since its last call, which stands
/// nowhere else.
fn model_calls() -> TableCreateStatement {
    Table::create()
        .table("model_calls")
        .col(big_pk_auto("id"))
        .col(uuid("session_id"))
        .col(uuid("run_id"))
        .col(text("kind"))
        .col(big_integer("after_seq"))
        .col(timestamp_with_time_zone("started_at"))
        .col(big_integer_null("first_chunk_ms"))
        .col(big_integer("duration_ms"))
        .col(text("backend"))
        .col(text("model"))
        .col(big_integer_null("prompt_tokens"))
        .col(big_integer_null("completion_tokens"))
        .col(text("outcome"))
        .col(big_integer("attempts"))
        .col(uuid_null("message_id"))
        .col(text_null("reply"))
        .col(text("recipe"))
        .col(text_null("own_messages"))
        .col(text("sha256"))
        .foreign_key(&mut belongs_to("model_calls", "session_id", "sessions"))
        .take()
}
