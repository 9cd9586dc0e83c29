//! What is stored: the log, guarded as the store's claim guards it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use navi_actors::domain::session::change::Closed;
use navi_actors::domain::session::stored::Span;
use navi_actors::domain::session::write::{ChunkRow, EventRow, Write};
use navi_actors::protocol::ids::PartId;
use navi_actors::session::telling::StoredPosition;
use navi_actors::store::{LogCursor, LogItem, LogPage, LogRange, PageLimits};

/// Shared by all; no lock is held where a schedule may change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shelf(Arc<Mutex<Log>>);

#[derive(Debug, Default)]
struct Log {
    epoch: i64,
    last_seq: u64,
    rows: Vec<(LogCursor, LogItem)>,
    last_chunk: i64,
    /// The parts of which sessions that died had told what may not be here.
    left: BTreeSet<PartId>,
}

impl Log {
    /// As the store does with a part that is over: one row a stretch, under its last one's number.
    fn settle(&mut self, part: &PartId) {
        let is_piece = |(_, item): &mut (LogCursor, LogItem)| match item {
            LogItem::Chunk(row) => row.part_id == *part,
            LogItem::Event(_) => false,
        };
        let pieces: Vec<_> = self.rows.extract_if(.., is_piece).collect();
        let mut stretches: Vec<(LogCursor, ChunkRow)> = Vec::new();
        for (at, item) in pieces {
            let LogItem::Chunk(piece) = item else {
                continue;
            };
            match stretches.last_mut() {
                Some((place, last)) if last.after_seq == piece.after_seq => {
                    last.text.push_str(&piece.text);
                    *place = at;
                }
                _ => stretches.push((at, piece)),
            }
        }
        let stretches = stretches.into_iter();
        self.rows
            .extend(stretches.map(|(at, row)| (at, LogItem::Chunk(row))));
        self.rows.sort_by_key(|(at, _)| *at);
    }

    /// As the store gives them.
    fn spans(&self) -> Vec<Span> {
        let is_over = |part: &PartId| {
            let said = format!("\"{part}\"");
            self.rows.iter().any(|(_, item)| match item {
                LogItem::Event(row) => row.json.contains(&said),
                LogItem::Chunk(_) => false,
            })
        };
        let starts = self.rows.iter().filter_map(|(_, item)| match item {
            LogItem::Chunk(row) if row.offset == 0 => Some(row),
            _ => None,
        });
        let spans = starts.map(|row| Span {
            part_id: row.part_id.clone(),
            after: row.after_seq,
            until: self
                .last_seq
                .saturating_sub(u64::from(is_over(&row.part_id))),
        });
        spans.filter(|span| span.after < span.until).collect()
    }
}

impl Shelf {
    /// What a session starts from. `seize` moves the epoch on: what the one before it may
    /// still write is refused.
    pub(crate) fn take(&self, seize: bool) -> StoredPosition {
        let mut log = self.0.lock().unwrap();
        log.epoch += i64::from(seize);
        StoredPosition {
            last_seq: log.last_seq,
            epoch: log.epoch,
            spans: log.spans(),
        }
    }

    /// Writes all of it, or nothing.
    pub(crate) fn commit(&self, epoch: i64, writes: Vec<Write>) -> Result<(), &'static str> {
        let mut log = self.0.lock().unwrap();
        if epoch != log.epoch {
            return Err("fenced");
        }
        let mut seq = log.last_seq;
        let (mut rows, mut over) = (Vec::new(), Vec::new());
        for write in writes {
            match write {
                Write::Event(row) if row.seq == seq + 1 => {
                    seq += 1;
                    rows.push((LogCursor { seq, chunk: 0 }, LogItem::Event(row)));
                }
                Write::Event(_) => return Err("it does not go on from the last event"),
                Write::Chunk(row) => {
                    log.last_chunk += 1;
                    let (seq, chunk) = (row.after_seq, log.last_chunk);
                    rows.push((LogCursor { seq, chunk }, LogItem::Chunk(row)));
                }
                Write::Closed(Closed::Message(_, id)) => over.push(PartId::text(id)),
                _ => {}
            }
        }
        if rows.iter().any(|(at, _)| at.seq > seq) {
            return Err("text that follows on an event that is not there");
        }
        log.last_seq = seq;
        log.rows.extend(rows);
        log.rows.sort_by_key(|(at, _)| *at);
        for part in over {
            log.settle(&part);
        }
        Ok(())
    }

    /// A session dies that told of these parts what may not be committed.
    pub(crate) fn leave(&self, parts: impl Iterator<Item = PartId>) {
        self.0.lock().unwrap().left.extend(parts);
    }

    pub(crate) fn was_left(&self, part: &PartId) -> bool {
        self.0.lock().unwrap().left.contains(part)
    }

    pub(crate) fn last_seq(&self) -> u64 {
        self.0.lock().unwrap().last_seq
    }

    pub(crate) fn event(&self, seq: u64) -> Option<EventRow> {
        let log = self.0.lock().unwrap();
        log.rows.iter().find_map(|(_, item)| match item {
            LogItem::Event(row) if row.seq == seq => Some(row.clone()),
            _ => None,
        })
    }

    /// The text of a part that is committed.
    pub(crate) fn text(&self, part: &PartId) -> String {
        let log = self.0.lock().unwrap();
        let chunks = log.rows.iter().filter_map(|(_, item)| match item {
            LogItem::Chunk(row) if row.part_id == *part => Some(row.text.as_str()),
            _ => None,
        });
        chunks.collect()
    }

    /// The parts that began between these two events, with their text that is committed.
    pub(crate) fn parts_between(&self, since: u64, until: u64) -> BTreeMap<PartId, String> {
        let log = self.0.lock().unwrap();
        let mut parts = BTreeMap::<PartId, String>::new();
        for (at, item) in &log.rows {
            if let LogItem::Chunk(row) = item
                && (since..until).contains(&at.seq)
                && (row.offset == 0 || parts.contains_key(&row.part_id))
            {
                parts
                    .entry(row.part_id.clone())
                    .or_default()
                    .push_str(&row.text);
            }
        }
        parts
    }

    pub(crate) fn page(&self, range: LogRange, limits: PageLimits) -> LogPage {
        let log = self.0.lock().unwrap();
        let end = LogCursor {
            seq: range.to_seq,
            chunk: 0,
        };
        let mut rows = log
            .rows
            .iter()
            .filter(|(at, _)| *at > range.from && *at <= end);
        let taken: Vec<_> = rows.by_ref().take(limits.items).cloned().collect();
        let next = rows.next().and(taken.last()).map(|(at, _)| *at);
        LogPage {
            items: taken.into_iter().map(|(_, item)| item).collect(),
            next,
        }
    }
}
