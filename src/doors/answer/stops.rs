//! Words at which an answer ends for its program. They are looked for in the answer's text alone,
//! over its pieces; none of them goes over two replies of the model.

use std::mem;

use sha2::{Digest as _, Sha256};

use crate::doors::heard::BETWEEN;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct StopWords {
    /// None of them is empty.
    words: Vec<String>,
    /// The end of the text so far, as far as a word may begin there.
    held: String,
    /// A reply is under way.
    is_inside: bool,
    is_found: bool,
}

impl StopWords {
    pub(crate) fn of(words: Vec<String>) -> Self {
        Self {
            words,
            ..Self::default()
        }
    }

    /// A text that is known whole, up to the first of them.
    pub(crate) fn cut(mut self, text: &str) -> String {
        let mut told = self.take(text);
        told.extend(self.end_reply());
        told
    }

    /// SHA-256 of them all.
    pub(super) fn hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for word in &self.words {
            hash.update(word.len().to_le_bytes());
            hash.update(word);
        }
        hash.finalize().into()
    }

    pub(super) fn are_none(&self) -> bool {
        self.words.is_empty()
    }

    pub(super) fn is_found(&self) -> bool {
        self.is_found
    }

    /// What is told with the next piece of the text.
    pub(super) fn take(&mut self, piece: &str) -> String {
        if self.is_found {
            return String::new();
        }
        if !mem::replace(&mut self.is_inside, true)
            && let Some(reply) = piece.strip_prefix(BETWEEN)
        {
            return format!("{BETWEEN}{}", self.take(reply));
        }
        self.held.push_str(piece);
        let found = self.words.iter().filter_map(|word| {
            let at = self.held.find(word.as_str())?;
            Some((at + word.len(), at))
        });
        // The one that is whole first, however the text came in pieces.
        let first = found.min();
        if let Some((_, at)) = first {
            self.is_found = true;
            self.held.truncate(at);
            return mem::take(&mut self.held);
        }
        let may_begin = |at: &usize| {
            let end = &self.held[*at..];
            self.words.iter().any(|word| word.starts_with(end))
        };
        let mut places = self.held.char_indices().map(|(at, _)| at);
        let at = places.find(may_begin).unwrap_or(self.held.len());
        let held = self.held.split_off(at);
        mem::replace(&mut self.held, held)
    }

    /// What was held, where a reply ends.
    pub(super) fn end_reply(&mut self) -> Option<String> {
        self.is_inside = false;
        let held = mem::take(&mut self.held);
        (!held.is_empty()).then_some(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of a text that comes in these pieces, and what each of them told.
    fn told(words: &[&str], pieces: &[&str]) -> (String, Vec<String>) {
        let words = words.iter().map(|word| (*word).to_owned());
        let mut stops = StopWords::of(words.collect());
        let mut told: Vec<String> = pieces.iter().map(|piece| stops.take(piece)).collect();
        told.extend(stops.end_reply());
        (told.concat(), told)
    }

    #[test]
    fn a_text_ends_before_the_word_that_is_whole_first_however_it_comes() {
        let cases: [(&[&str], &str, &str); 7] = [
            (&["\nObservation:"], "Look.\nObservation: a", "Look."),
            (&["bcd", "abcdX"], "-abcdX", "-a"),
            (&["abc", "c"], "-abc", "-"),
            (&["aab"], "aaab", "a"),
            (&["ї"], "Київ", "Ки"),
            (&["xyz"], "an xy", "an xy"),
            (&[], "all of it", "all of it"),
        ];
        for (words, text, wanted) in cases {
            let letters: Vec<String> = text.chars().map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            assert_eq!(told(words, &letters).0, wanted, "{words:?}");
            assert_eq!(told(words, &[text]).0, wanted, "{words:?}");
        }
    }

    #[test]
    fn what_parts_two_replies_is_no_stop_word() {
        let mut stops = StopWords::of(vec!["\n\n".to_owned()]);
        assert_eq!(stops.take("Let me look.\n"), "Let me look.");
        assert_eq!(stops.end_reply().as_deref(), Some("\n"));
        assert_eq!(stops.take("\n\nDone.\n\nMore"), "\n\nDone.");
        assert!(stops.is_found());
    }

    #[test]
    fn no_more_is_held_than_may_begin_a_word() {
        let (_, told) = told(&["END"], &["A lot EN", "ough"]);
        assert_eq!(told, ["A lot ", "ENough"]);
    }
}
