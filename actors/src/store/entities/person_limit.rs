//! What of the limits is one person's own; null: the installation's.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "person_limits")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub user_id: Uuid,
    pub runs: Option<i64>,
    pub uploads: Option<i64>,
    pub sessions: Option<i64>,
    pub files_mb: Option<i64>,
    pub tokens_a_day: Option<i64>,
    pub tabs: Option<i64>,
}

unrelated!();
