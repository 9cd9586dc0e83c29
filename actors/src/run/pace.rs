//! Joins streamed text to what a person can see: at once after a pause, else about 60 times a second.

use std::time::Duration;

use tokio::time::Instant;

use crate::protocol::event::{PartKind, utf16_len};
use crate::protocol::ids::{MessageId, Origin, PartId};
use crate::session::sequencer::Piece;

/// The time between two pieces of a fast stream.
const TICK: Duration = Duration::from_millis(16);

/// The most text of one piece, so that what is kept for slow tabs is bounded in bytes too.
const PIECE_BYTES: usize = 4096;

/// Text of one reply on its way out.
#[derive(Debug)]
pub(super) struct Pace {
    origin: Origin,
    message_id: MessageId,
    held: Option<(PartKind, String)>,
    thinking_part: PartId,
    text_part: PartId,
    thinking_units: u64,
    text_units: u64,
    last: Option<Instant>,
    thinking_open: bool,
    /// Whether text is kept back for now.
    pub(super) holds: bool,
}

impl Pace {
    pub(super) fn new(origin: Origin, message_id: MessageId) -> Self {
        Self {
            origin,
            message_id,
            held: None,
            thinking_part: PartId::thinking(message_id),
            text_part: PartId::text(message_id),
            thinking_units: 0,
            text_units: 0,
            last: None,
            thinking_open: false,
            holds: false,
        }
    }

    /// Takes text in, and gives back what is to be told now.
    pub(super) fn take(&mut self, kind: PartKind, text: String) -> Vec<Piece> {
        if kind == PartKind::Thinking {
            self.thinking_open = true;
            if self.holds {
                // It is no part of what is kept back.
                return self.pieces(kind, text);
            }
        }
        let mut out = Vec::new();
        if self.held.as_ref().is_some_and(|(held, _)| *held != kind) {
            out = self.flush();
        }
        match &mut self.held {
            Some((_, held)) => held.push_str(&text),
            None => self.held = Some((kind, text)),
        }
        if self.last.is_none_or(|last| last.elapsed() >= TICK) {
            out.extend(self.flush());
        }
        out
    }

    /// When what is held is to be told at the latest.
    pub(super) fn due(&self) -> Option<Instant> {
        self.held.as_ref().filter(|_| !self.holds)?;
        self.last.map(|last| last + TICK)
    }

    /// What was kept back is not to be told at all.
    pub(super) fn forget(&mut self) {
        if self.holds {
            self.held = None;
        }
    }

    /// What is held, kept back or not.
    pub(super) fn release(&mut self) -> Vec<Piece> {
        self.holds = false;
        self.flush()
    }

    /// What is held, unless it is kept back.
    pub(super) fn flush(&mut self) -> Vec<Piece> {
        if self.holds {
            return Vec::new();
        }
        match self.held.take() {
            Some((kind, text)) => self.pieces(kind, text),
            None => Vec::new(),
        }
    }

    fn pieces(&mut self, kind: PartKind, text: String) -> Vec<Piece> {
        self.last = Some(Instant::now());
        let (part_id, units) = match kind {
            PartKind::Thinking => (&self.thinking_part, &mut self.thinking_units),
            PartKind::Text | PartKind::ToolOutput => (&self.text_part, &mut self.text_units),
        };
        let mut piece = |text: String| {
            let offset = *units;
            *units += utf16_len(&text);
            Piece {
                origin: self.origin,
                part_id: part_id.clone(),
                kind,
                message_id: self.message_id,
                offset,
                text,
            }
        };
        if !text.is_empty() && text.len() <= PIECE_BYTES {
            return vec![piece(text)];
        }
        let mut pieces = Vec::new();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (head, tail) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
            pieces.push(piece(head.to_owned()));
            rest = tail;
        }
        pieces
    }

    /// Whether reasoning was streamed whose end is not told yet.
    pub(super) fn ends_thinking(&self) -> bool {
        self.thinking_open
    }

    /// Its end is told.
    pub(super) fn thinking_ended(&mut self) {
        self.thinking_open = false;
    }
}
