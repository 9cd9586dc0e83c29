//! `read`: a file's lines, a range at a time.

use super::path::WorkspacePath;
use super::workspace::Workspace;
use crate::tools::output::{RESULT_LIMIT_BYTES, counted, cut_middle, human_size};
use crate::tools::{ToolError, ToolResult};

/// What is kept free for the lines before and after the file's own.
const FRAME_BYTES: usize = 512;
/// A NUL this near to the start makes a file binary.
const SNIFFED_BYTES: usize = 8 * 1024;

/// Which lines, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    /// From 1; 0 is taken for it.
    pub(super) start_line: Option<u64>,
    /// All that fit where absent or 0.
    pub(super) line_count: Option<u64>,
    pub(super) numbered: bool,
}

pub(super) fn read(workspace: &Workspace, path: &WorkspacePath, range: Range) -> ToolResult {
    let shown = path.shown();
    let bytes = workspace.read_file(path)?;
    if bytes.is_empty() {
        return Ok(format!("`{shown}` is empty"));
    }
    refuse_binary(&shown, &bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let total = text.lines().count();
    let start = as_usize(range.start_line).max(1);
    if start > total {
        return Err(ToolError(format!(
            "`{shown}` has only {}; use a smaller start_line",
            counted(total, "line")
        )));
    }
    let wanted = match as_usize(range.line_count) {
        0 => usize::MAX,
        count => count,
    };
    let (body, end) = shown_lines(&text, start, wanted, range.numbered);
    let lines = if start == end {
        format!("line {start}")
    } else {
        format!("lines {start} to {end}")
    };
    let size = human_size(bytes.len() as u64);
    let mut result = format!("`{shown}`, {lines} of {total} ({size}):\n{body}");
    if end < total {
        result.push_str(&format!(
            "\n[{} more; to go on, read with start_line {}]",
            counted(total - end, "line"),
            end + 1
        ));
    }
    if matches!(text, std::borrow::Cow::Owned(_)) {
        result.push_str(
            "\n[the file is no valid UTF-8; what could not be read is shown as \u{fffd}]",
        );
    }
    Ok(result)
}

/// An error for a file that is no text.
pub(super) fn refuse_binary(shown: &str, bytes: &[u8]) -> Result<(), ToolError> {
    if bytes[..bytes.len().min(SNIFFED_BYTES)].contains(&0) {
        return Err(ToolError(format!(
            "`{shown}` is a binary file ({}); only text can be shown and edited",
            human_size(bytes.len() as u64)
        )));
    }
    Ok(())
}

/// As many of the wanted lines as fit, and the number of the last one. At least one line: one
/// that doesn't fit is cut.
fn shown_lines(text: &str, start: usize, wanted: usize, numbered: bool) -> (String, usize) {
    let room = RESULT_LIMIT_BYTES - FRAME_BYTES;
    let mut body = String::new();
    let mut end = start;
    let chosen = text.lines().enumerate().skip(start - 1).take(wanted);
    for (index, line) in chosen {
        let number = index + 1;
        let prefix = if numbered {
            format!("{number}: ")
        } else {
            String::new()
        };
        if number == start {
            body = prefix;
            body.push_str(&cut_middle(line, room));
        } else if body.len() + 1 + prefix.len() + line.len() > room {
            break;
        } else {
            body.push('\n');
            body.push_str(&prefix);
            body.push_str(line);
        }
        end = number;
    }
    (body, end)
}

fn as_usize(number: Option<u64>) -> usize {
    usize::try_from(number.unwrap_or(0)).unwrap_or(usize::MAX)
}
