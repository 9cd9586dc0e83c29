//! Consent: what waits for a person's answer and what was answered, rules that a person made,
//! the list of what was allowed by whom; and which sessions have read text from outside.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{
    big_pk_auto, boolean, pk_uuid, text, text_null, timestamp_with_time_zone,
    timestamp_with_time_zone_null, uuid,
};

use crate::m0001_initial::{belongs_to, index};

/// See the module.
pub(crate) struct Consent;

impl MigrationName for Consent {
    fn name(&self) -> &'static str {
        "m0005_consent"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Consent {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in [approvals(), rules(), log()] {
            manager.create_table(table).await?;
        }
        for (table, column) in columns() {
            let add = Table::alter().table(table).add_column(column).take();
            manager.alter_table(add).await?;
        }
        // What waits is found without reading what was answered.
        manager
            .create_index(index("approvals", &["session_id", "decision"]))
            .await?;
        manager
            .create_index(index("consent_log", &["user_id", "id"]))
            .await?;
        // A user has one rule for a set of calls.
        let one_rule = index("consent_rules", &["user_id", "tool", "key"])
            .unique()
            .take();
        manager.create_index(one_rule).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in columns().into_iter().rev() {
            let drop = Table::alter()
                .table(table)
                .drop_column(column.get_column_name())
                .take();
            manager.alter_table(drop).await?;
        }
        for table in ["consent_log", "consent_rules", "approvals"] {
            manager
                .drop_table(Table::drop().table(table).to_owned())
                .await?;
        }
        Ok(())
    }
}

/// One that has no `decision` waits. `digest` is what the answer is bound to.
fn approvals() -> TableCreateStatement {
    Table::create()
        .table("approvals")
        .col(pk_uuid("id"))
        .col(uuid("session_id"))
        .col(uuid("run_id"))
        .col(text("call_id"))
        .col(text("tool"))
        .col(text("request"))
        .col(text("digest"))
        .col(text_null("rule_key"))
        .col(timestamp_with_time_zone("requested_at"))
        .col(timestamp_with_time_zone("expires_at"))
        .col(text_null("decision"))
        .col(text_null("decided_by"))
        .col(timestamp_with_time_zone_null("decided_at"))
        .foreign_key(&mut belongs_to("approvals", "session_id", "sessions"))
        .take()
}

fn rules() -> TableCreateStatement {
    Table::create()
        .table("consent_rules")
        .col(pk_uuid("id"))
        .col(uuid("user_id"))
        .col(text("tool"))
        .col(text("key"))
        .col(text("words"))
        .col(text("decision"))
        .col(timestamp_with_time_zone("created_at"))
        .foreign_key(&mut belongs_to("consent_rules", "user_id", "users"))
        .take()
}

/// It outlives its sessions: what was done was done.
fn log() -> TableCreateStatement {
    Table::create()
        .table("consent_log")
        .col(big_pk_auto("id"))
        .col(uuid("user_id"))
        .col(uuid("session_id"))
        .col(uuid("run_id"))
        .col(text("call_id"))
        .col(text("tool"))
        .col(text("effect"))
        .col(text("summary"))
        .col(text("decision"))
        .col(text("decided_by"))
        .col(timestamp_with_time_zone("at"))
        .foreign_key(&mut belongs_to("consent_log", "user_id", "users"))
        .take()
}

fn columns() -> Vec<(&'static str, ColumnDef)> {
    vec![
        // Null in sessions that are older than modes: the mode that the settings name.
        ("sessions", text_null("consent_mode")),
        // When the session first read text from outside; null where it has not.
        ("sessions", timestamp_with_time_zone_null("tainted_at")),
        // A run that waits for a person, so that it can go on after a restart.
        ("runs", text_null("loop_state")),
        // Whether the text is data from outside.
        ("messages", boolean("outside").default(false).take()),
    ]
}
