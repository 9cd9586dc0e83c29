//! Whatever is submitted and however commits come in: one order, no gap, nothing told early.
use std::sync::Arc;

use chrono::{DateTime, Utc};
use proptest::prelude::*;

use super::sequencer::{At, Delivery, Frame, Piece, Sequencer};
use crate::domain::session::change::{Change, Closed};
use crate::domain::session::write::Write;
use crate::protocol::event::{Envelope, Event, PartKind, utf16_len};
use crate::protocol::ids::{MessageId, Origin, PartId, RunId};
use crate::protocol::message::Message;

fn at() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH
}

fn piece(message: MessageId, offset: u64, text: &str) -> Piece {
    Piece {
        origin: Origin::foreground(RunId(uuid::Uuid::nil())),
        part_id: PartId::text(message),
        kind: PartKind::Text,
        message_id: message,
        offset,
        text: text.into(),
    }
}

fn seq(frame: &Frame) -> u64 {
    match frame.place {
        At::Event(seq) => seq,
        At::Part { .. } | At::Nowhere => panic!("no event: {frame:?}"),
    }
}

fn delta_of(frame: &Frame) -> String {
    let json: serde_json::Value = serde_json::from_str(frame.json.as_ref().unwrap()).unwrap();
    json["delta"].as_str().unwrap().to_owned()
}

fn submit(sequencer: &mut Sequencer<u32>, events: usize, then: u32) {
    let change = Change {
        events: (0..events)
            .map(|_| (None, Event::StreamStopped {}))
            .collect(),
        writes: vec![Write::Pinned(true)],
        closed: Vec::new(),
    };
    sequencer.submit(change, at(), then);
}

/// The commit on its way is done: what is told then.
fn committed(sequencer: &mut Sequencer<u32>) -> Vec<Delivery<u32>> {
    sequencer.committed();
    told(sequencer)
}

fn told(sequencer: &mut Sequencer<u32>) -> Vec<Delivery<u32>> {
    std::iter::from_fn(|| sequencer.next_told()).collect()
}

#[test]
fn an_event_is_told_only_once_it_is_committed() {
    let mut sequencer = Sequencer::new(4, Vec::new());
    submit(&mut sequencer, 2, 1);
    assert!(sequencer.next_told().is_none());
    let writes = sequencer.next_commit().unwrap();
    assert_eq!(writes.len(), 3);
    assert!(
        sequencer.next_told().is_none(),
        "it is on its way, not there"
    );
    let told = committed(&mut sequencer);
    let Delivery::Change {
        frames, then: 1, ..
    } = &told[0]
    else {
        panic!("{told:?}")
    };
    assert_eq!(frames.iter().map(seq).collect::<Vec<_>>(), [5, 6]);
    assert_eq!(sequencer.told_seq(), 6);
}

#[test]
fn a_frame_says_the_same_as_a_value_and_as_bytes() {
    let mut sequencer = Sequencer::new(0, Vec::new());
    submit(&mut sequencer, 1, 1);
    sequencer.next_commit().unwrap();
    let mut frames = Vec::new();
    for told in committed(&mut sequencer) {
        if let Delivery::Change { frames: told, .. } = told {
            frames.extend(told);
        }
    }
    frames.push(piece(MessageId::new(), 3, "snow").frame(at()));
    assert_eq!(frames.len(), 2);
    for frame in frames {
        let read: Envelope = serde_json::from_str(frame.json.as_ref().unwrap()).unwrap();
        assert_eq!(frame.envelope, Some(Box::new(read)));
    }
}

#[test]
fn text_waits_for_what_was_submitted_before_it_and_for_nothing_else() {
    let message = MessageId::new();
    let mut sequencer = Sequencer::<u32>::new(0, Vec::new());
    sequencer.delta(piece(message, 0, "a"), at());
    assert!(sequencer.next_told().is_some());
    submit(&mut sequencer, 1, 1);
    sequencer.delta(piece(message, 1, "b"), at());
    assert!(sequencer.next_told().is_none());
    sequencer.next_commit().unwrap();
    let told = committed(&mut sequencer);
    assert!(
        matches!(told[..], [Delivery::Change { .. }, Delivery::Delta(_)]),
        "{told:?}"
    );
    // A chunk on its way to the log holds nothing up.
    sequencer.log_chunks();
    sequencer.next_commit().unwrap();
    sequencer.delta(piece(message, 2, "c"), at());
    assert!(sequencer.next_told().is_some());
}

#[test]
fn text_is_logged_before_the_event_that_follows_it() {
    let message = MessageId::new();
    let mut sequencer = Sequencer::<u32>::new(7, Vec::new());
    sequencer.delta(piece(message, 0, "äb"), at());
    sequencer.delta(piece(message, 2, "c"), at());
    submit(&mut sequencer, 1, 1);
    let writes = sequencer.next_commit().unwrap();
    let Write::Chunk(chunk) = &writes[0] else {
        panic!("{writes:?}")
    };
    assert_eq!(
        (chunk.after_seq, chunk.offset, chunk.text.as_str()),
        (7, 0, "äbc")
    );
    assert!(matches!(writes.last(), Some(Write::Event(event)) if event.seq == 8));
}

/// Text that a commit appends to the log: where, into which row, and how much.
type Logged = (u64, Option<(u64, u32)>, usize);

/// What of it the next commit appends.
fn logged(sequencer: &mut Sequencer<u32>) -> Vec<Logged> {
    let writes = sequencer.next_commit().unwrap_or_default();
    let chunks = writes.iter().filter_map(|write| match write {
        Write::Chunk(chunk) => {
            let row = chunk.goes_on.map(|row| (row.offset, row.pieces));
            Some((chunk.offset, row, chunk.text.len()))
        }
        _ => None,
    });
    chunks.collect()
}

#[test]
fn text_goes_on_in_its_row_until_that_is_full_or_an_event_follows() {
    let message = MessageId::new();
    let mut sequencer = Sequencer::<u32>::new(0, Vec::new());
    let words = "x".repeat(300);
    let mut offset = 0;
    let mut next = |sequencer: &mut Sequencer<u32>| {
        sequencer.delta(piece(message, offset, &words), at());
        offset += 300;
        sequencer.log_chunks();
    };
    let mut rows = Vec::new();
    for _ in 0..5 {
        next(&mut sequencer);
        rows.extend(logged(&mut sequencer));
        sequencer.committed();
    }
    let expected = [
        (0, None, 300),
        (300, Some((0, 1)), 300),
        (600, None, 300),
        (900, Some((600, 1)), 300),
        (1_200, None, 300),
    ];
    assert_eq!(rows, expected);

    submit(&mut sequencer, 1, 1);
    next(&mut sequencer);
    assert_eq!(logged(&mut sequencer), [(1_500, None, 300)]);
}

#[test]
fn text_that_waits_for_a_commit_becomes_one_piece_of_its_row() {
    let (message, beside) = (MessageId::new(), MessageId::new());
    let mut sequencer = Sequencer::<u32>::new(0, Vec::new());
    let next = |sequencer: &mut Sequencer<u32>, message, offset| {
        sequencer.delta(piece(message, offset, "word"), at());
        sequencer.log_chunks();
    };
    next(&mut sequencer, message, 0);
    assert_eq!(logged(&mut sequencer), [(0, None, 4)]);
    // That one is on its way for long.
    for offset in [4, 8, 12] {
        next(&mut sequencer, message, offset);
        next(&mut sequencer, beside, offset - 4);
    }
    assert_eq!(logged(&mut sequencer), []);
    sequencer.committed();
    let both = [(4, Some((0, 1)), 12), (0, None, 12)];
    assert_eq!(logged(&mut sequencer), both);
    sequencer.committed();
    next(&mut sequencer, message, 16);
    assert_eq!(logged(&mut sequencer), [(16, Some((0, 2)), 4)]);
}

#[test]
fn a_part_is_open_until_its_message_is_told() {
    let message = MessageId::new();
    let mut sequencer = Sequencer::<u32>::new(0, Vec::new());
    sequencer.delta(piece(message, 0, "half"), at());
    told(&mut sequencer);
    assert_eq!(sequencer.open_parts().count(), 1);
    let whole = Message::assistant(message, RunId::new(), at());
    let change = Change {
        events: vec![(None, Event::StreamStopped {})],
        closed: vec![Closed::Message(whole.run_id, whole.id)],
        writes: vec![Write::Message(Arc::new(whole))],
    };
    sequencer.submit(change, at(), 1);
    sequencer.next_commit().unwrap();
    assert_eq!(
        sequencer.open_parts().next().unwrap().text,
        "half",
        "not told yet"
    );
    committed(&mut sequencer);
    assert_eq!(sequencer.open_parts().count(), 0);
}

/// The log that a tab reads ends with the last event that was told.
#[test]
fn a_part_that_ends_without_an_event_is_given_to_new_tabs_until_the_next_event() {
    let message = MessageId::new();
    let mut sequencer = Sequencer::<u32>::new(3, Vec::new());
    sequencer.delta(piece(message, 0, "I look it up."), at());
    told(&mut sequencer);
    let whole = Message::assistant(message, RunId::new(), at());
    let change = Change {
        closed: vec![Closed::Message(whole.run_id, whole.id)],
        writes: vec![Write::Message(Arc::new(whole))],
        ..Change::default()
    };
    sequencer.submit(change, at(), 1);
    let writes = sequencer.next_commit().unwrap();
    assert!(matches!(&writes[0], Write::Chunk(chunk) if chunk.after_seq == 3));
    committed(&mut sequencer);
    assert!(
        sequencer.open_parts().next().is_none(),
        "its message is there"
    );
    let given: Vec<&Arc<Piece>> = sequencer.beyond_log().collect();
    assert_eq!(given[0].text, "I look it up.");
    submit(&mut sequencer, 1, 2);
    sequencer.next_commit().unwrap();
    assert_eq!(sequencer.beyond_log().count(), 1, "not told yet");
    committed(&mut sequencer);
    assert_eq!(sequencer.beyond_log().count(), 0, "the log has it");
}

/// However long a part is, and however many tabs come back in its midst: they share it.
#[test]
fn an_open_part_is_given_in_blocks_that_are_shared() {
    let message = MessageId::new();
    let mut sequencer = Sequencer::<u32>::new(3, Vec::new());
    let line = "ä🌍 ".repeat(500);
    let mut offset = 0;
    for _ in 0..100 {
        let said = piece(message, offset, &line);
        offset = said.end();
        sequencer.delta(said, at());
    }
    told(&mut sequencer);
    let given = |sequencer: &Sequencer<u32>| -> Vec<Arc<Piece>> {
        sequencer.beyond_log().cloned().collect()
    };
    let (one, other) = (given(&sequencer), given(&sequencer));
    assert!(one.len() > 5, "{}", one.len());
    assert!(one.iter().all(|it| it.text.len() < 64 * 1024));
    assert!(one.iter().zip(&other).all(|(a, b)| Arc::ptr_eq(a, b)));
    assert!(one.is_sorted_by(|a, b| a.end() == b.offset));
    assert_eq!(
        sequencer.open_parts().next().unwrap().text,
        line.repeat(100)
    );
    // What one holds stays as it was.
    let last = one.last().unwrap().end();
    sequencer.delta(piece(message, offset, "more"), at());
    told(&mut sequencer);
    assert_eq!(one.last().unwrap().end(), last);
    assert_eq!(given(&sequencer).last().unwrap().end(), offset + 4);
    // A part is over as a whole.
    let whole = Message::assistant(message, RunId::new(), at());
    let change = Change {
        events: vec![(None, Event::StreamStopped {})],
        closed: vec![Closed::Message(whole.run_id, whole.id)],
        ..Change::default()
    };
    sequencer.submit(change, at(), 1);
    sequencer.next_commit().unwrap();
    committed(&mut sequencer);
    assert_eq!(sequencer.beyond_log().count(), 0);
}

#[test]
fn a_piece_is_trimmed_to_what_the_reader_lacks() {
    let message = MessageId::new();
    let piece = || piece(message, 10, "a🌍b");
    assert_eq!(piece().after(3).unwrap().text, "a🌍b");
    assert_eq!(piece().after(11).unwrap().text, "🌍b");
    assert_eq!(piece().after(13).unwrap().text, "b");
    assert_eq!(piece().after(13).unwrap().offset, 13);
    assert!(piece().after(14).is_none());
    assert!(piece().after(99).is_none());
}

#[derive(Clone, Debug)]
enum Move {
    Submit(usize),
    Text(String),
    LogChunks,
    SendCommit,
    CommitDone,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        3 => (0_usize..3).prop_map(Move::Submit),
        4 => "[a-zä🌍]{1,5}".prop_map(Move::Text),
        1 => Just(Move::LogChunks),
        3 => Just(Move::SendCommit),
        3 => Just(Move::CommitDone),
    ];
    prop::collection::vec(one, 0..80)
}

proptest! {
    /// Promises 2 and 4, the sequencer's half.
    #[test]
    fn what_is_told_is_what_was_submitted_in_order_and_committed_before(moves in moves()) {
        let message = MessageId::new();
        let mut sequencer = Sequencer::<u32>::new(0, Vec::new());
        let (mut submitted, mut told) = (Vec::new(), Vec::new());
        let (mut offset, mut then) = (0, 0);
        let (mut on_its_way, mut logged): (Option<Vec<Write>>, Vec<Write>) = (None, Vec::new());
        let (mut seqs_committed, mut seqs_told) = (0, 0);
        let mut all = moves;
        // At the end everything is let through.
        all.extend([Move::CommitDone, Move::LogChunks, Move::SendCommit, Move::CommitDone, Move::SendCommit, Move::CommitDone]);
        for step in all {
            match step {
                Move::Submit(events) => {
                    then += 1;
                    submit(&mut sequencer, events, then);
                    submitted.push(format!("#{then}"));
                }
                Move::Text(text) => {
                    let piece = piece(message, offset, &text);
                    offset += utf16_len(&text);
                    submitted.push(text);
                    sequencer.delta(piece, at());
                }
                Move::LogChunks => sequencer.log_chunks(),
                Move::SendCommit => {
                    if let Some(writes) = sequencer.next_commit() { on_its_way = Some(writes); }
                }
                Move::CommitDone => if let Some(writes) = on_its_way.take() {
                    logged.extend(writes);
                    seqs_committed = logged.iter().filter_map(|w| match w {
                        Write::Event(event) => Some(event.seq),
                        _ => None,
                    }).max().unwrap_or(0);
                    sequencer.committed();
                },
            }
            while let Some(item) = sequencer.next_told() {
                match item {
                    Delivery::Change { frames, then, .. } => {
                        for frame in &frames {
                            prop_assert!(seq(frame) <= seqs_committed, "told before it was committed");
                            seqs_told = seq(frame);
                        }
                        prop_assert_eq!(sequencer.told_seq(), seqs_told, "it says what was told");
                        told.push(format!("#{then}"));
                    }
                    Delivery::Delta(frame) => told.push(delta_of(&frame)),
                }
            }
        }
        prop_assert_eq!(&told, &submitted);
        // The log holds every event once, gapless, and the text whole and in its place.
        let (mut next, mut text) = (1, String::new());
        // The last row of the log: where it begins, how many pieces it has, behind which event.
        let mut row = None;
        for write in &logged {
            match write {
                Write::Event(event) => { prop_assert_eq!(event.seq, next); next += 1; }
                Write::Chunk(chunk) => {
                    prop_assert_eq!(chunk.offset, utf16_len(&text));
                    prop_assert_eq!(chunk.after_seq, next - 1);
                    text.push_str(&chunk.text);
                    let goes_on = chunk.goes_on.map(|row| (row.offset, row.pieces, next));
                    prop_assert!(goes_on.is_none() || goes_on == row, "{goes_on:?} {row:?}");
                    let (begins, pieces, _) = goes_on.unwrap_or((chunk.offset, 0, next));
                    row = Some((begins, pieces + 1, next));
                }
                _ => {}
            }
        }
        let said: String = submitted.iter().filter(|s| !s.starts_with('#')).cloned().collect();
        prop_assert_eq!(text, said);
        prop_assert_eq!(sequencer.told_seq(), next - 1);
    }
}

/// A snapshot that was read between them has neither the message nor what was told before it.
#[test]
fn a_part_that_ends_after_a_later_event_is_known_to_go_across_it() {
    let message = MessageId::new();
    let mut sequencer = Sequencer::<u32>::new(3, Vec::new());
    sequencer.delta(piece(message, 0, "hm"), at());
    told(&mut sequencer);
    submit(&mut sequencer, 2, 1);
    sequencer.next_commit().unwrap();
    committed(&mut sequencer);
    assert_eq!(sequencer.across(4).count(), 0, "it is open");
    let closing = Change {
        events: vec![(None, Event::StreamStopped {})],
        closed: vec![Closed::Message(RunId::new(), message)],
        ..Change::default()
    };
    sequencer.submit(closing, at(), 2);
    sequencer.next_commit().unwrap();
    committed(&mut sequencer);
    let across = |seq| sequencer.across(seq).count();
    assert_eq!((3..=7).map(across).collect::<Vec<_>>(), [0, 1, 1, 0, 0]);
}
