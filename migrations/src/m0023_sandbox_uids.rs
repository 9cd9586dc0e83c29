//! The user ids that the commands of different people run under, where Navi is root.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, uuid};

use crate::m0001_initial::index;

/// See the module.
pub(crate) struct SandboxUids;

impl MigrationName for SandboxUids {
    fn name(&self) -> &'static str {
        "m0023_sandbox_uids"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for SandboxUids {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let uids = Table::create()
            .table("sandbox_uids")
            .col(big_integer("uid").primary_key())
            // Whoever had it: an id is nobody's twice, as files of a person who is gone may be
            // anywhere. So it is no reference.
            .col(uuid("user_id"))
            .take();
        manager.create_table(uids).await?;
        let once = index("sandbox_uids", &["user_id"]).unique().take();
        manager.create_index(once).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .drop_table(Table::drop().table("sandbox_uids").to_owned())
            .await
    }
}
