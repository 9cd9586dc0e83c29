//! Passkeys: public keys by whose private halves people sign in.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sea_orm::{
    ActiveValue::Set, ColumnTrait, EntityTrait, PaginatorTrait as _, QueryFilter, QueryOrder,
    QuerySelect,
};
use uuid::Uuid;

use super::entities::passkey;
use super::people::is_held;
use super::types::{SecretHash, User};
use super::values::{DbText, db_time};
use super::ways_in::has_another_way_in;
use super::{Store, StoreError, WaysIn};
use crate::protocol::ids::UserId;

/// A passkey of somebody's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passkey {
    pub id: Uuid,
    pub user_id: UserId,
    /// By what an authenticator knows the person.
    pub handle: Uuid,
    /// The host that it is bound to: it works nowhere else.
    pub host: String,
    pub name: String,
    /// The public key and its counter, in the form of who checks them.
    pub credential: String,
    pub created_at: DateTime<Utc>,
    pub last_used_at: Option<DateTime<Utc>>,
}

/// What became of a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddedPasskey {
    Done,
    /// It is there already, whoever's it is.
    Known,
    TooMany,
    /// Its person was removed.
    NobodyThere,
}

/// What became of one that was to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemovedPasskey {
    /// It had this name.
    Done(String),
    Unknown,
    /// Nothing else would let its person in.
    LastWayIn,
}

impl Store {
    /// Adds one, where its person has fewer than `most`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn add_passkey(
        &self,
        credential: SecretHash,
        new: Passkey,
        most: u64,
    ) -> Result<AddedPasskey, StoreError> {
        let transaction = self.begin_write().await?;
        if !is_held(&transaction, new.user_id).await? {
            return Ok(AddedPasskey::NobodyThere);
        }
        let hash = credential.0.to_vec();
        let known = passkey::Entity::find()
            .filter(passkey::Column::CredentialHash.eq(hash.clone()))
            .count(&transaction)
            .await?;
        if known > 0 {
            return Ok(AddedPasskey::Known);
        }
        if theirs(new.user_id).count(&transaction).await? >= most {
            return Ok(AddedPasskey::TooMany);
        }
        passkey::Entity::insert(passkey::ActiveModel {
            id: Set(new.id),
            user_id: Set(new.user_id.0),
            handle: Set(new.handle),
            credential_hash: Set(hash),
            host: Set(new.host),
            name: Set(new.name.into()),
            credential: Set(new.credential),
            created_at: Set(db_time(new.created_at)),
            last_used_at: Set(new.last_used_at.map(db_time)),
        })
        .exec_without_returning(&transaction)
        .await?;
        transaction.commit().await?;
        Ok(AddedPasskey::Done)
    }

    /// A person's, the oldest first.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn passkeys(&self, user: UserId) -> Result<Vec<Passkey>, StoreError> {
        let rows = theirs(user)
            .order_by_asc(passkey::Column::CreatedAt)
            .all(&self.read)
            .await?;
        Ok(rows.into_iter().map(passkey_from_row).collect())
    }

    /// How many a person has.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn count_passkeys(&self, user: UserId) -> Result<u64, StoreError> {
        Ok(theirs(user).count(&self.read).await?)
    }

    /// How many each has who has any.
    pub(super) async fn passkey_counts(&self) -> Result<HashMap<Uuid, u64>, StoreError> {
        let counts = passkey::Entity::find()
            .select_only()
            .column(passkey::Column::UserId)
            .column_as(passkey::Column::Id.count(), "many")
            .group_by(passkey::Column::UserId)
            .into_tuple::<(Uuid, i64)>()
            .all(&self.read)
            .await?;
        let counts = counts.into_iter();
        Ok(counts
            .map(|(user, many)| (user, many.unsigned_abs()))
            .collect())
    }

    /// The one of this credential, and whose it is; none of who was removed.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn passkey(
        &self,
        credential: SecretHash,
    ) -> Result<Option<(User, Passkey)>, StoreError> {
        let found = passkey::Entity::find()
            .filter(passkey::Column::CredentialHash.eq(credential.0.to_vec()))
            .one(&self.read)
            .await?;
        let Some(row) = found else {
            return Ok(None);
        };
        let user = self.user(UserId(row.user_id)).await?;
        Ok(user.map(|user| (user, passkey_from_row(row))))
    }

    /// Notes that somebody signed in by it, and what it is from then on. Tells whether it was still
    /// there as it was: who signs in by a copy of it at the same time does so once.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn note_passkey_use(
        &self,
        before: &Passkey,
        credential: String,
        at: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let noted = passkey::Entity::update_many()
            .set(passkey::ActiveModel {
                credential: Set(credential),
                last_used_at: Set(Some(db_time(at))),
                ..Default::default()
            })
            .filter(passkey::Column::Id.eq(before.id))
            .filter(passkey::Column::Credential.eq(before.credential.as_str()))
            .exec(&self.write)
            .await?;
        Ok(noted.rows_affected > 0)
    }

    /// Calls one of a person's something else. Tells whether it was there.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn rename_passkey(
        &self,
        user: UserId,
        id: Uuid,
        name: String,
    ) -> Result<bool, StoreError> {
        let renamed = passkey::Entity::update_many()
            .set(passkey::ActiveModel {
                name: Set(DbText(name)),
                ..Default::default()
            })
            .filter(passkey::Column::UserId.eq(user.0))
            .filter(passkey::Column::Id.eq(id))
            .exec(&self.write)
            .await?;
        Ok(renamed.rows_affected > 0)
    }

    /// Takes one from a person, where something else lets them in. One that is bound to another host
    /// than that of `ways` lets nobody in.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn remove_passkey(
        &self,
        user: UserId,
        id: Uuid,
        ways: &WaysIn,
    ) -> Result<RemovedPasskey, StoreError> {
        let transaction = self.begin_write().await?;
        let found = is_held(&transaction, user).await?;
        let row = theirs(user)
            .filter(passkey::Column::Id.eq(id))
            .one(&transaction)
            .await?;
        let Some(row) = row.filter(|_| found) else {
            return Ok(RemovedPasskey::Unknown);
        };
        if row.host == ways.host && !has_another_way_in(&transaction, user, ways, id).await? {
            return Ok(RemovedPasskey::LastWayIn);
        }
        passkey::Entity::delete_by_id(id).exec(&transaction).await?;
        transaction.commit().await?;
        Ok(RemovedPasskey::Done(row.name.0))
    }
}

fn theirs(user: UserId) -> sea_orm::Select<passkey::Entity> {
    passkey::Entity::find().filter(passkey::Column::UserId.eq(user.0))
}

fn passkey_from_row(row: passkey::Model) -> Passkey {
    Passkey {
        id: row.id,
        user_id: UserId(row.user_id),
        handle: row.handle,
        host: row.host,
        name: row.name.0,
        credential: row.credential,
        created_at: row.created_at,
        last_used_at: row.last_used_at,
    }
}
