//! `search_names`: files and directories by name.

use globset::{GlobBuilder, GlobMatcher};

use super::FileResult;
use super::path::InnerPath;
use super::root::Root;
use super::walk::{Kind, Rules, Walk};
use crate::tools::ToolError;
use crate::tools::output::{counted, visible};

/// As many names as are shown.
const MAX_SHOWN: usize = 200;
/// As many bytes as are shown.
const MAX_BYTES: usize = 24 * 1024;

pub(super) fn search_names(root: &Root, path: &InnerPath, pattern: &str) -> FileResult {
    if !root.is_directory(path)? {
        return Err(ToolError(format!(
            "`{}` is a file; search_names looks into directories",
            path.shown()
        )));
    }
    let matcher = matcher(pattern)?;
    // With a slash the pattern is about the path, without one about the name.
    let about_path = pattern.contains('/');
    let mut lines = String::new();
    let mut shown = 0;
    let mut total = 0;
    let outcome = Walk::new(root, Rules::Ignored).run(path, |entry| {
        let inner = entry.path.strip_prefix(path.prefix()).unwrap_or(entry.path);
        let matches = if about_path {
            matcher.is_match(inner) || matcher.is_match(entry.path)
        } else {
            inner.file_name().is_some_and(|name| matcher.is_match(name))
        };
        if !matches {
            return Ok(());
        }
        total += 1;
        let slash = if entry.kind == Kind::Directory {
            "/"
        } else {
            ""
        };
        let line = format!("\n{}{slash}", visible(&path.shown_as(entry.path)));
        if shown + 1 == total && shown < MAX_SHOWN && lines.len() + line.len() <= MAX_BYTES {
            lines.push_str(&line);
            shown += 1;
        }
        Ok(())
    })?;
    let mut text = if total == 0 {
        format!(
            "no file has a name that matches `{}`; to look inside files use search_content",
            visible(pattern)
        )
    } else {
        format!("{}:{lines}", counted(total, "match"))
    };
    if shown < total {
        text.push_str(&format!(
            "\n[{} more; use a narrower pattern, or a path]",
            total - shown
        ));
    }
    if outcome.incomplete {
        text.push_str("\n[not everything was searched: there is too much; give a path]");
    }
    if outcome.ignored > 0 && total == 0 {
        text.push_str(&format!(
            "\n[{} left out, as .gitignore says; name a path to search there]",
            counted(outcome.ignored, "entry")
        ));
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
