//! Streamed text: pieces of a part that follow each other between two events.

use sea_orm::entity::prelude::*;

use crate::store::values::DbText;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "chunks")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub session_id: Uuid,
    pub after_seq: i64,
    pub run_id: Uuid,
    pub message_id: Uuid,
    pub part_id: DbText,
    pub kind: String,
    pub offset: i64,
    pub text: DbText,
    pub parent_run_id: Option<Uuid>,
    pub text_bytes: Option<i64>,
    pub pieces: i64,
}

unrelated!();
