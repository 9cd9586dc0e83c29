//! Markdown as it comes, as lines of a terminal.
//!
//! A row is given out when it is full, so that a long paragraph is read while it is said. What
//! cannot be told yet (whether a `*` has its other half) is held back for a moment, and stands as
//! it is where it has none. Links, tables and whatever else has no look here stay as they are.

use super::style::{Line, Look, Tint, columns};

/// How far the other half of a mark is looked for.
const HOLD: usize = 240;
/// By then it is plain how a line begins.
const BEGINNING: usize = 8;
/// A line of code is given out in pieces of this size, where its end does not come.
const CODE_LINE: usize = 4 * 1024;
/// The narrowest that a text is set.
const NARROW: usize = 20;

/// See the module.
#[derive(Debug)]
pub(super) struct Markdown {
    width: usize,
    /// Of the line that is being said: what is not set yet.
    rest: String,
    /// Whether it is known how this line begins.
    begun: bool,
    /// What closes the block of code that is open.
    fence: Option<String>,
    /// How this line looks.
    look: Look,
    /// What its further rows begin with.
    lead: String,
    row: Line,
    row_width: usize,
    /// Whether the row has a word already.
    has_word: bool,
    word: Vec<(Look, String)>,
    word_width: usize,
    spaces: usize,
    /// What was set last of this line.
    last: Option<char>,
    /// What was given out last is an empty line, or nothing was yet.
    blank: bool,
}

/// What became of a mark.
enum Mark {
    /// So many bytes were set.
    Set(usize),
    /// More has to come first.
    Undecided,
}

impl Markdown {
    pub(super) fn new(width: usize) -> Self {
        Self {
            width: width.max(NARROW),
            rest: String::new(),
            begun: false,
            fence: None,
            look: Look::default(),
            lead: String::new(),
            row: Line::new(),
            row_width: 0,
            has_word: false,
            word: Vec::new(),
            word_width: 0,
            spaces: 0,
            last: None,
            blank: true,
        }
    }

    pub(super) fn set_width(&mut self, width: usize) {
        self.width = width.max(NARROW);
    }

    /// The next piece of the text.
    pub(super) fn push(&mut self, piece: &str, out: &mut Vec<Line>) {
        self.rest.push_str(piece);
        self.set(out);
    }

    /// Gives out what there is: something else comes between.
    pub(super) fn pause(&mut self, out: &mut Vec<Line>) {
        if self.rest.is_empty() && !self.begun {
            return;
        }
        self.rest.push('\n');
        self.set(out);
    }

    /// The text is over.
    pub(super) fn finish(&mut self, out: &mut Vec<Line>) {
        self.pause(out);
        let width = self.width;
        *self = Self::new(width);
    }

    fn set(&mut self, out: &mut Vec<Line>) {
        while !self.rest.is_empty() {
            let done = if self.fence.is_some() && !self.begun {
                self.code(out)
            } else if self.begun {
                self.inline(out)
            } else {
                self.begin(out)
            };
            if !done {
                return;
            }
        }
    }

    /// A line of a block of code. Whether there was a whole one.
    fn code(&mut self, out: &mut Vec<Line>) -> bool {
        let Some(line) = self.take_line() else {
            if self.rest.len() < CODE_LINE {
                return false;
            }
            let line = std::mem::take(&mut self.rest);
            out.push(Line::of(Tint::Code, &line));
            return true;
        };
        let fence = self.fence.as_deref().unwrap_or_default();
        let trimmed = line.trim();
        let kind = fence.chars().next().unwrap_or('`');
        if trimmed.starts_with(fence) && trimmed.chars().all(|c| c == kind) {
            self.fence = None;
        } else {
            out.push(Line::of(Tint::Code, &line));
            self.blank = false;
        }
        true
    }

    /// How a line begins. Whether that is known.
    fn begin(&mut self, out: &mut Vec<Line>) -> bool {
        let is_whole = self.rest.contains('\n');
        let text = self.rest.trim_start_matches([' ', '\t']);
        let indent = self.rest.len() - text.len();
        let Some(first) = text.chars().next() else {
            return false;
        };
        if first == '\n' {
            self.take_line();
            self.give(Line::new(), out);
            return true;
        }
        let whole_only = ["```", "~~~", "---", "***", "___", "|"];
        let is_open = "#-*+>|`~_".contains(first) || first.is_ascii_digit();
        let waits_for_line = whole_only.iter().any(|mark| text.starts_with(mark));
        if !is_whole && is_open && (waits_for_line || text.len() < BEGINNING) {
            return false;
        }
        if waits_for_line && self.whole_line(out) {
            return true;
        }
        let text = self.rest.get(indent..).unwrap_or_default().to_owned();
        self.look = Look::default();
        self.lead = " ".repeat(indent);
        self.row = Line::of(Tint::Plain, &self.lead);
        let taken = self.block(&text, indent);
        self.rest.drain(..indent + taken);
        self.row_width = columns(&self.row.text());
        self.has_word = false;
        self.begun = true;
        true
    }

    /// What is known by its whole line: a fence, a rule, a row of a table. Whether it was one.
    fn whole_line(&mut self, out: &mut Vec<Line>) -> bool {
        let line = self.rest.lines().next().unwrap_or_default().to_owned();
        let text = line.trim();
        let mark: String = text
            .chars()
            .take_while(|c| text.starts_with(*c) && "`~".contains(*c))
            .collect();
        // An inline stretch of code is no fence.
        if mark.len() >= 3 && !text.get(mark.len()..).unwrap_or_default().contains('`') {
            self.fence = Some(mark);
        } else if text.starts_with('|') {
            self.give(Line::of(Tint::Plain, &line), out);
        } else if ['-', '*', '_']
            .iter()
            .any(|rule| text.chars().all(|c| c == *rule || c == ' '))
        {
            let rule = "─".repeat(self.width.min(40));
            self.give(Line::of(Tint::Dim, &rule), out);
        } else {
            return false;
        }
        self.take_line();
        true
    }

    /// Sets the mark that a line begins with, and says how many bytes it has.
    fn block(&mut self, text: &str, indent: usize) -> usize {
        let marks = text.bytes().take_while(|byte| *byte == b'#').count();
        if (1..=6).contains(&marks) && text[marks..].starts_with(' ') {
            self.look = Look::BOLD;
            return marks + 1;
        }
        for (mark, shown) in [
            ("- [ ] ", "☐ "),
            ("- [x] ", "☑ "),
            ("- [X] ", "☑ "),
            ("- ", "• "),
            ("* ", "• "),
            ("+ ", "• "),
        ] {
            if text.starts_with(mark) {
                self.row.add(Look::default(), shown);
                self.lead = " ".repeat(indent + 2);
                return mark.len();
            }
        }
        if let Some(quoted) = text.strip_prefix('>') {
            self.row.add(Tint::Dim.into(), "│ ");
            self.lead.push_str("│ ");
            return 1 + usize::from(quoted.starts_with(' '));
        }
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let after = text.get(digits..).unwrap_or_default();
        if (1..=5).contains(&digits) && (after.starts_with(". ") || after.starts_with(") ")) {
            self.row.add(Look::default(), &text[..digits + 2]);
            self.lead = " ".repeat(indent + digits + 2);
            return digits + 2;
        }
        0
    }

    /// Sets the line as far as it can be told. Whether it is over.
    fn inline(&mut self, out: &mut Vec<Line>) -> bool {
        let rest = std::mem::take(&mut self.rest);
        let end = rest.find('\n');
        let line = &rest[..end.unwrap_or(rest.len())];
        let set = self.inline_text(line, self.look, end.is_some(), out);
        let Some(end) = end else {
            self.rest = rest[set..].to_owned();
            return false;
        };
        self.end_word(out);
        let row = std::mem::take(&mut self.row);
        self.give(row, out);
        self.begun = false;
        self.spaces = 0;
        self.last = None;
        self.rest = rest[end + 1..].to_owned();
        true
    }

    /// Sets a text with its marks. How much of it could be told.
    fn inline_text(
        &mut self,
        text: &str,
        look: Look,
        is_whole: bool,
        out: &mut Vec<Line>,
    ) -> usize {
        let mut at = 0;
        while let Some(found) = text[at..].find(['`', '*', '\\']) {
            self.put(&text[at..at + found], look, out);
            at += found;
            match self.mark(&text[at..], look, is_whole, out) {
                Mark::Set(bytes) => at += bytes,
                Mark::Undecided => return at,
            }
        }
        self.put(&text[at..], look, out);
        text.len()
    }

    /// Sets what begins with a mark.
    fn mark(&mut self, text: &str, look: Look, is_whole: bool, out: &mut Vec<Line>) -> Mark {
        let is_whole = is_whole || text.len() > HOLD;
        let kind = text.chars().next().unwrap_or_default();
        if kind == '\\' {
            let Some(next) = text[1..].chars().next() else {
                if is_whole {
                    self.put(text, look, out);
                    return Mark::Set(1);
                }
                return Mark::Undecided;
            };
            let escaped = next.is_ascii_punctuation();
            self.put(if escaped { &text[1..2] } else { "\\" }, look, out);
            return Mark::Set(1 + usize::from(escaped));
        }
        let count = text.chars().take_while(|c| *c == kind).count();
        let (mark, after) = text.split_at(count);
        if after.is_empty() && !is_whole {
            return Mark::Undecided;
        }
        let may_open = kind == '`'
            || (count <= 3
                && !after.starts_with(char::is_whitespace)
                && (count > 1 || !self.last.is_some_and(char::is_alphanumeric)));
        if may_open && let Some(end) = closing(after, mark, kind) {
            if count + end + count == text.len() && !is_whole {
                // The mark may be a longer one.
                return Mark::Undecided;
            }
            let inner = &after[..end];
            if kind == '`' {
                let code = Look {
                    tint: Tint::Code,
                    ..look
                };
                self.put(inner, code, out);
            } else {
                let within = Look {
                    bold: look.bold || count > 1,
                    italic: look.italic || count != 2,
                    ..look
                };
                self.inline_text(inner, within, true, out);
            }
            return Mark::Set(count + end + count);
        }
        if may_open && !is_whole {
            return Mark::Undecided;
        }
        self.put(mark, look, out);
        Mark::Set(count)
    }

    /// Sets a text that has no marks.
    fn put(&mut self, text: &str, look: Look, out: &mut Vec<Line>) {
        for c in text.chars() {
            self.last = Some(c);
            if matches!(c, ' ' | '\t') {
                self.end_word(out);
                self.spaces += 1;
                continue;
            }
            match self.word.last_mut() {
                Some((known, word)) if *known == look => word.push(c),
                _ => self.word.push((look, c.to_string())),
            }
            self.word_width += columns(c.encode_utf8(&mut [0; 4]));
            if self.word_width + columns(&self.lead) >= self.width {
                self.end_word(out);
            }
        }
    }

    fn end_word(&mut self, out: &mut Vec<Line>) {
        if self.word.is_empty() {
            return;
        }
        if self.has_word {
            if self.row_width + self.spaces + self.word_width > self.width {
                let row = std::mem::replace(&mut self.row, Line::of(Tint::Dim, &self.lead));
                self.give(row, out);
                self.row_width = columns(&self.lead);
            } else {
                self.row.add(Look::default(), &" ".repeat(self.spaces));
                self.row_width += self.spaces;
            }
        }
        for (look, word) in self.word.drain(..) {
            self.row.add(look, &word);
        }
        self.row_width += self.word_width;
        self.has_word = true;
        self.word_width = 0;
        self.spaces = 0;
    }

    /// Gives a row out; of several empty ones the first.
    fn give(&mut self, row: Line, out: &mut Vec<Line>) {
        let is_blank = row.is_empty();
        if !(is_blank && self.blank) {
            out.push(row);
        }
        self.blank = is_blank;
    }

    fn take_line(&mut self) -> Option<String> {
        let end = self.rest.find('\n')?;
        let line = self.rest[..end].to_owned();
        self.rest.drain(..=end);
        Some(line)
    }
}

/// Where a mark's other half begins.
fn closing(text: &str, mark: &str, kind: char) -> Option<usize> {
    let mut at = 0;
    loop {
        let found = at + text[at..].find(kind)?;
        if found > HOLD {
            return None;
        }
        let run = text[found..].chars().take_while(|c| *c == kind).count();
        let before = text[..found].chars().next_back();
        let may_close = kind == '`' || !before.is_none_or(char::is_whitespace);
        if run == mark.len() && found > 0 && may_close {
            return Some(found);
        }
        at = found + run;
    }
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
