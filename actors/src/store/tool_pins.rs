//! Which tools from outside of Navi were allowed, and as what. They are the machine's, not a
//! user's: so are the folder of tools and the servers.

use chrono::{DateTime, Utc};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::OnConflict;
use sea_orm::{EntityTrait, QueryOrder};

use super::entities::tool_pin;
use super::values::db_time;
use super::{Store, StoreError};
use crate::protocol::ids::UserId;

/// A tool that was allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPin {
    pub name: String,
    /// `user`, or `mcp:` and the server's name.
    pub source: String,
    /// What it was then.
    pub sha256: String,
    /// None where nobody was asked.
    pub allowed_by: Option<UserId>,
    pub allowed_at: DateTime<Utc>,
}

impl Store {
    /// All of them, by name.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn tool_pins(&self) -> Result<Vec<ToolPin>, StoreError> {
        let rows = tool_pin::Entity::find()
            .order_by_asc(tool_pin::Column::Name)
            .all(&self.read)
            .await?;
        let pins = rows.into_iter().map(|row| ToolPin {
            name: row.name,
            source: row.source,
            sha256: row.sha256,
            allowed_by: row.allowed_by.map(UserId),
            allowed_at: row.allowed_at,
        });
        Ok(pins.collect())
    }

    /// Allows these tools as they are: all of them, or none. What was known of them before is
    /// replaced.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]; [`StoreError::Corrupt`] where the user is unknown.
    pub async fn pin_tools(&self, pins: Vec<ToolPin>) -> Result<(), StoreError> {
        if pins.is_empty() {
            return Ok(());
        }
        let rows = pins.into_iter().map(|pin| tool_pin::ActiveModel {
            name: Set(pin.name),
            source: Set(pin.source),
            sha256: Set(pin.sha256),
            allowed_by: Set(pin.allowed_by.map(|user| user.0)),
            allowed_at: Set(db_time(pin.allowed_at)),
        });
        let replace = OnConflict::column(tool_pin::Column::Name)
            .update_columns([
                tool_pin::Column::Source,
                tool_pin::Column::Sha256,
                tool_pin::Column::AllowedBy,
                tool_pin::Column::AllowedAt,
            ])
            .to_owned();
        tool_pin::Entity::insert_many(rows)
            .on_conflict(replace)
            .exec_without_returning(&self.write)
            .await?;
        Ok(())
    }

    /// Takes an allowance back. Tells whether it was there.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn unpin_tool(&self, name: &str) -> Result<bool, StoreError> {
        let deleted = tool_pin::Entity::delete_by_id(name.to_owned())
            .exec(&self.write)
            .await?;
        Ok(deleted.rows_affected > 0)
    }
}
