//! What was granted, to a person or to all users.

use std::collections::{BTreeSet, HashMap};

use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::sea_query::IntoCondition as _;
use sea_orm::{ColumnTrait, Condition, EntityTrait, QueryFilter};
use uuid::Uuid;

use super::entities::{power, user};
use super::people::present;
use super::rows::user_from_row;
use super::{Store, StoreError, delete};
use crate::protocol::ids::UserId;
use crate::protocol::people::UserRole;
use crate::protocol::powers::{Power, Powers};

/// As many stand to one holder.
pub const MAX_POWERS: usize = 200;

/// Whose powers they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// Every user.
    Users,
    Person(UserId),
}

impl Holder {
    fn id(self) -> Option<Uuid> {
        match self {
            Self::Users => None,
            Self::Person(user) => Some(user.0),
        }
    }

    fn rows(self) -> Condition {
        match self.id() {
            None => power::Column::UserId.is_null().into_condition(),
            Some(id) => power::Column::UserId.eq(id).into_condition(),
        }
    }
}

impl Store {
    /// What a person may use: all as an admin; as a user what they and all users were granted;
    /// nothing as a guest, or once they were removed.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn powers(&self, of: UserId) -> Result<Powers, StoreError> {
        let found = present().filter(user::Column::Id.eq(of.0));
        let found = found
            .one(&self.read)
            .await?
            .map(user_from_row)
            .transpose()?;
        match found.map(|user| user.role) {
            Some(UserRole::Admin) => return Ok(Powers::All),
            Some(UserRole::User) => {}
            Some(UserRole::Guest) | None => return Ok(Powers::from_iter([])),
        }
        let theirs = Holder::Users.rows().into_condition();
        let theirs = Condition::any().add(theirs).add(Holder::Person(of).rows());
        let rows = power::Entity::find().filter(theirs).all(&self.read);
        Ok(rows.await?.iter().filter_map(read).collect())
    }

    /// What everybody was granted, by whose it is.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn granted(&self) -> Result<HashMap<Holder, BTreeSet<Power>>, StoreError> {
        let mut granted: HashMap<Holder, BTreeSet<Power>> = HashMap::new();
        for row in power::Entity::find().all(&self.read).await? {
            let holder = row
                .user_id
                .map_or(Holder::Users, |id| Holder::Person(UserId(id)));
            granted.entry(holder).or_default().extend(read(&row));
        }
        Ok(granted)
    }

    /// Puts these powers in the place of those that somebody was granted before. Tells whether
    /// there is such a person.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn grant(&self, holder: Holder, powers: BTreeSet<Power>) -> Result<bool, StoreError> {
        let transaction = self.begin_write().await?;
        if let Holder::Person(id) = holder {
            let found = present().filter(user::Column::Id.eq(id.0));
            if found.one(&transaction).await?.is_none() {
                return Ok(false);
            }
        }
        delete::<power::Entity>(&transaction, holder.rows()).await?;
        let rows = powers.into_iter().map(|granted| power::ActiveModel {
            id: NotSet,
            user_id: Set(holder.id()),
            power: Set(granted.into()),
        });
        // None at all are no statement.
        let rows: Vec<_> = rows.collect();
        if !rows.is_empty() {
            power::Entity::insert_many(rows)
                .exec_without_returning(&transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(true)
    }
}

/// What an older or a newer Navi wrote, and this one does not know, grants nothing.
fn read(row: &power::Model) -> Option<Power> {
    row.power
        .parse()
        .inspect_err(|problem| tracing::warn!(problem, "a grant is passed over"))
        .ok()
}
