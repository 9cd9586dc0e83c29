//! The name of a fact that was deleted.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "memory_forgotten")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub user_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub category: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub key: String,
    pub forgotten_at: DateTimeUtc,
}

unrelated!();
