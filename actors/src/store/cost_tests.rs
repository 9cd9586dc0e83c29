//! Promise 8: what a commit costs does not grow with the conversation.

use std::sync::{Arc, Mutex};

use sea_orm::{ConnectionTrait, DbBackend, Statement, TransactionTrait};

use super::Store;
use super::testing::{Part, TestDb, Writer, ended, on_both, run, user_message};
use super::types::Write;
use crate::protocol::ids::MessageId;
use crate::protocol::session::RunState;

on_both!(a_commit_costs_the_same_after_ten_thousand_messages);

async fn a_commit_costs_the_same_after_ten_thousand_messages(db: TestDb) {
    let mut store = db.open().await;
    let seen = Arc::new(Mutex::new(Vec::<Statement>::new()));
    let tell = Arc::clone(&seen);
    store.write.set_metric_callback(move |info| {
        tell.lock().unwrap().push(info.statement.clone());
    });

    let (small, large) = (Writer::new(&store).await, Writer::new(&store).await);
    for _ in 0..10 {
        let mut part = Part::text(&run(), MessageId::new());
        let seq = large.load().await.last_seq;
        let mut writes = Vec::new();
        for n in 1..=1_000 {
            writes.push(Write::Message(user_message("hello")));
            writes.push(large.event());
            writes.push(Write::Chunk(part.piece(seq + n, "hello")));
        }
        large.write(writes).await.unwrap();
    }
    assert_eq!(store.messages(large.id).await.unwrap().len(), 10_000);
    let mut costs = Vec::new();
    for writer in [&small, &large] {
        let last_seq = writer.load().await.last_seq;
        seen.lock().unwrap().clear();
        let (run, message) = (run(), user_message("one more"));
        let mut part = Part::text(&run, MessageId::new());
        let writes = vec![
            writer.event(),
            Write::Message(message),
            Write::RunStarted(run.clone()),
            Write::Chunk(part.piece(last_seq + 1, "a word")),
            ended(&run, RunState::Completed),
        ];
        writer.write(writes).await.unwrap();
        costs.push(std::mem::take(&mut *seen.lock().unwrap()));
    }
    let texts = |statements: &[Statement]| -> Vec<String> {
        statements.iter().map(|s| s.sql.clone()).collect()
    };
    assert_eq!(texts(&costs[0]), texts(&costs[1]));
    assert_eq!(costs[1].len(), 6, "a check, four inserts, an update");
    for statement in &costs[1] {
        let plan = plan(&store, statement).await;
        assert!(
            !plan.contains("SCAN") && !plan.contains("Seq Scan"),
            "{}\n{plan}",
            statement.sql
        );
    }
}

/// How the database would go about the statement. PostgreSQL reads a table of two rows as
/// a whole whatever indexes it has, so it is told not to where it has another way.
async fn plan(store: &Store, statement: &Statement) -> String {
    let planning = store.write.begin().await.unwrap();
    let (explain, column) = match planning.get_database_backend() {
        DbBackend::Sqlite => ("EXPLAIN QUERY PLAN", "detail"),
        _ => {
            let no_scans = "SET LOCAL enable_seqscan = off";
            planning.execute_unprepared(no_scans).await.unwrap();
            ("EXPLAIN", "QUERY PLAN")
        }
    };
    let explain = Statement {
        sql: format!("{explain} {}", statement.sql),
        ..statement.clone()
    };
    let rows = planning.query_all_raw(explain).await.unwrap();
    let lines = rows.iter().map(|row| row.try_get("", column).unwrap());
    lines.collect::<Vec<String>>().join("\n")
}
