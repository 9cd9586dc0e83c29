//! Who people are to a provider of sign-on, or to a proxy in front.

use chrono::{DateTime, Utc};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::OnConflict;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, EntityTrait, PaginatorTrait as _, QueryFilter,
    QueryOrder,
};
use uuid::Uuid;

use super::entities::{identity, user, web_login};
use super::invitations::use_up;
use super::people::{is_held, name_is_taken, new_user, user_to_row};
use super::rows::user_from_row;
use super::types::{Identity, IdentityKey, SecretHash, User};
use super::values::{DbText, db_time};
use super::ways_in::has_another_way_in;
use super::{Store, StoreError, WaysIn};
use crate::domain::names;
use crate::protocol::ids::UserId;
use crate::protocol::people::UserRole;

/// As many may be one person's.
pub const MAX_IDENTITIES: u64 = 10;
/// As many people may want the same name.
const NAMESAKES: u32 = 100;

/// An identity that is to be somebody's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewIdentity {
    pub key: IdentityKey,
    /// Of mail, as far as the provider verified it.
    pub address: Option<String>,
}

/// What became of linking an identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Linked {
    Done(Identity),
    /// It is another person's.
    Taken,
    /// This person has [`MAX_IDENTITIES`].
    TooMany,
}

/// By what somebody joins who is not here yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joins {
    /// Everybody whom the provider knows does, as this.
    As(UserRole),
    /// By an invitation for somebody new, which is used up by it: as what it says, where their
    /// groups do not make them something else.
    Invited {
        hash: SecretHash,
        role: Option<UserRole>,
    },
}

/// Who somebody is whom an identity lets in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinedBy {
    /// Somebody new.
    Joined(User),
    /// In the same moment the identity became somebody's.
    Known(User),
    /// There is no such invitation, or it was used, or has expired.
    NoInvitation,
}

/// What became of an identity that was to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unlinked {
    Done(Identity),
    Unknown,
    /// Nothing else would let its person in.
    LastWayIn,
}

impl Store {
    /// Whose identity this is.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn identity(
        &self,
        key: &IdentityKey,
    ) -> Result<Option<(User, Identity)>, StoreError> {
        let Some(found) = by_key(key).one(&self.read).await? else {
            return Ok(None);
        };
        let user = self.user(UserId(found.user_id)).await?;
        Ok(user.map(|user| (user, identity_from_row(found))))
    }

    /// A person's identities, the oldest first.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn identities(&self, user: UserId) -> Result<Vec<Identity>, StoreError> {
        let rows = identity::Entity::find()
            .filter(identity::Column::UserId.eq(user.0))
            .order_by_asc(identity::Column::CreatedAt)
            .all(&self.read)
            .await?;
        Ok(rows.into_iter().map(identity_from_row).collect())
    }

    /// The one person whom another provider knows by this address, where they are not known to
    /// `iss` by any other name: then it would be two people there who had one address in turn.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn user_of_address(
        &self,
        address: &str,
        iss: &str,
    ) -> Result<Option<User>, StoreError> {
        let rows = identity::Entity::find()
            .filter(identity::Column::Address.eq(DbText::from(address)))
            .all(&self.read)
            .await?;
        let mut users: Vec<Uuid> = rows.iter().map(|row| row.user_id).collect();
        users.sort_unstable();
        users.dedup();
        let [one] = users[..] else {
            return Ok(None);
        };
        let known = self.identities(UserId(one)).await?;
        if known.iter().any(|identity| identity.key.iss == iss) {
            return Ok(None);
        }
        self.user(UserId(one)).await
    }

    /// Makes an identity a person's.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn link_identity(
        &self,
        user: UserId,
        new: NewIdentity,
        now: DateTime<Utc>,
    ) -> Result<Linked, StoreError> {
        let transaction = self.begin_write().await?;
        let theirs = identity::Entity::find().filter(identity::Column::UserId.eq(user.0));
        if by_key(&new.key).one(&transaction).await?.is_none()
            && theirs.count(&transaction).await? >= MAX_IDENTITIES
        {
            return Ok(Linked::TooMany);
        }
        let linked = insert(&transaction, user, new, now).await?;
        transaction.commit().await?;
        Ok(match linked {
            linked if linked.user_id == user => Linked::Done(linked),
            _ => Linked::Taken,
        })
    }

    /// An account for somebody who is not here yet, whom this identity lets in. Where somebody has
    /// the name, or one that looks like it, it is followed by a number.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn join_by_identity(
        &self,
        name: &str,
        joins: Joins,
        new: NewIdentity,
        now: DateTime<Utc>,
    ) -> Result<JoinedBy, StoreError> {
        let transaction = self.begin_write().await?;
        let key = new.key.clone();
        if let Some(found) = by_key(&key).one(&transaction).await? {
            let known = owner(&transaction, found.user_id).await?;
            return Ok(JoinedBy::Known(known));
        }
        let role = match joins {
            Joins::As(role) => role,
            Joins::Invited { hash, role } => match use_up(&transaction, hash, now).await? {
                Some(invitation) if invitation.user_id.is_none() => role.unwrap_or(invitation.role),
                // Their other browser may have been faster.
                _ => {
                    return match by_key(&key).one(&transaction).await? {
                        Some(found) => {
                            let known = owner(&transaction, found.user_id).await?;
                            Ok(JoinedBy::Known(known))
                        }
                        None => Ok(JoinedBy::NoInvitation),
                    };
                }
            },
        };
        let name = free_name(&transaction, name).await?;
        let joined = new_user(&name, role);
        let mut row = user_to_row(joined.clone(), None)?;
        row.name_key = Set(Some(names::key(&name)));
        user::Entity::insert(row)
            .exec_without_returning(&transaction)
            .await?;
        let linked = insert(&transaction, joined.id, new, now).await?;
        if linked.user_id != joined.id {
            // What was begun goes with the transaction.
            let known = owner(&transaction, linked.user_id.0).await?;
            return Ok(JoinedBy::Known(known));
        }
        transaction.commit().await?;
        Ok(JoinedBy::Joined(joined))
    }

    /// Notes that an identity let somebody in, and the address as it is now.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn note_identity(
        &self,
        id: Uuid,
        address: Option<String>,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        identity::Entity::update_many()
            .set(identity::ActiveModel {
                address: Set(address.map(DbText::from)),
                last_used_at: Set(Some(db_time(now))),
                ..Default::default()
            })
            .filter(identity::Column::Id.eq(id))
            .exec(&self.write)
            .await?;
        Ok(())
    }

    /// Takes an identity from a person, where something else lets them in, and ends the logins that
    /// it made, but for one where one is named. One of whom none of `ways` asks lets nobody in.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn unlink_identity(
        &self,
        user: UserId,
        id: Uuid,
        but: Option<SecretHash>,
        ways: &WaysIn,
    ) -> Result<Unlinked, StoreError> {
        let transaction = self.begin_write().await?;
        let is_there = is_held(&transaction, user).await?;
        let found = identity::Entity::find_by_id(id).filter(identity::Column::UserId.eq(user.0));
        let Some(found) = found.one(&transaction).await?.filter(|_| is_there) else {
            return Ok(Unlinked::Unknown);
        };
        if ways.are_by(&found.iss.0) && !has_another_way_in(&transaction, user, ways, id).await? {
            return Ok(Unlinked::LastWayIn);
        }
        identity::Entity::delete_by_id(id)
            .exec(&transaction)
            .await?;
        let found = identity_from_row(found);
        let mut logins = web_login::Entity::delete_many().filter(made_by(&found.key));
        if let Some(SecretHash(hash)) = but {
            logins = logins.filter(web_login::Column::Hash.ne(hash.to_vec()));
        }
        logins.exec(&transaction).await?;
        transaction.commit().await?;
        Ok(Unlinked::Done(found))
    }

    /// Ends the logins that a provider made: of one of its sessions, where one is named, else all
    /// of a person. Tells how many.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn end_sign_on(
        &self,
        iss: &str,
        sub: Option<&str>,
        sid: Option<&str>,
    ) -> Result<u64, StoreError> {
        let mut logins =
            web_login::Entity::delete_many().filter(web_login::Column::Iss.eq(DbText::from(iss)));
        if let Some(sub) = sub {
            logins = logins.filter(web_login::Column::Sub.eq(DbText::from(sub)));
        }
        if let Some(sid) = sid {
            let mut of_session = Condition::any().add(web_login::Column::Sid.eq(DbText::from(sid)));
            // Of which session a login is, the provider need not have said.
            if sub.is_some() {
                of_session = of_session.add(web_login::Column::Sid.is_null());
            }
            logins = logins.filter(of_session);
        }
        if sub.is_none() && sid.is_none() {
            return Ok(0);
        }
        Ok(logins.exec(&self.write).await?.rows_affected)
    }
}

fn by_key(key: &IdentityKey) -> sea_orm::Select<identity::Entity> {
    identity::Entity::find()
        .filter(identity::Column::Iss.eq(DbText::from(key.iss.as_str())))
        .filter(identity::Column::Sub.eq(DbText::from(key.sub.as_str())))
}

fn made_by(key: &IdentityKey) -> Condition {
    Condition::all()
        .add(web_login::Column::Iss.eq(DbText::from(key.iss.as_str())))
        .add(web_login::Column::Sub.eq(DbText::from(key.sub.as_str())))
}

/// The identity as it stands then, whoever was first.
async fn insert(
    db: &impl ConnectionTrait,
    user: UserId,
    new: NewIdentity,
    now: DateTime<Utc>,
) -> Result<Identity, StoreError> {
    let key = new.key;
    let row = identity::ActiveModel {
        id: Set(Uuid::now_v7()),
        user_id: Set(user.0),
        iss: Set(key.iss.as_str().into()),
        sub: Set(key.sub.as_str().into()),
        address: Set(new.address.map(DbText::from)),
        created_at: Set(db_time(now)),
        last_used_at: Set(None),
    };
    let once = OnConflict::columns([identity::Column::Iss, identity::Column::Sub])
        .do_nothing()
        .to_owned();
    identity::Entity::insert(row)
        .on_conflict(once)
        .exec_without_returning(db)
        .await?;
    let row = by_key(&key).one(db).await?;
    row.map(identity_from_row)
        .ok_or_else(|| StoreError::Corrupt("an identity is gone that was just added".to_owned()))
}

async fn owner(db: &impl ConnectionTrait, id: Uuid) -> Result<User, StoreError> {
    let row = user::Entity::find_by_id(id).one(db).await?;
    row.map(user_from_row)
        .unwrap_or_else(|| Err(StoreError::Corrupt("an identity is nobody's".to_owned())))
}

async fn free_name(db: &impl ConnectionTrait, name: &str) -> Result<String, StoreError> {
    for number in 1..=NAMESAKES {
        let tail = if number == 1 {
            String::new()
        } else {
            format!(" {number}")
        };
        let room = names::MAX_CHARS - tail.len();
        let head: String = name.chars().take(room).collect();
        let candidate = format!("{}{tail}", head.trim_end());
        if !name_is_taken(db, &names::key(&candidate), None).await? {
            return Ok(candidate);
        }
    }
    // Nobody can have this one.
    Ok(Uuid::now_v7().to_string())
}

fn identity_from_row(row: identity::Model) -> Identity {
    Identity {
        id: row.id,
        user_id: UserId(row.user_id),
        key: IdentityKey {
            iss: row.iss.0,
            sub: row.sub.0,
        },
        address: row.address.map(|text| text.0),
        created_at: row.created_at,
        last_used_at: row.last_used_at,
    }
}
