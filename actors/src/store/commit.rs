//! Group commit: several sessions' steps in one transaction, each with its own fate.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use sea_orm::sea_query::{Condition, Expr, ExprTrait, LockType, Query};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, DerivePartialModel, EntityTrait,
    QueryFilter, QuerySelect, TransactionTrait,
};
use uuid::Uuid;

use super::batch::{FirstPlace, Rows, WriteError};
use super::entities::{event, session};
use super::error::{Failure, classify};
use super::prepare::Prepared;
use super::rows::as_read;
use super::types::Commit;
use super::values::DbText;
use super::{Store, StoreError};
use crate::protocol::ids::SessionId;

/// What became of each commit of a group, in order.
type Fates = Vec<Result<(), StoreError>>;

impl Store {
    /// Writes all of these in one transaction and tells the fate of each, in order. When
    /// this returns, what is `Ok` is on disk.
    ///
    /// A commit that is refused ([`StoreError::Fenced`], [`StoreError::SessionNotFound`],
    /// [`StoreError::Corrupt`]) leaves nothing behind and does not touch the others. Where
    /// the database fails, all are [`StoreError::Unavailable`] and nothing is written.
    ///
    /// A commit whose events are in the log already, byte for byte, is `Ok` and changes
    /// nothing: a caller that lost the acknowledgement may send it again.
    ///
    /// Rows and their SQL are made where the returned future is polled. Dropping it leaves it open
    /// whether the group was written.
    pub async fn commit_group(&self, commits: Vec<Commit>) -> Vec<Result<(), StoreError>> {
        if commits.is_empty() {
            return Vec::new();
        }
        let count = commits.len();
        let writing = AssertUnwindSafe(self.write_commits(commits)).catch_unwind();
        writing.await.unwrap_or_else(|_| {
            let panicked = StoreError::Unsettled("writing it panicked".to_owned());
            vec![Err(panicked); count]
        })
    }

    async fn write_commits(&self, commits: Vec<Commit>) -> Fates {
        let prepared: Vec<_> = commits.into_iter().map(Prepared::new).collect();
        // SQLite itself has waited for its busy time-out before each of these.
        let policy = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(20))
            .with_max_times(3)
            .with_jitter();
        let written = (|| self.write_group(&prepared))
            .retry(policy)
            .when(|error| classify(error) == Failure::Contention)
            .await;
        written.unwrap_or_else(|error| vec![Err(StoreError::unavailable(&error)); prepared.len()])
    }

    async fn write_group(&self, commits: &[Result<Prepared, StoreError>]) -> Result<Fates, DbErr> {
        match self.write_together(commits).await {
            Ok(fates) => Ok(fates),
            Err(WriteError::Refused(_)) => self.write_apart(commits).await,
            Err(WriteError::Database(error)) => Err(error),
        }
    }

    /// The usual way: the rows of all commits go in together, a statement a table.
    async fn write_together(
        &self,
        commits: &[Result<Prepared, StoreError>],
    ) -> Result<Fates, WriteError> {
        let transaction = self.begin_write().await?;
        let streaming = Streaming::read(&transaction, commits.iter().flatten()).await?;
        let mut rows = Rows::default();
        let mut fates = Vec::with_capacity(commits.len());
        let mut written = Vec::new();
        for commit in commits {
            fates.push(match commit {
                Ok(commit) => match claim(&transaction, &streaming, commit).await? {
                    Ok(Claim::Granted(place)) => {
                        rows.add(commit.rows.clone(), place);
                        written.push((commit, place));
                        Ok(())
                    }
                    Ok(Claim::WrittenBefore) => Ok(()),
                    Err(error) => Err(error),
                },
                Err(error) => Err(error.clone()),
            });
        }
        rows.write(&transaction).await?;
        transaction.commit().await?;
        for (commit, place) in written {
            self.remember(commit, place);
        }
        Ok(fates)
    }

    /// What was written of a conversation is read no more. That of a branch that the commit itself
    /// makes is, since its path is another one.
    fn remember(&self, commit: &Prepared, place: FirstPlace) {
        if commit.messages.is_empty() || commit.shows.is_some() {
            return;
        }
        let (Ok(branch), Ok(first)) = (place.branch_id.try_into(), place.ordinal.try_into()) else {
            return;
        };
        let as_read = commit.messages.iter().map(as_read).collect();
        self.recent
            .append(commit.session_id, branch, first, as_read);
    }

    /// The way to find out which commit breaks a rule of the schema, and to write the
    /// others all the same: each behind a savepoint.
    async fn write_apart(&self, commits: &[Result<Prepared, StoreError>]) -> Result<Fates, DbErr> {
        let transaction = self.begin_write().await?;
        let mut fates = Vec::with_capacity(commits.len());
        for commit in commits {
            let savepoint = transaction.begin().await?;
            let fate = match commit {
                Ok(commit) => match write_one(&savepoint, commit).await {
                    Ok(fate) => fate,
                    Err(WriteError::Refused(reason)) => Err(StoreError::Corrupt(reason)),
                    Err(WriteError::Database(error)) => return Err(error),
                },
                Err(error) => Err(error.clone()),
            };
            match fate {
                Ok(()) => savepoint.commit().await?,
                Err(_) => savepoint.rollback().await?,
            }
            fates.push(fate);
        }
        transaction.commit().await?;
        Ok(fates)
    }
}

async fn write_one(
    savepoint: &DatabaseTransaction,
    commit: &Prepared,
) -> Result<Result<(), StoreError>, WriteError> {
    let streaming = Streaming::read(savepoint, [commit]).await?;
    match claim(savepoint, &streaming, commit).await? {
        Ok(Claim::Granted(place)) => {
            let mut rows = Rows::default();
            rows.add(commit.rows.clone(), place);
            rows.write(savepoint).await?;
            Ok(Ok(()))
        }
        Ok(Claim::WrittenBefore) => Ok(Ok(())),
        Err(error) => Ok(Err(error)),
    }
}

/// What a commit may do.
enum Claim {
    /// It may write, from this place on.
    Granted(FirstPlace),
    /// Its acknowledgement was lost, not its rows.
    WrittenBefore,
}

/// Sessions whose commits leave their rows as they are, as those of streamed text do. All of them
/// are read at once, and held until the transaction ends.
struct Streaming(HashMap<Uuid, Standing>);

/// How a session stands, as far as it decides who may write.
#[derive(Debug, DerivePartialModel)]
#[sea_orm(entity = "session::Entity")]
struct Standing {
    id: Uuid,
    owner: Option<DbText>,
    epoch: i64,
    last_seq: i64,
    message_count: i64,
    branch_id: i64,
    deleted_at: Option<DateTime<Utc>>,
}

impl Standing {
    /// Whether it is the committer's, and was taken by nobody since.
    fn is_of(&self, commit: &Prepared) -> bool {
        let owner = self.owner.as_ref();
        owner.is_some_and(|owner| owner.0 == commit.owner.0) && self.epoch == commit.epoch
    }

    fn is_there_for(&self, commit: &Prepared) -> bool {
        commit.may_be_deleted || self.deleted_at.is_none()
    }

    /// Where a commit that leaves the row as it is may write.
    fn place_for(&self, commit: &Prepared) -> Option<FirstPlace> {
        let goes_on = self.is_of(commit)
            && self.is_there_for(commit)
            && commit.chunks_after.is_none_or(|seq| self.last_seq >= seq);
        goes_on.then_some(FirstPlace {
            ordinal: self.message_count,
            branch_id: self.branch_id,
        })
    }
}

impl Streaming {
    async fn read<'a>(
        transaction: &DatabaseTransaction,
        commits: impl IntoIterator<Item = &'a Prepared>,
    ) -> Result<Self, DbErr> {
        let mut ids: Vec<Uuid> = commits
            .into_iter()
            .filter(|commit| !commit.moves_session())
            .map(|commit| commit.session_id.0)
            .collect();
        let Some(first) = ids.first().copied() else {
            return Ok(Self(HashMap::new()));
        };
        // Few lengths, as each is a statement that the connection keeps.
        ids.resize(ids.len().next_power_of_two(), first);
        let found = session::Entity::find()
            .filter(session::Column::Id.is_in(ids))
            .lock(LockType::Share)
            .into_partial_model::<Standing>()
            .all(transaction)
            .await?;
        Ok(Self(found.into_iter().map(|row| (row.id, row)).collect()))
    }
}

/// Checks the commit against its session and moves the session on, in one statement: who
/// is fenced finds no row. Holds the row until the transaction ends.
async fn claim(
    transaction: &DatabaseTransaction,
    streaming: &Streaming,
    commit: &Prepared,
) -> Result<Result<Claim, StoreError>, WriteError> {
    if !commit.moves_session() {
        let row = streaming.0.get(&commit.session_id.0);
        return match row.and_then(|row| row.place_for(commit)) {
            Some(place) => Ok(Ok(Claim::Granted(place))),
            None => refusal(transaction, commit).await,
        };
    }
    let own = Condition::all()
        .add(session::Column::Id.eq(commit.session_id.0))
        .add(session::Column::Owner.eq(DbText::from(commit.owner.0.as_str())))
        .add(session::Column::Epoch.eq(commit.epoch))
        .add_option(
            commit
                .seqs
                .map(|(first, _)| session::Column::LastSeq.eq(first - 1)),
        )
        .add_option(
            commit
                .chunks_after
                .map(|seq| session::Column::LastSeq.gte(seq)),
        )
        .add_option((!commit.may_be_deleted).then(|| session::Column::DeletedAt.is_null()));
    let count = Expr::col(session::Column::MessageCount).add(commit.message_count());
    let seq = commit
        .seqs
        .map(|(_, last)| (session::Column::LastSeq, last.into()));
    let update = Query::update()
        .table(session::Entity)
        .values(commit.session_values.iter().cloned())
        .value(session::Column::MessageCount, count)
        .values(seq)
        .cond_where(own)
        .returning(
            Query::returning().columns([session::Column::MessageCount, session::Column::BranchId]),
        )
        .take();
    let Some(row) = transaction.query_one(&update).await? else {
        return refusal(transaction, commit).await;
    };
    let message_count: i64 = row.try_get_by(0)?;
    let place = FirstPlace {
        ordinal: message_count - commit.message_count(),
        branch_id: row.try_get_by(1)?,
    };
    if let Some(shows) = commit.shows {
        show_branch(transaction, commit.session_id, shows).await?;
    }
    Ok(Ok(Claim::Granted(place)))
}

/// Done apart from the claim, which is to tell what was shown before; and before the next
/// commit of the group, which goes on from there.
async fn show_branch(
    transaction: &DatabaseTransaction,
    id: SessionId,
    branch_id: u32,
) -> Result<(), DbErr> {
    session::Entity::update_many()
        .col_expr(session::Column::BranchId, Expr::value(i64::from(branch_id)))
        .filter(session::Column::Id.eq(id.0))
        .exec(transaction)
        .await?;
    Ok(())
}

/// Why a commit found no row to claim.
async fn refusal(
    transaction: &DatabaseTransaction,
    commit: &Prepared,
) -> Result<Result<Claim, StoreError>, WriteError> {
    let found = session::Entity::find_by_id(commit.session_id.0)
        .into_partial_model::<Standing>()
        .one(transaction)
        .await?;
    let Some(row) = found.filter(|row| row.is_there_for(commit)) else {
        return Ok(Err(StoreError::SessionNotFound));
    };
    if !row.is_of(commit) {
        return Ok(Err(StoreError::Fenced));
    }
    if !commit.moves_session()
        && let Some(place) = row.place_for(commit)
    {
        // A commit before it in the group brought the session so far.
        return Ok(Ok(Claim::Granted(place)));
    }
    if let Some((first, last)) = commit.seqs
        && last <= row.last_seq
    {
        let told = event::Entity::find()
            .filter(event::Column::SessionId.eq(commit.session_id.0))
            .filter(event::Column::Seq.between(first, last))
            .all(transaction)
            .await?;
        if commit.has_events(&told) {
            return Ok(Ok(Claim::WrittenBefore));
        }
    }
    Ok(Err(StoreError::Corrupt(format!(
        "session {} stands at event {}, which this commit does not go on from",
        commit.session_id, row.last_seq
    ))))
}
