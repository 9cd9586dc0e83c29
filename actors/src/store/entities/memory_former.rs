//! A value that a fact had before.

use sea_orm::entity::prelude::*;

use crate::store::values::DbText;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "memory_fact_history")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub user_id: Uuid,
    pub category: String,
    pub key: String,
    pub value: DbText,
    pub source_session_id: Option<Uuid>,
    pub source_message_id: Option<Uuid>,
    pub confidence: f64,
    pub replaced_at: DateTimeUtc,
}

unrelated!();
