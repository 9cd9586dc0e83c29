//! What is told of a message is kept once, and told whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::Utc;
use sea_orm::{ConnectionTrait, DbBackend, EntityTrait, QueryOrder, Statement};

use super::Store;
use super::entities::{chunk, event};
use super::testing::{Part, TestDb, Writer, ended, on_both, on_sqlite, run, user_message};
use super::types::{LogCursor, LogItem, LogRange, PageLimits};
use crate::domain::session::change::Closed;
use crate::domain::session::write::{EventRow, RunRow, Write};
use crate::protocol::event::{Envelope, Event, PartKind, utf16_len};
use crate::protocol::ids::{CallId, MessageId, PartId};
use crate::protocol::message::{Message, ToolOutcome};
use crate::protocol::session::RunState;

on_both!(
    a_part_that_is_over_is_its_messages_text,
    a_long_part_stays_in_its_pieces,
    what_no_message_says_stays_in_one_piece,
    events_refer_to_their_messages_and_are_told_byte_for_byte,
    an_event_of_an_earlier_release_is_told_as_it_is,
);

const ALL: PageLimits = PageLimits {
    items: usize::MAX,
    bytes: usize::MAX,
};

/// With letters of one unit and of two, and what JSON and the database write otherwise.
const TEXT: &str = "Grüße, \"🌍\"!\nA\0b\u{FDD0}c\\ and a good many words more after them. ";

fn answer(run: &RunRow, text: &str, thinking: &str) -> Message {
    let mut answer = Message::assistant(MessageId::new(), run.run_id, run.started_at);
    answer.content = Some(text.to_owned());
    answer.thinking = Some(thinking.to_owned());
    answer
}

fn told(writer: &Writer, run: &RunRow, event: Event) -> (String, Write) {
    let Write::Event(row) = writer.event() else {
        unreachable!("a writer's event is one")
    };
    let kind = event.name().to_owned();
    let envelope = Envelope {
        seq: Some(row.seq),
        run_id: Some(run.run_id),
        parent_run_id: None,
        at: Utc::now(),
        event,
    };
    let row = EventRow {
        run_id: Some(run.run_id),
        kind,
        json: serde_json::to_string(&envelope).unwrap(),
        ..row
    };
    (row.json.clone(), Write::Event(row))
}

fn ends(answer: &Message) -> Event {
    Event::StreamEnd {
        content: answer.content.clone().unwrap_or_default(),
        message_id: answer.id,
        context_tokens: 1,
        max_context_tokens: 2,
        completed: true,
    }
}

/// The log after `from`, with pages of this size.
async fn log(store: &Store, writer: &Writer, from: u64, limits: PageLimits) -> Vec<LogItem> {
    let to_seq = writer.load().await.last_seq;
    let mut from = LogCursor {
        seq: from,
        chunk: 0,
    };
    let mut all = Vec::new();
    loop {
        let range = LogRange { from, to_seq };
        let page = store.log_page(writer.id, range, limits).await.unwrap();
        let page = page.unwrap();
        all.extend(page.items);
        match page.next {
            Some(next) => from = next,
            None => return all,
        }
    }
}

fn texts(log: &[LogItem]) -> Vec<(u64, u64, &str)> {
    let pieces = log.iter().filter_map(|item| match item {
        LogItem::Chunk(row) => Some((row.after_seq, row.offset, row.text.as_str())),
        LogItem::Event(_) => None,
    });
    pieces.collect()
}

async fn chunks(store: &Store) -> Vec<chunk::Model> {
    let all = chunk::Entity::find().order_by_asc(chunk::Column::Id);
    all.all(&store.read).await.unwrap()
}

async fn a_long_part_stays_in_its_pieces(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let run = run();
    let piece = "x".repeat(40_000);
    let answer = answer(&run, &piece.repeat(8), "hm");
    let mut text = Part::text(&run, answer.id);
    let pieces: Vec<Write> = (0..8)
        .map(|_| Write::Chunk(text.piece(0, &piece)))
        .collect();
    writer.write(pieces).await.unwrap();
    let closed = Closed::Message(run.run_id, answer.id);
    let over = vec![Write::Message(Arc::new(answer)), Write::Closed(closed)];
    writer.write(over).await.unwrap();
    let left = chunks(&store).await;
    assert_eq!(left.len(), 8);
    assert!(
        left.iter()
            .all(|row| row.text.0 == piece && row.text_bytes == Some(0))
    );
}

async fn a_part_that_is_over_is_its_messages_text(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let run = run();
    let answer = answer(&run, &TEXT.repeat(3), "hm, ");
    let thinking = PartId::thinking(answer.id);
    let mut thinking = Part::new(&run, answer.id, thinking, PartKind::Thinking);
    let mut text = Part::text(&run, answer.id);
    let other = Part::text(&run, MessageId::new()).piece(2, "another's");
    let mut writes = vec![writer.event()];
    writes.push(Write::Chunk(thinking.piece(1, "hm, ")));
    writes.push(writer.event());
    // Letter by letter, as a slow model goes, with an event after the second time.
    let letters = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
    let twice = letters(&TEXT.repeat(2));
    writes.extend(twice.iter().map(|it| Write::Chunk(text.piece(2, it))));
    writes.push(writer.event());
    let once = letters(TEXT);
    writes.extend(once.iter().map(|it| Write::Chunk(text.piece(3, it))));
    writes.push(Write::Chunk(other));
    writer.write(writes).await.unwrap();
    writer
        .write(vec![
            Write::Message(Arc::new(answer.clone())),
            Write::Closed(Closed::Message(run.run_id, answer.id)),
            writer.event(),
        ])
        .await
        .unwrap();

    let kept = chunks(&store).await;
    let own: Vec<_> = kept.iter().map(|row| row.text.0.as_str()).collect();
    assert_eq!(
        own,
        ["", "", "", "another's"],
        "a stretch each, without a text"
    );

    let units = utf16_len(TEXT);
    for limits in [ALL, PageLimits { items: 1, ..ALL }] {
        let whole = log(&store, &writer, 0, limits).await;
        let twice = TEXT.repeat(2);
        let expected = [
            (1, 0, "hm, "),
            (2, 0, twice.as_str()),
            (2, 0, "another's"),
            (3, 2 * units, TEXT),
        ];
        assert_eq!(texts(&whole), expected);
        // One who comes back in the middle has what came before.
        let rest = log(&store, &writer, 3, limits).await;
        assert_eq!(texts(&rest), expected[3..]);
    }
    let small = PageLimits { bytes: 1, ..ALL };
    assert_eq!(texts(&log(&store, &writer, 0, small).await).len(), 4);
}

async fn what_no_message_says_stays_in_one_piece(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let (run, child) = (run(), run());
    let call = CallId::new();
    let output = PartId::output(&call);
    let answer = answer(&run, "a message that says other words", "");
    let mut differs = Part::text(&run, answer.id);
    let mut output = Part::new(&run, answer.id, output, PartKind::ToolOutput);
    // A subagent's messages are in no store.
    let mut of_child = Part::text(&child, MessageId::new());
    let mut writes = vec![Write::RunStarted(child.clone())];
    for (part, word) in [
        (&mut differs, "not "),
        (&mut output, "line\n"),
        (&mut of_child, "word "),
    ] {
        writes.extend((0..3).map(|_| Write::Chunk(part.piece(0, word))));
    }
    writes.extend([
        Write::Message(Arc::new(answer.clone())),
        Write::Closed(Closed::Message(run.run_id, answer.id)),
        Write::Closed(Closed::Output(run.run_id, call)),
        ended(&child, RunState::Completed),
        Write::Closed(Closed::Run(child.run_id)),
        writer.event(),
    ]);
    writer.write(writes).await.unwrap();
    let kept = chunks(&store).await;
    let mut own: Vec<_> = kept.iter().map(|row| row.text.0.as_str()).collect();
    own.sort_unstable();
    let expected = ["line\nline\nline\n", "not not not ", "word word word "];
    assert_eq!(own, expected);
    assert_eq!(texts(&log(&store, &writer, 0, ALL).await).len(), 3);

    // What is over is not looked at again.
    let before: Vec<_> = kept.iter().map(|row| row.id).collect();
    let again = vec![Write::Closed(Closed::Run(run.run_id)), writer.event()];
    writer.write(again).await.unwrap();
    let after: Vec<_> = chunks(&store).await.iter().map(|row| row.id).collect();
    assert_eq!(before, after);
}

async fn events_refer_to_their_messages_and_are_told_byte_for_byte(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let run = run();
    let asked = user_message(&TEXT.repeat(2));
    let answer = answer(&run, &TEXT.repeat(3), &TEXT.repeat(4));
    let result = Message {
        role: crate::protocol::message::Role::Tool,
        tool_call_id: Some(CallId::new()),
        ..user_message(&TEXT.repeat(5))
    };
    let of = |message: &Message| message.content.clone().unwrap();
    let events = [
        Event::MessageAccepted {
            client_id: None,
            message_id: asked.id,
            queued: false,
            mode: crate::protocol::command::SendMode::default(),
            content: of(&asked),
            images: Vec::new(),
            files: Vec::new(),
            author: None,
        },
        Event::TurnThinking {
            thinking: answer.thinking.clone().unwrap(),
            is_subagent: false,
        },
        Event::ToolCall {
            tool: "filesystem".to_owned(),
            // The same words in another place are left alone.
            args: serde_json::json!({"content": of(&asked)}),
            result: of(&result),
            success: true,
            outcome: ToolOutcome::Success,
            is_subagent: false,
            call_id: CallId::new(),
            duration_ms: 3,
            outside: false,
            files: Vec::new(),
            lent: false,
        },
        ends(&answer),
    ];
    let (expected, mut writes): (Vec<String>, Vec<Write>) = events
        .into_iter()
        .map(|event| told(&writer, &run, event))
        .unzip();
    writes.extend([asked, answer, result].map(|it| Write::Message(Arc::new(it))));
    writer.write(writes.clone()).await.unwrap();
    // The acknowledgement was lost: it is sent again, and is there.
    writer.write(writes).await.unwrap();

    for limits in [ALL, PageLimits { items: 1, ..ALL }] {
        let items = log(&store, &writer, 0, limits).await;
        let told = items.iter().filter_map(|item| match item {
            LogItem::Event(row) => Some(row.json.as_str()),
            LogItem::Chunk(_) => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }
    // Two fit beside each other by what is stored of them, not by what they are.
    let both = expected[0].len() + expected[1].len();
    let bytes = PageLimits {
        bytes: both - 1,
        ..ALL
    };
    let range = LogRange {
        from: LogCursor::default(),
        to_seq: 4,
    };
    let page = store.log_page(writer.id, range, bytes).await.unwrap();
    assert_eq!(page.unwrap().items.len(), 1);

    for row in event::Entity::find().all(&store.read).await.unwrap() {
        let json: serde_json::Value = serde_json::from_str(&row.json.0).unwrap();
        let left = ["content", "thinking", "result"].map(|name| json[name].as_str());
        assert_eq!(left.iter().flatten().copied().collect::<String>(), "");
        assert!(row.message_id.is_some(), "{row:?}");
    }
}

async fn an_event_of_an_earlier_release_is_told_as_it_is(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let run = run();
    let answer = answer(&run, TEXT, "");
    // Its message was committed before, so that nothing is taken out.
    let there = vec![Write::Message(Arc::new(answer.clone()))];
    writer.write(there).await.unwrap();
    let (expected, write) = told(&writer, &run, ends(&answer));
    writer.write(vec![write]).await.unwrap();
    let items = log(&store, &writer, 0, ALL).await;
    assert!(matches!(&items[..], [LogItem::Event(row)] if row.json == expected));
}

/// Bytes of the database file that hold something.
async fn used(store: &Store) -> i64 {
    let mut figures = Vec::new();
    for pragma in ["page_count", "freelist_count", "page_size"] {
        let ask = Statement::from_string(DbBackend::Sqlite, format!("PRAGMA {pragma}"));
        let row = store.write.query_one_raw(ask).await.unwrap().unwrap();
        figures.push(row.try_get_by_index::<i64>(0).unwrap());
    }
    (figures[0] - figures[1]) * figures[2]
}

/// What a slow model's answer of 20,000 characters takes, four each fifth of a second: while it
/// streams, afterwards, and what it would take if the log repeated it.
async fn cost_of_an_answer(store: &Store, writer: &Writer, settles: bool) -> (i64, i64) {
    let words = (0..1_500).map(|n| format!("{:06} words, ", n * 7_919 % 1_000_003));
    let text = &words.collect::<String>()[..20_000];
    let before = used(store).await;
    let run = run();
    let answer = answer(&run, text, "");
    let mut part = Part::text(&run, answer.id);
    let after = writer.load().await.last_seq;
    let pieces = (0..text.len()).step_by(4);
    let pieces = pieces.map(|at| Write::Chunk(part.piece(after, &text[at..at + 4])));
    writer.write(pieces.collect()).await.unwrap();
    let open = used(store).await - before;
    let (_, end) = told(writer, &run, ends(&answer));
    let over = Write::Closed(Closed::Message(run.run_id, answer.id));
    let message = Write::Message(Arc::new(answer));
    if settles {
        writer.write(vec![message, over, end]).await.unwrap();
    } else {
        writer.write(vec![message]).await.unwrap();
        writer.write(vec![end]).await.unwrap();
    }
    (open, used(store).await - before)
}

#[tokio::test]
#[expect(clippy::print_stdout, reason = "the figures, for who asks for them")]
async fn a_streamed_answer_takes_little_more_than_its_message() {
    on_sqlite(async |db: TestDb| {
        let store = db.open().await;
        let writer = Writer::new(&store).await;
        // The first has with it what the tables take once.
        cost_of_an_answer(&store, &writer, true).await;
        let (open, over) = cost_of_an_answer(&store, &writer, true).await;
        let (_, repeated) = cost_of_an_answer(&store, &writer, false).await;
        println!("{open} bytes while it streams, {over} afterwards; {repeated} if it stayed");
        assert!(over < 3 * 20_000, "{over}");
        assert!(repeated > 20 * over, "{repeated}");
    })
    .await;
}

/// Each trip to SQLite's thread and back wakes two threads, and an answer's end waits for all.
#[tokio::test]
async fn the_end_of_an_answer_takes_few_trips() {
    on_sqlite(async |db: TestDb| {
        let mut store = db.open().await;
        let trips = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&trips);
        store.on_statement(move |_| _ = count.fetch_add(1, Ordering::Relaxed));
        let writer = Writer::new(&store).await;
        let run = run();
        let answer = answer(&run, TEXT, "");
        let mut text = Part::text(&run, answer.id);
        let begins = vec![
            writer.event(),
            Write::RunStarted(run.clone()),
            Write::Chunk(text.piece(1, TEXT)),
        ];
        writer.write(begins).await.unwrap();
        let closed = Closed::Message(run.run_id, answer.id);
        let ends = vec![
            Write::Message(Arc::new(answer)),
            Write::Closed(closed),
            ended(&run, RunState::Completed),
            writer.event(),
        ];
        let before = trips.load(Ordering::Relaxed);
        writer.write(ends).await.unwrap();
        // The session's row; what is added, with the pieces that are looked for; what stands for
        // them; the run's row.
        assert_eq!(trips.load(Ordering::Relaxed) - before, 4);
        assert_eq!(chunks(&store).await[0].text.0, "");
    })
    .await;
}
