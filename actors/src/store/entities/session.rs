//! A conversation.

use sea_orm::entity::prelude::*;

use crate::store::values::DbText;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "sessions")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub user_id: Uuid,
    pub title: DbText,
    pub profile_id: DbText,
    pub pinned: bool,
    pub todo: String,
    pub scratchpad: String,
    pub context_token_count: i64,
    pub last_seq: i64,
    pub message_count: i64,
    pub last_run_id: Option<Uuid>,
    pub owner: Option<DbText>,
    pub epoch: i64,
    pub deleted_at: Option<DateTimeUtc>,
    pub created_at: DateTimeUtc,
    pub last_active: DateTimeUtc,
    pub branch_id: i64,
    pub plan: Option<String>,
    pub consent_mode: Option<String>,
    pub tainted_at: Option<DateTimeUtc>,
    pub archived: bool,
    pub tags: String,
    pub model: Option<DbText>,
    pub ephemeral: bool,
    pub shared_at: Option<DateTimeUtc>,
    pub held: bool,
}

unrelated!();
