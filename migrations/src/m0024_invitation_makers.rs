//! An invitation goes with the admin who made it.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::uuid_null;

/// See the module.
pub(crate) struct InvitationMakers;

impl MigrationName for InvitationMakers {
    fn name(&self) -> &'static str {
        "m0024_invitation_makers"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for InvitationMakers {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let add = Table::alter()
            .table("invitations")
            // Null: made on the machine itself.
            .add_column(uuid_null("made_by"))
            .take();
        manager.alter_table(add).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Table::alter()
            .table("invitations")
            .drop_column("made_by")
            .take();
        manager.alter_table(drop).await
    }
}
