//! The work on one turn.

use sea_orm::entity::prelude::*;

use crate::store::values::DbText;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "runs")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub session_id: Uuid,
    pub parent_run_id: Option<Uuid>,
    pub message_id: Uuid,
    pub profile_id: DbText,
    pub backend: DbText,
    pub model: DbText,
    pub state: String,
    pub reason: Option<DbText>,
    pub reason_phrase: Option<DbText>,
    pub iterations: i64,
    pub prompt_tokens: i64,
    pub completion_tokens: i64,
    pub cached_tokens: i64,
    pub started_at: DateTimeUtc,
    pub ended_at: Option<DateTimeUtc>,
    pub leaked_calls: i64,
    pub call_id: Option<DbText>,
    pub loop_state: Option<DbText>,
}

unrelated!();
