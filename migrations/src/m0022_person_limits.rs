//! Limits that an admin set for one person alone.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer_null, uuid};

use crate::m0001_initial::belongs_to;

/// See the module.
pub(crate) struct PersonLimits;

impl MigrationName for PersonLimits {
    fn name(&self) -> &'static str {
        "m0022_person_limits"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for PersonLimits {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let limits = Table::create()
            .table("person_limits")
            .col(uuid("user_id").primary_key())
            // Null: the installation's.
            .col(big_integer_null("runs"))
            .col(big_integer_null("uploads"))
            .col(big_integer_null("sessions"))
            .col(big_integer_null("files_mb"))
            .col(big_integer_null("tokens_a_day"))
            .col(big_integer_null("tabs"))
            .foreign_key(&mut belongs_to("person_limits", "user_id", "users"))
            .take();
        manager.create_table(limits).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .drop_table(Table::drop().table("person_limits").to_owned())
            .await
    }
}
