//! Sessions as a whole: which there are, whose, and their way in and out of the world.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, EntityTrait, JoinType, PaginatorTrait as _,
    QueryFilter, QueryOrder, QuerySelect, RelationDef, Select,
};
use uuid::Uuid;

use super::entities::{approval, branch, queued_message, run, session};
use super::rows::{SummaryRow, branch_to_row, summary_from_row};
use super::types::{Listed, NewSession};
use super::usage::keep_used;
use super::values::{db_time, name_of, to_json};
use super::{Store, StoreError, shares};
use crate::domain::history::{Branch, ROOT_BRANCH};
use crate::domain::session::stored::LoadedSession;
use crate::protocol::ids::{OwnerId, SessionId, UserId};
use crate::protocol::session::{RunState, SessionState, SessionSummary};
use crate::protocol::todo::Scratchpad;

/// The most sessions that one statement deletes: a database takes no endless list of ids.
const AT_ONCE: u64 = 2_000;
/// The most that a list asks about by their ids at once.
const OF_A_LIST: usize = 500;
/// Of a session that was just made.
const FIRST_EPOCH: i64 = 1;

impl Store {
    /// How many sessions a person has, those that are put away with them.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn sessions_held(&self, user: UserId) -> Result<u64, StoreError> {
        let theirs = session::Entity::find()
            .filter(session::Column::UserId.eq(user.0))
            .filter(session::Column::Ephemeral.eq(false))
            .filter(session::Column::DeletedAt.is_null());
        Ok(theirs.count(&self.read).await?)
    }

    /// Creates a session that `owner` has already taken.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] where the id is in use or the user unknown;
    /// [`StoreError::Unavailable`].
    pub async fn create_session(
        &self,
        new: NewSession,
        owner: &OwnerId,
    ) -> Result<LoadedSession, StoreError> {
        let created_at = db_time(new.created_at);
        let row = session_row(&new, owner)?;
        let transaction = self.begin_write().await?;
        insert_session(&transaction, &new, row).await?;
        transaction.commit().await?;
        Ok(LoadedSession {
            summary: SessionSummary {
                id: new.id,
                user_id: new.user_id,
                title: new.title,
                profile_id: new.profile_id,
                model: new.model,
                pinned: false,
                archived: false,
                ephemeral: new.ephemeral,
                tags: Vec::new(),
                context_token_count: 0,
                state: SessionState::Idle,
                asks: 0,
                shared: None,
                created_at,
                last_active: created_at,
            },
            messages: Vec::new(),
            message_count: 0,
            sent: Some(Vec::new()),
            branches: vec![Branch::root()],
            branch_id: ROOT_BRANCH,
            plan: None,
            running_children: Vec::new(),
            queue: Vec::new(),
            todo: Vec::new(),
            scratchpad: Scratchpad::new(),
            last_seq: 0,
            epoch: FIRST_EPOCH,
            last_run: None,
            last_run_branch: 0,
            unfinished_parts: Vec::new(),
            spans: Vec::new(),
            started_calls: Vec::new(),
            child_calls: Vec::new(),
            used: BTreeMap::new(),
            mode: Some(new.mode),
            tainted_at: None,
            approvals: Vec::new(),
            run_first_seq: None,
            interruptions: 0,
            held: false,
        })
    }

    /// A user's sessions and those of others in which they take part; those that are put away or
    /// the others: pinned ones first, then the latest activity.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn list_sessions(
        &self,
        user_id: UserId,
        listed: Listed,
    ) -> Result<Vec<SessionSummary>, StoreError> {
        let of_list = |whose: Expr| {
            summaries()
                .filter(whose)
                .filter(session::Column::DeletedAt.is_null())
                .filter(session::Column::Ephemeral.eq(false))
                .filter(session::Column::Archived.eq(listed == Listed::Archived))
                .order_by_desc(session::Column::Pinned)
                .order_by_desc(session::Column::LastActive)
                .order_by_desc(session::Column::Id)
                .into_partial_model::<SummaryRow>()
        };
        let mut rows = of_list(session::Column::UserId.eq(user_id.0))
            .all(&self.read)
            .await?;
        let shared = self.shared_with(user_id).await?;
        for some in shared.chunks(OF_A_LIST) {
            let ids = some.iter().map(|id| id.0);
            rows.extend(
                of_list(session::Column::Id.is_in(ids))
                    .all(&self.read)
                    .await?,
            );
        }
        let list = rows.into_iter().map(summary_from_row);
        let mut list = list.collect::<Result<Vec<SessionSummary>, _>>()?;
        shares::fill(&self.read, &mut list).await?;
        if !shared.is_empty() {
            list = list
                .into_iter()
                .map(|it| it.seen_by(Some(user_id)))
                .collect();
            list.sort_by_key(|it| Reverse((it.pinned, it.last_active, it.id)));
        }
        Ok(list)
    }

    /// A session of this user's own. Another's is as if it did not exist.
    ///
    /// # Errors
    /// [`StoreError::SessionNotFound`], and as the store's other reads.
    pub async fn find_session(
        &self,
        user_id: UserId,
        id: SessionId,
    ) -> Result<SessionSummary, StoreError> {
        let mut found = summaries()
            .filter(session::Column::Id.eq(id.0))
            .filter(session::Column::UserId.eq(user_id.0))
            .filter(session::Column::DeletedAt.is_null())
            .into_partial_model::<SummaryRow>()
            .one(&self.read)
            .await?
            .map_or(Err(StoreError::SessionNotFound), summary_from_row)?;
        shares::fill(&self.read, std::slice::from_mut(&mut found)).await?;
        Ok(found)
    }

    /// Whose session this is.
    ///
    /// # Errors
    /// [`StoreError::SessionNotFound`], and as the store's other reads.
    pub async fn session_owner_user(&self, id: SessionId) -> Result<UserId, StoreError> {
        session::Entity::find_by_id(id.0)
            .filter(session::Column::DeletedAt.is_null())
            .select_only()
            .column(session::Column::UserId)
            .into_tuple()
            .one(&self.read)
            .await?
            .map(UserId)
            .ok_or(StoreError::SessionNotFound)
    }

    /// Whose these sessions are, as far as there are such, deleted ones with them.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn owners_of(
        &self,
        sessions: &[SessionId],
    ) -> Result<Vec<(SessionId, UserId)>, StoreError> {
        let owners: Vec<(Uuid, Uuid)> = session::Entity::find()
            .select_only()
            .columns([session::Column::Id, session::Column::UserId])
            .filter(session::Column::Id.is_in(sessions.iter().map(|id| id.0)))
            .into_tuple()
            .all(&self.read)
            .await?;
        let owners = owners.into_iter();
        Ok(owners
            .map(|(id, owner)| (SessionId(id), UserId(owner)))
            .collect())
    }

    /// The sessions with a run that is marked as running: at start, those that a crash cut
    /// off.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn running_sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        let of_session = run::Entity::belongs_to(session::Entity)
            .from(run::Column::SessionId)
            .to(session::Column::Id)
            .into();
        let ids = run::Entity::find()
            .select_only()
            .column(run::Column::SessionId)
            .distinct()
            .join(JoinType::InnerJoin, of_session)
            .filter(run::Column::State.eq(name_of(&RunState::Running)?))
            .filter(session::Column::DeletedAt.is_null())
            .order_by_asc(run::Column::SessionId)
            .into_tuple()
            .all(&self.read)
            .await?;
        Ok(ids.into_iter().map(SessionId).collect())
    }

    /// The sessions with a message that waits and that no stop holds back: a shutdown leaves them.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn waiting_sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        let waiting = Query::select()
            .column(queued_message::Column::SessionId)
            .from(queued_message::Entity)
            .take();
        let ids = session::Entity::find()
            .select_only()
            .column(session::Column::Id)
            .filter(session::Column::Id.in_subquery(waiting))
            .filter(session::Column::Held.eq(false))
            .filter(session::Column::DeletedAt.is_null())
            .order_by_asc(session::Column::Id)
            .into_tuple()
            .all(&self.read)
            .await?;
        Ok(ids.into_iter().map(SessionId).collect())
    }

    /// Deletes the ephemeral sessions that were last used `before` and have no run, as of `at`, and
    /// says which.
    ///
    /// # Errors
    /// As the store's other writes.
    pub async fn delete_ephemeral(
        &self,
        before: DateTime<Utc>,
        at: DateTime<Utc>,
    ) -> Result<Vec<SessionId>, StoreError> {
        let running = Query::select()
            .column(run::Column::SessionId)
            .from(run::Entity)
            .and_where(run::Column::State.eq(name_of(&RunState::Running)?))
            .take();
        let ids: Vec<Uuid> = session::Entity::find()
            .select_only()
            .column(session::Column::Id)
            .filter(session::Column::Ephemeral.eq(true))
            .filter(session::Column::DeletedAt.is_null())
            .filter(session::Column::LastActive.lt(db_time(before)))
            .filter(session::Column::Id.not_in_subquery(running))
            .limit(AT_ONCE)
            .into_tuple()
            .all(&self.read)
            .await?;
        session::Entity::update_many()
            .set(session::ActiveModel {
                deleted_at: Set(Some(db_time(at))),
                ..Default::default()
            })
            .filter(session::Column::Id.is_in(ids.iter().copied()))
            .exec(&self.write)
            .await?;
        Ok(ids.into_iter().map(SessionId).collect())
    }

    /// The sessions that were deleted before this time and are still there to be restored.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn deleted_before(&self, time: DateTime<Utc>) -> Result<Vec<SessionId>, StoreError> {
        let ids = session::Entity::find()
            .select_only()
            .column(session::Column::Id)
            .filter(session::Column::DeletedAt.lt(db_time(time)))
            .order_by_asc(session::Column::DeletedAt)
            .into_tuple()
            .all(&self.read)
            .await?;
        Ok(ids.into_iter().map(SessionId).collect())
    }

    /// Takes back the deletion of this user's session.
    ///
    /// # Errors
    /// [`StoreError::SessionNotFound`] where it is another's, not deleted, or purged.
    pub async fn restore(
        &self,
        user_id: UserId,
        id: SessionId,
    ) -> Result<SessionSummary, StoreError> {
        let restored = session::Entity::update_many()
            .set(session::ActiveModel {
                deleted_at: Set(None),
                ..Default::default()
            })
            .filter(session::Column::Id.eq(id.0))
            .filter(session::Column::UserId.eq(user_id.0))
            .filter(session::Column::DeletedAt.is_not_null())
            .exec(&self.write)
            .await?;
        if restored.rows_affected == 0 {
            return Err(StoreError::SessionNotFound);
        }
        self.find_session(user_id, id).await
    }

    /// Removes a deleted session and all that belongs to it, for good. What its runs used that
    /// began since `counts_since` counts for its owner all the same.
    ///
    /// # Errors
    /// [`StoreError::SessionNotFound`] where it is not deleted (any more): who restored it
    /// in the meantime keeps it.
    pub async fn purge_session(
        &self,
        id: SessionId,
        counts_since: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let transaction = self.begin_write().await?;
        // Nobody restores it from here on.
        let row = session::Entity::find_by_id(id.0)
            .select_only()
            .column(session::Column::UserId)
            .filter(session::Column::DeletedAt.is_not_null())
            .lock_exclusive();
        let owner: Option<Uuid> = row.into_tuple().one(&transaction).await?;
        let owner = owner.ok_or(StoreError::SessionNotFound)?;
        keep_used(&transaction, UserId(owner), id, counts_since).await?;
        session::Entity::delete_by_id(id.0)
            .exec(&transaction)
            .await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// The row of a new session that `owner` has taken.
pub(super) fn session_row(
    new: &NewSession,
    owner: &OwnerId,
) -> Result<session::ActiveModel, StoreError> {
    let created_at = db_time(new.created_at);
    Ok(session::ActiveModel {
        id: Set(new.id.0),
        user_id: Set(new.user_id.0),
        title: Set(new.title.as_str().into()),
        profile_id: Set(new.profile_id.as_str().into()),
        pinned: Set(false),
        todo: Set("[]".to_owned()),
        scratchpad: Set(to_json(&Scratchpad::new())?),
        context_token_count: Set(0),
        last_seq: Set(0),
        message_count: Set(0),
        last_run_id: Set(None),
        owner: Set(Some(owner.0.as_str().into())),
        epoch: Set(FIRST_EPOCH),
        deleted_at: Set(None),
        created_at: Set(created_at),
        last_active: Set(created_at),
        branch_id: Set(ROOT_BRANCH.into()),
        plan: Set(None),
        consent_mode: Set(Some(name_of(&new.mode)?)),
        tainted_at: Set(None),
        archived: Set(false),
        ephemeral: Set(new.ephemeral),
        shared_at: Set(None),
        held: Set(false),
        tags: Set("[]".to_owned()),
        model: Set(new.model.as_deref().map(Into::into)),
    })
}

/// Writes a new session's row, and the branch that it begins with.
pub(super) async fn insert_session(
    transaction: &DatabaseTransaction,
    new: &NewSession,
    row: session::ActiveModel,
) -> Result<(), StoreError> {
    let root = branch_to_row(new.id, &Branch::root(), db_time(new.created_at))?;
    session::Entity::insert(row)
        .exec_without_returning(transaction)
        .await?;
    branch::Entity::insert(root)
        .exec_without_returning(transaction)
        .await?;
    Ok(())
}

/// Refuses a session that does not exist or is deleted.
pub(super) async fn require_session(
    db: &impl ConnectionTrait,
    id: SessionId,
) -> Result<(), StoreError> {
    session::Entity::find_by_id(id.0)
        .filter(session::Column::DeletedAt.is_null())
        .select_only()
        .column(session::Column::Id)
        .into_tuple::<Uuid>()
        .one(db)
        .await?
        .map(drop)
        .ok_or(StoreError::SessionNotFound)
}

/// Sessions with their newest foreground run.
fn summaries() -> Select<session::Entity> {
    let last_run: RelationDef = session::Entity::belongs_to(run::Entity)
        .from(session::Column::LastRunId)
        .to(run::Column::Id)
        .into();
    session::Entity::find().join(JoinType::LeftJoin, last_run)
}

/// How many requests for consent wait in a session.
pub(super) fn requests_waiting() -> Expr {
    Query::select()
        .expr(Expr::col((approval::Entity, approval::Column::Id)).count())
        .from(approval::Entity)
        .and_where(
            Expr::col((approval::Entity, approval::Column::SessionId))
                .equals((session::Entity, session::Column::Id)),
        )
        .and_where(Expr::col((approval::Entity, approval::Column::Decision)).is_null())
        .take()
        .into()
}
