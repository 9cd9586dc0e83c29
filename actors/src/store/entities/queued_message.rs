//! A message that waits for the run before it.

use sea_orm::entity::prelude::*;

use crate::store::values::DbText;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "queued_messages")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub session_id: Uuid,
    pub message_id: Uuid,
    pub run_id: Uuid,
    pub content: DbText,
    pub images: Option<String>,
    pub client_id: Option<DbText>,
    pub created_at: DateTimeUtc,
    pub mode: String,
    pub files: Option<String>,
    pub author_id: Option<Uuid>,
    pub author_name: Option<DbText>,
}

unrelated!();
