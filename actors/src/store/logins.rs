//! The keys to the door: API tokens and browsers that are logged in. Only hashes are kept.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use sea_orm::ActiveValue::Set;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, JoinType, QueryFilter, QueryOrder,
    QuerySelect,
};
use uuid::Uuid;

use super::entities::{api_token, user, web_login};
use super::rows::{hash_from, login_from_row, scopes_from, user_from_row};
use super::types::{ApiToken, IdentityKey, KeyOwner, NewToken, SecretHash, User, WebLogin};
use super::values::{DbText, db_time};
use super::{Store, StoreError, delete};
use crate::protocol::ids::UserId;
use crate::protocol::people::Scopes;

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
            scopes: new.scopes,
            expires_at: new.expires_at.map(db_time),
        };
        api_token::Entity::insert(api_token::ActiveModel {
            id: Set(token.id),
            hash: Set(new.hash.0.to_vec()),
            user_id: Set(token.user_id.0),
            name: Set(token.name.as_str().into()),
            created_at: Set(token.created_at),
            last_used_at: Set(None),
            scopes: Set(token.scopes.to_string()),
            expires_at: Set(token.expires_at),
        })
        .exec_without_returning(&self.write)
        .await?;
        Ok(token)
    }

    /// Forgets the tokens that expired before this.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn purge_tokens(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        let old = api_token::Column::ExpiresAt.lt(db_time(before));
        delete::<api_token::Entity>(&self.write, old).await?;
        Ok(())
    }

    /// What this token opens, and to whom; nothing after it expired. Notes that it was used.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn token_owner(
        &self,
        hash: SecretHash,
        now: DateTime<Utc>,
    ) -> Result<Option<KeyOwner>, StoreError> {
        let owners = self.token_owners(&[hash], now).await?;
        let Some(owner) = owners.get(&hash).copied() else {
            return Ok(None);
        };
        // Who may come in does not hang on this note.
        if let Err(error) = self.note_token_use(hash, now).await {
            tracing::warn!(%error, "the use of an API token could not be noted");
        }
        Ok(Some(owner))
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
        let tokens = rows.into_iter().map(|row| {
            Ok(ApiToken {
                id: row.id,
                user_id: UserId(row.user_id),
                name: row.name.0,
                created_at: row.created_at,
                last_used_at: row.last_used_at,
                scopes: scopes_from(&row.scopes)?,
                expires_at: row.expires_at,
            })
        });
        tokens.collect()
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

    /// Deletes a token, whoever's it is. Tells whether it was there.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn delete_token_of_anybody(&self, id: Uuid) -> Result<bool, StoreError> {
        let deleted = api_token::Entity::delete_by_id(id)
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
        let (key, said) = login
            .sign_on
            .map(|it| (it.key, (it.sid, it.id_token)))
            .unzip();
        let (iss, sub) = key.map(|key| (key.iss, key.sub)).unzip();
        let (sid, id_token) = said.unwrap_or_default();
        web_login::Entity::insert(web_login::ActiveModel {
            hash: Set(login.hash.0.to_vec()),
            user_id: Set(login.user_id.0),
            created_at: Set(db_time(login.created_at)),
            expires_at: Set(db_time(login.expires_at)),
            agent: Set(login.agent.map(DbText::from)),
            address: Set(login.address.map(DbText::from)),
            last_used_at: Set(login.last_used_at.map(db_time)),
            iss: Set(iss.map(DbText::from)),
            sub: Set(sub.map(DbText::from)),
            sid: Set(sid.map(DbText::from)),
            id_token: Set(id_token.map(DbText::from)),
        })
        .exec_without_returning(&self.write)
        .await?;
        Ok(())
    }

    /// Who is logged in with this cookie, and the login itself; nobody after it expired.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn web_login(
        &self,
        hash: SecretHash,
        now: DateTime<Utc>,
    ) -> Result<Option<(KeyOwner, WebLogin)>, StoreError> {
        let found = web_login::Entity::find_by_id(hash.0.to_vec())
            .filter(web_login::Column::ExpiresAt.gt(db_time(now)))
            .one(&self.read)
            .await?;
        let Some(login) = found.map(login_from_row).transpose()? else {
            return Ok(None);
        };
        let user = self.user(login.user_id).await?;
        let sign_on = login.sign_on.as_ref();
        let by_proxy = sign_on.is_some_and(|it| it.key.is_by_proxy());
        Ok(user.map(|user| (owner_by_login(&user, by_proxy), login)))
    }

    /// A user's browsers, that which was seen last first.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn web_logins(
        &self,
        user: UserId,
        now: DateTime<Utc>,
    ) -> Result<Vec<WebLogin>, StoreError> {
        let rows = web_login::Entity::find()
            .filter(web_login::Column::UserId.eq(user.0))
            .filter(web_login::Column::ExpiresAt.gt(db_time(now)))
            .order_by_desc(web_login::Column::LastUsedAt)
            .all(&self.read)
            .await?;
        rows.into_iter().map(login_from_row).collect()
    }

    /// Notes a visit: until when the browser stays logged in, when it was seen, and from where.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn note_visit(&self, login: &WebLogin) -> Result<(), StoreError> {
        web_login::Entity::update_many()
            .set(web_login::ActiveModel {
                expires_at: Set(db_time(login.expires_at)),
                agent: Set(login.agent.as_deref().map(DbText::from)),
                address: Set(login.address.as_deref().map(DbText::from)),
                last_used_at: Set(login.last_used_at.map(db_time)),
                ..Default::default()
            })
            .filter(web_login::Column::Hash.eq(login.hash.0.to_vec()))
            .exec(&self.write)
            .await?;
        Ok(())
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

    /// Logs all browsers of a user out, but for one where one is named. Tells how many.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn delete_web_logins(
        &self,
        user: UserId,
        but: Option<SecretHash>,
    ) -> Result<u64, StoreError> {
        Ok(end_logins(&self.write, user, but).await?)
    }

    /// What these tokens open, and to whom. Those that open nothing any more are not among them.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn token_owners(
        &self,
        tokens: &[SecretHash],
        now: DateTime<Utc>,
    ) -> Result<HashMap<SecretHash, KeyOwner>, StoreError> {
        if tokens.is_empty() {
            return Ok(HashMap::new());
        }
        let unexpired = Condition::any()
            .add(api_token::Column::ExpiresAt.is_null())
            .add(api_token::Column::ExpiresAt.gt(db_time(now)));
        let its_user = api_token::Entity::belongs_to(user::Entity)
            .from(api_token::Column::UserId)
            .to(user::Column::Id)
            .into();
        let rows = api_token::Entity::find()
            .join(JoinType::InnerJoin, its_user)
            .select_also(user::Entity)
            .filter(api_token::Column::Hash.is_in(bytes(tokens)))
            .filter(unexpired)
            .filter(user::Column::RemovedAt.is_null())
            .all(&self.read)
            .await?;
        let owners = rows
            .into_iter()
            .filter_map(|(token, user)| Some((token, user?)));
        let owners = owners.map(|(token, user)| {
            let user = user_from_row(user)?;
            let owner = KeyOwner {
                user: user.id,
                role: user.role,
                scopes: scopes_from(&token.scopes)?,
                by_proxy: false,
            };
            Ok((hash_from(token.hash)?, owner))
        });
        owners.collect()
    }

    /// The same of browsers' logins.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn login_owners(
        &self,
        logins: &[SecretHash],
        now: DateTime<Utc>,
    ) -> Result<HashMap<SecretHash, KeyOwner>, StoreError> {
        if logins.is_empty() {
            return Ok(HashMap::new());
        }
        let its_user = web_login::Entity::belongs_to(user::Entity)
            .from(web_login::Column::UserId)
            .to(user::Column::Id)
            .into();
        let rows = web_login::Entity::find()
            .join(JoinType::InnerJoin, its_user)
            .select_also(user::Entity)
            .filter(web_login::Column::Hash.is_in(bytes(logins)))
            .filter(web_login::Column::ExpiresAt.gt(db_time(now)))
            .filter(user::Column::RemovedAt.is_null())
            .all(&self.read)
            .await?;
        let owners = rows
            .into_iter()
            .filter_map(|(login, user)| Some((login, user?)));
        let owners = owners.map(|(login, user)| {
            let by_proxy = login.iss.is_some_and(|iss| iss.0 == IdentityKey::PROXY);
            Ok((
                hash_from(login.hash)?,
                owner_by_login(&user_from_row(user)?, by_proxy),
            ))
        });
        owners.collect()
    }

    /// Forgets the logins that expired. Tells how many.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn purge_web_logins(&self, now: DateTime<Utc>) -> Result<u64, StoreError> {
        let old = web_login::Column::ExpiresAt.lte(db_time(now));
        Ok(delete::<web_login::Entity>(&self.write, old).await?)
    }
}

/// Logs all browsers of a user out, but for one where one is named. Tells how many.
pub(super) async fn end_logins(
    db: &impl ConnectionTrait,
    user: UserId,
    but: Option<SecretHash>,
) -> Result<u64, DbErr> {
    let mut theirs = web_login::Entity::delete_many().filter(web_login::Column::UserId.eq(user.0));
    if let Some(SecretHash(hash)) = but {
        theirs = theirs.filter(web_login::Column::Hash.ne(hash.to_vec()));
    }
    Ok(theirs.exec(db).await?.rows_affected)
}

/// A browser's login is good for all that its person may.
fn owner_by_login(user: &User, by_proxy: bool) -> KeyOwner {
    KeyOwner {
        user: user.id,
        role: user.role,
        scopes: Scopes::ALL,
        by_proxy,
    }
}

fn bytes(hashes: &[SecretHash]) -> Vec<Vec<u8>> {
    hashes.iter().map(|hash| hash.0.to_vec()).collect()
}
