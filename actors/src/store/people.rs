//! The people, and how they sign in. What becomes of those who go stands in `removed_people`.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{
    ActiveValue::Set, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, QueryFilter, QueryOrder,
    QuerySelect,
};
use uuid::Uuid;

use super::entities::{api_token, invitation, user, web_login};
use super::invitations::take_back;
use super::logins::end_logins;
use super::rows::user_from_row;
use super::types::{Person, SecretHash, User};
use super::values::{db_time, name_of};
use super::{Store, StoreError, delete};
use crate::protocol::ids::UserId;
use crate::protocol::people::UserRole;

/// The id of the one user of one's own machine. Fixed, so that two processes which create
/// the same database at once create the same user.
pub const LOCAL_USER: UserId = UserId(Uuid::from_u128(0x0000_0000_0000_7000_8000_0000_0000_0001));

/// What a person signs in by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    pub name: String,
    /// What no two names may both come to (`domain::names`).
    pub name_key: String,
    /// As argon2 writes it.
    pub password: String,
}

/// Which of a person's browsers stay signed in where what they sign in by changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptLogins {
    All,
    Only(Option<SecretHash>),
}

/// What became of a change of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    Done(User),
    Unknown,
    /// Nobody else could manage people then.
    LastAdmin,
}

impl Store {
    /// The person whose machine this is: there without being set up, until an admin removes them.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn local_user(&self) -> Result<User, StoreError> {
        self.user(LOCAL_USER)
            .await?
            .ok_or_else(|| StoreError::Corrupt("this machine's own user was removed".to_owned()))
    }

    /// The user of this id.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn user(&self, id: UserId) -> Result<Option<User>, StoreError> {
        present()
            .filter(user::Column::Id.eq(id.0))
            .one(&self.read)
            .await?
            .map(user_from_row)
            .transpose()
    }

    /// Adds a user who cannot sign in.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn create_user(&self, name: &str, role: UserRole) -> Result<User, StoreError> {
        let new = new_user(name, role);
        user::Entity::insert(user_to_row(new.clone(), None)?)
            .exec_without_returning(&self.write)
            .await?;
        Ok(new)
    }

    /// Makes that person in a new database: one in which others are they may have left.
    pub(super) async fn ensure_somebody(&self) -> Result<(), DbErr> {
        let anybody = user::Entity::find().limit(1).one(&self.read).await?;
        match anybody {
            Some(_) => Ok(()),
            None => self.ensure_local_user().await,
        }
    }

    /// Makes the person whose machine this is, where they are forgotten.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn welcome_back_local_user(&self) -> Result<(), StoreError> {
        Ok(self.ensure_local_user().await?)
    }

    async fn ensure_local_user(&self) -> Result<(), DbErr> {
        let local = User {
            id: LOCAL_USER,
            ..new_user("local", UserRole::Admin)
        };
        let row = user_to_row(local, None).map_err(|error| DbErr::Custom(error.to_string()))?;
        user::Entity::insert(row)
            .on_conflict(OnConflict::column(user::Column::Id).do_nothing().to_owned())
            .exec_without_returning(&self.write)
            .await?;
        Ok(())
    }

    /// Who signs in by this name, with their password as it is stored.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn user_by_name(
        &self,
        name_key: &str,
    ) -> Result<Option<(User, Option<String>)>, StoreError> {
        let found = present()
            .filter(user::Column::NameKey.eq(name_key))
            .one(&self.read)
            .await?;
        let Some(row) = found else {
            return Ok(None);
        };
        let password = row.password.clone();
        Ok(Some((user_from_row(row)?, password)))
    }

    /// A person's password as it is stored; none where they have none.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn password(&self, id: UserId) -> Result<Option<String>, StoreError> {
        let row = present()
            .filter(user::Column::Id.eq(id.0))
            .one(&self.read)
            .await?;
        Ok(row.and_then(|row| row.password))
    }

    /// Gives a person a name and a password to sign in by, and ends the logins that are not kept.
    /// None where the name is another's.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn set_credentials(
        &self,
        id: UserId,
        new: Credentials,
        kept: KeptLogins,
    ) -> Result<Option<User>, StoreError> {
        let transaction = self.begin_write().await?;
        if name_is_taken(&transaction, &new.name_key, Some(id)).await? {
            return Ok(None);
        }
        let user = write_credentials(&transaction, id, new).await?;
        if let KeptLogins::Only(but) = kept {
            end_logins(&transaction, id, but).await?;
        }
        transaction.commit().await?;
        Ok(Some(user))
    }

    /// Puts another form of the same password, or another password, in the place of one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn set_password(&self, id: UserId, password: String) -> Result<(), StoreError> {
        user::Entity::update_many()
            .col_expr(user::Column::Password, Expr::value(password))
            .filter(user::Column::Id.eq(id.0))
            .filter(user::Column::RemovedAt.is_null())
            .exec(&self.write)
            .await?;
        Ok(())
    }

    /// Everybody, in the order in which they came.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn people(&self) -> Result<Vec<Person>, StoreError> {
        let rows = present()
            .order_by_asc(user::Column::CreatedAt)
            .all(&self.read)
            .await?;
        let seen_logins = web_login::Entity::find()
            .select_only()
            .column(web_login::Column::UserId)
            .column_as(web_login::Column::LastUsedAt.max(), "seen")
            .group_by(web_login::Column::UserId)
            .into_tuple::<(Uuid, Option<DateTime<Utc>>)>()
            .all(&self.read)
            .await?;
        let seen_tokens = api_token::Entity::find()
            .select_only()
            .column(api_token::Column::UserId)
            .column_as(api_token::Column::LastUsedAt.max(), "seen")
            .group_by(api_token::Column::UserId)
            .into_tuple::<(Uuid, Option<DateTime<Utc>>)>()
            .all(&self.read)
            .await?;
        let mut seen: HashMap<Uuid, Option<DateTime<Utc>>> = HashMap::new();
        for (id, at) in seen_logins.into_iter().chain(seen_tokens) {
            let last = seen.entry(id).or_default();
            *last = (*last).max(at);
        }
        let passkeys = self.passkey_counts().await?;
        let people = rows.into_iter().map(|row| {
            Ok(Person {
                has_password: row.password.is_some(),
                passkeys: passkeys.get(&row.id).copied().unwrap_or_default(),
                last_seen_at: seen.get(&row.id).copied().flatten(),
                user: user_from_row(row)?,
            })
        });
        people.collect()
    }

    /// Makes a person something else.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn set_role(&self, id: UserId, role: UserRole) -> Result<Changed, StoreError> {
        let transaction = self.begin_write().await?;
        let found = present().filter(user::Column::Id.eq(id.0));
        let Some(row) = found.one(&transaction).await? else {
            return Ok(Changed::Unknown);
        };
        let user = user_from_row(row)?;
        if role < UserRole::Admin && is_last_admin(&transaction, &user).await? {
            return Ok(Changed::LastAdmin);
        }
        let row = user::ActiveModel {
            id: Set(id.0),
            role: Set(name_of(&role)?),
            ..Default::default()
        };
        user::Entity::update(row).exec(&transaction).await?;
        if role < UserRole::Admin {
            take_back(&transaction, id).await?;
        }
        transaction.commit().await?;
        Ok(Changed::Done(User { role, ..user }))
    }
}

/// Those who were not removed.
pub(super) fn present() -> sea_orm::Select<user::Entity> {
    user::Entity::find().filter(user::Column::RemovedAt.is_null())
}

/// Whether the person is there; nobody else changes what is theirs until the transaction ends.
pub(super) async fn is_held(db: &impl ConnectionTrait, user: UserId) -> Result<bool, StoreError> {
    let row = user::Entity::find_by_id(user.0)
        .filter(user::Column::RemovedAt.is_null())
        .lock_exclusive()
        .one(db)
        .await?;
    Ok(row.is_some())
}

/// Gives a person who is there a name and a password to sign in by. Links for another password that
/// were made before open nothing any more.
pub(super) async fn write_credentials(
    db: &impl ConnectionTrait,
    id: UserId,
    new: Credentials,
) -> Result<User, StoreError> {
    let row = user::ActiveModel {
        id: Set(id.0),
        name: Set(new.name.into()),
        name_key: Set(Some(new.name_key)),
        password: Set(Some(new.password)),
        ..Default::default()
    };
    let user = user_from_row(user::Entity::update(row).exec(db).await?)?;
    delete::<invitation::Entity>(db, invitation::Column::UserId.eq(id.0)).await?;
    Ok(user)
}

pub(super) async fn name_is_taken(
    db: &impl ConnectionTrait,
    name_key: &str,
    but_by: Option<UserId>,
) -> Result<bool, DbErr> {
    let found = user::Entity::find()
        .filter(user::Column::NameKey.eq(name_key))
        .one(db)
        .await?;
    Ok(found.is_some_and(|row| Some(UserId(row.id)) != but_by))
}

pub(super) async fn is_last_admin(
    db: &impl ConnectionTrait,
    user: &User,
) -> Result<bool, StoreError> {
    if user.role != UserRole::Admin {
        return Ok(false);
    }
    // Who makes another of them something else waits: it is seen here, or sees this.
    let admins: Vec<Uuid> = present()
        .select_only()
        .column(user::Column::Id)
        .filter(user::Column::Role.eq(name_of(&UserRole::Admin)?))
        .order_by_asc(user::Column::Id)
        .lock_exclusive()
        .into_tuple()
        .all(db)
        .await?;
    Ok(admins.iter().all(|id| *id == user.id.0))
}

pub(super) fn new_user(name: &str, role: UserRole) -> User {
    User {
        id: UserId::new(),
        name: name.to_owned(),
        role,
        created_at: db_time(Utc::now()),
    }
}

pub(super) fn user_to_row(
    user: User,
    credentials: Option<Credentials>,
) -> Result<user::ActiveModel, StoreError> {
    let (name_key, password) = credentials.map(|new| (new.name_key, new.password)).unzip();
    Ok(user::ActiveModel {
        id: Set(user.id.0),
        name: Set(user.name.into()),
        role: Set(name_of(&user.role)?),
        created_at: Set(user.created_at),
        name_key: Set(name_key),
        password: Set(password),
        removed_at: Set(None),
    })
}
