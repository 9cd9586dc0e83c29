//! One line of the record: who came in, and who changed what.

use sea_orm::entity::prelude::*;

use crate::store::values::DbText;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "record")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub at: DateTimeUtc,
    pub what: String,
    pub user_id: Option<Uuid>,
    pub name: Option<DbText>,
    pub about: Option<DbText>,
    pub address: Option<DbText>,
}

unrelated!();
