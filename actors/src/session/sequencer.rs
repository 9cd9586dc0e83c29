//! The one place where a session's events get their numbers and their order.
//!
//! Pure: it knows no actor and no store. What is submitted here is told in exactly this
//! order, and a numbered event only once it is committed:
//! - [`Sequencer::submit`] numbers events and puts their writes into the backlog;
//! - [`Sequencer::next_commit`] hands the backlog to the journal, one commit at a time;
//! - [`Sequencer::next_told`] gives back what may now be told, one after the other: what the
//!   sequencer says of itself is what was told, no more.

use std::collections::VecDeque;
use std::sync::Arc;

use bytestring::ByteString;
use chrono::{DateTime, Utc};

use super::log_rows::LogRows;
use crate::domain::context::ContextMessage;
use crate::domain::session::change::{Change, Closed};
use crate::domain::session::stored::{MAX_SPANS, Span};
use crate::domain::session::write::{ChunkRow, EventRow, Write};
use crate::protocol::event::{Delta, Envelope, Event, PartKind, behind_utf16, utf16_len};
use crate::protocol::ids::{MessageId, Origin, PartId};

/// How much streamed text may wait for the log.
const CHUNK_BYTES: usize = 4096;

/// Text of an open part is kept, and given to tabs that come in its midst, in blocks of about
/// this much: shared by all of them, and no frame is larger.
const BLOCK_BYTES: usize = 32 * 1024;

/// An event over this is read from the log by each tab.
const LARGE_BYTES: usize = 32 * 1024;

/// How many writes may wait for a commit before a run that streams waits too. Chunks are
/// about [`CHUNK_BYTES`] each.
const BACKLOG: usize = 64;

/// Bytes that every tab gets, with what a tab needs to keep its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub place: At,
    /// None where an event is too large to be kept for slow tabs: it is in the log.
    pub json: Option<ByteString>,
    /// The same, for whoever reads it in this process. None where only the bytes are known.
    pub envelope: Option<Box<Envelope>>,
}

/// Where a frame stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// Beside the log: whoever watches now is told, and nobody later.
    Nowhere,
    Event(u64),
    /// From `start` to `end` of a part, in UTF-16 code units.
    Part {
        part_id: PartId,
        start: u64,
        end: u64,
    },
}

/// A piece of streamed text with its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub origin: Origin,
    pub part_id: PartId,
    pub kind: PartKind,
    /// The assistant message whose text this is, or whose call made the output.
    pub message_id: MessageId,
    /// Of the piece's start, in UTF-16 code units of the part.
    pub offset: u64,
    pub text: String,
}

impl Piece {
    /// The piece as tabs get it.
    #[must_use]
    pub fn frame(self, at: DateTime<Utc>) -> Frame {
        let place = At::Part {
            start: self.offset,
            end: self.end(),
            part_id: self.part_id.clone(),
        };
        let call_id = self.part_id.call();
        let delta = Delta {
            part_id: self.part_id,
            offset: self.offset,
            delta: self.text,
            is_subagent: self.origin.is_subagent(),
        };
        let event = match (self.kind, call_id) {
            (PartKind::Thinking, _) => Event::ThinkingDelta(delta),
            (PartKind::ToolOutput, Some(call_id)) => Event::ToolOutput {
                call_id,
                part_id: delta.part_id,
                offset: delta.offset,
                delta: delta.delta,
                is_subagent: delta.is_subagent,
            },
            (PartKind::Text | PartKind::ToolOutput, _) => Event::StreamDelta(delta),
        };
        let envelope = Envelope {
            seq: None,
            run_id: Some(self.origin.run_id),
            parent_run_id: self.origin.parent_run_id,
            at,
            event,
        };
        Frame {
            place,
            json: Some(encode(&envelope)),
            envelope: Some(Box::new(envelope)),
        }
    }

    fn is_over(&self, closed: &[Closed]) -> bool {
        closed.iter().any(|closed| match closed {
            Closed::Message(_, id) => self.kind != PartKind::ToolOutput && self.message_id == *id,
            Closed::Output(_, call) => self.part_id == PartId::output(call),
            Closed::Run(run_id) => self.origin.run_id == *run_id,
        })
    }

    /// Where the piece ends, in UTF-16 code units of the part.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset + utf16_len(&self.text)
    }

    /// What is left of the piece for one who has the part up to `offset`. None where that is all.
    #[must_use]
    pub fn after(&self, offset: u64) -> Option<Self> {
        let skip = offset.saturating_sub(self.offset);
        if skip == 0 {
            return Some(self.clone());
        }
        let rest = behind_utf16(&self.text, skip);
        (!rest.is_empty()).then(|| Self {
            origin: self.origin,
            part_id: self.part_id.clone(),
            kind: self.kind,
            message_id: self.message_id,
            offset: self.end() - utf16_len(rest),
            text: rest.to_owned(),
        })
    }
}

/// Serialises an envelope. Ours always can be.
#[must_use]
pub fn encode(envelope: &Envelope) -> ByteString {
    serde_json::to_string(envelope).unwrap_or_default().into()
}

/// Something that is now committed and may be told.
#[derive(Debug, PartialEq)]
pub enum Delivery<T> {
    /// A change, its events' frames, and what its submitter wanted done.
    Change {
        frames: Vec<Frame>,
        change: Change,
        then: T,
    },
    Delta(Frame),
}

/// A part of which text was told and whose message is not committed yet.
#[derive(Debug)]
struct Open {
    /// The last event that was told before it.
    after: u64,
    /// Up to what was told, from its beginning; one block at least.
    blocks: Vec<Arc<Piece>>,
}

impl Open {
    fn begin(piece: Piece, after: u64) -> Self {
        Self {
            after,
            blocks: vec![Arc::new(piece)],
        }
    }

    fn is_of(&self, part_id: &PartId) -> bool {
        self.blocks
            .first()
            .is_some_and(|block| block.part_id == *part_id)
    }

    fn push(&mut self, piece: &Piece) {
        match self.blocks.last_mut() {
            Some(last) if last.text.len() < BLOCK_BYTES => {
                Arc::make_mut(last).text.push_str(&piece.text);
            }
            _ => self.blocks.push(Arc::new(piece.clone())),
        }
    }

    fn whole(&self) -> Option<Piece> {
        let mut blocks = self.blocks.iter();
        let mut whole = Piece::clone(blocks.next()?);
        whole.text.extend(blocks.map(|block| block.text.as_str()));
        Some(whole)
    }
}

#[derive(Debug)]
enum Entry<T> {
    Change {
        commit: u64,
        frames: Vec<Frame>,
        change: Change,
        then: T,
    },
    Delta(Piece, DateTime<Utc>),
}

/// See the module. `T` is what a submitter wants done once its submission was told.
#[derive(Debug)]
pub struct Sequencer<T> {
    /// The number that the next event gets.
    next_seq: u64,
    /// The number of the last event that was told.
    told_seq: u64,
    waiting: VecDeque<Entry<T>>,
    /// Writes that are in no commit yet.
    backlog: Vec<Write>,
    /// The number of the commit that takes the backlog.
    next_commit: u64,
    in_flight: bool,
    /// Streamed text that is in no chunk yet.
    unlogged: Vec<Piece>,
    unlogged_bytes: usize,
    log_rows: LogRows,
    open: Vec<Open>,
    /// Blocks of the parts that ended after the last event that was told.
    ended: Vec<Arc<Piece>>,
    /// The last that ended, oldest first; up to [`MAX_SPANS`].
    spans: VecDeque<Span>,
}

impl<T> Sequencer<T> {
    /// A sequencer for a session whose last committed event is `last_seq`, and where `spans`,
    /// oldest first, ended before.
    #[must_use]
    pub fn new(last_seq: u64, spans: Vec<Span>) -> Self {
        Self {
            next_seq: last_seq + 1,
            told_seq: last_seq,
            waiting: VecDeque::new(),
            backlog: Vec::new(),
            next_commit: 0,
            in_flight: false,
            unlogged: Vec::new(),
            unlogged_bytes: 0,
            log_rows: LogRows::default(),
            open: Vec::new(),
            ended: Vec::new(),
            spans: spans.into(),
        }
    }

    /// The number of the last event that was told.
    #[must_use]
    pub fn told_seq(&self) -> u64 {
        self.told_seq
    }

    /// The number of the last event that was submitted.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.next_seq - 1
    }

    /// The messages of what was submitted and is not told: the store may not have them yet.
    #[must_use]
    pub fn untold_messages(&self) -> Vec<ContextMessage> {
        let writes = self.waiting.iter().flat_map(|entry| match entry {
            Entry::Change { change, .. } => change.writes.as_slice(),
            Entry::Delta(..) => &[],
        });
        let messages = writes.filter_map(|write| match write {
            Write::Message(message) => Some(Arc::clone(message).into()),
            _ => None,
        });
        messages.collect()
    }

    /// Whether nothing waits to be committed or told.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.waiting.is_empty() && self.backlog.is_empty() && !self.in_flight
    }

    /// Parts that are open, whole: each from offset 0 up to what was told.
    pub fn open_parts(&self) -> impl Iterator<Item = Piece> {
        self.open.iter().filter_map(Open::whole)
    }

    /// Parts that are still open once all that was submitted is told, whole.
    #[must_use]
    pub fn open_ahead(&self) -> Vec<Piece> {
        let mut open: Vec<Piece> = self.open_parts().collect();
        for entry in &self.waiting {
            match entry {
                Entry::Change { change, .. } => open.retain(|part| !part.is_over(&change.closed)),
                Entry::Delta(piece, _) => {
                    match open.iter_mut().find(|part| part.part_id == piece.part_id) {
                        Some(part) => part.text.push_str(&piece.text),
                        None => open.push(piece.clone()),
                    }
                }
            }
        }
        open
    }

    /// Parts whose text the log does not hold up to the last event that was told, whole, in
    /// blocks: one who reads the log up to there is given them beside it. A part that ended without
    /// an event, as one does before the calls of its message begin, is among them until the next.
    pub fn beyond_log(&self) -> impl Iterator<Item = &Arc<Piece>> {
        let open = self.open.iter().flat_map(|part| &part.blocks);
        self.ended.iter().chain(open)
    }

    /// Ended parts that began before event `seq` and ended after it: of these the log tells one
    /// who reads it from there on too little.
    pub fn across(&self, seq: u64) -> impl Iterator<Item = &Span> {
        self.spans
            .iter()
            .filter(move |span| span.after < seq && seq <= span.until)
    }

    /// Numbers the events and queues them with their writes, to be committed whole.
    /// Text that was streamed before them is logged with them, and that of a message with it.
    pub fn submit(&mut self, mut change: Change, at: DateTime<Utc>, then: T) {
        if !change.events.is_empty() || !change.closed.is_empty() {
            self.log_chunks();
            self.log_rows.end();
        }
        let mut frames = Vec::with_capacity(change.events.len());
        self.backlog.extend(change.writes.iter().cloned());
        self.backlog
            .extend(change.closed.iter().cloned().map(Write::Closed));
        for (origin, mut event) in std::mem::take(&mut change.events) {
            if origin.is_some_and(|origin| origin.is_subagent()) {
                event.mark_subagent();
            }
            let run_id = origin.map(|origin| origin.run_id);
            let seq = self.next_seq;
            self.next_seq += 1;
            let envelope = Envelope {
                seq: Some(seq),
                run_id,
                parent_run_id: origin.and_then(|origin| origin.parent_run_id),
                at,
                event,
            };
            let json = encode(&envelope);
            self.backlog.push(Write::Event(EventRow {
                seq,
                run_id,
                kind: envelope.event.name().to_owned(),
                json: json.to_string(),
                at,
            }));
            let is_kept = json.len() <= LARGE_BYTES;
            frames.push(Frame {
                place: At::Event(seq),
                json: is_kept.then_some(json),
                envelope: is_kept.then(|| Box::new(envelope.clone())),
            });
            change.events.push((origin, envelope.event));
        }
        self.waiting.push_back(Entry::Change {
            commit: self.next_commit,
            frames,
            change,
            then,
        });
    }

    /// Takes in a piece of streamed text. It may be told at once, unless something before it
    /// still waits for its commit.
    pub fn delta(&mut self, piece: Piece, at: DateTime<Utc>) {
        self.unlogged_bytes += piece.text.len();
        match self.unlogged.last_mut() {
            Some(last) if last.part_id == piece.part_id => last.text.push_str(&piece.text),
            _ => self.unlogged.push(piece.clone()),
        }
        if self.unlogged_bytes >= CHUNK_BYTES {
            self.log_chunks();
        }
        self.waiting.push_back(Entry::Delta(piece, at));
    }

    /// Puts streamed text that is not logged yet into the backlog.
    pub fn log_chunks(&mut self) {
        self.unlogged_bytes = 0;
        let after_seq = self.next_seq - 1;
        for piece in self.unlogged.drain(..) {
            let chunk = ChunkRow {
                after_seq,
                run_id: piece.origin.run_id,
                part_id: piece.part_id,
                kind: piece.kind,
                message_id: piece.message_id,
                offset: piece.offset,
                text: piece.text,
                parent_run_id: piece.origin.parent_run_id,
                goes_on: None,
            };
            self.log_rows.log(chunk, &mut self.backlog);
        }
    }

    /// Whether so much waits for the log that a run is to wait too.
    #[must_use]
    pub fn is_congested(&self) -> bool {
        self.backlog.len() > BACKLOG
    }

    /// Whether there is streamed text that no chunk holds yet.
    #[must_use]
    pub fn has_unlogged(&self) -> bool {
        !self.unlogged.is_empty()
    }

    /// The writes of the next commit. None while one is on its way, or where there is nothing to write.
    pub fn next_commit(&mut self) -> Option<Vec<Write>> {
        if self.in_flight || self.backlog.is_empty() {
            return None;
        }
        self.in_flight = true;
        self.next_commit += 1;
        Some(std::mem::take(&mut self.backlog))
    }

    /// The commit that was on its way is durable.
    pub fn committed(&mut self) {
        self.in_flight = false;
    }

    /// The next that may be told without any further commit.
    pub fn next_told(&mut self) -> Option<Delivery<T>> {
        let durable = if self.in_flight {
            self.next_commit - 1
        } else {
            self.next_commit
        };
        let nothing_to_write = self.backlog.is_empty() && !self.in_flight;
        match self.waiting.pop_front()? {
            Entry::Delta(piece, at) => Some(self.tell_piece(piece, at)),
            Entry::Change {
                commit,
                frames,
                change,
                then,
            } if commit < durable || nothing_to_write => {
                let ended = self.close_parts(&change.closed);
                match frames.last().map(|frame| &frame.place) {
                    Some(At::Event(seq)) => {
                        self.told_seq = *seq;
                        // What was streamed before an event is logged before it.
                        self.ended.clear();
                    }
                    Some(At::Part { .. } | At::Nowhere) | None => self.ended.extend(ended),
                }
                Some(Delivery::Change {
                    frames,
                    change,
                    then,
                })
            }
            later @ Entry::Change { .. } => {
                self.waiting.push_front(later);
                None
            }
        }
    }

    fn tell_piece(&mut self, piece: Piece, at: DateTime<Utc>) -> Delivery<T> {
        let known = self.open.iter_mut().find(|open| open.is_of(&piece.part_id));
        match known {
            Some(open) => open.push(&piece),
            None => self.open.push(Open::begin(piece.clone(), self.told_seq)),
        }
        Delivery::Delta(piece.frame(at))
    }

    /// Takes what is over out of the open parts.
    fn close_parts(&mut self, closed: &[Closed]) -> Vec<Arc<Piece>> {
        let is_over = |part: &mut Open| {
            part.blocks
                .first()
                .is_none_or(|block| block.is_over(closed))
        };
        let over: Vec<Open> = self.open.extract_if(.., is_over).collect();
        let until = self.told_seq;
        let across = over.iter().filter(|part| part.after < until);
        let spans = across.filter_map(|part| {
            Some(Span {
                part_id: part.blocks.first()?.part_id.clone(),
                after: part.after,
                until,
            })
        });
        self.spans.extend(spans);
        let surplus = self.spans.len().saturating_sub(MAX_SPANS);
        self.spans.drain(..surplus);
        over.into_iter().flat_map(|part| part.blocks).collect()
    }
}
