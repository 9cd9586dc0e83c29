//! `list`: what a directory has; and `search_names`: what is there of a name.

use globset::{GlobBuilder, GlobMatcher};

use crate::tools::ToolResult;
use crate::tools::output::{counted, human_size, visible};
use crate::tools::workspace::{Entry, InnerPath, MAX_DEPTH, Rules, Spot};

/// As many entries as are shown.
const MAX_SHOWN: usize = 500;
/// As many names as are shown.
const MAX_NAMES: usize = 200;
/// As many bytes as are shown.
const MAX_BYTES: usize = 24 * 1024;

/// The first lines of a result that has many.
#[derive(Debug, Default)]
struct Listing {
    /// Each after a line end.
    lines: String,
    shown: usize,
    total: usize,
}

impl Listing {
    /// Takes in the next line, where no more than so many are shown.
    fn add(&mut self, max_shown: usize, line: impl FnOnce() -> String) {
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

pub(super) fn list(Spot { root, path }: &Spot, depth: Option<u64>) -> ToolResult<String> {
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

pub(super) fn search_names(Spot { root, path }: &Spot, pattern: &str) -> ToolResult<String> {
    refuse_if!(
        !root.is_directory(path)?,
        "`{path}` is a file; search_names looks into directories"
    );
    let matcher = matcher(pattern)?;
    // With a slash the pattern is about the path, without one about the name.
    let about_path = pattern.contains('/');
    let mut found = Listing::default();
    let outcome = root.walk(path, Rules::Ignored, MAX_DEPTH, |entry| {
        let inner = entry.path.strip_prefix(path.prefix()).unwrap_or(entry.path);
        let matches = if about_path {
            matcher.is_match(inner) || matcher.is_match(entry.path)
        } else {
            inner.file_name().is_some_and(|name| matcher.is_match(name))
        };
        if matches {
            let slash = if entry.file_type.is_dir() { "/" } else { "" };
            found.add(MAX_NAMES, || {
                format!("{}{slash}", visible(&path.shown_as(entry.path)))
            });
        }
    })?;
    let mut text = if found.total == 0 {
        format!(
            "no file has a name that matches `{}`; to look inside files use search_content",
            visible(pattern)
        )
    } else {
        format!("{}:{}", counted(found.total, "match"), found.lines)
    };
    if found.shown < found.total {
        text.push_str(&format!(
            "\n[{} more; use a narrower pattern, or a path]",
            found.total - found.shown
        ));
    }
    text.push_str(outcome.incomplete_note());
    if found.total == 0 {
        text.push_str(&outcome.ignored_note());
    }
    Ok(text)
}

/// A glob, or a part of a name where no glob is written. Capital letters don't matter.
fn matcher(pattern: &str) -> ToolResult<GlobMatcher> {
    let pattern = pattern.trim_start_matches("./");
    let glob = if pattern.contains(['*', '?', '[', '{']) {
        pattern.to_owned()
    } else {
        format!("*{pattern}*")
    };
    let glob = GlobBuilder::new(&glob)
        .case_insensitive(true)
        .literal_separator(true)
        .build()
        .map_err(|error| {
            refusal!(
                "`pattern` is no valid glob: {}; use for example *.md, or a part of the name",
                visible(&error.kind().to_string())
            )
        })?;
    Ok(glob.compile_matcher())
}
