//! What Navi says in words of her own is kept as codes, too, so that a page can say it in its
//! reader's language.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::text_null;

/// See the module.
pub(crate) struct Phrases;

impl MigrationName for Phrases {
    fn name(&self) -> &'static str {
        "m0026_phrases"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Phrases {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in COLUMNS {
            let add = Table::alter()
                .table(table)
                .add_column(text_null(column))
                .take();
            manager.alter_table(add).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in COLUMNS.into_iter().rev() {
            let drop = Table::alter().table(table).drop_column(column).take();
            manager.alter_table(drop).await?;
        }
        Ok(())
    }
}

/// JSON; null in rows from before, and where the words are nobody's of Navi.
const COLUMNS: [(&str, &str); 4] = [
    ("consent_rules", "phrase"),
    ("consent_log", "phrases"),
    ("runs", "reason_phrase"),
    ("session_files", "problem_phrase"),
];
