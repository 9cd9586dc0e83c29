//! Reading from the left, in a text that may not be complete yet.

/// Why reading ends before there is a whole call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// So far it fits; the text ends here.
    Ended,
    /// It is something else, whatever may follow.
    Mismatch,
}

/// What was read, or why nothing could be.
pub(super) type Read<T> = Result<T, Stop>;

/// A place in the text.
///
/// Nothing decides by what it has not seen: where the next characters would decide and are
/// missing, the answer is [`Stop::Ended`]. So a mismatch stays one in every longer text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.rest
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Goes on by so many bytes, or to the end.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    pub(super) fn peek(&self) -> Read<char> {
        self.rest.chars().next().ok_or(Stop::Ended)
    }

    /// Whether this comes next. Takes nothing.
    pub(super) fn next_is(&self, expected: &str) -> Read<bool> {
        if self.rest.starts_with(expected) {
            Ok(true)
        } else if expected.starts_with(self.rest) {
            Err(Stop::Ended)
        } else {
            Ok(false)
        }
    }

    pub(super) fn take(&mut self, expected: &str) -> Read<()> {
        if !self.next_is(expected)? {
            return Err(Stop::Mismatch);
        }
        self.skip(expected.len());
        Ok(())
    }

    /// Takes characters up to the first that is none of them.
    pub(super) fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> Read<&'a str> {
        let end = self.rest.find(|c| !is_part(c)).ok_or(Stop::Ended)?;
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(taken)
    }

    /// Takes what stands before `end`, and `end`.
    pub(super) fn take_until(&mut self, end: &str) -> Read<&'a str> {
        let (taken, rest) = self.rest.split_once(end).ok_or(Stop::Ended)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Takes the name of a tool or of an argument.
    pub(super) fn take_name(&mut self) -> Read<&'a str> {
        if !starts_name(self.peek()?) {
            return Err(Stop::Mismatch);
        }
        self.take_while(|c| starts_name(c) || c.is_ascii_digit() || matches!(c, '-' | '.'))
    }
}

/// Whether a name can begin so.
pub(super) fn starts_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}
