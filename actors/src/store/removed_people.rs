//! People who go: nothing lets them in any more, and when nothing of theirs is left, nor do they.

use chrono::{DateTime, Utc};
use sea_orm::sea_query::{Expr, Query};
use sea_orm::{ActiveValue::Set, ColumnTrait, Condition, EntityTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::entities::{
    api_token, consent_entry, consent_rule, identity, invitation, memory_fact, memory_forgotten,
    memory_former, memory_summary, passkey, person_limit, power, recovery_code, session,
    session_link, session_person, used_token, user, web_login,
};
use super::invitations::take_back;
use super::people::{Changed, is_last_admin, present};
use super::rows::user_from_row;
use super::values::db_time;
use super::{Store, StoreError, delete};
use crate::protocol::ids::UserId;

impl Store {
    /// Takes from a person all that lets them in, and what is remembered of them. Their sessions
    /// are the engine's to clear away; when the last is gone, the person is
    /// ([`Store::forget_people`]).
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn remove_person(
        &self,
        id: UserId,
        at: DateTime<Utc>,
    ) -> Result<Changed, StoreError> {
        let transaction = self.begin_write().await?;
        let found = present().filter(user::Column::Id.eq(id.0));
        let Some(row) = found.one(&transaction).await? else {
            return Ok(Changed::Unknown);
        };
        let user = user_from_row(row)?;
        if is_last_admin(&transaction, &user).await? {
            return Ok(Changed::LastAdmin);
        }
        let of = id.0;
        macro_rules! delete_theirs {
            ($($table:ident),+ $(,)?) => {$(
                delete::<$table::Entity>(&transaction, $table::Column::UserId.eq(of)).await?;
            )+};
        }
        delete_theirs!(
            web_login,
            api_token,
            recovery_code,
            passkey,
            power,
            person_limit,
            identity,
            invitation,
            consent_rule,
            consent_entry,
            memory_fact,
            memory_forgotten,
            memory_former,
            memory_summary,
            session_person,
            used_token,
        );
        take_back(&transaction, id).await?;
        // Nobody reaches their sessions any more, before those are cleared away.
        let theirs = || {
            Query::select()
                .column(session::Column::Id)
                .from(session::Entity)
                .and_where(session::Column::UserId.eq(of))
                .take()
        };
        let shared = session_person::Column::SessionId.in_subquery(theirs());
        delete::<session_person::Entity>(&transaction, shared).await?;
        let linked = session_link::Column::SessionId.in_subquery(theirs());
        delete::<session_link::Entity>(&transaction, linked).await?;
        let row = user::ActiveModel {
            id: Set(of),
            name_key: Set(None),
            password: Set(None),
            removed_at: Set(Some(db_time(at))),
            ..Default::default()
        };
        user::Entity::update(row).exec(&transaction).await?;
        transaction.commit().await?;
        Ok(Changed::Done(user))
    }

    /// Deletes the sessions of people who were removed, as of `at`: nobody has them back, not even
    /// those that they had deleted later than that.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn delete_sessions_of_removed(&self, at: DateTime<Utc>) -> Result<(), StoreError> {
        let removed: Vec<Uuid> = user::Entity::find()
            .select_only()
            .column(user::Column::Id)
            .filter(user::Column::RemovedAt.is_not_null())
            .into_tuple()
            .all(&self.read)
            .await?;
        if removed.is_empty() {
            return Ok(());
        }
        session::Entity::update_many()
            .col_expr(session::Column::DeletedAt, Expr::value(db_time(at)))
            .filter(session::Column::UserId.is_in(removed))
            .filter(
                Condition::any()
                    .add(session::Column::DeletedAt.is_null())
                    .add(session::Column::DeletedAt.gt(db_time(at))),
            )
            .exec(&self.write)
            .await?;
        Ok(())
    }

    /// The people who were removed and of whom no session is left.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn left_behind(&self) -> Result<Vec<UserId>, StoreError> {
        let with_sessions = Query::select()
            .column(session::Column::UserId)
            .from(session::Entity)
            .to_owned();
        let gone: Vec<Uuid> = user::Entity::find()
            .select_only()
            .column(user::Column::Id)
            .filter(user::Column::RemovedAt.is_not_null())
            .filter(user::Column::Id.not_in_subquery(with_sessions))
            .into_tuple()
            .all(&self.read)
            .await?;
        Ok(gone.into_iter().map(UserId).collect())
    }

    /// Forgets these for good: they were [`left_behind`](Self::left_behind), and begin no session
    /// any more.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub async fn forget_people(&self, gone: &[UserId]) -> Result<(), StoreError> {
        if !gone.is_empty() {
            user::Entity::delete_many()
                .filter(user::Column::Id.is_in(gone.iter().map(|id| id.0)))
                .filter(user::Column::RemovedAt.is_not_null())
                .exec(&self.write)
                .await?;
        }
        Ok(())
    }

    /// Everybody of whom there may be files: who was removed, too, until they are forgotten.
    ///
    /// # Errors
    /// As the store's other reads.
    pub async fn holders_of_files(&self) -> Result<Vec<UserId>, StoreError> {
        let ids: Vec<Uuid> = user::Entity::find()
            .select_only()
            .column(user::Column::Id)
            .into_tuple()
            .all(&self.read)
            .await?;
        Ok(ids.into_iter().map(UserId).collect())
    }
}
