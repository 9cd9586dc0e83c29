//! The keys to the door: API tokens and browsers that are logged in. Only hashes are kept.

use chrono::{DateTime, TimeDelta, Utc};
use sea_orm::ActiveValue::Set;
use sea_orm::{
    ColumnTrait, Condition, EntityTrait, JoinType, QueryFilter, QueryOrder, QuerySelect,
};
use uuid::Uuid;

use super::entities::{api_token, user, web_login};
use super::rows::user_from_row;
use super::types::{ApiToken, NewToken, SecretHash, User, WebLogin};
use super::values::db_time;
use super::{Store, StoreError};
use crate::protocol::ids::UserId;

/// How precise `last_used_at` is: a script that asks often costs no write each time.
const USE_PRECISION: TimeDelta = TimeDelta::minutes(1);

impl Store {
    /// Adds an API token.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where the hash is in use or the user unknown;
    /// [`StoreError::Unavailable`].
    pub async fn add_token(
        &self,
        new: NewToken,
        now: DateTime<Utc>,
    ) -> Result<ApiToken, StoreError> {
        let token = ApiToken {
            id: Uuid::now_v7(),
            user_id: new.user_id,
            name: new.name,
            created_at: db_time(now),
            last_used_at: None,
            may_consent: new.may_consent,
        };
        api_token::Entity::insert(api_token::ActiveModel {
            id: Set(token.id),
            hash: Set(new.hash.0.to_vec()),
            user_id: Set(token.user_id.0),
            name: Set(token.name.as_str().into()),
            created_at: Set(token.created_at),
            last_used_at: Set(None),
            may_consent: Set(token.may_consent),
        })
        .exec_without_returning(&self.write)
        .await?;
        Ok(token)
    }

    /// Whose token this is. Notes that it was used.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn user_by_token_hash(
        &self,
        hash: SecretHash,
        now: DateTime<Utc>,
    ) -> Result<Option<User>, StoreError> {
        let its_user = user::Entity::belongs_to(api_token::Entity)
            .from(user::Column::Id)
            .to(api_token::Column::UserId)
            .into();
        let found = user::Entity::find()
            .join(JoinType::InnerJoin, its_user)
            .filter(api_token::Column::Hash.eq(hash.0.to_vec()))
            .one(&self.read)
            .await?;
        let Some(row) = found else {
            return Ok(None);
        };
        // Who may come in does not hang on this note.
        if let Err(error) = self.note_token_use(hash, now).await {
            tracing::warn!(%error, "the use of an API token could not be noted");
        }
        user_from_row(row).map(Some)
    }

    /// Whether who holds this token may answer requests for consent; nobody does with one that is
    /// gone.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn token_may_consent(&self, hash: SecretHash) -> Result<bool, StoreError> {
        let found = api_token::Entity::find()
            .select_only()
            .column(api_token::Column::MayConsent)
            .filter(api_token::Column::Hash.eq(hash.0.to_vec()))
            .into_tuple::<bool>()
            .one(&self.read)
            .await?;
        Ok(found.unwrap_or(false))
    }

    async fn note_token_use(&self, hash: SecretHash, now: DateTime<Utc>) -> Result<(), StoreError> {
        let due = Condition::any()
            .add(api_token::Column::LastUsedAt.is_null())
            .add(api_token::Column::LastUsedAt.lte(db_time(now - USE_PRECISION)));
        let of_token = api_token::Column::Hash.eq(hash.0.to_vec());
        let is_due = api_token::Entity::find()
            .select_only()
            .column(api_token::Column::Id)
            .filter(of_token.clone())
            .filter(due)
            .into_tuple::<Uuid>()
            .one(&self.read)
            .await?;
        if is_due.is_some() {
            api_token::Entity::update_many()
                .set(api_token::ActiveModel {
                    last_used_at: Set(Some(db_time(now))),
                    ..Default::default()
                })
                .filter(of_token)
                .exec(&self.write)
                .await?;
        }
        Ok(())
    }

    /// A user's tokens, oldest first.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn list_tokens(&self, user_id: UserId) -> Result<Vec<ApiToken>, StoreError> {
        let rows = api_token::Entity::find()
            .filter(api_token::Column::UserId.eq(user_id.0))
            .order_by_asc(api_token::Column::Id)
            .all(&self.read)
            .await?;
        let tokens = rows.into_iter().map(|row| ApiToken {
            id: row.id,
            user_id: UserId(row.user_id),
            name: row.name.0,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
            may_consent: row.may_consent,
        });
        Ok(tokens.collect())
    }

    /// Deletes a user's token. Tells whether it was there.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn delete_token(&self, user_id: UserId, id: Uuid) -> Result<bool, StoreError> {
        let deleted = api_token::Entity::delete_many()
            .filter(api_token::Column::Id.eq(id))
            .filter(api_token::Column::UserId.eq(user_id.0))
            .exec(&self.write)
            .await?;
        Ok(deleted.rows_affected > 0)
    }

    /// Lets a browser in until `expires_at`.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where the hash is in use or the user unknown;
    /// [`StoreError::Unavailable`].
    pub async fn add_web_login(&self, login: WebLogin) -> Result<(), StoreError> {
        web_login::Entity::insert(web_login::ActiveModel {
            hash: Set(login.hash.0.to_vec()),
            user_id: Set(login.user_id.0),
            created_at: Set(db_time(login.created_at)),
            expires_at: Set(db_time(login.expires_at)),
        })
        .exec_without_returning(&self.write)
        .await?;
        Ok(())
    }

    /// Who is logged in with this cookie; nobody after it expired.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn user_by_web_login(
        &self,
        hash: SecretHash,
        now: DateTime<Utc>,
    ) -> Result<Option<User>, StoreError> {
        let its_user = user::Entity::belongs_to(web_login::Entity)
            .from(user::Column::Id)
            .to(web_login::Column::UserId)
            .into();
        user::Entity::find()
            .join(JoinType::InnerJoin, its_user)
            .filter(web_login::Column::Hash.eq(hash.0.to_vec()))
            .filter(web_login::Column::ExpiresAt.gt(db_time(now)))
            .one(&self.read)
            .await?
            .map(user_from_row)
            .transpose()
    }

    /// Moves the end of a login to `expires_at` where it is due before `stale_before`. Tells
    /// whether it did; most visits of a browser cost no write.
    ///
    /// # Errors
    /// As the store's other reads; [`StoreError::Unavailable`].
    pub async fn extend_web_login(
        &self,
        hash: SecretHash,
        expires_at: DateTime<Utc>,
        stale_before: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let is_stale = web_login::Entity::find_by_id(hash.0.to_vec())
            .filter(web_login::Column::ExpiresAt.lt(db_time(stale_before)))
            .one(&self.read)
            .await?;
        if is_stale.is_none() {
            return Ok(false);
        }
        let extended = web_login::Entity::update_many()
            .set(web_login::ActiveModel {
                expires_at: Set(db_time(expires_at)),
                ..Default::default()
            })
            .filter(web_login::Column::Hash.eq(hash.0.to_vec()))
            .exec(&self.write)
            .await?;
        Ok(extended.rows_affected > 0)
    }

    /// Logs a browser out.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn delete_web_login(&self, hash: SecretHash) -> Result<(), StoreError> {
        web_login::Entity::delete_by_id(hash.0.to_vec())
            .exec(&self.write)
            .await?;
        Ok(())
    }

    /// Those of these tokens and logins that let nobody in any more.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn ended_keys(
        &self,
        tokens: &[SecretHash],
        logins: &[SecretHash],
        now: DateTime<Utc>,
    ) -> Result<Vec<SecretHash>, StoreError> {
        let bytes = |hashes: &[SecretHash]| hashes.iter().map(|hash| hash.0.to_vec()).collect();
        let (of_tokens, of_logins): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (bytes(tokens), bytes(logins));
        let mut open: Vec<Vec<u8>> = Vec::new();
        if !tokens.is_empty() {
            let found = api_token::Entity::find()
                .select_only()
                .column(api_token::Column::Hash)
                .filter(api_token::Column::Hash.is_in(of_tokens));
            open.extend(found.into_tuple::<Vec<u8>>().all(&self.read).await?);
        }
        if !logins.is_empty() {
            let found = web_login::Entity::find()
                .select_only()
                .column(web_login::Column::Hash)
                .filter(web_login::Column::Hash.is_in(of_logins))
                .filter(web_login::Column::ExpiresAt.gt(db_time(now)));
            open.extend(found.into_tuple::<Vec<u8>>().all(&self.read).await?);
        }
        let all = tokens.iter().chain(logins).copied();
        Ok(all
            .filter(|hash| !open.iter().any(|open| *open == hash.0))
            .collect())
    }

    /// Forgets the logins that expired. Tells how many.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn purge_web_logins(&self, now: DateTime<Utc>) -> Result<u64, StoreError> {
        let purged = web_login::Entity::delete_many()
            .filter(web_login::Column::ExpiresAt.lte(db_time(now)))
            .exec(&self.write)
            .await?;
        Ok(purged.rows_affected)
    }
}
