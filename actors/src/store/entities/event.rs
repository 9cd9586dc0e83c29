//! A durable event.

use sea_orm::entity::prelude::*;

use crate::store::values::DbText;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "events")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub session_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub seq: i64,
    pub run_id: Option<Uuid>,
    pub kind: String,
    pub json: DbText,
    pub at: DateTimeUtc,
    pub message_id: Option<Uuid>,
    pub text_at: Option<i64>,
    pub text_bytes: Option<i64>,
}

unrelated!();
