//! Whether a stop holds back what waits in a session: whatever ends the run then, and a crash, begin
//! nothing.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::boolean;

/// See the module.
pub(crate) struct Held;

impl MigrationName for Held {
    fn name(&self) -> &'static str {
        "m0029_held"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Held {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let add = Table::alter()
            .table("sessions")
            .add_column(boolean("held").default(false))
            .take();
        manager.alter_table(add).await?;
        // What waits behind a run that was stopped was held back before there was a mark.
        let hold = "UPDATE sessions SET held = TRUE
            WHERE EXISTS (SELECT 1 FROM queued_messages q WHERE q.session_id = sessions.id)
            AND EXISTS (SELECT 1 FROM runs r WHERE r.id = sessions.last_run_id AND r.state = 'stopped')";
        manager.get_connection().execute_unprepared(hold).await?;
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Table::alter().table("sessions").drop_column("held").take();
        manager.alter_table(drop).await
    }
}
