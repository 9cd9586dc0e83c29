//! The user ids that people's commands run under, each one person's for ever.

use std::ops::RangeInclusive;

use sea_orm::ActiveValue::Set;
use sea_orm::{ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QuerySelect};

use super::entities::sandbox_uid;
use super::values::from_db;
use super::{Store, StoreError};
use crate::protocol::ids::UserId;

const COLUMN: &str = "sandbox_uids.uid";

impl Store {
    /// A person's user id: the one that is written down, or else the first of these that nobody
    /// had yet, nor any after it. None where none is left.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn sandbox_uid(
        &self,
        person: UserId,
        of: RangeInclusive<u32>,
    ) -> Result<Option<u32>, StoreError> {
        if let Some(uid) = written(&self.read, person).await? {
            return from_db(COLUMN, uid).map(Some);
        }
        let transaction = self.begin_write().await?;
        if let Some(uid) = written(&transaction, person).await? {
            return from_db(COLUMN, uid).map(Some);
        }
        let (first, last) = (i64::from(*of.start()), i64::from(*of.end()));
        let newest: Option<Option<i64>> = sandbox_uid::Entity::find()
            .select_only()
            .column_as(sandbox_uid::Column::Uid.max(), "newest")
            .filter(sandbox_uid::Column::Uid.between(first, last))
            .into_tuple()
            .one(&transaction)
            .await?;
        let uid = newest.flatten().map_or(first, |newest| newest + 1);
        if uid > last {
            return Ok(None);
        }
        let row = sandbox_uid::ActiveModel {
            uid: Set(uid),
            user_id: Set(person.0),
        };
        sandbox_uid::Entity::insert(row)
            .exec_without_returning(&transaction)
            .await?;
        transaction.commit().await?;
        from_db(COLUMN, uid).map(Some)
    }
}

async fn written(db: &impl ConnectionTrait, person: UserId) -> Result<Option<i64>, DbErr> {
    let row = sandbox_uid::Entity::find()
        .filter(sandbox_uid::Column::UserId.eq(person.0))
        .one(db)
        .await?;
    Ok(row.map(|row| row.uid))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TestDb, on_both};
    use super::*;

    on_both!(an_id_is_one_persons_for_ever);

    async fn an_id_is_one_persons_for_ever(db: TestDb) {
        let store = db.open().await;
        let (ann, ben, eve) = (UserId::new(), UserId::new(), UserId::new());
        let (two, others) = (200_000..=200_001, 4_294_967_000..=4_294_967_294);
        let of = async |person, range: &RangeInclusive<u32>| {
            store.sandbox_uid(person, range.clone()).await
        };
        assert_eq!(of(ann, &two).await, Ok(Some(200_000)));
        assert_eq!(of(ben, &two).await, Ok(Some(200_001)));
        assert_eq!(of(ann, &two).await, Ok(Some(200_000)));
        assert_eq!(of(eve, &two).await, Ok(None));
        // Another range is for who has none yet.
        assert_eq!(of(ann, &others).await, Ok(Some(200_000)));
        assert_eq!(of(eve, &others).await, Ok(Some(4_294_967_000)));
    }
}
