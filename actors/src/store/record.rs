//! The record: who came in, and who changed what. Lines are added and grow old; none is changed.

use chrono::{DateTime, Utc};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};

use super::entities::record_line;
use super::rows::record_from_row;
use super::types::{RecordEntry, RecordRow};
use super::values::{DbText, db_time, name_of};
use super::{Store, StoreError, delete};
use crate::protocol::ids::UserId;

impl Store {
    /// Adds a line.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn add_record(
        &self,
        entry: RecordEntry,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let row = record_line::ActiveModel {
            id: NotSet,
            at: Set(db_time(at)),
            what: Set(name_of(&entry.what)?),
            user_id: Set(entry.user_id.map(|user| user.0)),
            name: Set(entry.name.map(DbText::from)),
            about: Set(entry.about.map(DbText::from)),
            address: Set(entry.address.map(DbText::from)),
        };
        record_line::Entity::insert(row)
            .exec_without_returning(&self.write)
            .await?;
        Ok(())
    }

    /// The newest lines, `limit` of them, the newest first: those before line `before`, and of one
    /// person where one is named.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn record(
        &self,
        of: Option<UserId>,
        before: Option<i64>,
        limit: u64,
    ) -> Result<Vec<RecordRow>, StoreError> {
        let mut lines = record_line::Entity::find()
            .order_by_desc(record_line::Column::Id)
            .limit(limit);
        if let Some(of) = of {
            lines = lines.filter(record_line::Column::UserId.eq(of.0));
        }
        if let Some(before) = before {
            lines = lines.filter(record_line::Column::Id.lt(before));
        }
        let rows = lines.all(&self.read).await?;
        rows.into_iter().map(record_from_row).collect()
    }

    /// Forgets the lines from before.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn purge_record(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        let old = record_line::Column::At.lt(db_time(before));
        delete::<record_line::Entity>(&self.write, old).await?;
        Ok(())
    }
}
