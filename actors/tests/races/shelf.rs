//! What is stored: the log, guarded as the store's claim guards it.

use std::sync::{Arc, Mutex};

use navi_actors::protocol::ids::PartId;
use navi_actors::store::{
    ChunkRow, EventRow, LogCursor, LogItem, LogPage, LogRange, PageLimits, Write,
};

/// Shared by all; no lock is held where a schedule may change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shelf(Arc<Mutex<Log>>);

#[derive(Debug, Default)]
struct Log {
    epoch: i64,
    /// How many sessions started from it.
    starts: usize,
    last_seq: u64,
    rows: Vec<(LogCursor, LogItem)>,
}

impl Shelf {
    /// What a session starts from. `seize` moves the epoch on: what the one before it may
    /// still write is refused.
    pub(crate) fn take(&self, seize: bool) -> (i64, u64) {
        let mut log = self.0.lock().unwrap();
        log.epoch += i64::from(seize);
        log.starts += 1;
        (log.epoch, log.last_seq)
    }

    pub(crate) fn starts(&self) -> usize {
        self.0.lock().unwrap().starts
    }

    /// Writes all of it, or nothing.
    pub(crate) fn commit(&self, epoch: i64, writes: Vec<Write>) -> Result<(), &'static str> {
        let mut log = self.0.lock().unwrap();
        if epoch != log.epoch {
            return Err("fenced");
        }
        let mut seq = log.last_seq;
        let mut rows = Vec::new();
        for write in writes {
            match write {
                Write::Event(row) if row.seq == seq + 1 => {
                    seq += 1;
                    rows.push((LogCursor { seq, chunk: 0 }, LogItem::Event(row)));
                }
                Write::Event(_) => return Err("it does not go on from the last event"),
                Write::Chunk(row) => {
                    let chunk = i64::try_from(log.rows.len() + rows.len()).unwrap() + 1;
                    let seq = row.after_seq;
                    rows.push((LogCursor { seq, chunk }, LogItem::Chunk(row)));
                }
                _ => {}
            }
        }
        if rows.iter().any(|(at, _)| at.seq > seq) {
            return Err("text that follows on an event that is not there");
        }
        log.last_seq = seq;
        log.rows.extend(rows);
        log.rows.sort_by_key(|(at, _)| *at);
        Ok(())
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
        self.chunks(part)
            .iter()
            .map(|row| row.text.as_str())
            .collect()
    }

    /// After which event the part's text begins; none where nothing of it is committed.
    pub(crate) fn begins(&self, part: &PartId) -> Option<u64> {
        self.chunks(part).first().map(|row| row.after_seq)
    }

    fn chunks(&self, part: &PartId) -> Vec<ChunkRow> {
        let log = self.0.lock().unwrap();
        let chunks = log.rows.iter().filter_map(|(_, item)| match item {
            LogItem::Chunk(row) if row.part_id == *part => Some(row.clone()),
            _ => None,
        });
        chunks.collect()
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
