//! What a command writes: shown while it comes, and kept up to a limit.

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
    /// The beginning, and of what came after it the end.
    kept: Vec<u8>,
    pub(super) total_bytes: u64,
    shown: encoding_rs::Decoder,
}

impl Capture {
    pub(super) fn new(live: LiveOutput) -> Self {
        Self {
            live,
            kept: Vec::new(),
            total_bytes: 0,
            shown: decoder(),
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total_bytes = self.total_bytes.saturating_add(bytes.len() as u64);
        self.live.push(&decoded(&mut self.shown, bytes, false));
        self.kept.extend_from_slice(bytes);
        let surplus = self.kept.len().saturating_sub(KEPT_BYTES + TAIL_BYTES);
        if surplus > 0 {
            self.kept.drain(KEPT_BYTES..KEPT_BYTES + surplus);
        }
    }

    /// What was kept; where that is not all, with a note of how much is missing.
    pub(super) fn finish(mut self) -> String {
        self.live.push(&decoded(&mut self.shown, &[], true));
        let missing = self.total_bytes - self.kept.len() as u64;
        if missing == 0 {
            return String::from_utf8_lossy(&self.kept).into_owned();
        }
        let (first, last) = self.kept.split_at(KEPT_BYTES);
        let [first, last] = [first, last].map(String::from_utf8_lossy);
        format!("{first}\n[… {missing} bytes were not kept …]\n{last}")
    }
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod tests;
