//! A model call of a run.

use sea_orm::entity::prelude::*;

use crate::store::values::DbText;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "model_calls")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub session_id: Uuid,
    pub run_id: Uuid,
    pub kind: String,
    pub after_seq: i64,
    pub started_at: DateTimeUtc,
    pub first_chunk_ms: Option<i64>,
    pub duration_ms: i64,
    pub backend: DbText,
    pub model: DbText,
    pub prompt_tokens: Option<i64>,
    pub completion_tokens: Option<i64>,
    pub cached_tokens: Option<i64>,
    pub outcome: String,
    pub attempts: i64,
    pub message_id: Option<Uuid>,
    pub reply: Option<DbText>,
    pub recipe: DbText,
    pub own_messages: Option<DbText>,
    pub sha256: String,
}

unrelated!();
