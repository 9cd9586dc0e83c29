//! The pieces of a slow answer share rows, and what is read is the text that was told.

use std::path::Path;
use std::sync::Arc;

use sea_orm::{ConnectionTrait, EntityTrait, QueryOrder};

use super::entities::chunk;
use super::testing::{Part, TestDb, Writer, on_both, on_sqlite, run};
use super::types::{LogCursor, LogItem, LogRange, PageLimits};
use super::{Location, Store};
use crate::domain::session::change::Closed;
use crate::domain::session::write::{ChunkRow, OpenRow, Write};
use crate::protocol::event::utf16_len;
use crate::protocol::ids::MessageId;
use crate::protocol::message::Message;

on_both!(
    a_row_takes_in_the_pieces_that_follow,
    a_piece_that_is_sent_again_is_there_once,
    one_who_reads_a_part_in_its_midst_gets_the_rest_of_it,
);

/// A row that a part's next pieces go into.
struct Row {
    part: Part,
    open: Option<OpenRow>,
}

impl Row {
    fn begins_with(part: Part) -> Self {
        Self { part, open: None }
    }

    fn piece(&mut self, after_seq: u64, text: &str) -> Write {
        let chunk = self.part.piece(after_seq, text);
        let goes_on = self.open;
        let open = self.open.get_or_insert(OpenRow {
            offset: chunk.offset,
            pieces: 0,
        });
        open.pieces += 1;
        Write::Chunk(ChunkRow { goes_on, ..chunk })
    }
}

async fn rows(store: &Store) -> Vec<(i64, String)> {
    let all = chunk::Entity::find().order_by_asc(chunk::Column::Id);
    let rows = all.all(&store.read).await.unwrap().into_iter();
    rows.map(|row| (row.pieces, row.text.0)).collect()
}

fn upto(from: LogCursor, to_seq: u64) -> LogRange {
    LogRange { from, to_seq }
}

async fn texts(writer: &Writer, to_seq: u64) -> Vec<(u64, String)> {
    let limits = PageLimits {
        items: usize::MAX,
        bytes: usize::MAX,
    };
    let range = upto(LogCursor::default(), to_seq);
    let page = writer.store.log_page(writer.id, range, limits).await;
    let items = page.unwrap().unwrap().items.into_iter();
    let texts = items.filter_map(|item| match item {
        LogItem::Chunk(row) => Some((row.offset, row.text)),
        LogItem::Event(_) => None,
    });
    texts.collect()
}

async fn a_row_takes_in_the_pieces_that_follow(db: TestDb) {
    let store = db.open().await;
    let (writer, other) = (Writer::new(&store).await, Writer::new(&store).await);
    let mut text = Row::begins_with(Part::text(&run(), MessageId::new()));
    let mut of_other = Row::begins_with(Part::text(&run(), MessageId::new()));
    // With what the database writes otherwise, and letters of two units.
    let words = ["wörd 👩 ", "nul \0 ", "\u{FDD0}0 ", "'\" ", "end"];
    for word in words {
        // Both in one transaction.
        let group = vec![
            writer.commit(vec![text.piece(0, word)]),
            other.commit(vec![of_other.piece(0, "o")]),
        ];
        assert_eq!(store.commit_group(group).await, [Ok(()), Ok(())]);
    }
    let whole = words.concat();
    assert_eq!(
        rows(&store).await,
        [(5, whole.clone()), (5, "ooooo".to_owned())]
    );
    let loaded = writer.load().await;
    assert!(loaded.unfinished_parts.is_empty(), "its run was not told");

    // Behind an event a row begins anew.
    text.open = None;
    let behind = vec![writer.event(), text.piece(1, " more"), writer.event()];
    writer.write(behind).await.unwrap();
    let expected = [(0, whole.clone()), (utf16_len(&whole), " more".to_owned())];
    assert_eq!(texts(&writer, 2).await, expected);
}

async fn a_piece_that_is_sent_again_is_there_once(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let mut text = Row::begins_with(Part::text(&run(), MessageId::new()));
    let pieces = ["a", "b", "c"].map(|it| text.piece(0, it));
    for piece in &pieces {
        for _ in 0..2 {
            writer.write(vec![piece.clone()]).await.unwrap();
        }
    }
    writer.write(pieces[..1].to_vec()).await.unwrap();
    assert_eq!(rows(&store).await, [(3, "abc".to_owned())]);
}

async fn one_who_reads_a_part_in_its_midst_gets_the_rest_of_it(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let run = run();
    let mut answer = Message::assistant(MessageId::new(), run.run_id, run.started_at);
    answer.content = Some("one two three".to_owned());
    let mut text = Row::begins_with(Part::text(&run, answer.id));
    let mut beside = Row::begins_with(Part::text(&run, MessageId::new()));
    let mut writes = vec![text.piece(0, "one "), beside.piece(0, "beside")];
    text.open = None;
    writes.extend([
        text.piece(0, "two "),
        text.piece(0, "three"),
        writer.event(),
    ]);
    for write in writes {
        writer.write(vec![write]).await.unwrap();
    }
    let limits = PageLimits {
        items: 1,
        bytes: usize::MAX,
    };
    let first = upto(LogCursor::default(), 1);
    let first = store.log_page(writer.id, first, limits).await;
    let next = first.unwrap().unwrap().next.unwrap();

    let over = Write::Closed(Closed::Message(run.run_id, answer.id));
    let over = vec![Write::Message(Arc::new(answer)), over, writer.event()];
    writer.write(over).await.unwrap();
    let limits = PageLimits { items: 9, ..limits };
    let rest = store.log_page(writer.id, upto(next, 1), limits).await;
    let rest = rest.unwrap().unwrap().items.into_iter();
    let rest: Vec<_> = rest
        .filter_map(|item| match item {
            LogItem::Chunk(row) => Some(row.text),
            LogItem::Event(_) => None,
        })
        .collect();
    // What it has already it skips, by the offset.
    assert_eq!(rest, ["beside", "one two three"]);
}

/// The pages that the commits since the last call have written.
async fn pages_written(store: &Store, database: &Path) -> u64 {
    let log = format!("{}-wal", database.display());
    // Each stands behind a head of its own.
    let written = std::fs::metadata(log).unwrap().len() / (1024 + 24);
    let empty = "PRAGMA wal_checkpoint(TRUNCATE)";
    store.write.execute_unprepared(empty).await.unwrap();
    written
}

/// Five times a second: what a slow answer costs the disk is what these write.
#[tokio::test]
async fn a_commit_of_a_slow_answer_writes_a_page_or_two() {
    on_sqlite(async |db: TestDb| {
        let Location::Sqlite(path) = &db.config.location else {
            unreachable!("it is SQLite's")
        };
        let store = db.open().await;
        let writer = Writer::new(&store).await;
        let mut text = Row::begins_with(Part::text(&run(), MessageId::new()));
        writer.write(vec![text.piece(0, "begins")]).await.unwrap();
        pages_written(&store, path).await;
        // Ten tokens each fifth of a second; a row is full after ten times.
        let commits = 40;
        for commit in 0..commits {
            if commit % 10 == 0 {
                text.open = None;
            }
            let tokens = format!("{commit:07} ").repeat(10);
            writer.write(vec![text.piece(0, &tokens)]).await.unwrap();
        }
        let pages = pages_written(&store, path).await;
        assert!(pages < 2 * commits, "{pages} pages in {commits} commits");
    })
    .await;
}
