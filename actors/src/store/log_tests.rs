//! Reading the log in pages gives the log, whatever the pages.

use super::testing::{Part, TestDb, Writer, at, event, on_both, run};
use super::types::{LogCursor, LogItem, LogRange, PageLimits};
use super::{Store, StoreError};
use crate::domain::session::write::{ChunkRow, RunRow, Write};
use crate::protocol::event::{PartKind, utf16_len};
use crate::protocol::ids::{CallId, MessageId, PartId, SessionId};

on_both!(
    pages_of_any_size_from_anywhere_are_the_log,
    a_page_looks_at_a_bounded_number_of_rows,
    one_large_item_is_a_page,
    a_session_that_is_not_there_has_no_log,
    reading_while_writing_sees_whole_commits,
);

const ANY: usize = usize::MAX;

/// Everything from a place on, read with pages of this size.
async fn read_all(
    store: &Store,
    id: SessionId,
    range: LogRange,
    limits: PageLimits,
) -> Vec<LogItem> {
    let mut all = Vec::new();
    let mut range = range;
    loop {
        let page = store.log_page(id, range, limits).await.unwrap().unwrap();
        assert!(page.items.len() <= limits.items, "{page:?}");
        all.extend(page.items);
        match page.next {
            Some(next) => {
                assert!(next > range.from, "a page goes on");
                range.from = next;
            }
            None => return all,
        }
    }
}

/// Joins what a page's end parted.
fn joined(items: Vec<LogItem>) -> Vec<LogItem> {
    let mut joined: Vec<LogItem> = Vec::new();
    for item in items {
        match (joined.last_mut(), item) {
            (Some(LogItem::Chunk(last)), LogItem::Chunk(next))
                if last.part_id == next.part_id
                    && last.offset + utf16_len(&last.text) == next.offset =>
            {
                assert_eq!(last.after_seq, next.after_seq);
                last.text.push_str(&next.text);
            }
            (_, item) => joined.push(item),
        }
    }
    joined
}

fn chunk(row: &ChunkRow) -> LogItem {
    LogItem::Chunk(row.clone())
}

/// Streams two parts in turn, with events in between, before and after; tells it as a log.
async fn fill(writer: &Writer, run: &RunRow) -> Vec<LogItem> {
    let message_id = MessageId::new();
    let mut text = Part::text(run, message_id);
    let output = PartId::output(&CallId::new());
    let mut output = Part::new(run, message_id, output, PartKind::ToolOutput);
    let mut log = Vec::new();
    let mut seq = 0;
    // Text before the first event, then patterns of every kind, an event at the end.
    for step in "tteotottoeeteoooetttoeetteoteottoeoeeteteeotte".chars() {
        match step {
            'e' => {
                seq += 1;
                log.push(LogItem::Event(event(seq)));
            }
            't' => log.push(chunk(&text.piece(seq, "wörd 👩 "))),
            _ => log.push(chunk(&output.piece(seq, "line\n"))),
        }
    }
    for item in &log {
        let write = match item.clone() {
            LogItem::Event(row) => Write::Event(row),
            LogItem::Chunk(row) => Write::Chunk(row),
        };
        writer.write(vec![write]).await.unwrap();
    }
    log
}

async fn pages_of_any_size_from_anywhere_are_the_log(db: TestDb) {
    let store = db.open().await;
    let other = Writer::new(&store).await;
    fill(&other, &run()).await;
    let writer = Writer::new(&store).await;
    let log = fill(&writer, &run()).await;
    let head = writer.load().await.last_seq;

    for from in 0..=head + 1 {
        for to_seq in [head, head / 2] {
            let expected = log.iter().filter(|item| match item {
                LogItem::Event(row) => row.seq > from && row.seq <= to_seq,
                LogItem::Chunk(row) => row.after_seq >= from && row.after_seq < to_seq,
            });
            let expected = joined(expected.cloned().collect());
            for (items, bytes) in [(1, ANY), (3, ANY), (ANY, 1), (ANY, 100), (ANY, ANY)] {
                let range = LogRange {
                    from: LogCursor {
                        seq: from,
                        chunk: 0,
                    },
                    to_seq,
                };
                let limits = PageLimits { items, bytes };
                let read = read_all(&store, writer.id, range, limits).await;
                if (items, bytes) == (ANY, ANY) {
                    assert_eq!(read, expected, "one page needs no more joining");
                }
                assert_eq!(joined(read), expected, "{range:?} {limits:?}");
            }
        }
    }
}

async fn a_page_looks_at_a_bounded_number_of_rows(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let run = run();
    let mut part = Part::text(&run, MessageId::new());
    let mut writes = Vec::new();
    // More pieces than a page looks at between two events, and more events than that after.
    writes.push(writer.event());
    writes.extend((0..5_000).map(|n| Write::Chunk(part.piece(1, &format!("{n} ")))));
    writes.extend((0..5_000).map(|_| writer.event()));
    writer.write(writes).await.unwrap();

    let range = LogRange {
        from: LogCursor::default(),
        to_seq: 5_001,
    };
    let limits = PageLimits {
        items: ANY,
        bytes: ANY,
    };
    let first = store
        .log_page(writer.id, range, limits)
        .await
        .unwrap()
        .unwrap();
    // Beyond the last piece that was looked at, nothing is: there may be more before it.
    assert_eq!(first.items.len(), 2, "an event and the text after it");
    assert!(first.next.is_some());
    let read = joined(read_all(&store, writer.id, range, limits).await);
    assert_eq!(read.len(), 5_002);
    let expected: String = (0..5_000).map(|n| format!("{n} ")).collect();
    assert!(matches!(&read[1], LogItem::Chunk(row) if row.text == expected));
    let seqs = read.iter().filter_map(|item| match item {
        LogItem::Event(row) => Some(row.seq),
        LogItem::Chunk(_) => None,
    });
    assert!(seqs.eq(1..=5_001));
}

async fn one_large_item_is_a_page(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    for seq in 1..=3 {
        let mut large = event(seq);
        large.json = "x".repeat(2_000_000);
        writer.write(vec![Write::Event(large)]).await.unwrap();
    }
    let range = LogRange {
        from: LogCursor::default(),
        to_seq: 3,
    };
    let limits = PageLimits {
        items: ANY,
        bytes: 1_000_000,
    };
    let page = store
        .log_page(writer.id, range, limits)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(page.items.len(), 1);
    assert_eq!(read_all(&store, writer.id, range, limits).await.len(), 3);
}

async fn a_session_that_is_not_there_has_no_log(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let range = LogRange {
        from: LogCursor::default(),
        to_seq: 1,
    };
    let limits = PageLimits { items: 1, bytes: 1 };
    let empty = store
        .log_page(writer.id, range, limits)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((empty.items, empty.next), (Vec::new(), None));
    let gone = vec![writer.event(), Write::Deleted(Some(at(1)))];
    writer.write(gone).await.unwrap();
    for id in [writer.id, SessionId::new()] {
        let page = store.log_page(id, range, limits).await;
        assert_eq!(page, Err(StoreError::SessionNotFound));
    }
}

async fn reading_while_writing_sees_whole_commits(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let (run, message_id) = (run(), MessageId::new());
    let writing = async {
        let mut part = Part::text(&run, message_id);
        for seq in 0..100 {
            let writes = vec![
                Write::Chunk(part.piece(seq, "a")),
                Write::Chunk(part.piece(seq, "b")),
                writer.event(),
            ];
            writer.write(writes).await.unwrap();
        }
    };
    let reading = async {
        let range = LogRange {
            from: LogCursor::default(),
            to_seq: 100,
        };
        let limits = PageLimits {
            items: ANY,
            bytes: ANY,
        };
        let mut seen = 0;
        while seen < 200 {
            let page = store
                .log_page(writer.id, range, limits)
                .await
                .unwrap()
                .unwrap();
            let mut texts = 0;
            for item in &page.items {
                if let LogItem::Chunk(row) = item {
                    assert_eq!(row.text, "ab");
                    texts += 1;
                }
            }
            assert_eq!(page.items.len(), 2 * texts, "each event has its text");
            assert!(page.items.len() >= seen);
            seen = page.items.len();
        }
    };
    futures_util::future::join(writing, reading).await;
}
