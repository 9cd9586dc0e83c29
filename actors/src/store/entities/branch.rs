//! One way that a conversation went.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "branches")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub session_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    pub parent_id: Option<i64>,
    pub fork_ordinal: i64,
    pub context: String,
    pub created_at: DateTimeUtc,
}

unrelated!();
