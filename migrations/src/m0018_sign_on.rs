//! Who a person is to a provider of sign-on, or to a proxy in front.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    text, text_null, timestamp_with_time_zone, timestamp_with_time_zone_null, uuid,
};

use crate::m0001_initial::{belongs_to, index};

/// See the module.
pub(crate) struct SignOn;

impl MigrationName for SignOn {
    fn name(&self) -> &'static str {
        "m0018_sign_on"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for SignOn {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(identities()).await?;
        let one_person = index("identities", &["iss", "sub"]).unique().take();
        manager.create_index(one_person).await?;
        manager
            .create_index(index("identities", &["user_id"]))
            .await?;
        for column in columns() {
            let add = Table::alter().table("web_logins").add_column(column).take();
            manager.alter_table(add).await?;
        }
        manager
            .create_index(index("web_logins", &["iss", "sub"]))
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .drop_index(
                Index::drop()
                    .name("idx_web_logins_iss_sub")
                    .table("web_logins")
                    .to_owned(),
            )
            .await?;
        for column in columns().into_iter().rev() {
            let drop = Table::alter()
                .table("web_logins")
                .drop_column(column.get_column_name())
                .take();
            manager.alter_table(drop).await?;
        }
        manager
            .drop_table(Table::drop().table("identities").to_owned())
            .await
    }
}

/// Of a login that a provider or a proxy made: by whose word, of whom, in which of their sessions,
/// and the token that says so, by which somebody is signed out there.
fn columns() -> Vec<ColumnDef> {
    vec![
        text_null("iss"),
        text_null("sub"),
        text_null("sid"),
        text_null("id_token"),
    ]
}

/// The key is who says it and what they call the person: never an address of mail, which may be
/// another's tomorrow.
fn identities() -> TableCreateStatement {
    Table::create()
        .table("identities")
        .col(uuid("id").primary_key())
        .col(uuid("user_id"))
        .col(text("iss"))
        .col(text("sub"))
        // As far as the provider verified it.
        .col(text_null("address"))
        .col(timestamp_with_time_zone("created_at"))
        .col(timestamp_with_time_zone_null("last_used_at"))
        .foreign_key(&mut belongs_to("identities", "user_id", "users"))
        .take()
}
