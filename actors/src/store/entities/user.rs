//! A person.

use sea_orm::entity::prelude::*;

use crate::store::values::DbText;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "users")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub name: DbText,
    pub role: String,
    pub created_at: DateTimeUtc,
    pub name_key: Option<String>,
    pub password: Option<String>,
    pub removed_at: Option<DateTimeUtc>,
}

unrelated!();
