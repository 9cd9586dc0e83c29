//! `edit`: an exact piece of a file for another one.

use std::time::Duration;

use cap_fs_ext::FollowSymlinks;
use similar::TextDiff;

use super::fault::fault;
use super::path::WorkspacePath;
use super::read::refuse_binary;
use super::workspace::{Workspace, open_nonblocking, read_whole};
use super::write::{check_size, put};
use crate::tools::output::{counted, cut_middle};
use crate::tools::{ToolError, ToolResult};

/// As many bytes of the difference as the model is shown.
const MAX_DIFF_BYTES: usize = 4 * 1024;
/// A difference that takes longer is shown less finely.
const DIFF_TIME: Duration = Duration::from_millis(200);
/// As many places as an error names.
const MAX_PLACES: usize = 10;
/// As many lines of a file as are compared with a text that was not found.
const MAX_COMPARED_LINES: usize = 20_000;
/// As many bytes of a line as are compared.
const MAX_COMPARED_BYTES: usize = 200;
/// As many lines of the closest place as are shown.
const MAX_CLOSEST_LINES: usize = 8;

/// What to put in place of what.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    pub(super) old_text: String,
    pub(super) new_text: String,
    pub(super) replace_all: bool,
}

pub(super) fn edit(workspace: &Workspace, path: &WorkspacePath, edit: Edit) -> ToolResult {
    let shown = path.shown();
    if edit.old_text.is_empty() {
        return Err(ToolError(
            "`old_text` is empty; copy the text to replace from the file, or use write for a new file"
                .to_owned(),
        ));
    }
    if edit.old_text == edit.new_text {
        return Err(ToolError(
            "`old_text` and `new_text` are the same; there is nothing to change".to_owned(),
        ));
    }
    let target = workspace.target(path)?;
    if target.existing.is_none() {
        return Err(workspace.missing(path));
    }
    let name = target.name.as_ref();
    let file = open_nonblocking(&target.directory, name, FollowSymlinks::No)
        .map_err(|error| fault(&shown, &error))?;
    let bytes = read_whole(file, &shown, workspace.limits.write_bytes)?;
    refuse_binary(&shown, &bytes)?;
    let before = String::from_utf8(bytes).map_err(|_| {
        ToolError(format!(
            "`{shown}` is no valid UTF-8, and an edit would damage it; write the whole file instead"
        ))
    })?;

    let edit = with_line_ends_of(&before, edit);
    let (after, places) = replaced(&shown, &before, &edit)?;
    check_size(workspace, &shown, &after)?;
    let growth = after.len().saturating_sub(before.len());
    workspace.check_room(growth as u64, 0)?;
    put(workspace, &shown, &target, &after)?;
    Ok(format!(
        "edited `{shown}` ({}):\n{}",
        counted(places, "replacement"),
        difference(&before, &after)
    ))
}

/// Models write `\n`; in a file whose lines all end in `\r\n` that is what they mean.
fn with_line_ends_of(text: &str, mut edit: Edit) -> Edit {
    let all_crlf = text.contains("\r\n") && !text.replace("\r\n", "").contains('\n');
    if all_crlf {
        for part in [&mut edit.old_text, &mut edit.new_text] {
            *part = part.replace("\r\n", "\n").replace('\n', "\r\n");
        }
    }
    edit
}

/// The text after the edit, and how many places changed.
fn replaced(shown: &str, text: &str, edit: &Edit) -> Result<(String, usize), ToolError> {
    let old = edit.old_text.as_str();
    let places = text.matches(old).count();
    if places == 0 {
        return Err(not_found(shown, text, old));
    }
    if edit.replace_all {
        return Ok((text.replace(old, &edit.new_text), places));
    }
    let lines = lines_of(text, old);
    if lines.len() > 1 {
        let named: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let more = if lines.len() == MAX_PLACES {
            ", …"
        } else {
            ""
        };
        return Err(ToolError(format!(
            "`old_text` stands more than once in `{shown}`, at lines {}{more}; take in more of the text around the one you mean, or set replace_all to true",
            named.join(", ")
        )));
    }
    Ok((text.replacen(old, &edit.new_text, 1), 1))
}

/// The lines at which a text begins, places that overlap included: of two such places nobody
/// could say which one is meant.
fn lines_of(text: &str, old: &str) -> Vec<usize> {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let mut lines = Vec::new();
    let mut from = 0;
    let mut line = 1;
    while lines.len() < MAX_PLACES
        && let Some(offset) = text[from..].find(old)
    {
        let at = from + offset;
        line += text[from..at].matches('\n').count();
        lines.push(line);
        line += text[at..at + step].matches('\n').count();
        from = at + step;
    }
    lines
}

fn not_found(shown: &str, text: &str, old: &str) -> ToolError {
    let mut message = format!("`old_text` does not stand in `{shown}`");
    match closest(text, old) {
        Some((number, block)) => message.push_str(&format!(
            "; the closest place is line {number}, which reads:\n{block}\n[copy the text exactly as it stands, spaces included]"
        )),
        None => message.push_str("; read the file and copy the text exactly as it stands"),
    }
    ToolError(message)
}

/// The place that is most like the first line of the wanted text, and the lines there.
fn closest(text: &str, old: &str) -> Option<(usize, String)> {
    let wanted = old.lines().map(str::trim).find(|line| !line.is_empty())?;
    let wanted = start_of(wanted);
    let (index, _) = text
        .lines()
        .take(MAX_COMPARED_LINES)
        .map(|line| strsim::sorensen_dice(start_of(line.trim()), wanted))
        .enumerate()
        .filter(|(_, likeness)| *likeness > 0.5)
        // Of equals the first.
        .reduce(|best, next| if next.1 > best.1 { next } else { best })?;
    let count = old.lines().count().clamp(1, MAX_CLOSEST_LINES);
    let block: Vec<&str> = text.lines().skip(index).take(count).collect();
    Some((index + 1, cut_middle(&block.join("\n"), MAX_DIFF_BYTES)))
}

fn start_of(line: &str) -> &str {
    &line[..line.floor_char_boundary(MAX_COMPARED_BYTES)]
}

fn difference(before: &str, after: &str) -> String {
    let diff = TextDiff::configure()
        .timeout(DIFF_TIME)
        .diff_lines(before, after);
    let diff = diff.unified_diff().context_radius(2).to_string();
    cut_middle(diff.trim_end(), MAX_DIFF_BYTES)
}
