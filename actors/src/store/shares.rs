//! Who reaches a conversation: its owner, who takes part, and links to look.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::OnConflict;
use sea_orm::{
    ColumnTrait, ConnectionTrait, EntityTrait, PaginatorTrait as _, QueryFilter, QueryOrder,
    QuerySelect,
};
use uuid::Uuid;

use super::entities::{session, session_link, session_person, user};
use super::types::{Found, LinkRow, SecretHash};
use super::values::{DbText, db_time};
use super::{Store, StoreError, delete};
use crate::domain::sharing::{By, MAX_LINKS, MAX_PEOPLE, Reach};
use crate::protocol::ids::{LinkId, SessionId, UserId};
use crate::protocol::people::PersonRef;
use crate::protocol::session::{SessionSummary, Shared};

/// How many sessions are asked about at once: a database takes no endless list of ids.
const AT_ONCE: usize = 500;

/// What became of the wish to add something to a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    Now,
    /// It was there already.
    Before,
    /// There are as many as there may be.
    Full,
}

impl Store {
    /// How somebody reaches a session, and whose it is: the one place that says so. Of one that
    /// they do not reach it is as if it did not exist.
    ///
    /// # Errors
    /// [`StoreError::SessionNotFound`], and as the store's other reads.
    pub async fn reach(&self, by: By, id: SessionId) -> Result<Found, StoreError> {
        let owner = self.session_owner_user(id).await?;
        let reach = match by {
            By::Person(person) if person == owner => Some(Reach::Owns),
            By::Person(person) => {
                let takes_part = session_person::Entity::find_by_id((id.0, person.0));
                let takes_part = takes_part.one(&self.read).await?;
                takes_part.map(|_| Reach::TakesPart)
            }
            By::Link(link) => {
                let link = session_link::Entity::find()
                    .filter(session_link::Column::Id.eq(link.0))
                    .filter(session_link::Column::SessionId.eq(id.0))
                    .filter(session_link::Column::ExpiresAt.gt(db_time(Utc::now())));
                link.one(&self.read).await?.map(|_| Reach::Looks)
            }
        };
        let reach = reach.ok_or(StoreError::SessionNotFound)?;
        Ok(Found { owner, reach })
    }

    /// Those of these that are reached yet, and how; for who watches many.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn reached(
        &self,
        asked: &[(By, SessionId)],
        now: DateTime<Utc>,
    ) -> Result<HashMap<(By, SessionId), Reach>, StoreError> {
        let mut reached = HashMap::new();
        for some in asked.chunks(AT_ONCE) {
            let ids: HashSet<Uuid> = some.iter().map(|(_, session)| session.0).collect();
            let owners: HashMap<Uuid, Uuid> = session::Entity::find()
                .select_only()
                .columns([session::Column::Id, session::Column::UserId])
                .filter(session::Column::Id.is_in(ids.iter().copied()))
                .filter(session::Column::DeletedAt.is_null())
                .into_tuple::<(Uuid, Uuid)>()
                .all(&self.read)
                .await?
                .into_iter()
                .collect();
            let people: HashSet<(Uuid, Uuid)> = session_person::Entity::find()
                .filter(session_person::Column::SessionId.is_in(ids.iter().copied()))
                .all(&self.read)
                .await?
                .into_iter()
                .map(|row| (row.session_id, row.user_id))
                .collect();
            let links: HashSet<(Uuid, Uuid)> = session_link::Entity::find()
                .filter(session_link::Column::SessionId.is_in(ids))
                .filter(session_link::Column::ExpiresAt.gt(db_time(now)))
                .all(&self.read)
                .await?
                .into_iter()
                .map(|row| (row.session_id, row.id))
                .collect();
            for (by, session) in some {
                let Some(owner) = owners.get(&session.0) else {
                    continue;
                };
                let reach = match by {
                    By::Person(person) if person.0 == *owner => Some(Reach::Owns),
                    By::Person(person) => people
                        .contains(&(session.0, person.0))
                        .then_some(Reach::TakesPart),
                    By::Link(link) => links.contains(&(session.0, link.0)).then_some(Reach::Looks),
                };
                reached.extend(reach.map(|reach| ((*by, *session), reach)));
            }
        }
        Ok(reached)
    }

    /// Whose a session is, and who takes part, in the order in which they came.
    ///
    /// # Errors
    /// [`StoreError::SessionNotFound`], and as the store's other reads.
    pub async fn shared(&self, id: SessionId) -> Result<Shared, StoreError> {
        let owner = self.session_owner_user(id).await?;
        let mut all = people_of(&self.read, &[(id.0, owner.0)]).await?;
        all.remove(&id.0).ok_or(StoreError::SessionNotFound)
    }

    /// The sessions of others in which somebody takes part.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn shared_with(&self, person: UserId) -> Result<Vec<SessionId>, StoreError> {
        let ids: Vec<Uuid> = session_person::Entity::find()
            .select_only()
            .column(session_person::Column::SessionId)
            .filter(session_person::Column::UserId.eq(person.0))
            .into_tuple()
            .all(&self.read)
            .await?;
        Ok(ids.into_iter().map(SessionId).collect())
    }

    /// Has somebody take part in a session.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn add_session_person(
        &self,
        id: SessionId,
        person: UserId,
        at: DateTime<Utc>,
    ) -> Result<Added, StoreError> {
        let transaction = self.begin_write().await?;
        let known = session_person::Entity::find_by_id((id.0, person.0));
        if known.one(&transaction).await?.is_some() {
            return Ok(Added::Before);
        }
        let all = session_person::Entity::find().filter(session_person::Column::SessionId.eq(id.0));
        if all.count(&transaction).await? >= MAX_PEOPLE {
            return Ok(Added::Full);
        }
        session_person::Entity::insert(session_person::ActiveModel {
            session_id: Set(id.0),
            user_id: Set(person.0),
            added_at: Set(db_time(at)),
        })
        .on_conflict(
            OnConflict::columns([
                session_person::Column::SessionId,
                session_person::Column::UserId,
            ])
            .do_nothing()
            .to_owned(),
        )
        .exec_without_returning(&transaction)
        .await?;
        transaction.commit().await?;
        Ok(Added::Now)
    }

    /// Takes somebody out of a session. Tells whether they took part.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn remove_session_person(
        &self,
        id: SessionId,
        person: UserId,
    ) -> Result<bool, StoreError> {
        let removed = session_person::Entity::delete_by_id((id.0, person.0))
            .exec(&self.write)
            .await?;
        Ok(removed.rows_affected > 0)
    }

    /// Adds a link to look at a session.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn add_session_link(
        &self,
        hash: SecretHash,
        id: SessionId,
        new: LinkRow,
    ) -> Result<Added, StoreError> {
        let transaction = self.begin_write().await?;
        let good = session_link::Entity::find()
            .filter(session_link::Column::SessionId.eq(id.0))
            .filter(session_link::Column::ExpiresAt.gt(db_time(new.created_at)));
        if good.count(&transaction).await? >= MAX_LINKS {
            return Ok(Added::Full);
        }
        session_link::Entity::insert(session_link::ActiveModel {
            hash: Set(hash.0.to_vec()),
            id: Set(new.id.0),
            session_id: Set(id.0),
            created_at: Set(db_time(new.created_at)),
            expires_at: Set(db_time(new.expires_at)),
        })
        .exec_without_returning(&transaction)
        .await?;
        transaction.commit().await?;
        Ok(Added::Now)
    }

    /// The links to a session that are good yet, the oldest first.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn session_links(
        &self,
        id: SessionId,
        now: DateTime<Utc>,
    ) -> Result<Vec<LinkRow>, StoreError> {
        let rows = session_link::Entity::find()
            .filter(session_link::Column::SessionId.eq(id.0))
            .filter(session_link::Column::ExpiresAt.gt(db_time(now)))
            .order_by_asc(session_link::Column::CreatedAt)
            .all(&self.read)
            .await?;
        Ok(rows.iter().map(link_from_row).collect())
    }

    /// Ends a link. Tells whether there was one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn remove_session_link(
        &self,
        id: SessionId,
        link: LinkId,
    ) -> Result<bool, StoreError> {
        let removed = session_link::Entity::delete_many()
            .filter(session_link::Column::Id.eq(link.0))
            .filter(session_link::Column::SessionId.eq(id.0))
            .exec(&self.write)
            .await?;
        Ok(removed.rows_affected > 0)
    }

    /// The link with this secret, and the session that it is to.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn session_link(
        &self,
        hash: SecretHash,
        now: DateTime<Utc>,
    ) -> Result<Option<(LinkRow, SessionId)>, StoreError> {
        let row = session_link::Entity::find_by_id(hash.0.to_vec())
            .filter(session_link::Column::ExpiresAt.gt(db_time(now)))
            .one(&self.read)
            .await?;
        Ok(row.map(|row| {
            let session = SessionId(row.session_id);
            (link_from_row(&row), session)
        }))
    }

    /// Forgets the links that expired.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn purge_session_links(&self, now: DateTime<Utc>) -> Result<(), StoreError> {
        let old = session_link::Column::ExpiresAt.lte(db_time(now));
        delete::<session_link::Entity>(&self.write, old).await?;
        Ok(())
    }
}

fn link_from_row(row: &session_link::Model) -> LinkRow {
    LinkRow {
        id: LinkId(row.id),
        created_at: row.created_at,
        expires_at: row.expires_at,
    }
}

/// Reads in who takes part, where summaries are of sessions that are shared.
pub(super) async fn fill(
    db: &impl ConnectionTrait,
    summaries: &mut [SessionSummary],
) -> Result<(), StoreError> {
    let shared = summaries.iter().filter(|it| it.shared.is_some());
    let asked: Vec<(Uuid, Uuid)> = shared.map(|it| (it.id.0, it.user_id.0)).collect();
    let mut found = HashMap::new();
    for some in asked.chunks(AT_ONCE) {
        found.extend(people_of(db, some).await?);
    }
    for summary in summaries {
        if summary.shared.is_some() {
            summary.shared = found.remove(&summary.id.0).map(Box::new);
        }
    }
    Ok(())
}

/// Of sessions with their owners: who is in each.
async fn people_of(
    db: &impl ConnectionTrait,
    sessions: &[(Uuid, Uuid)],
) -> Result<HashMap<Uuid, Shared>, StoreError> {
    let rows = session_person::Entity::find()
        .filter(session_person::Column::SessionId.is_in(sessions.iter().map(|(id, _)| *id)))
        .order_by_asc(session_person::Column::AddedAt)
        .order_by_asc(session_person::Column::UserId)
        .all(db)
        .await?;
    let owners = sessions.iter().map(|(_, owner)| *owner);
    let ids: HashSet<Uuid> = owners.chain(rows.iter().map(|row| row.user_id)).collect();
    let names: HashMap<Uuid, DbText> = user::Entity::find()
        .select_only()
        .columns([user::Column::Id, user::Column::Name])
        .filter(user::Column::Id.is_in(ids))
        .filter(user::Column::RemovedAt.is_null())
        .into_tuple::<(Uuid, DbText)>()
        .all(db)
        .await?
        .into_iter()
        .collect();
    let named = |id: Uuid| {
        names.get(&id).map(|name| PersonRef {
            id: UserId(id),
            name: name.0.clone(),
        })
    };
    let mut all: HashMap<Uuid, Shared> = HashMap::new();
    for (id, owner) in sessions {
        let removed = PersonRef {
            id: UserId(*owner),
            name: String::new(),
        };
        let owner = named(*owner).unwrap_or(removed);
        let people = Vec::new();
        all.insert(*id, Shared { owner, people });
    }
    for row in rows {
        if let Some(shared) = all.get_mut(&row.session_id) {
            shared.people.extend(named(row.user_id));
        }
    }
    Ok(all)
}
