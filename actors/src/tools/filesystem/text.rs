//! What the bytes of a file are: text in one of three encodings, or no text at all; and what a
//! change changes in it, as a unified diff.

use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

use encoding_rs::UTF_8;
use similar::TextDiff;

use crate::tools::ToolResult;
use crate::tools::output::{cut_middle, human_size};

/// As many bytes of a file's start as tell what it is.
pub(super) const SNIFFED_BYTES: usize = 8 * 1024;
/// As many bytes of a difference as the model is shown.
const RESULT_BYTES: usize = 4 * 1024;
/// A difference that takes longer is shown less finely.
const DIFF_TIME: Duration = Duration::from_millis(200);

/// How a text stands in its file. All but plain UTF-8 say so by a mark at the file's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Encoding {
    kind: &'static encoding_rs::Encoding,
    mark_bytes: usize,
}

impl Encoding {
    /// From the first bytes of a file.
    pub(super) fn of(start: &[u8]) -> Self {
        // UTF-32 begins like UTF-16; its NULs make it a binary file.
        let marked = encoding_rs::Encoding::for_bom(start);
        let marked = marked.filter(|_| !start.starts_with(&[0xff, 0xfe, 0, 0]));
        let (kind, mark_bytes) = marked.unwrap_or((UTF_8, 0));
        Self { kind, mark_bytes }
    }

    pub(super) fn is_utf16(self) -> bool {
        self.kind != UTF_8
    }

    pub(super) fn name(self) -> &'static str {
        if self.is_utf16() { "UTF-16" } else { "UTF-8" }
    }

    /// The bytes of a text, with the mark.
    pub(super) fn encode(self, text: &str) -> Vec<u8> {
        let mark = if self.mark_bytes > 0 { "\u{feff}" } else { "" };
        let text = format!("{mark}{text}");
        match self.kind.name() {
            "UTF-16LE" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            "UTF-16BE" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            _ => text.into_bytes(),
        }
    }

    /// The text of a whole file; none where it is not well formed.
    pub(super) fn decode(self, bytes: &[u8]) -> Option<String> {
        let (kind, text) = (self.kind, bytes.get(self.mark_bytes..)?);
        let text = kind.decode_without_bom_handling_and_without_replacement(text);
        text.map(Cow::into_owned)
    }
}

/// A file's text and how it is encoded, for who wants to change it. An error for what is no
/// text, and for what a change would damage.
pub(super) fn whole_text(path: impl Display, bytes: &[u8]) -> ToolResult<(String, Encoding)> {
    let encoding = Encoding::of(bytes);
    refuse_binary(&path, encoding, bytes, bytes.len() as u64)?;
    let Some(text) = encoding.decode(bytes) else {
        refuse!(
            "`{path}` is no valid {}, and an edit would damage it; write the whole file instead",
            encoding.name()
        );
    };
    Ok((text, encoding))
}

/// Whether a file is no text, from its first bytes.
fn is_binary(encoding: Encoding, start: &[u8]) -> bool {
    // A NUL stands in every binary file of any length, and in no text but UTF-16.
    !encoding.is_utf16() && start[..start.len().min(SNIFFED_BYTES)].contains(&0)
}

/// An error for a file that is no text, from its first bytes and its size.
pub(super) fn refuse_binary(
    path: impl Display,
    encoding: Encoding,
    start: &[u8],
    size: u64,
) -> ToolResult<()> {
    if !is_binary(encoding, start) {
        return Ok(());
    }
    let start = &start[..start.len().min(SNIFFED_BYTES)];
    let kind = infer::get(start).map_or("of no known type", |kind| kind.mime_type());
    refuse!(
        "`{path}` is a binary file ({kind}, {}); only text can be shown and edited",
        human_size(size)
    )
}

/// The difference between two contents of a file; none where there is none.
pub(super) fn difference(before: &[u8], after: &[u8]) -> Option<String> {
    if before == after {
        return None;
    }
    let (Some(before_text), Some(after_text)) = (text_of(before), text_of(after)) else {
        return Some(format!(
            "[binary content: {} before, {} after]",
            human_size(before.len() as u64),
            human_size(after.len() as u64)
        ));
    };
    let diff = unified(&before_text, &after_text);
    Some(cut_middle(&diff, RESULT_BYTES))
}

/// What a person is asked about: the whole difference, and where what stands there is no text
/// or is not taken in, all of what is to stand there.
pub(super) fn proposed(before: &[u8], after: &[u8]) -> String {
    let before = text_of(before).unwrap_or_default();
    // As it stands in the call, NULs and a mark at its start included.
    let after = match std::str::from_utf8(after) {
        Ok(after) => after.to_owned(),
        Err(_) => text_of(after).unwrap_or_default(),
    };
    unified(&before, &after)
}

/// The whole difference between two texts; none where one is no text, or there is none.
pub(super) fn whole_difference(before: &[u8], after: &[u8]) -> Option<String> {
    let diff = unified(&text_of(before)?, &text_of(after)?);
    Some(diff).filter(|diff| !diff.is_empty())
}

fn unified(before: &str, after: &str) -> String {
    let diff = TextDiff::configure()
        .timeout(DIFF_TIME)
        .diff_lines(before, after);
    let diff = diff.unified_diff().context_radius(2).to_string();
    diff.trim_end_matches('\n').to_owned()
}

/// The text of a file; none where it is binary.
pub(super) fn text_of(bytes: &[u8]) -> Option<String> {
    let encoding = Encoding::of(bytes);
    if is_binary(encoding, bytes) {
        return None;
    }
    encoding
        .decode(bytes)
        .or_else(|| Some(String::from_utf8_lossy(bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STARTS: [&[u8]; 4] = [b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];

    #[test]
    fn each_encoding_comes_back_as_it_was() {
        let text = "звіт 📎\r\nline";
        for start in STARTS {
            let encoding = Encoding::of(start);
            let bytes = encoding.encode(text);
            assert!(bytes.starts_with(start));
            assert_eq!(Encoding::of(&bytes), encoding);
            assert_eq!(encoding.decode(&bytes).as_deref(), Some(text));
        }
    }

    #[test]
    fn half_a_character_is_no_text() {
        for bytes in [&[0xff, 0xfe, b'a'], &[0xfe, 0xff, 0xd8, 0][..], b"caf\xe9"] {
            assert_eq!(Encoding::of(bytes).decode(bytes), None);
        }
    }

    #[test]
    fn binary_files_are_named_as_what_they_are() {
        let refused = |bytes: &[u8]| whole_text("a", bytes).unwrap_err().0;
        assert!(refused(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").contains("image/png, 16 bytes"));
        assert!(refused(b"\xff\xfe\0\0a\0\0\0").contains("binary file"));
        assert!(refused(b"a\0b").contains("of no known type, 3 bytes"));
        // Longer than what is looked at, and text all the same.
        let long = "x".repeat(SNIFFED_BYTES * 2);
        assert!(whole_text("a", long.as_bytes()).is_ok());
    }
}
