//! Promise 8: what a turn costs does not grow with the conversation.

use std::sync::{Arc, Mutex};

use sea_orm::{ConnectionTrait, DbBackend, Statement, TransactionTrait, Values};

use super::Store;
use super::conversation::MAX_ORDINAL;
use super::testing::{Part, TestDb, Writer, ended, on_both, run, user_message};
use crate::domain::history::{Segment, path};
use crate::domain::session::stored::LoadedSession;
use crate::domain::session::write::{RunRow, Write};
use crate::protocol::ids::{MessageId, OwnerId, RunId};
use crate::protocol::message::Message;
use crate::protocol::session::RunState;

on_both!(
    a_commit_costs_the_same_after_ten_thousand_messages,
    a_turn_costs_the_same_after_ten_thousand_messages,
);

/// What the store asks its database, from here on.
fn watch(store: &mut Store) -> Arc<Mutex<Vec<Statement>>> {
    let seen = Arc::new(Mutex::new(Vec::<Statement>::new()));
    for connection in [&mut store.write, &mut store.read] {
        let tell = Arc::clone(&seen);
        connection.set_metric_callback(move |info| {
            tell.lock().unwrap().extend(apart(info.statement));
        });
    }
    seen
}

/// SQLite is told of several in one trip.
fn apart(statement: &Statement) -> Vec<Statement> {
    let mut values = statement.values.iter().flat_map(|all| all.0.clone());
    let texts = statement.sql.split("; ");
    let parts = texts.map(|sql| Statement {
        sql: sql.to_owned(),
        values: Some(Values(
            values.by_ref().take(sql.matches('?').count()).collect(),
        )),
        ..statement.clone()
    });
    if statement.db_backend == DbBackend::Sqlite {
        parts.collect()
    } else {
        vec![statement.clone()]
    }
}

fn texts(statements: &[Statement]) -> Vec<String> {
    statements.iter().map(|s| s.sql.clone()).collect()
}

async fn a_commit_costs_the_same_after_ten_thousand_messages(db: TestDb) {
    let mut store = db.open().await;
    let seen = watch(&mut store);

    let (small, large) = (Writer::new(&store).await, Writer::new(&store).await);
    for _ in 0..10 {
        let mut part = Part::text(&run(), MessageId::new());
        let seq = large.load().await.last_seq;
        let mut writes = Vec::new();
        for n in 1..=1_000 {
            writes.push(Write::Message(Arc::new(user_message("hello"))));
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
            Write::Message(Arc::new(message)),
            Write::RunStarted(run.clone()),
            Write::Chunk(part.piece(last_seq + 1, "a word")),
            ended(&run, RunState::Completed),
        ];
        writer.write(writes).await.unwrap();
        costs.push(std::mem::take(&mut *seen.lock().unwrap()));
    }
    assert_eq!(texts(&costs[0]), texts(&costs[1]));
    assert_eq!(costs[1].len(), 6, "a check, four inserts, an update");
    reads_by_index(&store, &costs[1]).await;
}

/// One turn: a message, its run, a call of the model, the answer.
fn turn(writer: &Writer, run: &RunRow, last_seq: u64, state: RunState) -> Vec<Write> {
    let asked = Message {
        id: run.message_id,
        run_id: run.run_id,
        ..user_message("go on")
    };
    let answer = Message::assistant(MessageId::new(), run.run_id, run.started_at);
    let child = RunRow {
        run_id: RunId::new(),
        parent_run_id: Some(run.run_id),
        call_id: None,
        ..run.clone()
    };
    let mut part = Part::text(run, answer.id);
    let mut writes = vec![
        writer.event(),
        Write::Message(Arc::new(asked)),
        Write::RunStarted(run.clone()),
        Write::RunStarted(child.clone()),
        Write::Chunk(part.piece(last_seq + 1, "a word")),
        Write::Message(Arc::new(answer)),
        writer.event(),
    ];
    if state != RunState::Running {
        writes.push(ended(&child, state));
        writes.push(ended(run, state));
    }
    writes
}

/// From the load of a session whose last run a crash cut off to its next answer.
async fn next_turn(writer: &Writer) -> LoadedSession {
    let owner = OwnerId::new();
    let loaded = writer.store.take_session(writer.id, &owner).await.unwrap();
    let writer = Writer {
        owner,
        epoch: loaded.epoch,
        ..writer.clone()
    };
    let cut_off = loaded.last_run.clone().unwrap().row;
    let mut ends: Vec<Write> = loaded
        .running_children
        .iter()
        .map(|child| ended(child, RunState::Interrupted))
        .collect();
    ends.push(ended(&cut_off, RunState::Interrupted));
    writer.write(ends).await.unwrap();

    let path = path(&loaded.branches, loaded.branch_id);
    let from = loaded.message_count - 4;
    let store = &writer.store;
    let ordinals = from..loaded.message_count;
    let context = store.context_messages(writer.id, &path, ordinals).await;
    assert_eq!(context.unwrap().len(), 4);
    let before = store.message_before(writer.id, &path, from).await;
    assert_eq!(before.unwrap().unwrap().ordinal, from - 1);
    let writes = turn(&writer, &run(), loaded.last_seq, RunState::Completed);
    writer.write(writes).await.unwrap();
    loaded
}

async fn a_turn_costs_the_same_after_ten_thousand_messages(db: TestDb) {
    let mut store = db.open().await;
    let seen = watch(&mut store);
    let (mut costs, mut loads) = (Vec::new(), Vec::new());
    for turns in [5_u64, 5_000] {
        let writer = Writer::new(&store).await;
        let mut writes = Vec::new();
        for n in 0..turns {
            let state = if n + 1 == turns {
                RunState::Running
            } else {
                RunState::Completed
            };
            writes.extend(turn(&writer, &run(), 2 * n, state));
            if writes.len() > 4_000 || n + 1 == turns {
                writer.write(std::mem::take(&mut writes)).await.unwrap();
            }
        }
        seen.lock().unwrap().clear();
        loads.push(next_turn(&writer).await);
        costs.push(std::mem::take(&mut *seen.lock().unwrap()));
        let count = store.messages(writer.id).await.unwrap().len();
        assert_eq!(count as u64, 2 * turns + 2);
    }
    assert_eq!(texts(&costs[0]), texts(&costs[1]));
    reads_by_index(&store, &costs[1]).await;

    seen.lock().unwrap().clear();
    let stretch = |branch, below| Segment { branch, below };
    let path = [stretch(0, Some(9)), stretch(1, Some(12)), stretch(3, None)];
    let id = loads[1].summary.id;
    let read = store
        .context_messages(id, &path, 2..MAX_ORDINAL)
        .await
        .unwrap();
    assert_eq!(read.len(), 7, "there is no branch but the root");
    let asked = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(asked.len(), 1);
    reads_by_index(&store, &asked).await;

    let sizes = loads.iter().map(|loaded| {
        (
            loaded.messages.len(),
            loaded.branches.len(),
            loaded.running_children.len(),
            loaded.unfinished_parts.len(),
            loaded.queue.len() + loaded.started_calls.len(),
        )
    });
    assert!(sizes.eq([(2, 1, 1, 0, 0); 2]), "{loads:?}");
}

/// Fails where one of these reads a table as a whole, or a session's part of one.
async fn reads_by_index(store: &Store, statements: &[Statement]) {
    for statement in statements {
        let plan = plan(store, statement).await;
        let reads_all = |line: &str| {
            let of_session = line.ends_with("(session_id=?)")
                && !line.contains("queued_messages")
                && !line.contains("branches");
            let scan = line.contains("SCAN") && !line.contains("VALUES CLAUSE");
            of_session || scan || line.contains("Seq Scan")
        };
        assert!(!plan.lines().any(reads_all), "{}\n{plan}", statement.sql);
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
