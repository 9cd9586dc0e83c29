//! `list`: what a directory has.

use super::FileResult;
use crate::tools::output::{counted, human_size, visible};
use crate::tools::workspace::{Entry, InnerPath, Rules, Spot};

/// As many entries as are shown.
const MAX_SHOWN: usize = 500;
/// As many bytes as are shown.
const MAX_BYTES: usize = 24 * 1024;

/// The first lines of a result that has many.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Each after a line end.
    pub(super) lines: String,
    pub(super) shown: usize,
    pub(super) total: usize,
}

impl Listing {
    /// Takes in the next line, where no more than so many are shown.
    pub(super) fn add(&mut self, max_shown: usize, line: impl FnOnce() -> String) {
        self.total += 1;
        // Once one was left out, so are those after it: no hole in the middle.
        if self.shown + 1 == self.total && self.shown < max_shown {
            let line = line();
            if self.lines.len() + line.len() < MAX_BYTES {
                self.lines.push('\n');
                self.lines.push_str(&line);
                self.shown += 1;
            }
        }
    }
}

pub(super) fn list(Spot { root, path }: &Spot, depth: Option<u64>) -> FileResult {
    refuse_if!(
        !root.is_directory(path)?,
        "`{path}` is a file; use read to see it"
    );
    let depth = usize::try_from(depth.unwrap_or(1)).unwrap_or(usize::MAX);
    let mut listing = Listing::default();
    let outcome = root.walk(path, Rules::Everything, depth, |entry| {
        listing.add(MAX_SHOWN, || line(path, entry));
    })?;
    let (shown, total) = (listing.shown, listing.total);
    let place = path.place();
    if total == 0 {
        return Ok(format!("{place} is empty"));
    }
    let more = if outcome.incomplete {
        "there are more".to_owned()
    } else {
        format!("{} more", total - shown)
    };
    let mut text = format!("{place} has {}:{}", counted(total, "entry"), listing.lines);
    if shown < total || outcome.incomplete {
        text.push_str(&format!(
            "\n[{more}; list a directory in it, or use search_names]"
        ));
    }
    Ok(text)
}

fn line(start: &InnerPath, entry: &Entry<'_>) -> String {
    let path = visible(&start.shown_as(entry.path));
    if entry.file_type.is_dir() {
        format!("{path}/")
    } else if entry.file_type.is_file() {
        format!("{path} ({})", human_size(entry.size()))
    } else if entry.file_type.is_symlink() {
        let target = entry.link_target().unwrap_or_default();
        let target = visible(&target.display().to_string());
        format!("{path} (link to {target})")
    } else {
        format!("{path} (no regular file)")
    }
}
