//! What a command writes: shown while it comes, kept up to a limit, given back cut in its middle
//! and whole in a file of the workspace.

use std::collections::VecDeque;

use crate::tools::LiveOutput;
use crate::tools::output::Decoder;

/// How much of an output is kept, from its beginning.
pub(super) const KEPT_BYTES: usize = 4 << 20;
/// How much of its end is kept beside that.
const TAIL_BYTES: usize = 16 * 1024;
/// A command that writes more than this is ended.
pub(super) const MAX_BYTES: u64 = 64 << 20;

/// Gathers output. Standard output and standard error are one text here, in the order in which
/// they came: that is how a person would see it.
#[derive(Debug)]
pub(super) struct Capture {
    live: LiveOutput,
    beginning: Vec<u8>,
    /// What came after the beginning was full: its end.
    tail: VecDeque<u8>,
    total_bytes: u64,
    shown: Decoder,
}

/// What was gathered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Captured {
    pub(super) text: String,
    pub(super) total_bytes: u64,
    /// Not all of it was kept.
    pub(super) cut: bool,
}

impl Capture {
    pub(super) fn new(live: LiveOutput) -> Self {
        Self {
            live,
            beginning: Vec::new(),
            tail: VecDeque::new(),
            total_bytes: 0,
            shown: Decoder::default(),
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total_bytes = self.total_bytes.saturating_add(bytes.len() as u64);
        self.live.push(&self.shown.push(bytes));
        let room = KEPT_BYTES - self.beginning.len();
        let (first, rest) = bytes.split_at(bytes.len().min(room));
        self.beginning.extend_from_slice(first);
        self.tail.extend(rest);
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
    }

    pub(super) fn is_too_much(&self) -> bool {
        self.total_bytes > MAX_BYTES
    }

    pub(super) fn finish(mut self) -> Captured {
        self.live.push(&self.shown.end());
        let kept = (self.beginning.len() + self.tail.len()) as u64;
        let missing = self.total_bytes - kept;
        let mut text = String::from_utf8_lossy(&self.beginning).into_owned();
        if missing > 0 {
            text.push_str(&format!("\n[… {missing} bytes were not kept …]\n"));
        }
        text.push_str(&String::from_utf8_lossy(self.tail.make_contiguous()));
        Captured {
            text,
            total_bytes: self.total_bytes,
            cut: missing > 0,
        }
    }
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod tests;
