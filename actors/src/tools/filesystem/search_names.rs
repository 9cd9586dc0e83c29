//! `search_names`: files and directories by name.

use globset::{GlobBuilder, GlobMatcher};

use super::FileResult;
use super::list::Listing;
use crate::tools::ToolError;
use crate::tools::output::{counted, visible};
use crate::tools::workspace::{MAX_DEPTH, Rules, Spot};

/// As many names as are shown.
const MAX_SHOWN: usize = 200;

pub(super) fn search_names(Spot { root, path }: &Spot, pattern: &str) -> FileResult {
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
            found.add(MAX_SHOWN, || {
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
fn matcher(pattern: &str) -> Result<GlobMatcher, ToolError> {
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
            ToolError(format!(
                "`pattern` is no valid glob: {}; use for example *.md, or a part of the name",
                visible(&error.kind().to_string())
            ))
        })?;
    Ok(glob.compile_matcher())
}
