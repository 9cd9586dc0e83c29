//! Facts in their rows, and what a change of one does: the steps of the transactions in
//! [`super::memory`] and [`super::memory_reading`].

use chrono::{DateTime, Utc};
use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::sea_query::{Expr, ExprTrait, OnConflict};
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait,
    PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
};
use uuid::Uuid;

use super::entities::{memory_fact, memory_forgotten, memory_former, memory_summary};
use super::memory::SavedFact;
use super::values::db_time;
use super::{StoreError, delete};
use crate::domain::memory::{FactName, MAX_FACTS, MAX_HISTORY, Merge, NewFact, merge, summary};
use crate::protocol::ids::{MessageId, SessionId, UserId};
use crate::protocol::memory::{Fact, FactSource, FormerFact};

/// Takes turns with every other change of this user's memory, until the transaction ends.
pub(super) async fn lock(
    transaction: &DatabaseTransaction,
    user: UserId,
    now: DateTime<Utc>,
) -> Result<(), DbErr> {
    let row = memory_summary::ActiveModel {
        user_id: Set(user.0),
        text: Set("".into()),
        is_draft: Set(false),
        revision: Set(0),
        updated_at: Set(db_time(now)),
    };
    let unchanged = OnConflict::column(memory_summary::Column::UserId)
        .update_column(memory_summary::Column::UserId)
        .to_owned();
    memory_summary::Entity::insert(row)
        .on_conflict(unchanged)
        .exec_without_returning(transaction)
        .await?;
    Ok(())
}

/// Writes the summary anew after a change of the facts, without a model.
pub(super) async fn refresh(
    transaction: &DatabaseTransaction,
    user: UserId,
    now: DateTime<Utc>,
) -> Result<(), StoreError> {
    let text = summary::fallback(&facts(transaction, user).await?);
    let revision = Expr::col(memory_summary::Column::Revision).add(1);
    memory_summary::Entity::update_many()
        .set(memory_summary::ActiveModel {
            is_draft: Set(!text.is_empty()),
            text: Set(text.into()),
            updated_at: Set(db_time(now)),
            ..Default::default()
        })
        .col_expr(memory_summary::Column::Revision, revision)
        .filter(memory_summary::Column::UserId.eq(user.0))
        .exec(transaction)
        .await?;
    Ok(())
}

/// Puts a fact in its place. The caller holds the [`lock`].
pub(super) async fn put(
    transaction: &DatabaseTransaction,
    user: UserId,
    new: NewFact,
) -> Result<SavedFact, StoreError> {
    let known = find(transaction, user, &new.name).await?;
    let forgotten_at = match known {
        Some(_) => None,
        None => forgotten_at(transaction, user, &new.name).await?,
    };
    match (merge(known.as_ref(), forgotten_at, &new), known) {
        (Merge::Keep, known) => Ok(SavedFact::Kept(known)),
        (Merge::Create, _) | (_, None) => create(transaction, user, new).await,
        (Merge::Renew, Some(known)) => {
            let fact = Fact {
                updated_at: db_time(new.at),
                ..known
            };
            update(transaction, user, &fact).await?;
            Ok(SavedFact::Kept(Some(fact)))
        }
        (Merge::Confirm, Some(known)) => {
            let fact = Fact {
                created_at: known.created_at,
                updated_at: std::cmp::max(known.updated_at, db_time(new.at)),
                ..fact_of(new)
            };
            update(transaction, user, &fact).await?;
            Ok(SavedFact::Confirmed(fact))
        }
        (Merge::Replace, Some(known)) => {
            let former = known.clone();
            let fact = Fact {
                created_at: known.created_at,
                ..fact_of(new)
            };
            keep_former(transaction, user, known, fact.updated_at).await?;
            update(transaction, user, &fact).await?;
            Ok(SavedFact::Replaced { fact, former })
        }
    }
}

/// Puts a fact in its place, and ends the transaction. The caller holds the [`lock`].
pub(super) async fn save(
    transaction: DatabaseTransaction,
    user: UserId,
    new: NewFact,
) -> Result<SavedFact, StoreError> {
    let at = new.at;
    let saved = put(&transaction, user, new).await?;
    if saved.changed() {
        refresh(&transaction, user, at).await?;
    }
    transaction.commit().await?;
    Ok(saved)
}

async fn create(
    transaction: &DatabaseTransaction,
    user: UserId,
    new: NewFact,
) -> Result<SavedFact, StoreError> {
    let count = memory_fact::Entity::find()
        .filter(memory_fact::Column::UserId.eq(user.0))
        .count(transaction)
        .await?;
    if count >= MAX_FACTS {
        return Ok(SavedFact::Full);
    }
    let name = new.name.clone();
    let fact = fact_of(new);
    memory_fact::Entity::insert(fact_to_row(user, &fact))
        .exec_without_returning(transaction)
        .await?;
    delete::<memory_forgotten::Entity>(transaction, forgotten_is(user, &name)).await?;
    Ok(SavedFact::Created(fact))
}

async fn update(
    transaction: &DatabaseTransaction,
    user: UserId,
    fact: &Fact,
) -> Result<(), StoreError> {
    let mut row = fact_to_row(user, fact);
    row.user_id = NotSet;
    row.category = NotSet;
    row.key = NotSet;
    memory_fact::Entity::update_many()
        .set(row)
        .filter(is(user, &FactName::of(fact)))
        .exec(transaction)
        .await?;
    Ok(())
}

/// Puts a value into the history, and drops the oldest beyond its bound.
async fn keep_former(
    transaction: &DatabaseTransaction,
    user: UserId,
    known: Fact,
    replaced_at: DateTime<Utc>,
) -> Result<(), StoreError> {
    let name = FactName::of(&known);
    memory_former::Entity::insert(memory_former::ActiveModel {
        id: NotSet,
        user_id: Set(user.0),
        category: Set(known.category),
        key: Set(known.key),
        value: Set(known.value.into()),
        source_session_id: Set(known.source.session_id.map(|id| id.0)),
        source_message_id: Set(known.source.message_id.map(|id| id.0)),
        confidence: Set(known.confidence.into()),
        replaced_at: Set(replaced_at),
    })
    .exec_without_returning(transaction)
    .await?;
    let first_too_old: Option<i64> = memory_former::Entity::find()
        .select_only()
        .column(memory_former::Column::Id)
        .filter(former_of(user, &name))
        .order_by_desc(memory_former::Column::Id)
        .offset(MAX_HISTORY)
        .limit(1)
        .into_tuple()
        .one(transaction)
        .await?;
    if let Some(id) = first_too_old {
        memory_former::Entity::delete_many()
            .filter(former_of(user, &name))
            .filter(memory_former::Column::Id.lte(id))
            .exec(transaction)
            .await?;
    }
    Ok(())
}

pub(super) async fn facts(db: &impl ConnectionTrait, user: UserId) -> Result<Vec<Fact>, DbErr> {
    let rows = memory_fact::Entity::find()
        .filter(memory_fact::Column::UserId.eq(user.0))
        .limit(MAX_FACTS)
        .all(db)
        .await?;
    let mut facts: Vec<Fact> = rows.into_iter().map(fact_from_row).collect();
    // Here, since the databases sort text in different ways.
    facts.sort_by(|a, b| (&a.category, &a.key).cmp(&(&b.category, &b.key)));
    Ok(facts)
}

pub(super) async fn find(
    db: &impl ConnectionTrait,
    user: UserId,
    name: &FactName,
) -> Result<Option<Fact>, DbErr> {
    let row = memory_fact::Entity::find()
        .filter(is(user, name))
        .one(db)
        .await?;
    Ok(row.map(fact_from_row))
}

/// When a fact was last changed or forgotten.
pub(super) async fn changed_at(
    transaction: &DatabaseTransaction,
    user: UserId,
    name: &FactName,
) -> Result<Option<DateTime<Utc>>, DbErr> {
    match find(transaction, user, name).await? {
        Some(known) => Ok(Some(known.updated_at)),
        None => forgotten_at(transaction, user, name).await,
    }
}

async fn forgotten_at(
    transaction: &DatabaseTransaction,
    user: UserId,
    name: &FactName,
) -> Result<Option<DateTime<Utc>>, DbErr> {
    let row = memory_forgotten::Entity::find()
        .filter(forgotten_is(user, name))
        .one(transaction)
        .await?;
    Ok(row.map(|row| row.forgotten_at))
}

pub(super) fn is(user: UserId, name: &FactName) -> Condition {
    Condition::all()
        .add(memory_fact::Column::UserId.eq(user.0))
        .add(memory_fact::Column::Category.eq(name.category.as_str()))
        .add(memory_fact::Column::Key.eq(name.key.as_str()))
}

pub(super) fn former_of(user: UserId, name: &FactName) -> Condition {
    Condition::all()
        .add(memory_former::Column::UserId.eq(user.0))
        .add(memory_former::Column::Category.eq(name.category.as_str()))
        .add(memory_former::Column::Key.eq(name.key.as_str()))
}

fn forgotten_is(user: UserId, name: &FactName) -> Condition {
    Condition::all()
        .add(memory_forgotten::Column::UserId.eq(user.0))
        .add(memory_forgotten::Column::Category.eq(name.category.as_str()))
        .add(memory_forgotten::Column::Key.eq(name.key.as_str()))
}

fn fact_of(new: NewFact) -> Fact {
    let at = db_time(new.at);
    Fact {
        category: new.name.category,
        key: new.name.key,
        value: new.value,
        source: new.source,
        confidence: new.confidence,
        created_at: at,
        updated_at: at,
    }
}

fn fact_to_row(user: UserId, fact: &Fact) -> memory_fact::ActiveModel {
    memory_fact::ActiveModel {
        user_id: Set(user.0),
        category: Set(fact.category.clone()),
        key: Set(fact.key.clone()),
        value: Set(fact.value.as_str().into()),
        source_session_id: Set(fact.source.session_id.map(|id| id.0)),
        source_message_id: Set(fact.source.message_id.map(|id| id.0)),
        confidence: Set(fact.confidence.into()),
        created_at: Set(fact.created_at),
        updated_at: Set(fact.updated_at),
    }
}

fn fact_from_row(row: memory_fact::Model) -> Fact {
    Fact {
        category: row.category,
        key: row.key,
        value: row.value.0,
        source: source(row.source_session_id, row.source_message_id),
        confidence: row.confidence as f32,
        created_at: row.created_at,
        updated_at: row.updated_at,
    }
}

pub(super) fn former_from_row(row: memory_former::Model) -> FormerFact {
    FormerFact {
        value: row.value.0,
        source: source(row.source_session_id, row.source_message_id),
        confidence: row.confidence as f32,
        replaced_at: row.replaced_at,
    }
}

/// A message is found through its session: with the one gone, so is the other.
fn source(session: Option<Uuid>, message: Option<Uuid>) -> FactSource {
    FactSource {
        session_id: session.map(SessionId),
        message_id: session.and(message).map(MessageId),
    }
}
