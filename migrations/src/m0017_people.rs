//! People with accounts: names, passwords and what else lets them in, how far tokens go, and the
//! record of who came in and who changed what.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    big_pk_auto, binary_len, text, text_null, timestamp_with_time_zone,
    timestamp_with_time_zone_null, uuid, uuid_null,
};

use crate::m0001_initial::{belongs_to, index};

/// See the module.
pub(crate) struct People;

impl MigrationName for People {
    fn name(&self) -> &'static str {
        "m0017_people"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for People {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in columns() {
            let add = Table::alter().table(table).add_column(column).take();
            manager.alter_table(add).await?;
        }
        manager
            .get_connection()
            .execute_unprepared(
                "UPDATE api_tokens SET scopes = 'read,run,consent,files,memory,admin' WHERE may_consent",
            )
            .await?;
        let drop = Table::alter()
            .table("api_tokens")
            .drop_column("may_consent")
            .take();
        manager.alter_table(drop).await?;
        for table in [invitations(), recovery_codes(), record()] {
            manager.create_table(table).await?;
        }
        let one_name = index("users", &["name_key"]).unique().take();
        manager.create_index(one_name).await?;
        for (table, column) in [
            ("invitations", "expires_at"),
            ("recovery_codes", "user_id"),
            ("record", "at"),
        ] {
            manager.create_index(index(table, &[column])).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in ["record", "recovery_codes", "invitations"] {
            manager
                .drop_table(Table::drop().table(table).to_owned())
                .await?;
        }
        let may_consent = ColumnDef::new("may_consent")
            .boolean()
            .not_null()
            .default(false)
            .take();
        let add = Table::alter()
            .table("api_tokens")
            .add_column(may_consent)
            .take();
        manager.alter_table(add).await?;
        manager
            .get_connection()
            .execute_unprepared(
                "UPDATE api_tokens SET may_consent = TRUE WHERE scopes LIKE '%consent%'",
            )
            .await?;
        manager
            .drop_index(
                Index::drop()
                    .name("idx_users_name_key")
                    .table("users")
                    .to_owned(),
            )
            .await?;
        for (table, column) in columns().into_iter().rev() {
            let drop = Table::alter()
                .table(table)
                .drop_column(column.get_column_name())
                .take();
            manager.alter_table(drop).await?;
        }
        Ok(())
    }
}

fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![
        // What no two people's names may both come to; null for who has no account.
        ("users", text_null("name_key")),
        // As argon2 writes it, its parameters with it.
        ("users", text_null("password")),
        // Their conversations are being cleared away.
        ("users", timestamp_with_time_zone_null("removed_at")),
        (
            "api_tokens",
            text("scopes").default("read,run,files,memory,admin").take(),
        ),
        ("api_tokens", timestamp_with_time_zone_null("expires_at")),
        // What the browser said that it is, and from where it came last.
        ("web_logins", text_null("agent")),
        ("web_logins", text_null("address")),
        ("web_logins", timestamp_with_time_zone_null("last_used_at")),
    ]
}

/// A link for somebody who is to choose a name and a password; where there is a `user_id`, for
/// that person to choose another password.
fn invitations() -> TableCreateStatement {
    Table::create()
        .table("invitations")
        .col(binary_len("hash", 32).primary_key())
        .col(uuid("id"))
        .col(text("role"))
        .col(uuid_null("user_id"))
        .col(timestamp_with_time_zone("created_at"))
        .col(timestamp_with_time_zone("expires_at"))
        .foreign_key(&mut belongs_to("invitations", "user_id", "users"))
        .take()
}

fn recovery_codes() -> TableCreateStatement {
    Table::create()
        .table("recovery_codes")
        .col(binary_len("hash", 32).primary_key())
        .col(uuid("user_id"))
        .foreign_key(&mut belongs_to("recovery_codes", "user_id", "users"))
        .take()
}

/// It outlives its people: what was done was done.
fn record() -> TableCreateStatement {
    Table::create()
        .table("record")
        .col(big_pk_auto("id"))
        .col(timestamp_with_time_zone("at"))
        .col(text("what"))
        .col(uuid_null("user_id"))
        .col(text_null("name"))
        .col(text_null("about"))
        .col(text_null("address"))
        .take()
}
