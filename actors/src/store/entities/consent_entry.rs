//! What was allowed or denied, and by whom.

use sea_orm::entity::prelude::*;

use crate::store::values::DbText;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "consent_log")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub id: i64,
    pub user_id: Uuid,
    pub session_id: Uuid,
    pub run_id: Uuid,
    pub call_id: DbText,
    pub tool: DbText,
    pub effect: String,
    pub summary: DbText,
    pub decision: String,
    pub decided_by: String,
    pub at: DateTimeUtc,
    pub rule: Option<DbText>,
    pub phrases: Option<DbText>,
    pub note: Option<DbText>,
    pub author_id: Option<Uuid>,
    pub author_name: Option<DbText>,
}

unrelated!();
