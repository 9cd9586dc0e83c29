//! `list`: what a directory has.

use std::fmt::Write as _;

use super::FileResult;
use super::path::InnerPath;
use super::root::Root;
use super::walk::{Entry, Kind, Rules, Walk};
use crate::tools::ToolError;
use crate::tools::output::{counted, human_size, visible};

/// As many entries as are shown.
const MAX_SHOWN: usize = 500;
/// As many bytes as are shown.
const MAX_BYTES: usize = 24 * 1024;

pub(super) fn list(root: &Root, path: &InnerPath, depth: Option<u64>) -> FileResult {
    if !root.is_directory(path)? {
        return Err(ToolError(format!(
            "`{}` is a file; use read to see it",
            path.shown()
        )));
    }
    let depth = usize::try_from(depth.unwrap_or(1)).unwrap_or(usize::MAX);
    let mut lines = String::new();
    let mut shown = 0;
    let mut total = 0;
    let outcome = Walk::new(root, Rules::Everything)
        .depth(depth)
        .run(path, |entry| {
            total += 1;
            // Once one entry was left out, so are those after it: no hole in the middle.
            if shown + 1 == total && shown < MAX_SHOWN {
                let line = line(path, entry);
                if lines.len() + line.len() <= MAX_BYTES {
                    lines.push_str(&line);
                    shown += 1;
                }
            }
            Ok(())
        })?;
    let place = root.place(path);
    if total == 0 {
        return Ok(format!("{place} is empty"));
    }
    let mut text = format!("{place} has {}:", counted(total, "entry"));
    text.push_str(&lines);
    if shown < total || outcome.incomplete {
        let more = if outcome.incomplete {
            "there are more".to_owned()
        } else {
            format!("{} more", total - shown)
        };
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n[{more}; list a directory in it, or use search_names]"
        );
    }
    Ok(text)
}

fn line(start: &InnerPath, entry: &Entry<'_>) -> String {
    let path = visible(&start.shown_as(entry.path));
    match entry.kind {
        Kind::Directory => format!("\n{path}/"),
        Kind::File => format!("\n{path} ({})", human_size(entry.size())),
        Kind::Special => format!("\n{path} (no regular file)"),
        Kind::Link => {
            let target = entry.link_target().unwrap_or_default();
            format!(
                "\n{path} (link to {})",
                visible(&target.display().to_string())
            )
        }
    }
}
