//! A fact about a user.

use sea_orm::entity::prelude::*;

use crate::store::values::DbText;

#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "memory_facts")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub user_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub category: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub key: String,
    pub value: DbText,
    pub source_session_id: Option<Uuid>,
    pub source_message_id: Option<Uuid>,
    pub confidence: f64,
    pub created_at: DateTimeUtc,
    pub updated_at: DateTimeUtc,
}

unrelated!();
