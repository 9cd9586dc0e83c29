//! The people.

use chrono::Utc;
use sea_orm::sea_query::OnConflict;
use sea_orm::{ActiveValue::Set, DbErr, EntityTrait};
use uuid::Uuid;

use super::entities::user;
use super::rows::user_from_row;
use super::types::{User, UserRole};
use super::values::{db_time, name_of};
use super::{Store, StoreError};
use crate::protocol::ids::UserId;

/// The id of the one user of one's own machine. Fixed, so that two processes which create
/// the same database at once create the same user.
const LOCAL_USER: UserId = UserId(Uuid::from_u128(0x0000_0000_0000_7000_8000_0000_0000_0001));

impl Store {
    /// The person whose machine this is: there without being set up.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn local_user(&self) -> Result<User, StoreError> {
        self.user(LOCAL_USER)
            .await?
            .ok_or_else(|| StoreError::Corrupt("the local user is gone".to_owned()))
    }

    /// The user of this id.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn user(&self, id: UserId) -> Result<Option<User>, StoreError> {
        user::Entity::find_by_id(id.0)
            .one(&self.read)
            .await?
            .map(user_from_row)
            .transpose()
    }

    /// Adds a user.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn create_user(&self, name: &str, role: UserRole) -> Result<User, StoreError> {
        let new = User {
            id: UserId::new(),
            name: name.to_owned(),
            role,
            created_at: db_time(Utc::now()),
        };
        user::Entity::insert(user_to_row(new.clone())?)
            .exec_without_returning(&self.write)
            .await?;
        Ok(new)
    }

    pub(super) async fn ensure_local_user(&self) -> Result<(), DbErr> {
        let row = user_to_row(User {
            id: LOCAL_USER,
            name: "local".to_owned(),
            role: UserRole::Admin,
            created_at: db_time(Utc::now()),
        })
        .map_err(|error| DbErr::Custom(error.to_string()))?;
        user::Entity::insert(row)
            .on_conflict(OnConflict::column(user::Column::Id).do_nothing().to_owned())
            .exec_without_returning(&self.write)
            .await?;
        Ok(())
    }
}

fn user_to_row(user: User) -> Result<user::ActiveModel, StoreError> {
    Ok(user::ActiveModel {
        id: Set(user.id.0),
        name: Set(user.name.into()),
        role: Set(name_of(&user.role)?),
        created_at: Set(user.created_at),
    })
}
