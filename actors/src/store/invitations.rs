//! Who was invited, and what becomes of an invitation.

use chrono::{DateTime, Utc};
use sea_orm::{
    ActiveValue::Set, ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder,
};
use uuid::Uuid;

use super::entities::{api_token, invitation, passkey, recovery_code, user};
use super::logins::end_logins;
use super::people::{
    Credentials, is_held, name_is_taken, new_user, user_to_row, write_credentials,
};
use super::rows::invitation_from_row;
use super::types::{Invitation, SecretHash, User};
use super::values::{db_time, name_of};
use super::{Store, StoreError, delete};
use crate::protocol::ids::UserId;

/// What became of an invitation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Somebody new.
    Joined(User),
    /// Somebody who was here has another password.
    Renewed(User),
    NameTaken,
    /// There is none, or it was used, or has expired.
    Unknown,
}

impl Store {
    /// Adds an invitation.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn add_invitation(
        &self,
        hash: SecretHash,
        new: Invitation,
    ) -> Result<(), StoreError> {
        invitation::Entity::insert(invitation::ActiveModel {
            hash: Set(hash.0.to_vec()),
            id: Set(new.id),
            role: Set(name_of(&new.role)?),
            user_id: Set(new.user_id.map(|user| user.0)),
            made_by: Set(new.made_by.map(|user| user.0)),
            created_at: Set(db_time(new.created_at)),
            expires_at: Set(db_time(new.expires_at)),
        })
        .exec_without_returning(&self.write)
        .await?;
        Ok(())
    }

    /// Those that can be used yet, the oldest first.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn invitations(&self, now: DateTime<Utc>) -> Result<Vec<Invitation>, StoreError> {
        let rows = invitation::Entity::find()
            .filter(invitation::Column::ExpiresAt.gt(db_time(now)))
            .order_by_asc(invitation::Column::CreatedAt)
            .all(&self.read)
            .await?;
        rows.into_iter().map(invitation_from_row).collect()
    }

    /// The invitation of this secret, where it can be used.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn invitation(
        &self,
        hash: SecretHash,
        now: DateTime<Utc>,
    ) -> Result<Option<Invitation>, StoreError> {
        let row = invitation::Entity::find_by_id(hash.0.to_vec())
            .filter(invitation::Column::ExpiresAt.gt(db_time(now)))
            .one(&self.read)
            .await?;
        row.map(invitation_from_row).transpose()
    }

    /// Takes an invitation back. Tells whether it was there.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn delete_invitation(&self, id: Uuid) -> Result<bool, StoreError> {
        let it = invitation::Column::Id.eq(id);
        Ok(delete::<invitation::Entity>(&self.write, it).await? > 0)
    }

    /// Uses an invitation up: once, whoever is fastest.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn accept_invitation(
        &self,
        hash: SecretHash,
        new: Credentials,
        now: DateTime<Utc>,
    ) -> Result<Accepted, StoreError> {
        let transaction = self.begin_write().await?;
        // What was begun goes with the transaction, where it does not end well.
        let Some(invitation) = use_up(&transaction, hash, now).await? else {
            return Ok(Accepted::Unknown);
        };
        if name_is_taken(&transaction, &new.name_key, invitation.user_id).await? {
            return Ok(Accepted::NameTaken);
        }
        let accepted = match invitation.user_id {
            None => {
                let user = new_user(&new.name, invitation.role);
                user::Entity::insert(user_to_row(user.clone(), Some(new))?)
                    .exec_without_returning(&transaction)
                    .await?;
                Accepted::Joined(user)
            }
            Some(id) => {
                let user = write_credentials(&transaction, id, new).await?;
                // Whoever had the old password, or a passkey that was lost, has nothing of it; nor
                // of codes and tokens that they made while they were in.
                end_logins(&transaction, id, None).await?;
                let theirs = api_token::Column::UserId.eq(id.0);
                delete::<api_token::Entity>(&transaction, theirs).await?;
                delete::<passkey::Entity>(&transaction, passkey::Column::UserId.eq(id.0)).await?;
                let theirs = recovery_code::Column::UserId.eq(id.0);
                delete::<recovery_code::Entity>(&transaction, theirs).await?;
                Accepted::Renewed(user)
            }
        };
        transaction.commit().await?;
        Ok(accepted)
    }

    /// Forgets the invitations that expired.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn purge_invitations(&self, now: DateTime<Utc>) -> Result<(), StoreError> {
        let old = invitation::Column::ExpiresAt.lte(db_time(now));
        delete::<invitation::Entity>(&self.write, old).await?;
        Ok(())
    }
}

/// Takes back what somebody made who invites nobody any more.
pub(super) async fn take_back(db: &impl ConnectionTrait, maker: UserId) -> Result<(), StoreError> {
    delete::<invitation::Entity>(db, invitation::Column::MadeBy.eq(maker.0)).await?;
    Ok(())
}

/// Takes an invitation away that can be used, for whoever is fastest: the others wait for that
/// transaction, and find none.
pub(super) async fn use_up(
    db: &impl ConnectionTrait,
    hash: SecretHash,
    now: DateTime<Utc>,
) -> Result<Option<Invitation>, StoreError> {
    let found = invitation::Entity::find_by_id(hash.0.to_vec())
        .filter(invitation::Column::ExpiresAt.gt(db_time(now)));
    let Some(row) = found.one(db).await? else {
        return Ok(None);
    };
    // First their person: two of their links, used at once, would wait for each other, as each ends
    // the other one.
    if let Some(user) = row.user_id
        && !is_held(db, UserId(user)).await?
    {
        return Ok(None);
    }
    let used = invitation::Entity::delete_by_id(hash.0.to_vec())
        .exec(db)
        .await?;
    if used.rows_affected == 0 {
        return Ok(None);
    }
    invitation_from_row(row).map(Some)
}
