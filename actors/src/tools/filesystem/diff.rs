//! What a change changes, as a unified diff of bounded length.

use std::time::Duration;

use similar::TextDiff;

use super::text::{Encoding, SNIFFED_BYTES};
use crate::tools::output::{cut_middle, human_size};

/// As many bytes of a difference as the model is shown.
pub(super) const RESULT_BYTES: usize = 4 * 1024;
/// As many bytes of a difference as a person is shown who is asked about it.
pub(super) const PROPOSAL_BYTES: usize = 32 * 1024;
/// A difference that takes longer is shown less finely.
const DIFF_TIME: Duration = Duration::from_millis(200);

/// The difference between two contents of a file; none where there is none.
pub(super) fn difference(before: &[u8], after: &[u8], limit: usize) -> Option<String> {
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
    let diff = TextDiff::configure()
        .timeout(DIFF_TIME)
        .diff_lines(before_text.as_str(), after_text.as_str());
    let diff = diff.unified_diff().context_radius(2).to_string();
    Some(cut_middle(diff.trim_end(), limit))
}

fn text_of(bytes: &[u8]) -> Option<String> {
    let encoding = Encoding::of(bytes);
    let start = &bytes[..bytes.len().min(SNIFFED_BYTES)];
    if !encoding.is_utf16() && start.contains(&0) {
        return None;
    }
    encoding
        .decode(bytes)
        .or_else(|| Some(String::from_utf8_lossy(bytes).into_owned()))
}
