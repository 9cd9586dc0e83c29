//! `edit`: an exact piece of a file for another one.

use itertools::Itertools as _;

use super::FilesystemArgs;
use super::changes::ChangeLog;
use super::text::{difference, whole_text};
use super::write::{Before, Rewrite, look};
use crate::tools::ToolResult;
use crate::tools::output::{counted, cut_middle, human_size};
use crate::tools::workspace::{InnerPath, Spot};

/// As many bytes of the closest place as an error shows.
const MAX_SHOWN_BYTES: usize = 4 * 1024;
/// As many places as an error names.
const MAX_PLACES: usize = 10;
/// As many lines of a file as are compared with a text that was not found.
const MAX_COMPARED_LINES: usize = 20_000;
/// As many bytes of a line as are compared.
const MAX_COMPARED_BYTES: usize = 200;
/// As many lines of the closest place as are shown.
const MAX_CLOSEST_LINES: usize = 8;

pub(super) fn edit(log: &ChangeLog, spot: &Spot, args: &FilesystemArgs) -> ToolResult<String> {
    let (rewrite, places) = plan(spot, args)?;
    log.write(spot, &rewrite)?;
    Ok(format!(
        "edited `{}` ({}):\n{}",
        spot.path,
        counted(places, "replacement"),
        difference(rewrite.before.bytes(), &rewrite.after).unwrap_or_default()
    ))
}

/// What an edit comes to, and how many places change. Nothing is changed by planning.
pub(super) fn plan(spot: &Spot, args: &FilesystemArgs) -> ToolResult<(Rewrite, usize)> {
    let Spot { root, path } = spot;
    refuse_if!(
        args.old_text.is_empty(),
        "`old_text` is empty; copy the text to replace from the file, or use write for a new file"
    );
    refuse_if!(
        args.old_text == args.new_text,
        "`old_text` and `new_text` are the same; there is nothing to change"
    );
    root.check_stop()?;
    let before = look(spot)?;
    if before == Before::Absent {
        return Err(root.missing(path));
    }
    refuse_if!(
        before.size() > root.limits.write_bytes,
        "`{path}` has {}, and files of at most {} can be edited here",
        human_size(before.size()),
        human_size(root.limits.write_bytes)
    );
    let (text, encoding) = whole_text(path, before.bytes())?;
    // Models write `\n`; where lines end in `\r\n`, all of them or those that are meant, they mean that.
    let as_written = [args.old_text.clone(), args.new_text.clone()];
    let as_crlf = as_written
        .each_ref()
        .map(|part| part.replace("\r\n", "\n").replace('\n', "\r\n"));
    let all_crlf = text.contains("\r\n") && !text.replace("\r\n", "").contains('\n');
    let is_crlf = all_crlf || (!text.contains(&as_written[0]) && text.contains(&as_crlf[0]));
    let [old, new] = if is_crlf { as_crlf } else { as_written };
    let (after, places) = replaced(path, &text, [&old, &new], args.replace_all)?;
    let rewrite = Rewrite::checked(spot, before, encoding.encode(&after))?;
    Ok((rewrite, places))
}

/// The text after the edit, and how many places changed.
fn replaced(
    path: &InnerPath,
    text: &str,
    [old, new]: [&str; 2],
    replace_all: bool,
) -> ToolResult<(String, usize)> {
    if replace_all && text.contains(old) {
        let places = text.matches(old).count();
        return Ok((text.replace(old, new), places));
    }
    let found: Vec<usize> = places(text, old).take(MAX_PLACES + 1).collect();
    match found.len() {
        0 => {
            let hint = match closest(text, old) {
                Some((number, block)) => format!(
                    "the closest place is line {number}, which reads:\n{block}\n[copy the text exactly as it stands, spaces included]"
                ),
                None => "read the file and copy the text exactly as it stands".to_owned(),
            };
            refuse!("`old_text` does not stand in `{path}`; {hint}");
        }
        1 => return Ok((text.replacen(old, new, 1), 1)),
        _ => {}
    }
    let line = |at: &usize| 1 + text[..*at].matches('\n').count();
    let lines = found.iter().take(MAX_PLACES).map(line).join(", ");
    let (more, lines) = match found.len() > MAX_PLACES {
        true => ("more than ", format!("{lines}, …")),
        false => ("", lines),
    };
    let count = found.len().min(MAX_PLACES);
    refuse!(
        "`old_text` stands {more}{count} times in `{path}`, at lines {lines}; take in more of the text around the one you mean, or set replace_all to true"
    )
}

/// Where a text stands. Places that overlap are included: of two such places nobody could say
/// which one is meant.
fn places<'a>(text: &'a str, old: &'a str) -> impl Iterator<Item = usize> + 'a {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let find = move |from: usize| text[from..].find(old).map(|offset| from + offset);
    std::iter::successors(find(0), move |at| find(at + step))
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
    let block = text.lines().skip(index).take(count).join("\n");
    Some((index + 1, cut_middle(&block, MAX_SHOWN_BYTES)))
}

fn start_of(line: &str) -> &str {
    &line[..line.floor_char_boundary(MAX_COMPARED_BYTES)]
}
