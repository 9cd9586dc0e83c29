//! What few messages have is not in an index for all of them: each index is a page of each commit.

use sea_orm_migration::prelude::*;

use crate::m0001_initial::index;
use crate::m0002_branches::drop_index;

/// See the module.
pub(crate) struct LeanCommits;

impl MigrationName for LeanCommits {
    fn name(&self) -> &'static str {
        "m0010_lean_commits"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for LeanCommits {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in COLUMNS {
            drop_index(manager, &unique(column)).await?;
            let of_those = unique(column)
                .and_where(Expr::col(column).is_not_null())
                .take();
            manager.create_index(of_those).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in COLUMNS {
            drop_index(manager, &unique(column)).await?;
            manager.create_index(unique(column)).await?;
        }
        Ok(())
    }
}

/// Those of `messages` that are its own within a session, where there is one.
const COLUMNS: [&str; 2] = ["client_id", "tool_call_id"];

fn unique(column: &'static str) -> IndexCreateStatement {
    index("messages", &["session_id", column]).unique().take()
}
