//! Plain text, in whatever encoding it came.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::{DocumentError, MAX_TEXT_BYTES};

/// Among so many bytes of text there is no more than one control character.
const BYTES_PER_CONTROL: usize = 1_000;

/// The whole of a text.
pub(super) fn whole(bytes: &[u8]) -> Result<String, DocumentError> {
    let end = bytes.len().min(MAX_TEXT_BYTES);
    let text = decoded(&bytes[..end]).0;
    if text.trim().is_empty() {
        return Err(DocumentError::NoText);
    }
    Ok(text.into_owned())
}

/// A text, and whether its bytes were that text already. What cannot be read is `\u{fffd}`; a
/// character that the end cuts through is left out.
pub(super) fn decoded(bytes: &[u8]) -> (Cow<'_, str>, bool) {
    let encoding = encoding(bytes);
    let bytes = if encoding == UTF_8 {
        whole_characters(bytes)
    } else {
        bytes
    };
    let (text, used, _) = encoding.decode(bytes);
    let same = used == UTF_8 && text.len() == bytes.len();
    (text, same)
}

/// Whether the beginning of a file is that of a text.
pub(super) fn looks_like_text(head: &[u8]) -> bool {
    if Encoding::for_bom(head).is_some_and(|(encoding, _)| encoding != UTF_8) {
        return true;
    }
    if std::str::from_utf8(whole_characters(head)).is_err() && is_dense(head) {
        return false;
    }
    let controls = head
        .iter()
        .filter(|byte| **byte < 0x20 && !matches!(**byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b))
        .count();
    !head.contains(&0) && controls <= head.len() / BYTES_PER_CONTROL
}

/// Whether most bytes are no ASCII and fall into the range that 8-bit texts leave to controls:
/// compressed and encrypted data looks like that.
fn is_dense(head: &[u8]) -> bool {
    let odd = head
        .iter()
        .filter(|byte| matches!(**byte, 0x7f..=0x9f))
        .count();
    odd > head.len() / 10
}

fn encoding(bytes: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return encoding;
    }
    if std::str::from_utf8(whole_characters(bytes)).is_ok() {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    // Enough for a guess, and no more than that.
    detector.feed(&bytes[..bytes.len().min(64 * 1024)], true);
    let guess = detector.guess(None, Utf8Detection::Allow);
    if guess == UTF_16LE || guess == UTF_16BE {
        return UTF_8;
    }
    guess
}

/// Without the piece of a UTF-8 character at the end that the rest is missing of.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}
