//! A token for scripts.

use sea_orm::entity::prelude::*;

use crate::store::values::DbText;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "api_tokens")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub hash: Vec<u8>,
    pub user_id: Uuid,
    pub name: DbText,
    pub created_at: DateTimeUtc,
    pub last_used_at: Option<DateTimeUtc>,
    pub scopes: String,
    pub expires_at: Option<DateTimeUtc>,
}

unrelated!();
