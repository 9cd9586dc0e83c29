//! Results as the model gets them: never longer than a limit, and never cut in silence.

// What a tool cuts and what the context cuts looks the same to the model.
pub use crate::domain::cut::cut_middle;
use crate::domain::unseen::{escaped, is_moving};

/// As many bytes as a tool's result has, where the tool sets no limit of its own.
pub const RESULT_LIMIT_BYTES: usize = 32 * 1024;

/// A text that stands in a sentence: on one line, and of no more than about `limit` bytes.
#[must_use]
pub fn shortened(text: &str, limit: usize) -> String {
    let shown = visible(&text[..text.floor_char_boundary(limit)]);
    if text.len() <= limit {
        shown
    } else {
        format!("{shown}…")
    }
}

/// A size as a person reads it.
#[must_use]
pub fn human_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return counted(bytes as usize, "byte");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// A count with its noun: `1 line`, `2 lines`.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) if noun.ends_with("ch") => format!("{count} {noun}es"),
        (_, None) => format!("{count} {noun}s"),
    }
}

/// A text for a line of its own: control characters and those that change the direction of
/// writing are shown as escapes, so that a file's name cannot pass for something else. A person
/// who is asked sees more of them by name (`unseen::named`).
#[must_use]
pub fn visible(text: &str) -> String {
    escaped(text, is_moving)
}

/// Bytes on their way to being text: a character may come in two pieces. What is no text becomes
/// `�`.
pub struct Decoder(encoding_rs::Decoder);

impl Default for Decoder {
    fn default() -> Self {
        Self(encoding_rs::UTF_8.new_decoder_without_bom_handling())
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decoder")
    }
}

impl Decoder {
    /// The text that is complete with these bytes.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.decode(bytes, false)
    }

    /// What is left where no more comes.
    #[must_use]
    pub fn end(mut self) -> String {
        self.decode(&[], true)
    }

    fn decode(&mut self, bytes: &[u8], is_last: bool) -> String {
        let room = self.0.max_utf8_buffer_length(bytes.len());
        let mut text = String::with_capacity(room.unwrap_or_default());
        // All of it: there is room for the most that it can come to.
        let _ = self.0.decode_to_string(bytes, &mut text, is_last);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_read_well() {
        assert_eq!(human_size(1), "1 byte");
        assert_eq!(human_size(1023), "1023 bytes");
        assert_eq!(human_size(1536), "1.5 KiB");
        assert_eq!(human_size(u64::MAX), "16777216.0 TiB");
        assert_eq!(counted(1, "entry"), "1 entry");
        assert_eq!(counted(2, "entry"), "2 entries");
        assert_eq!(counted(0, "line"), "0 lines");
        assert_eq!(counted(3, "match"), "3 matches");
    }

    #[test]
    fn names_cannot_pretend() {
        assert_eq!(visible("a\nb\u{202e}txt.exe"), "a\\nb\\u{202e}txt.exe");
        assert_eq!(visible("звіт 📎.md"), "звіт 📎.md");
        assert_eq!(shortened("звіт 📎.md", 3), "з…");
        assert_eq!(shortened("a\nb", 3), "a\\nb");
    }
}
