//! The summary of a user's facts.

use sea_orm::entity::prelude::*;

use crate::store::values::DbText;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "memory_summary")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub user_id: Uuid,
    pub text: DbText,
    pub is_draft: bool,
    pub revision: i64,
    pub updated_at: DateTimeUtc,
}

unrelated!();
