//! A tool from outside of Navi that was allowed.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "tool_pins")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    pub source: String,
    pub sha256: String,
    pub allowed_by: Option<Uuid>,
    pub allowed_at: DateTimeUtc,
}

unrelated!();
