//! What a person allowed or forbade once and for all.

use sea_orm::entity::prelude::*;

use crate::store::values::DbText;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "consent_rules")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub user_id: Uuid,
    pub tool: DbText,
    pub key: DbText,
    pub words: DbText,
    pub phrase: Option<DbText>,
    pub decision: String,
    pub created_at: DateTimeUtc,
}

unrelated!();
