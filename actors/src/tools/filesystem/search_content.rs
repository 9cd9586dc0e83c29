//! `search_content`: lines of files, by regular expression or plain text.

use std::io;
use std::path::Path;

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};

use super::fault::fault;
use super::path::WorkspacePath;
use super::walk::{Kind, Rules, Walk};
use super::workspace::{Workspace, read_whole};
use crate::tools::output::{counted, visible};
use crate::tools::{ToolError, ToolResult};

/// As many lines as are shown.
const MAX_SHOWN: usize = 100;
/// As many bytes of a line as are shown, around the first match.
const MAX_LINE_BYTES: usize = 300;
/// As many bytes as a compiled pattern takes. Matching is linear in the text whatever the
/// pattern; this bounds the factor.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// What to look for.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) pattern: String,
    pub(super) literal: bool,
}

/// What was found so far.
#[derive(Debug, Default)]
struct Found {
    lines: Vec<String>,
    files: usize,
    searched: usize,
    /// More lines match than are shown.
    more: bool,
}

pub(super) fn search_content(
    workspace: &Workspace,
    path: &WorkspacePath,
    query: &Query,
) -> ToolResult {
    let matcher = matcher(query)?;
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .binary_detection(BinaryDetection::quit(0))
        .build();
    let mut found = Found::default();
    let mut notes = String::new();
    if workspace.is_directory(path)? {
        let mut too_large = 0;
        let outcome = Walk::new(workspace, Rules::Ignored).run(path, |entry| {
            if entry.kind != Kind::File || found.more {
                return Ok(());
            }
            // Gone or forbidden: a search shows what it can.
            let Ok(file) = entry.open() else {
                return Ok(());
            };
            match read_whole(file, "", workspace.limits.read_bytes) {
                Ok(bytes) => search_file(&mut searcher, &matcher, entry.path, &bytes, &mut found),
                Err(_) => {
                    too_large += 1;
                    Ok(())
                }
            }
        })?;
        if outcome.incomplete {
            notes.push_str("\n[not everything was searched: there is too much; give a path]");
        }
        if too_large > 0 {
            notes.push_str(&format!(
                "\n[{} not searched: too large, or not readable]",
                counted(too_large, "file")
            ));
        }
        if outcome.ignored > 0 && found.lines.is_empty() {
            notes.push_str(&format!(
                "\n[{} left out, as .gitignore says; name a path to search there]",
                counted(outcome.ignored, "entry")
            ));
        }
    } else {
        let bytes = workspace.read_file(path)?;
        search_file(&mut searcher, &matcher, path.as_path(), &bytes, &mut found)?;
    }
    let mut text = if found.lines.is_empty() {
        format!(
            "nothing in {} matches `{}`",
            counted(found.searched, "file"),
            visible(&query.pattern)
        )
    } else {
        format!(
            "{} in {}:\n{}",
            counted(found.lines.len(), "line"),
            counted(found.files, "file"),
            found.lines.join("\n")
        )
    };
    if found.more {
        text.push_str("\n[there are more; use a narrower pattern, or a path]");
    }
    text.push_str(&notes);
    Ok(text)
}

fn search_file(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    path: &Path,
    bytes: &[u8],
    found: &mut Found,
) -> Result<(), ToolError> {
    let shown = visible(&path.display().to_string());
    let before = found.lines.len();
    found.searched += 1;
    let sink = Lines {
        matcher,
        shown: &shown,
        found,
    };
    searcher
        .search_slice(matcher, bytes, sink)
        .map_err(|error| fault(&shown, &error))?;
    found.files += usize::from(found.lines.len() > before);
    Ok(())
}

/// Takes matching lines until there are enough of them.
struct Lines<'a> {
    matcher: &'a RegexMatcher,
    shown: &'a str,
    found: &'a mut Found,
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.found.lines.len() >= MAX_SHOWN {
            self.found.more = true;
            return Ok(false);
        }
        let bytes = line.bytes();
        let at = self
            .matcher
            .find(bytes)
            .ok()
            .flatten()
            .map_or(0, |found| found.start());
        self.found.lines.push(format!(
            "{}:{}: {}",
            self.shown,
            line.line_number().unwrap_or(0),
            around(bytes, at)
        ));
        Ok(true)
    }
}

/// A line, or the part of it around a place.
fn around(line: &[u8], at: usize) -> String {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end();
    if text.len() <= MAX_LINE_BYTES {
        return visible_tabs(text);
    }
    // In a line that is no valid UTF-8 the place is off by a few bytes, which does no harm.
    let start = text.floor_char_boundary(at.min(text.len()).saturating_sub(MAX_LINE_BYTES / 3));
    let end = text.floor_char_boundary((start + MAX_LINE_BYTES).min(text.len()));
    let before = if start > 0 { "…" } else { "" };
    let after = if end < text.len() { "…" } else { "" };
    format!("{before}{}{after}", visible_tabs(&text[start..end]))
}

/// Tabs are part of the text that an edit must match; other control characters are escaped.
fn visible_tabs(text: &str) -> String {
    let parts: Vec<String> = text.split('\t').map(visible).collect();
    parts.join("\t")
}

/// Capital letters matter only where the pattern has some.
fn matcher(query: &Query) -> Result<RegexMatcher, ToolError> {
    RegexMatcherBuilder::new()
        .case_smart(true)
        .fixed_strings(query.literal)
        .line_terminator(Some(b'\n'))
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(MAX_PATTERN_BYTES)
        .build(&query.pattern)
        .map_err(|error| {
            let reason = error.to_string();
            // The parser draws the pattern with a mark under the place; its last line says it.
            let reason = reason.lines().last().unwrap_or_default();
            ToolError(format!(
                "`pattern` is no regular expression for lines: {}; set literal to true to search for the text as it stands",
                reason.trim_start_matches("error: ")
            ))
        })
}
