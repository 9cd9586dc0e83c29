//! `search_content`: lines of files, by regular expression or plain text.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use cap_std::fs::File;
use grep_matcher::{LineTerminator, Matcher as _};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Bytes;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use itertools::Itertools as _;

use crate::tools::ToolResult;
use crate::tools::output::{counted, visible};
use crate::tools::workspace::{MAX_DEPTH, OrFault as _, Root, Rules, Spot};

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

/// A search under way, with what was found so far.
#[derive(Debug)]
struct Search<'a> {
    root: &'a Root,
    matcher: RegexMatcher,
    searcher: Searcher,
    until: Instant,
    lines: Vec<String>,
    files: usize,
    searched: usize,
    /// More lines match than are shown.
    more: bool,
}

/// Looks for a pattern, which is plain text where it is `literal`.
pub(super) fn search_content(
    Spot { root, path }: &Spot,
    pattern: &str,
    literal: bool,
) -> ToolResult<String> {
    let mut search = Search {
        root,
        matcher: matcher(pattern, literal)?,
        searcher: SearcherBuilder::new()
            .line_number(true)
            .line_terminator(LineTerminator::crlf())
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_HELD_BYTES))
            .build(),
        until: Instant::now() + TIME,
        lines: Vec::new(),
        files: 0,
        searched: 0,
        more: false,
    };
    let mut notes = String::new();
    if root.is_directory(path)? {
        let mut passed_over = 0;
        let outcome = root.walk(path, Rules::Ignored, MAX_DEPTH, |entry| {
            if !entry.file_type.is_file() || search.more || search.is_late() {
                return;
            }
            // Gone or forbidden: a search shows what it can.
            let Ok(file) = entry.open() else {
                return;
            };
            let shown = path.shown_as(entry.path);
            let metadata = file.metadata().or_fault(&shown);
            let searched = metadata
                .and_then(|metadata| root.check_readable(&shown, &metadata))
                .and_then(|()| search.file(file, &shown));
            passed_over += usize::from(searched.is_err());
        })?;
        root.check_stop()?;
        notes.push_str(outcome.incomplete_note());
        if passed_over > 0 {
            notes.push_str(&format!(
                "\n[{} not searched: not readable, or with too long a line]",
                counted(passed_over, "file")
            ));
        }
        if search.lines.is_empty() {
            notes.push_str(&outcome.ignored_note());
        }
    } else {
        let file = root.open_file(path)?;
        search.file(file, &path.to_string())?;
    }
    if search.is_late() {
        notes.push_str(&format!(
            "\n[stopped after {} s, with files left; give a path]",
            TIME.as_secs()
        ));
    }
    let mut text = if search.lines.is_empty() {
        format!(
            "nothing in {} matches `{}`",
            counted(search.searched, "file"),
            visible(pattern)
        )
    } else {
        format!(
            "{} in {}:\n{}",
            counted(search.lines.len(), "line"),
            counted(search.files, "file"),
            search.lines.join("\n")
        )
    };
    if search.more {
        text.push_str("\n[there are more; use a narrower pattern, or a path]");
    }
    text.push_str(&notes);
    Ok(text)
}

impl Search<'_> {
    fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Takes the lines of a file that match, until there are enough of them.
    fn file(&mut self, file: File, shown: &str) -> ToolResult<()> {
        let shown = visible(shown);
        let before = self.lines.len();
        let source = Timed {
            file,
            root: self.root,
            until: self.until,
        };
        let sink = Bytes(|number, line| {
            if self.lines.len() >= MAX_SHOWN {
                self.more = true;
                return Ok(false);
            }
            let found = self.matcher.find(line).ok().flatten();
            let line = around(line, found.map_or(0, |found| found.start()));
            self.lines.push(format!("{shown}:{number}: {line}"));
            Ok(true)
        });
        let searched = self.searcher.search_reader(&self.matcher, source, sink);
        self.files += usize::from(self.lines.len() > before);
        // The end of the time is told once for all files.
        if searched.is_err() && self.is_late() {
            return Ok(());
        }
        searched.or_fault(&shown)?;
        self.searched += 1;
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
    text.split('\t').map(visible).join("\t")
}

/// Capital letters matter only where the pattern has some.
fn matcher(pattern: &str, literal: bool) -> ToolResult<RegexMatcher> {
    RegexMatcherBuilder::new()
        .case_smart(true)
        .fixed_strings(literal)
        // A line ends where its text does, and not behind the `\r` of Windows.
        .multi_line(true)
        .crlf(true)
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(MAX_PATTERN_BYTES)
        .build(pattern)
        .map_err(|error| {
            let reason = error.to_string();
            // The parser draws the pattern with a mark under the place; its last line says it.
            let reason = reason.lines().last().unwrap_or_default();
            refusal!(
                "`pattern` is no regular expression for lines: {}; set literal to true to search for the text as it stands",
                reason.trim_start_matches("error: "))
        })
}
