//! Lines for a terminal: what stands in them, and how it looks.
//!
//! What models, tools and files say comes to a terminal by [`Span`] alone. It has no character
//! that a terminal would obey: those stand there as escapes, as in `\u{1b}`.

use anstyle::{AnsiColor, Style};
use navi_actors::domain::unseen;
use unicode_width::UnicodeWidthStr as _;

/// What a text is, as its colour says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tint {
    #[default]
    Plain,
    /// Beside the matter.
    Dim,
    Good,
    Bad,
    /// Somebody is asked.
    Asks,
    Code,
    /// What a person said.
    Own,
}

/// How a text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) tint: Tint,
    pub(super) bold: bool,
    pub(super) italic: bool,
}

impl Look {
    pub(super) const BOLD: Self = Self {
        tint: Tint::Plain,
        bold: true,
        italic: false,
    };

    fn style(self) -> Style {
        let style = match self.tint {
            Tint::Plain => Style::new(),
            Tint::Dim => Style::new().dimmed(),
            Tint::Good => Style::new().fg_color(Some(AnsiColor::Green.into())),
            Tint::Bad => Style::new().fg_color(Some(AnsiColor::Red.into())),
            Tint::Asks => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
            Tint::Code => Style::new().fg_color(Some(AnsiColor::Cyan.into())),
            Tint::Own => Style::new().fg_color(Some(AnsiColor::Blue.into())),
        };
        let style = if self.bold { style.bold() } else { style };
        if self.italic { style.italic() } else { style }
    }
}

impl From<Tint> for Look {
    fn from(tint: Tint) -> Self {
        Self {
            tint,
            ..Self::default()
        }
    }
}

/// A stretch of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    text: String,
    look: Look,
}

/// Whether colours are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colours {
    On,
    Off,
}

/// A line without its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line(Vec<Span>);

impl Line {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn of(look: impl Into<Look>, text: &str) -> Self {
        Self::new().and(look, text)
    }

    /// The same with more behind it.
    pub(super) fn and(mut self, look: impl Into<Look>, text: &str) -> Self {
        self.add(look.into(), text);
        self
    }

    pub(super) fn add(&mut self, look: Look, text: &str) {
        if text.is_empty() {
            return;
        }
        let shown = shown(text);
        match self.0.last_mut() {
            Some(last) if last.look == look => last.text.push_str(&shown),
            _ => self.0.push(Span { text: shown, look }),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text alone.
    pub(super) fn text(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect()
    }

    /// As it is written to a terminal.
    pub(super) fn paint(&self, colours: Colours) -> String {
        if colours == Colours::Off {
            return self.text();
        }
        let spans = self.0.iter().map(|span| {
            let style = span.look.style();
            format!("{style}{}{style:#}", span.text)
        });
        spans.collect()
    }
}

/// A text on one line, without what a terminal would obey.
fn shown(text: &str) -> String {
    unseen::escaped(&text.replace('\t', "    "), unseen::is_moving)
}

/// A text on its lines, without what a terminal would obey.
pub(super) fn shown_on_its_lines(text: &str) -> String {
    unseen::escaped(&text.replace("\r\n", "\n"), |c| {
        unseen::is_moving(c) && !matches!(c, '\n' | '\t')
    })
}

/// How many columns a text takes.
pub(super) fn columns(text: &str) -> usize {
    text.width()
}

/// The beginning of a text on one line, in about so many columns.
pub(super) fn brief(text: &str, most: usize) -> String {
    let mut line = String::new();
    // What is cut off is not looked at: a text may have megabytes.
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if columns(&line) > most {
            let cut = line.chars().take(most.saturating_sub(1));
            return cut.chain(['…']).collect();
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_gets_into_a_line() {
        let line = Line::of(Tint::Bad, "a\u{1b}]0;title\u{7}\u{9b}2J\r\n\u{202e}b\tc");
        assert_eq!(
            line.text(),
            r"a\u{1b}]0;title\u{7}\u{9b}2J\r\n\u{202e}b    c"
        );
        assert_eq!(line.paint(Colours::Off), line.text());
        let painted = line.paint(Colours::On);
        assert_eq!(painted, format!("\u{1b}[31m{}\u{1b}[0m", line.text()));
        assert_eq!(shown_on_its_lines("a\r\n\tb\u{1b}"), "a\n\tb\\u{1b}");
    }

    #[test]
    fn what_looks_alike_is_one_stretch() {
        let line = Line::of(Tint::Plain, "a").and(Tint::Plain, "b");
        let line = line.and(Look::BOLD, "").and(Look::BOLD, "c");
        assert_eq!(line.0.len(), 2);
        assert_eq!(line.text(), "abc");
    }

    #[test]
    fn a_long_text_is_cut_where_the_line_ends() {
        assert_eq!(brief(" two\n words ", 20), "two words");
        assert_eq!(brief("a much longer text", 10), "a much lo…");
        assert_eq!(brief(&"x".repeat(1 << 20), 4), "xxx…");
    }
}
