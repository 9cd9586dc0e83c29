//! What a change changes, as a unified diff.

use std::time::Duration;

use similar::TextDiff;

use super::text::{Encoding, is_binary};
use crate::tools::output::{cut_middle, human_size};

/// As many bytes of a difference as the model is shown.
const RESULT_BYTES: usize = 4 * 1024;
/// A difference that takes longer is shown less finely.
const DIFF_TIME: Duration = Duration::from_millis(200);

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
    Some(cut_middle(
        &unified(&before_text, &after_text),
        RESULT_BYTES,
    ))
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
