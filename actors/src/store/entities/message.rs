//! A message of a conversation.

use sea_orm::entity::prelude::*;

use crate::store::values::DbText;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "messages")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub session_id: Uuid,
    pub ordinal: i64,
    pub run_id: Uuid,
    pub role: String,
    pub content: Option<DbText>,
    pub images: Option<String>,
    pub tool_calls: Option<String>,
    pub tool_call_id: Option<DbText>,
    pub name: Option<DbText>,
    pub outcome: Option<String>,
    pub duration_ms: Option<i64>,
    pub thinking: Option<DbText>,
    pub state: String,
    pub is_summary: bool,
    pub is_plan: bool,
    pub client_id: Option<DbText>,
    pub created_at: DateTimeUtc,
    pub branch_id: i64,
    pub outside: bool,
    pub files: Option<String>,
    pub author_id: Option<Uuid>,
    pub author_name: Option<DbText>,
    pub names_author: bool,
}

unrelated!();
