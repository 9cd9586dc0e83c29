//! Which row of the log a piece of streamed text goes into.
//!
//! A commit writes the whole page that a row stands on, and where it adds one, the pages of two
//! indexes too. So the pieces of a slow answer go into the row that is there until it is full: it
//! costs a commit one page. Text of other parts that came in between stands behind all of it then;
//! deltas say themselves where they belong.

use crate::domain::session::write::{ChunkRow, OpenRow, Write};
use crate::protocol::ids::PartId;

/// How much text a row takes in, in bytes: with it a row fits a page of a new database, and larger
/// pieces are rows of their own.
const ROW_BYTES: usize = 800;

/// The rows that take in what comes next, one a part.
#[derive(Debug, Default)]
pub(super) struct LogRows(Vec<LogRow>);

#[derive(Debug)]
struct LogRow {
    part_id: PartId,
    place: OpenRow,
    bytes: usize,
}

impl LogRows {
    /// Puts a piece among the writes of the next commit.
    pub(super) fn log(&mut self, mut chunk: ChunkRow, backlog: &mut Vec<Write>) {
        let bytes = chunk.text.len();
        let row = self.0.iter_mut().find(|row| row.part_id == chunk.part_id);
        if let Some(row) = row
            && row.bytes + bytes <= ROW_BYTES
        {
            row.bytes += bytes;
            if let Some(waiting) = waiting(&chunk.part_id, backlog) {
                waiting.text.push_str(&chunk.text);
                return;
            }
            chunk.goes_on = Some(row.place);
            row.place.pieces += 1;
        } else {
            self.0.retain(|row| row.part_id != chunk.part_id);
            self.0.push(LogRow {
                part_id: chunk.part_id.clone(),
                place: OpenRow {
                    offset: chunk.offset,
                    pieces: 1,
                },
                bytes,
            });
        }
        backlog.push(Write::Chunk(chunk));
    }

    /// What comes next stands behind an event, or beside parts that are over: in rows of its own.
    pub(super) fn end(&mut self) {
        self.0.clear();
    }
}

/// The last piece of a part that is in no commit yet. There is none but for the part's last row.
fn waiting<'a>(part_id: &PartId, backlog: &'a mut [Write]) -> Option<&'a mut ChunkRow> {
    backlog.iter_mut().rev().find_map(|write| match write {
        Write::Chunk(chunk) if chunk.part_id == *part_id => Some(chunk),
        _ => None,
    })
}
