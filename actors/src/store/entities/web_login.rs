//! A browser that is logged in.

use sea_orm::entity::prelude::*;

use crate::store::values::DbText;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "web_logins")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub hash: Vec<u8>,
    pub user_id: Uuid,
    pub created_at: DateTimeUtc,
    pub expires_at: DateTimeUtc,
    pub agent: Option<DbText>,
    pub address: Option<DbText>,
    pub last_used_at: Option<DateTimeUtc>,
    pub iss: Option<DbText>,
    pub sub: Option<DbText>,
    pub sid: Option<DbText>,
    pub id_token: Option<DbText>,
}

unrelated!();
