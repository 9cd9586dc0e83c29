//! Results as the model gets them: never longer than a limit, never cut in silence, and kept whole
//! in a file of the workspace that it can read.

use std::io::{self, Write as _};
use std::path::Path;

use cap_tempfile::TempFile;
use encoding_rs::Decoder;

use super::{ToolContext, ToolResult, blocking, workspace};
// What a tool cuts and what the context cuts looks the same to the model.
pub use crate::domain::cut::cut_middle;
use crate::domain::unseen::{escaped, is_moving};
use crate::protocol::ids::CallId;

/// As many bytes as a tool's result has, where the tool sets no limit of its own.
pub const RESULT_LIMIT_BYTES: usize = 32 * 1024;

/// The folder of long results in the session's workspace.
const FOLDER: &str = "tool_output";

/// As much of somebody else's word as a sentence repeats.
const SHOWN_BYTES: usize = 120;

/// A word of somebody else's as a sentence repeats it.
pub fn shown(text: &str) -> String {
    shortened(text, SHOWN_BYTES)
}

/// A text that stands in a sentence: on one line, and of no more than about `limit` bytes.
pub fn shortened(text: &str, limit: usize) -> String {
    let shown = visible(&text[..text.floor_char_boundary(limit)]);
    if text.len() <= limit {
        shown
    } else {
        format!("{shown}…")
    }
}

/// A size as a person reads it.
pub fn human_size(bytes: u64) -> String {
    const UNITS: [(u32, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match UNITS.into_iter().find(|(bits, _)| bytes >> bits > 0) {
        Some((bits, unit)) => format!("{:.1} {unit}", bytes as f64 / (1_u64 << bits) as f64),
        None => counted(bytes as usize, "byte"),
    }
}

/// A count with its noun: `1 line`, `2 lines`.
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
pub fn visible(text: &str) -> String {
    escaped(text, is_moving)
}

/// For bytes on their way to being text: a character may come in two pieces.
pub fn decoder() -> Decoder {
    encoding_rs::UTF_8.new_decoder_without_bom_handling()
}

/// The text that is complete with these bytes, and with the last ones whatever is left. What is no
/// text becomes `�`.
pub fn decoded(decoder: &mut Decoder, bytes: &[u8], is_last: bool) -> String {
    let room = decoder.max_utf8_buffer_length(bytes.len());
    let mut text = String::with_capacity(room.unwrap_or_default());
    // All of it: there is room for the most that it can come to.
    let _ = decoder.decode_to_string(bytes, &mut text, is_last);
    text
}

/// A result as the model gets it. One that is too long is cut in the middle, and kept whole in
/// the session's workspace; where that fails it is only cut. Blocks.
pub(super) fn bounded(text: String, workspace: &Path, call_id: &CallId) -> String {
    if text.len() <= RESULT_LIMIT_BYTES {
        return text;
    }
    let path = format!("{FOLDER}/{call_id}.txt");
    // Opened from the workspace down, so that no link that a command made leads out; what stands in
    // the file's place, a hard link maybe, is not written to. The file is there whole, or not.
    let write = || -> io::Result<()> {
        let workspace = workspace::open(workspace)?;
        workspace.create_dir_all(FOLDER)?;
        let folder = workspace.open_dir(FOLDER)?;
        let mut file = TempFile::new(&folder)?;
        file.write_all(text.as_bytes())?;
        file.replace(format!("{call_id}.txt"))
    };
    let note = match write() {
        Ok(()) => format!("\n[the whole output is in the file {path}]"),
        Err(error) => {
            tracing::warn!(%error, "a long result could not be kept");
            "\n[the whole output could not be kept]".to_owned()
        }
    };
    let mut cut = cut_middle(&text, RESULT_LIMIT_BYTES - note.len());
    cut.push_str(&note);
    cut
}

/// The same, for a call that has these surroundings.
pub(super) async fn bounded_for(text: String, context: &ToolContext) -> ToolResult<String> {
    if text.len() <= RESULT_LIMIT_BYTES {
        return Ok(text);
    }
    let (workspace, call_id) = (context.workspace.clone(), context.call_id.clone());
    let cutting = move || Ok(bounded(text, &workspace, &call_id));
    blocking("the result", cutting).await
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
