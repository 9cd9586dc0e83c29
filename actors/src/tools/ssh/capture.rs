//! What a command writes: shown while it comes, kept up to a limit, given back cut in its middle
//! and whole in a file of the workspace.

use std::collections::VecDeque;

use crate::tools::LiveOutput;

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
    /// The first bytes of a character whose rest has not come yet.
    half: Vec<u8>,
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
            half: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total_bytes = self.total_bytes.saturating_add(bytes.len() as u64);
        self.show(bytes);
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
        if !self.half.is_empty() {
            self.live.push("\u{fffd}");
        }
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

    /// Shows the bytes, but for a character at their end that is not whole yet.
    fn show(&mut self, bytes: &[u8]) {
        let joined;
        let bytes = if self.half.is_empty() {
            bytes
        } else {
            joined = [self.half.as_slice(), bytes].concat();
            &joined
        };
        let whole = match std::str::from_utf8(bytes) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            // Something that is no text at all may still end in half a character.
            Err(_) => bytes.len() - half_at_end(bytes),
            Ok(_) => bytes.len(),
        };
        let (whole, half) = bytes.split_at(whole);
        if !whole.is_empty() {
            self.live.push(&String::from_utf8_lossy(whole));
        }
        self.half = half.to_vec();
    }
}

/// How many bytes at the end begin a character without ending it.
fn half_at_end(bytes: &[u8]) -> usize {
    (1..=bytes.len().min(3))
        .find(|&back| {
            let tail = &bytes[bytes.len() - back..];
            tail[0] >= 0xc2
                && std::str::from_utf8(tail)
                    .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .unwrap_or(0)
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod tests;
