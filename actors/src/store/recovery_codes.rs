//! Codes by which somebody gets in who has lost their password.

use sea_orm::{ActiveValue::Set, ColumnTrait, EntityTrait, PaginatorTrait as _, QueryFilter};

use super::entities::{recovery_code, user};
use super::types::SecretHash;
use super::{Store, StoreError, delete};
use crate::protocol::ids::UserId;

impl Store {
    /// Puts these codes in the place of a person's others.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn set_recovery_codes(
        &self,
        id: UserId,
        codes: &[SecretHash],
    ) -> Result<(), StoreError> {
        let transaction = self.begin_write().await?;
        let theirs = recovery_code::Column::UserId.eq(id.0);
        delete::<recovery_code::Entity>(&transaction, theirs).await?;
        let rows = codes.iter().map(|code| recovery_code::ActiveModel {
            hash: Set(code.0.to_vec()),
            user_id: Set(id.0),
        });
        recovery_code::Entity::insert_many(rows)
            .exec_without_returning(&transaction)
            .await?;
        transaction.commit().await?;
        Ok(())
    }

    /// How many a person has left.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn recovery_codes(&self, id: UserId) -> Result<u64, StoreError> {
        let codes = recovery_code::Entity::find().filter(recovery_code::Column::UserId.eq(id.0));
        Ok(codes.count(&self.read).await?)
    }

    /// Uses a code up, and with it the password that was lost. Tells whether it was this person's.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn use_recovery_code(
        &self,
        id: UserId,
        code: SecretHash,
    ) -> Result<bool, StoreError> {
        let hash = code.0.to_vec();
        let found = recovery_code::Entity::find_by_id(hash.clone())
            .filter(recovery_code::Column::UserId.eq(id.0));
        // A wrong one costs as much time as one of an account that there is not.
        if found.one(&self.read).await?.is_none() {
            return Ok(false);
        }
        let transaction = self.begin_write().await?;
        let used = recovery_code::Entity::delete_many()
            .filter(recovery_code::Column::Hash.eq(hash))
            .filter(recovery_code::Column::UserId.eq(id.0))
            .exec(&transaction)
            .await?;
        if used.rows_affected == 0 {
            return Ok(false);
        }
        let row = user::ActiveModel {
            id: Set(id.0),
            password: Set(None),
            ..Default::default()
        };
        user::Entity::update(row).exec(&transaction).await?;
        transaction.commit().await?;
        Ok(true)
    }
}
