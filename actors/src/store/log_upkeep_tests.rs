//! What is past its time goes, bit by bit; messages stay.

use std::sync::Arc;

use sea_orm::{EntityTrait, PaginatorTrait};

use super::Store;
use super::entities::{chunk, event, model_call, prompt_part};
use super::model_call_tests::{call, made};
use super::testing::{
    Part, TestDb, Writer, at, ended, event as event_at, on_both, run, user_message,
};
use super::types::{LogCursor, LogItem, LogPage, LogRange, PageLimits};
use crate::domain::session::write::{EventRow, RunRow, Write};
use crate::protocol::ids::{MessageId, RunId, SessionId};
use crate::protocol::session::RunState;

on_both!(
    a_log_loses_its_beginning_and_says_so,
    what_a_run_told_that_goes_stays,
    a_long_log_goes_bit_by_bit,
    calls_go_with_the_parts_that_no_other_names,
    a_snapshot_has_the_newest_notices,
);

async fn page(writer: &Writer, from: u64) -> Option<LogPage> {
    let range = LogRange {
        from: LogCursor {
            seq: from,
            chunk: 0,
        },
        to_seq: writer.load().await.last_seq,
    };
    let limits = PageLimits {
        items: usize::MAX,
        bytes: usize::MAX,
    };
    let page = writer.store.log_page(writer.id, range, limits).await;
    page.unwrap()
}

async fn shorten(store: &Store, id: SessionId, seconds: i64) {
    while store.shorten_log(id, at(seconds)).await.unwrap() {}
}

async fn a_log_loses_its_beginning_and_says_so(db: TestDb) {
    let store = db.open().await;
    let (writer, other) = (Writer::new(&store).await, Writer::new(&store).await);
    for writer in [&writer, &other] {
        let run = run();
        let mut text = Part::text(&run, MessageId::new());
        let mut writes = vec![Write::RunStarted(run.clone())];
        writes.push(Write::Message(Arc::new(user_message("hello"))));
        // Each event is told in the second of its number, and text after it.
        for seq in 1..=6 {
            writes.push(writer.event());
            writes.push(Write::Chunk(text.piece(seq, "word ")));
        }
        writes.push(writer.event());
        writes.push(ended(&run, RunState::Completed));
        writer.write(writes).await.unwrap();
    }
    shorten(&store, writer.id, 4).await;

    for gone in 0..3 {
        assert_eq!(page(&writer, gone).await, None, "{gone}");
    }
    let left = page(&writer, 3).await.unwrap();
    assert!(matches!(&left.items[0], LogItem::Chunk(row) if row.after_seq == 3));
    assert!(matches!(&left.items[1], LogItem::Event(row) if row.seq == 4));
    assert_eq!(left.items.len(), 8);
    assert_eq!(page(&other, 0).await.unwrap().items.len(), 13, "another's");

    shorten(&store, writer.id, 100).await;
    assert_eq!(page(&writer, 6).await, None);
    assert_eq!(page(&writer, 7).await.unwrap().items, []);
    assert_eq!(store.messages(writer.id).await.unwrap().len(), 1);
    shorten(&store, other.id, 100).await;
    for left in [
        event::Entity::find().count(&store.read).await.unwrap(),
        chunk::Entity::find().count(&store.read).await.unwrap(),
    ] {
        assert_eq!(left, 0);
    }

    // It goes on from there.
    writer.write(vec![writer.event()]).await.unwrap();
    assert_eq!(page(&writer, 7).await.unwrap().items.len(), 1);
    assert_eq!(page(&writer, 6).await, None);
}

async fn what_a_run_told_that_goes_stays(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let waits = run();
    let of = |run: &RunRow, seq| {
        Write::Event(EventRow {
            run_id: Some(run.run_id),
            ..event_at(seq)
        })
    };
    let begun = vec![
        of(&run(), 1),
        Write::RunStarted(waits.clone()),
        of(&waits, 2),
        of(&waits, 3),
    ];
    writer.write(begun).await.unwrap();
    shorten(&store, writer.id, 100).await;
    assert_eq!(page(&writer, 0).await, None);
    assert_eq!(page(&writer, 1).await.unwrap().items.len(), 2);

    let over = vec![ended(&waits, RunState::Stopped), of(&waits, 4)];
    writer.write(over).await.unwrap();
    shorten(&store, writer.id, 100).await;
    assert_eq!(page(&writer, 3).await, None);
}

async fn a_long_log_goes_bit_by_bit(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let run = run();
    let mut text = Part::text(&run, MessageId::new());
    let mut writes = Vec::new();
    for seq in 1..=1_200 {
        writes.push(writer.event());
        writes.push(Write::Chunk(text.piece(seq, "x")));
    }
    writer.write(writes).await.unwrap();
    let mut steps = Vec::new();
    loop {
        let is_more = store.shorten_log(writer.id, at(10_000)).await.unwrap();
        steps.push(event::Entity::find().count(&store.read).await.unwrap());
        if !is_more {
            break;
        }
    }
    assert_eq!(steps, [700, 200, 0]);
    // The text after the last event is left: nothing was told after it.
    assert_eq!(chunk::Entity::find().count(&store.read).await.unwrap(), 1);
    assert!(!store.shorten_log(writer.id, at(10_000)).await.unwrap());
}

async fn calls_go_with_the_parts_that_no_other_names(db: TestDb) {
    let store = db.open().await;
    let (writer, other) = (Writer::new(&store).await, Writer::new(&store).await);
    let of_run = |run: &RunRow, second, system: &str| {
        let mut made_then = call(system, None, Vec::new());
        made_then.started_at = at(second);
        made(run, made_then)
    };
    let at_second = |second, system: &str| of_run(&run(), second, system);
    for writer in [&writer, &other] {
        let calls = vec![
            at_second(1, "old"),
            at_second(2, "older and newer"),
            at_second(3, "older and newer"),
            at_second(4, "new"),
        ];
        writer.write(calls).await.unwrap();
    }
    let counts = async || {
        (
            model_call::Entity::find().count(&store.read).await.unwrap(),
            prompt_part::Entity::find()
                .count(&store.read)
                .await
                .unwrap(),
        )
    };
    // Three system messages, the tools, the context.
    assert_eq!(counts().await, (8, 10));
    let is_more = store.forget_calls(writer.id, Some(at(3)), None).await;
    assert!(!is_more.unwrap());
    assert_eq!(counts().await, (6, 9));
    let is_more = store.forget_calls(writer.id, Some(at(3)), Some(1)).await;
    assert!(!is_more.unwrap());
    assert_eq!(counts().await, (5, 8));
    store
        .forget_calls(writer.id, Some(at(9)), None)
        .await
        .unwrap();
    assert_eq!(counts().await, (4, 5), "another session's are its own");
    for kept in [None, Some(4)] {
        assert!(!store.forget_calls(other.id, None, kept).await.unwrap());
    }
    assert_eq!(counts().await, (4, 5));

    let many = (0..700).map(|_| at_second(1, "many")).collect();
    writer.write(many).await.unwrap();
    assert!(
        store
            .forget_calls(writer.id, None, Some(100))
            .await
            .unwrap()
    );
    assert!(
        !store
            .forget_calls(writer.id, None, Some(100))
            .await
            .unwrap()
    );
    assert_eq!(counts().await, (104, 8));

    // A run stays whole, and so does one that goes.
    let (late, goes) = (run(), run());
    let writes = vec![
        Write::RunStarted(goes.clone()),
        of_run(&late, 2, "late"),
        of_run(&goes, 2, "goes"),
        of_run(&late, 8, "late"),
    ];
    other.write(writes).await.unwrap();
    store
        .forget_calls(other.id, Some(at(5)), None)
        .await
        .unwrap();
    // Its parts: two system messages, the tools, the context; the other's are three.
    assert_eq!(counts().await, (103, 7));
    other
        .write(vec![ended(&goes, RunState::Completed)])
        .await
        .unwrap();
    store
        .forget_calls(other.id, Some(at(9)), None)
        .await
        .unwrap();
    assert_eq!(counts().await, (100, 3));
}

async fn a_snapshot_has_the_newest_notices(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let (earlier, run) = (RunId::new(), RunId::new());
    let notice = |run_id, seq: u64, kind: &str| {
        let time = "2027-01-15T08:00:00Z";
        let json = format!(
            r#"{{"seq":{seq},"run_id":"{run_id}","at":"{time}","type":"{kind}","code":"c","message":"m{seq}"}}"#
        );
        Write::Event(EventRow {
            run_id: Some(run_id),
            kind: kind.to_owned(),
            json,
            ..event_at(seq)
        })
    };
    let mut told = vec![notice(earlier, 1, "notice"), notice(run, 2, "error")];
    told.extend((3..=27).map(|seq| notice(run, seq, "notice")));
    writer.write(told).await.unwrap();
    let seqs = async |upto| {
        let notices = store.notices(writer.id, upto).await.unwrap();
        notices.iter().map(|(_, it)| it.seq).collect::<Vec<_>>()
    };
    assert_eq!(seqs(2).await, [1]);
    assert_eq!(seqs(4).await, [1, 3, 4]);
    assert_eq!(seqs(27).await, (8..=27).collect::<Vec<_>>());
    let told = store.notices(writer.id, 3).await.unwrap();
    assert_eq!([told[0].0, told[1].0], [earlier, run]);
    let first = &told[1].1;
    assert_eq!((first.code.as_str(), first.message.as_str()), ("c", "m3"));
}
