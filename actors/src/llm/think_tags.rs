//! Reasoning inside the text: `<think>…</think>`, cut anywhere by the stream.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// A piece of what the model said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Thinking(String),
}

/// Parts text from reasoning as they stream.
///
/// A tag right after a quote or backtick, or in a fenced code block, is the model talking
/// about tags and stays text. Reasoning whose closing tag never comes is reasoning to the end.
#[derive(Debug)]
pub(super) struct ThinkTags {
    /// Received, but not yet to be told apart from a tag (or from the white space before one).
    held: String,
    inside: bool,
    /// Nothing but white space was said yet.
    fresh: bool,
    /// Line breaks that only set a tag off from what follows are dropped.
    skip_breaks: bool,
    fence: Fence,
}

impl Default for ThinkTags {
    fn default() -> Self {
        Self {
            held: String::new(),
            inside: false,
            fresh: true,
            skip_breaks: false,
            fence: Fence::default(),
        }
    }
}

impl ThinkTags {
    /// Takes the next text of the stream and gives back what is certain by now.
    pub(super) fn push(&mut self, text: &str) -> Vec<Piece> {
        let joined;
        let mut rest = text;
        if !self.held.is_empty() {
            joined = std::mem::take(&mut self.held) + text;
            rest = &joined;
        }
        let mut pieces = Vec::new();
        loop {
            if self.skip_breaks {
                rest = rest.trim_start_matches(['\n', '\r']);
                self.skip_breaks = rest.is_empty();
            }
            let tag = if self.inside { CLOSE } else { OPEN };
            match self.find(rest, tag) {
                Found::Tag(at) => {
                    self.emit(&rest[..at], &mut pieces);
                    rest = &rest[at + tag.len()..];
                    self.inside = !self.inside;
                    self.skip_breaks = true;
                    self.fence = Fence::default();
                }
                Found::Perhaps(at) => {
                    self.emit(&rest[..at], &mut pieces);
                    rest[at..].clone_into(&mut self.held);
                    return pieces;
                }
                Found::Nothing => {
                    self.emit(rest, &mut pieces);
                    return pieces;
                }
            }
        }
    }

    /// The stream is over: what was held back is what it looks like.
    pub(super) fn finish(&mut self) -> Option<Piece> {
        let held = std::mem::take(&mut self.held);
        (!held.is_empty()).then(|| self.piece(held))
    }

    fn emit(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        if text.is_empty() {
            return;
        }
        if !self.inside {
            if self.fresh && text.trim().is_empty() {
                // Only reached right before a tag: `find` holds white space back otherwise.
                return;
            }
            self.fresh = false;
            self.fence.read(text);
        }
        pieces.push(self.piece(text.to_owned()));
    }

    fn piece(&self, text: String) -> Piece {
        if self.inside {
            Piece::Thinking(text)
        } else {
            Piece::Text(text)
        }
    }

    fn find(&self, text: &str, tag: &str) -> Found {
        let mut fence = self.fence.clone();
        let mut read = 0;
        for (at, _) in text.match_indices('<') {
            let candidate = &text[at..];
            let is_tag = candidate.starts_with(tag);
            if !is_tag && !tag.starts_with(candidate) {
                continue;
            }
            if !self.inside {
                fence.read(&text[read..at]);
                read = at;
                if fence.is_quoting() {
                    continue;
                }
            }
            return if is_tag {
                Found::Tag(at)
            } else if self.only_space_before(&text[..at]) {
                Found::Perhaps(0)
            } else {
                Found::Perhaps(at)
            };
        }
        if !text.is_empty() && self.only_space_before(text) {
            Found::Perhaps(0)
        } else {
            Found::Nothing
        }
    }

    fn only_space_before(&self, text: &str) -> bool {
        !self.inside && self.fresh && text.trim().is_empty()
    }
}

enum Found {
    Tag(usize),
    /// From here on it may become the tag, or white space before it.
    Perhaps(usize),
    Nothing,
}

/// Whether the text that was read so far ends inside a code fence or right after a quote.
#[derive(Clone, Debug)]
struct Fence {
    open: bool,
    last: char,
    /// Backticks at the start of the line; none once something else stood there.
    ticks: Option<u8>,
}

impl Default for Fence {
    fn default() -> Self {
        Self {
            open: false,
            last: '\n',
            ticks: Some(0),
        }
    }
}

impl Fence {
    fn read(&mut self, text: &str) {
        for character in text.chars() {
            self.last = character;
            self.ticks = match (character, self.ticks) {
                ('\n', _) => Some(0),
                ('`', Some(2)) => {
                    self.open = !self.open;
                    None
                }
                ('`', Some(ticks)) => Some(ticks + 1),
                (' ', Some(0)) => Some(0),
                _ => None,
            };
        }
    }

    fn is_quoting(&self) -> bool {
        self.open || matches!(self.last, '`' | '"' | '\'' | '“' | '«')
    }
}

#[cfg(test)]
#[path = "think_tags_tests.rs"]
mod tests;
