//! What a command writes: shown while it comes, and kept up to a limit.

use std::collections::VecDeque;

use crate::tools::LiveOutput;
use crate::tools::output::{decoded, decoder};

/// How much of an output is kept, from its beginning.
pub(super) const KEPT_BYTES: usize = 4 << 20;
/// How much of its end is kept beside that.
const TAIL_BYTES: usize = 16 * 1024;
/// A command that writes more than this is ended.
pub(super) const MAX_BYTES: u64 = 64 << 20;

/// Gathers output. Standard output and standard error are one text here, in the order in which
/// they came: that is how a person would see it.
pub(super) struct Capture {
    live: LiveOutput,
    beginning: Vec<u8>,
    /// What came after the beginning was full: its end.
    tail: VecDeque<u8>,
    pub(super) total_bytes: u64,
    shown: encoding_rs::Decoder,
}

impl Capture {
    pub(super) fn new(live: LiveOutput) -> Self {
        Self {
            live,
            beginning: Vec::new(),
            tail: VecDeque::new(),
            total_bytes: 0,
            shown: decoder(),
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total_bytes = self.total_bytes.saturating_add(bytes.len() as u64);
        self.live.push(&decoded(&mut self.shown, bytes, false));
        let room = KEPT_BYTES - self.beginning.len();
        let (first, rest) = bytes.split_at(bytes.len().min(room));
        self.beginning.extend_from_slice(first);
        self.tail.extend(rest);
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
    }

    /// What was kept; where that is not all, with a note of how much is missing.
    pub(super) fn finish(mut self) -> String {
        self.live.push(&decoded(&mut self.shown, &[], true));
        let kept = (self.beginning.len() + self.tail.len()) as u64;
        let missing = self.total_bytes - kept;
        let mut text = String::from_utf8_lossy(&self.beginning).into_owned();
        if missing > 0 {
            text.push_str(&format!("\n[… {missing} bytes were not kept …]\n"));
        }
        text.push_str(&String::from_utf8_lossy(self.tail.make_contiguous()));
        text
    }
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod tests;
