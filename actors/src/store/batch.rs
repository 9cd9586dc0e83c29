//! The rows of commits, and how those of a group are written together.

use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{
    ActiveModelTrait, ActiveValue, ColumnTrait, DatabaseTransaction, DbErr, EntityTrait,
    QueryFilter,
};

use super::entities::{
    approval, branch, chunk, consent_entry, consent_rule, event, message, model_call, prompt_part,
    queued_message, run,
};
use super::error::{Failure, classify};
use super::held_text::HeldTexts;
use super::streamed;
use super::trip::Trip;
use super::values::DbText;
use crate::domain::session::change::Closed;
use crate::protocol::ids::{ApprovalId, MessageId, RunId, SessionId};
use crate::protocol::people::PersonRef;

/// Why rows could not be written.
#[derive(Debug)]
pub(super) enum WriteError {
    /// One of the commits breaks a rule of the schema, or changes what is not there.
    Refused(String),
    Database(DbErr),
}

impl From<DbErr> for WriteError {
    fn from(error: DbErr) -> Self {
        match classify(&error) {
            Failure::Refused => Self::Refused(error.to_string()),
            _ => Self::Database(error),
        }
    }
}

/// Where a commit's messages begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstPlace {
    pub(super) ordinal: i64,
    /// The branch that was shown before this commit.
    pub(super) branch_id: i64,
}

/// The end of a run: what changes on its row.
#[derive(Clone, Debug)]
pub(super) struct RunChange {
    pub(super) session_id: SessionId,
    pub(super) run_id: RunId,
    pub(super) values: run::ActiveModel,
}

#[derive(Clone, Debug)]
pub(super) enum BranchChange {
    Add(Box<branch::ActiveModel>),
    /// It is to be there.
    Show(u32),
    Context(u32, String),
}

#[derive(Clone, Debug)]
pub(super) enum QueueChange {
    Add(Box<queued_message::ActiveModel>),
    Remove(MessageId),
    Edit(MessageId, DbText, Option<PersonRef>),
}

/// Rows of a commit, and then of all that are written with it.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    pub(super) events: Vec<event::ActiveModel>,
    pub(super) chunks: Vec<chunk::ActiveModel>,
    /// Streamed text that is over with it.
    pub(super) closed: Vec<Closed>,
    /// Their ordinals are given when they are written, and so is the branch of those that
    /// stand before this commit shows another one.
    pub(super) messages: Vec<message::ActiveModel>,
    /// In the order in which they came.
    pub(super) branches: Vec<(SessionId, BranchChange)>,
    pub(super) runs: Vec<run::ActiveModel>,
    pub(super) run_changes: Vec<RunChange>,
    /// In the order in which they came.
    pub(super) queue: Vec<(SessionId, QueueChange)>,
    pub(super) approvals: Vec<approval::ActiveModel>,
    /// Answers, each to a request that waits.
    pub(super) answers: Vec<(SessionId, ApprovalId, approval::ActiveModel)>,
    pub(super) rules: Vec<consent_rule::ActiveModel>,
    pub(super) consented: Vec<consent_entry::ActiveModel>,
    pub(super) prompt_parts: Vec<prompt_part::ActiveModel>,
    pub(super) model_calls: Vec<model_call::ActiveModel>,
}

impl Rows {
    /// Takes in the rows of a commit that was let through.
    pub(super) fn add(&mut self, mut rows: Self, first: FirstPlace) {
        for (ordinal, message) in (first.ordinal..).zip(&mut rows.messages) {
            message.ordinal = ActiveValue::Set(ordinal);
            if message.branch_id.is_not_set() {
                message.branch_id = ActiveValue::Set(first.branch_id);
            }
        }
        self.events.append(&mut rows.events);
        self.chunks.append(&mut rows.chunks);
        self.closed.append(&mut rows.closed);
        self.messages.append(&mut rows.messages);
        self.branches.append(&mut rows.branches);
        self.runs.append(&mut rows.runs);
        self.run_changes.append(&mut rows.run_changes);
        self.queue.append(&mut rows.queue);
        self.approvals.append(&mut rows.approvals);
        self.answers.append(&mut rows.answers);
        self.rules.append(&mut rows.rules);
        self.consented.append(&mut rows.consented);
        self.prompt_parts.append(&mut rows.prompt_parts);
        self.model_calls.append(&mut rows.model_calls);
    }

    /// What only adds rows goes first, and in one trip where the database takes it so.
    pub(super) async fn write(self, transaction: &DatabaseTransaction) -> Result<(), WriteError> {
        // A part that is sent again is the same one.
        let same_part =
            OnConflict::columns([prompt_part::Column::SessionId, prompt_part::Column::Sha256])
                .do_nothing()
                .to_owned();
        let held = HeldTexts::of_rows(&self.messages, &self.closed);
        let mut trip = Trip::on(transaction);
        trip.insert(self.events, None);
        trip.insert(self.chunks, Some(&goes_on()));
        trip.insert(self.messages, None);
        trip.insert(self.runs, None);
        trip.insert(self.approvals, None);
        trip.insert(self.consented, None);
        trip.insert(self.prompt_parts, Some(&same_part));
        trip.insert(self.model_calls, None);
        streamed::settle(trip, &self.closed, held).await?;
        for (session_id, change) in self.branches {
            write_branch_change(transaction, session_id, change).await?;
        }
        for change in self.run_changes {
            let changed = run::Entity::update_many()
                .set(change.values)
                .filter(run::Column::Id.eq(change.run_id.0))
                .filter(run::Column::SessionId.eq(change.session_id.0))
                .exec(transaction)
                .await?;
            found(changed.rows_affected, || {
                format!("run {} never started", change.run_id)
            })?;
        }
        for (session_id, change) in self.queue {
            write_queue_change(transaction, session_id, change).await?;
        }
        for (session_id, id, values) in self.answers {
            let answered = approval::Entity::update_many()
                .set(values)
                .filter(approval::Column::Id.eq(id.0))
                .filter(approval::Column::SessionId.eq(session_id.0))
                .filter(approval::Column::Decision.is_null())
                .exec(transaction)
                .await?;
            found(answered.rows_affected, || {
                format!("no request {id} waits for an answer")
            })?;
        }
        let newer_rule = OnConflict::columns([
            consent_rule::Column::UserId,
            consent_rule::Column::Tool,
            consent_rule::Column::Key,
        ])
        .update_columns([
            consent_rule::Column::Words,
            consent_rule::Column::Phrase,
            consent_rule::Column::Decision,
            consent_rule::Column::CreatedAt,
        ])
        // A question from before the rule that forbids does not undo it.
        .action_and_where(consent_rule::Column::Decision.ne("deny"))
        .to_owned();
        // One by one: an insert must not change the same row twice.
        for rule in self.rules {
            insert(transaction, vec![rule], Some(&newer_rule)).await?;
        }
        Ok(())
    }
}

/// A row takes in a piece where it has those before it and no more: one that is sent again is there.
fn goes_on() -> OnConflict {
    let joined = r#""chunks"."text" || "excluded"."text""#;
    let is_next = r#""chunks"."pieces" + 1 = "excluded"."pieces""#;
    OnConflict::columns([
        chunk::Column::RunId,
        chunk::Column::PartId,
        chunk::Column::Offset,
    ])
    .value(chunk::Column::Text, Expr::cust(joined))
    .update_column(chunk::Column::Pieces)
    .action_and_where(Expr::cust(is_next))
    .to_owned()
}

async fn write_branch_change(
    transaction: &DatabaseTransaction,
    session_id: SessionId,
    change: BranchChange,
) -> Result<(), WriteError> {
    match change {
        BranchChange::Add(row) => Ok(insert(transaction, vec![*row], None).await?),
        BranchChange::Show(id) => {
            let there = branch::Entity::find_by_id((session_id.0, id.into()))
                .one(transaction)
                .await?;
            found(there.is_some().into(), || {
                format!("there is no branch {id}")
            })
        }
        BranchChange::Context(id, context) => {
            let changed = branch::Entity::update_many()
                .set(branch::ActiveModel {
                    context: ActiveValue::Set(context),
                    ..Default::default()
                })
                .filter(branch::Column::SessionId.eq(session_id.0))
                .filter(branch::Column::Id.eq(i64::from(id)))
                .exec(transaction)
                .await?;
            found(changed.rows_affected, || format!("there is no branch {id}"))
        }
    }
}

async fn write_queue_change(
    transaction: &DatabaseTransaction,
    session_id: SessionId,
    change: QueueChange,
) -> Result<(), WriteError> {
    match change {
        QueueChange::Add(row) => Ok(insert(transaction, vec![*row], None).await?),
        QueueChange::Remove(message_id) => {
            let removed = queued_message::Entity::delete_many()
                .filter(queued_message::Column::MessageId.eq(message_id.0))
                .filter(queued_message::Column::SessionId.eq(session_id.0))
                .exec(transaction)
                .await?;
            found(removed.rows_affected, || {
                format!("message {message_id} is not in the queue")
            })
        }
        QueueChange::Edit(message_id, content, author) => {
            let edited = queued_message::Entity::update_many()
                .set(queued_message::ActiveModel {
                    content: ActiveValue::Set(content),
                    author_id: ActiveValue::Set(author.as_ref().map(|author| author.id.0)),
                    author_name: ActiveValue::Set(author.map(|author| author.name.into())),
                    ..Default::default()
                })
                .filter(queued_message::Column::MessageId.eq(message_id.0))
                .filter(queued_message::Column::SessionId.eq(session_id.0))
                .exec(transaction)
                .await?;
            found(edited.rows_affected, || {
                format!("message {message_id} is not in the queue")
            })
        }
    }
}

fn found(rows: u64, otherwise: impl FnOnce() -> String) -> Result<(), WriteError> {
    if rows == 0 {
        return Err(WriteError::Refused(otherwise()));
    }
    Ok(())
}

async fn insert<A>(
    transaction: &DatabaseTransaction,
    rows: Vec<A>,
    on_conflict: Option<&OnConflict>,
) -> Result<(), DbErr>
where
    A: ActiveModelTrait,
{
    let mut trip = Trip::on(transaction);
    trip.insert(rows, on_conflict);
    trip.go().await
}
