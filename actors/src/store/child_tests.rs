//! Subagents' runs: what a crash leaves of them, and their part of the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use sea_orm::{ConnectionTrait, Statement};

use super::model_call_tests::{call, made};
use super::testing::{Part, TestDb, Writer, ended, event, on_both, run, user_message};
use super::types::{LogCursor, LogItem, PageLimits};
use super::{Store, StoreError};
use crate::domain::session::state::TokensUsed;
use crate::domain::session::stored::StartedCall;
use crate::domain::session::write::{ChunkRow, EventRow, RunRow, Write};
use crate::protocol::event::PartKind;
use crate::protocol::ids::{CallId, MessageId, PartId, RunId, SessionId};
use crate::protocol::message::Message;
use crate::protocol::session::RunState;

on_both!(
    a_load_finds_the_children_that_a_crash_left,
    a_run_that_goes_on_comes_with_what_it_answers,
    a_runs_log_is_its_own_and_its_childrens,
);

fn child(parent: &RunRow) -> RunRow {
    RunRow {
        run_id: RunId::new(),
        parent_run_id: Some(parent.run_id),
        call_id: None,
        ..parent.clone()
    }
}

/// The next event, of this run.
fn of(writer: &Writer, run: &RunRow, kind: &str) -> Write {
    let Write::Event(row) = writer.event() else {
        unreachable!("a writer's event is one")
    };
    Write::Event(EventRow {
        run_id: Some(run.run_id),
        kind: kind.to_owned(),
        json: format!(r#"{{"seq":{},"call_id":"{kind}","lent":true}}"#, row.seq),
        ..row
    })
}

fn piece(part: &mut Part, run: &RunRow, after_seq: u64, text: &str) -> ChunkRow {
    ChunkRow {
        parent_run_id: run.parent_run_id,
        ..part.piece(after_seq, text)
    }
}

async fn a_load_finds_the_children_that_a_crash_left(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let run = run();
    let (done, open) = (child(&run), child(&run));
    let nested = child(&open);
    let mut text = Part::text(&open, MessageId::new());
    let mut said = Part::text(&done, MessageId::new());
    writer
        .write(vec![
            Write::RunStarted(run.clone()),
            of(&writer, &run, "tool_started"),
            Write::RunStarted(done.clone()),
            Write::RunStarted(open.clone()),
            Write::RunStarted(nested.clone()),
            of(&writer, &open, "tool_started"),
            Write::Chunk(piece(&mut text, &open, 2, "half ")),
            Write::Chunk(piece(&mut said, &done, 2, "all of it")),
            Write::Chunk(piece(&mut text, &open, 2, "said")),
            made(&run, call("a", None, Vec::new())),
            made(&open, call("b", None, Vec::new())),
            made(&open, call("c", None, Vec::new())),
            made(&done, call("d", None, Vec::new())),
            ended(&done, RunState::Completed),
        ])
        .await
        .unwrap();

    let loaded = writer.load().await;
    assert_eq!(loaded.last_run.unwrap().row, run);
    assert_eq!(loaded.running_children, [open.clone(), nested.clone()]);
    let parts: Vec<_> = loaded
        .unfinished_parts
        .iter()
        .map(|part| (part.run_id, part.parent_run_id, part.text.as_str()))
        .collect();
    assert_eq!(parts, [(open.run_id, Some(run.run_id), "half said")]);
    let started = [StartedCall {
        call_id: CallId("tool_started".to_owned()),
        lent: true,
    }];
    assert_eq!(loaded.started_calls, started, "the foreground's alone");
    let used = |calls| TokensUsed {
        prompt: 100_u64 * calls,
        completion: 7_u64 * calls,
        cached: 60_u64 * calls,
    };
    let known = BTreeMap::from([(run.run_id, used(1)), (open.run_id, used(2))]);
    assert_eq!(loaded.used, known);

    let mut writes: Vec<_> = [&nested, &open, &run]
        .map(|run| ended(run, RunState::Interrupted))
        .into();
    if let Some(Write::RunEnded { leaked_calls, .. }) = writes.last_mut() {
        *leaked_calls = 3;
    }
    writer.write(writes).await.unwrap();
    let loaded = writer.load().await;
    assert_eq!(loaded.running_children, []);
    assert_eq!(loaded.last_run.unwrap().state, RunState::Interrupted);
    assert_eq!(store.running_sessions().await.unwrap(), []);
    let leaked = "SELECT CAST(SUM(leaked_calls) AS BIGINT) FROM runs";
    let leaked = Statement::from_string(store.read.get_database_backend(), leaked);
    let row = store.read.query_one_raw(leaked).await.unwrap().unwrap();
    assert_eq!(row.try_get_by::<i64, _>(0), Ok(3));
}

async fn a_run_that_goes_on_comes_with_what_it_answers(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let first = run();
    let asked = Message {
        id: first.message_id,
        run_id: first.run_id,
        ..user_message("go")
    };
    let said = |run: &RunRow| Message::assistant(MessageId::new(), run.run_id, run.started_at);
    let (early, second) = (
        said(&first),
        RunRow {
            run_id: RunId::new(),
            ..first.clone()
        },
    );
    let late = said(&second);
    writer
        .write(vec![
            Write::Message(Arc::new(asked.clone())),
            Write::RunStarted(first.clone()),
            Write::Message(Arc::new(early.clone())),
            ended(&first, RunState::Limited),
        ])
        .await
        .unwrap();
    let loaded = writer.load().await;
    assert_eq!(loaded.messages, [asked.clone(), early]);
    writer
        .write(vec![
            Write::RunStarted(second.clone()),
            Write::Message(Arc::new(late.clone())),
        ])
        .await
        .unwrap();
    let loaded = writer.load().await;
    assert_eq!(
        (loaded.messages, loaded.message_count),
        (vec![asked, late], 3)
    );
}

async fn read(store: &Store, id: SessionId, run: &RunRow, items: usize) -> Vec<LogItem> {
    let limits = PageLimits {
        items,
        bytes: usize::MAX,
    };
    let (mut from, mut all) = (LogCursor::default(), Vec::new());
    loop {
        let page = store.run_events(id, run.run_id, from, limits).await;
        let page = page.unwrap().unwrap();
        assert!(page.items.len() <= items);
        all.extend(page.items);
        match page.next {
            Some(next) => {
                assert!(next > from, "a page goes on");
                from = next;
            }
            None => return all,
        }
    }
}

/// Events by their number, text as it stands.
fn outline(items: &[LogItem]) -> Vec<String> {
    let outline = items.iter().map(|item| match item {
        LogItem::Event(row) => row.seq.to_string(),
        LogItem::Chunk(row) => row.text.clone(),
    });
    outline.collect()
}

async fn a_runs_log_is_its_own_and_its_childrens(db: TestDb) {
    let store = db.open().await;
    let (writer, other) = (Writer::new(&store).await, Writer::new(&store).await);
    let (before, run) = (run(), run());
    let (one, two) = (child(&run), child(&run));
    let nested = child(&one);
    let silent = child(&run);
    let part = |run: &RunRow| Part::text(run, MessageId::new());
    let (mut of_before, mut of_run) = (part(&before), part(&run));
    let (mut of_one, mut of_two) = (part(&one), part(&two));
    let call = PartId::output(&CallId::new());
    let mut of_nested = Part::new(&nested, MessageId::new(), call, PartKind::ToolOutput);
    writer
        .write(vec![
            Write::RunStarted(before.clone()),
            of(&writer, &before, "a"),
            Write::Chunk(of_before.piece(1, "before")),
            Write::RunStarted(run.clone()),
            of(&writer, &run, "b"),
            Write::Chunk(of_run.piece(2, "r")),
            Write::RunStarted(one.clone()),
            of(&writer, &one, "c"),
            Write::RunStarted(two.clone()),
            of(&writer, &two, "d"),
            Write::Chunk(piece(&mut of_one, &one, 4, "o")),
            Write::Chunk(piece(&mut of_two, &two, 4, "t")),
            Write::Chunk(piece(&mut of_one, &one, 4, "ne")),
            Write::RunStarted(nested.clone()),
            Write::RunStarted(silent.clone()),
            of(&writer, &nested, "e"),
            Write::Chunk(piece(&mut of_nested, &nested, 5, "deep")),
            of(&writer, &nested, "f"),
            Write::Chunk(piece(&mut of_two, &two, 6, "wo")),
            of(&writer, &one, "g"),
            of(&writer, &two, "h"),
            of(&writer, &run, "i"),
            of(&writer, &before, "j"),
        ])
        .await
        .unwrap();
    other.write(vec![Write::Event(event(1))]).await.unwrap();

    let of_one = ["3", "one", "5", "deep", "6", "7"];
    let of_nested = ["5", "deep", "6"];
    let of_run = [
        "2", "r", "3", "4", "o", "t", "ne", "5", "deep", "6", "wo", "7", "8", "9",
    ];
    for (run, expected) in [
        (&one, &of_one[..]),
        (&two, &["4", "two", "8"]),
        (&nested, &of_nested),
        (&run, &of_run),
        (&before, &["1", "before", "10"]),
        (&silent, &[]),
    ] {
        assert_eq!(outline(&read(&store, writer.id, run, 100).await), expected);
    }
    let small = outline(&read(&store, writer.id, &run, 1).await);
    assert_eq!(small, of_run, "whatever the pages");
    let limits = PageLimits {
        items: 9,
        bytes: 99,
    };
    let start = LogCursor::default();
    let elsewhere = store.run_events(other.id, run.run_id, start, limits).await;
    assert_eq!(elsewhere, Ok(None));
    let nowhere = store.run_events(SessionId::new(), run.run_id, start, limits);
    assert_eq!(nowhere.await, Err(StoreError::SessionNotFound));
}
