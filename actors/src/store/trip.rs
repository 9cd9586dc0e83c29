//! Statements on their way to the database together.

use std::mem;

use sea_orm::sea_query::OnConflict;
use sea_orm::{
    ActiveModelTrait, ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, EntityTrait,
    FromQueryResult, QueryTrait, Statement, Values,
};

/// Keeps a statement's parameters well under what either database takes (32,766 and 65,535).
const ROWS_PER_INSERT: usize = 200;

/// The longest text of statements that go together: a few rows of every table.
const JOINED_BYTES: usize = 8 * 1024;

/// Statements of which nothing has to be known before the next one.
///
/// SQLite's connection is a thread, and each trip to it wakes that and the caller: it takes all
/// of them at once, unless they are long: sqlx keeps what it has prepared, and of many rows that
/// is much, for a trip that is short beside them. PostgreSQL takes one with parameters at a time.
pub(super) struct Trip<'a> {
    transaction: &'a DatabaseTransaction,
    statements: Vec<Statement>,
}

impl<'a> Trip<'a> {
    pub(super) fn on(transaction: &'a DatabaseTransaction) -> Self {
        Self {
            transaction,
            statements: Vec::new(),
        }
    }

    pub(super) fn insert<A>(&mut self, rows: Vec<A>, on_conflict: Option<&OnConflict>)
    where
        A: ActiveModelTrait,
    {
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let some = rows.by_ref().take(ROWS_PER_INSERT);
            let mut insert = <A::Entity as EntityTrait>::insert_many(some);
            if let Some(on_conflict) = on_conflict {
                insert = insert.on_conflict(on_conflict.clone());
            }
            self.add(&insert);
        }
    }

    pub(super) fn add(&mut self, statement: &impl QueryTrait) {
        let backend = self.transaction.get_database_backend();
        self.statements.push(statement.build(backend));
    }

    /// Where it goes.
    pub(super) fn transaction(&self) -> &'a DatabaseTransaction {
        self.transaction
    }

    pub(super) async fn go(mut self) -> Result<(), DbErr> {
        for statement in self.joined() {
            self.transaction.execute_raw(statement).await?;
        }
        Ok(())
    }

    /// Goes with a last statement, whose rows these are. What is added from here on goes next.
    pub(super) async fn fetch<M>(&mut self, last: &impl QueryTrait) -> Result<Vec<M>, DbErr>
    where
        M: FromQueryResult,
    {
        self.add(last);
        let mut statements = self.joined();
        let Some(last) = statements.pop() else {
            return Ok(Vec::new());
        };
        for statement in statements {
            self.transaction.execute_raw(statement).await?;
        }
        let rows = self.transaction.query_all_raw(last).await?;
        rows.iter()
            .map(|row| M::from_query_result(row, ""))
            .collect()
    }

    fn joined(&mut self) -> Vec<Statement> {
        let statements = mem::take(&mut self.statements);
        let bytes: usize = statements.iter().map(|it| it.sql.len()).sum();
        match self.transaction.get_database_backend() {
            DbBackend::Sqlite if bytes <= JOINED_BYTES => joined(statements).into_iter().collect(),
            _ => statements,
        }
    }
}

/// All of these as one, each with the parameters that follow those of the one before it.
fn joined(statements: Vec<Statement>) -> Option<Statement> {
    statements.into_iter().reduce(|mut all, next| {
        all.sql.push_str("; ");
        all.sql.push_str(&next.sql);
        let values = all.values.get_or_insert_with(|| Values(Vec::new()));
        values.0.extend(next.values.into_iter().flatten());
        all
    })
}
