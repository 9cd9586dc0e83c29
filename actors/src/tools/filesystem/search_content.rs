//! `search_content`: lines of files, by regular expression or plain text.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use cap_std::fs::File;
use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};

use super::FileResult;
use super::fault::fault;
use super::path::InnerPath;
use super::root::Root;
use super::walk::{Kind, Rules, Walk};
use crate::tools::ToolError;
use crate::tools::output::{counted, visible};

/// As many lines as are shown.
const MAX_SHOWN: usize = 100;
/// As many bytes of a line as are shown, around the first match.
const MAX_LINE_BYTES: usize = 300;
/// As many bytes as a compiled pattern takes. Matching is linear in the text whatever the
/// pattern; this bounds the factor.
const MAX_PATTERN_BYTES: usize = 1 << 20;
/// As much memory as one line takes. A file with a longer one is passed over.
const MAX_HELD_BYTES: usize = 16 << 20;
/// How long a search takes at most. The call's own limit is longer.
const TIME: Duration = Duration::from_secs(15);

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

/// A search under way.
#[derive(Debug)]
struct Search<'a> {
    root: &'a Root,
    matcher: RegexMatcher,
    searcher: Searcher,
    found: Found,
    until: Instant,
}

pub(super) fn search_content(root: &Root, path: &InnerPath, query: &Query) -> FileResult {
    let mut search = Search {
        root,
        matcher: matcher(query)?,
        searcher: SearcherBuilder::new()
            .line_number(true)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_HELD_BYTES))
            .build(),
        found: Found::default(),
        until: Instant::now() + TIME,
    };
    let mut notes = String::new();
    if root.is_directory(path)? {
        let mut passed_over = 0;
        let outcome = Walk::new(root, Rules::Ignored).run(path, |entry| {
            if entry.kind != Kind::File || search.found.more || search.is_late() {
                return Ok(());
            }
            // Gone or forbidden: a search shows what it can.
            let Ok(file) = entry.open() else {
                return Ok(());
            };
            let shown = path.shown_as(entry.path);
            let searched = file
                .metadata()
                .map_err(|error| fault(&shown, &error))
                .and_then(|metadata| root.check_readable(&shown, &metadata))
                .and_then(|()| search.file(file, &shown));
            root.check_stop()?;
            passed_over += usize::from(searched.is_err());
            Ok(())
        })?;
        if outcome.incomplete {
            notes.push_str("\n[not everything was searched: there is too much; give a path]");
        }
        if passed_over > 0 {
            notes.push_str(&format!(
                "\n[{} not searched: not readable, or with too long a line]",
                counted(passed_over, "file")
            ));
        }
        if outcome.ignored > 0 && search.found.lines.is_empty() {
            notes.push_str(&format!(
                "\n[{} left out, as .gitignore says; name a path to search there]",
                counted(outcome.ignored, "entry")
            ));
        }
    } else {
        let file = root.open_file(path)?;
        search.file(file, &path.shown())?;
    }
    if search.is_late() {
        notes.push_str(&format!(
            "\n[stopped after {} s, with files left; give a path]",
            TIME.as_secs()
        ));
    }
    let found = search.found;
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

impl Search<'_> {
    fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    fn file(&mut self, file: File, shown: &str) -> Result<(), ToolError> {
        let shown = visible(shown);
        let before = self.found.lines.len();
        let source = Timed {
            file,
            root: self.root,
            until: self.until,
        };
        let sink = Lines {
            matcher: &self.matcher,
            shown: &shown,
            found: &mut self.found,
        };
        let searched = self.searcher.search_reader(&self.matcher, source, sink);
        self.found.files += usize::from(self.found.lines.len() > before);
        // The end of the time is told once for all files.
        if searched.is_err() && self.is_late() {
            return Ok(());
        }
        searched.map_err(|error| fault(&shown, &error))?;
        self.found.searched += 1;
        Ok(())
    }
}

/// A file that ends when nobody waits for it any longer.
struct Timed<'a> {
    file: File,
    root: &'a Root,
    until: Instant,
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if Instant::now() >= self.until || self.root.stop.is_cancelled() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
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
