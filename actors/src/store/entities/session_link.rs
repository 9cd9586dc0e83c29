//! A link by which somebody looks at a conversation.

use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "session_links")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub hash: Vec<u8>,
    pub id: Uuid,
    pub session_id: Uuid,
    pub created_at: DateTimeUtc,
    pub expires_at: DateTimeUtc,
}

unrelated!();
