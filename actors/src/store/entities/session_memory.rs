//! How far a session has been read for facts.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "session_memory_state")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub session_id: Uuid,
    pub extracted_at: Option<DateTimeUtc>,
    pub read_ordinal: i64,
    pub failures: i64,
    pub failed_count: i64,
}

unrelated!();
