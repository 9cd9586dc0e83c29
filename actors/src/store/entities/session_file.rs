//! A file of a session.

use sea_orm::entity::prelude::*;

use crate::store::values::DbText;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "session_files")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub session_id: Uuid,
    pub name: DbText,
    pub path: String,
    pub media_type: String,
    pub bytes: i64,
    pub source: String,
    pub has_image: bool,
    pub content_text: Option<DbText>,
    pub text_bytes: i64,
    pub problem: Option<DbText>,
    pub problem_phrase: Option<DbText>,
    pub created_at: DateTimeUtc,
    pub last_used_at: DateTimeUtc,
    pub gone_at: Option<DateTimeUtc>,
}

unrelated!();
