//! A request for a person's consent.

use sea_orm::entity::prelude::*;

use crate::store::values::DbText;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "approvals")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub session_id: Uuid,
    pub run_id: Uuid,
    pub call_id: DbText,
    pub tool: DbText,
    pub request: DbText,
    pub digest: String,
    pub rule_key: Option<DbText>,
    pub requested_at: DateTimeUtc,
    pub expires_at: DateTimeUtc,
    pub decision: Option<String>,
    pub decided_by: Option<String>,
    pub decided_at: Option<DateTimeUtc>,
}

unrelated!();
