//! What can be told of a text without reading it: its patterns and its script.

use std::fmt;

use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use serde::Deserialize;

/// A regular expression. Case does not matter, `^` and `$` are those of lines.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Pattern {
    text: String,
    matcher: RegexMatcher,
}

impl Pattern {
    pub(crate) fn is_in(&self, text: &str) -> bool {
        // This matcher has no errors: the library's trait is for others too.
        self.matcher.is_match(text.as_bytes()).unwrap_or(false)
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(true)
            .multi_line(true)
            .build(&text)
            .map_err(|error| format!("{text:?} is no regular expression: {error}"))?;
        Ok(Self { text, matcher })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.text)
    }
}

/// How a language shows in its letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Script {
    Latin,
    Cyrillic,
    /// Cyrillic with і, ї, є, ґ, and hardly any of ы, э, ъ, ё.
    Ukrainian,
    /// Cyrillic the other way about. A short text may have none of either.
    Russian,
}

/// The letters of a text by script, code left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Letters {
    pub(crate) all: usize,
    latin: usize,
    cyrillic: usize,
    only_ukrainian: usize,
    only_russian: usize,
}

impl Letters {
    pub(crate) fn of(text: &str) -> Self {
        let mut letters = Self::default();
        for letter in without_code(text).chars().filter(|c| c.is_alphabetic()) {
            letters.all += 1;
            match letter {
                'A'..='Z' | 'a'..='z' | '\u{c0}'..='\u{24f}' => letters.latin += 1,
                '\u{400}'..='\u{52f}' => letters.cyrillic += 1,
                _ => {}
            }
            match letter {
                'і' | 'ї' | 'є' | 'ґ' | 'І' | 'Ї' | 'Є' | 'Ґ' => {
                    letters.only_ukrainian += 1;
                }
                'ы' | 'э' | 'ъ' | 'ё' | 'Ы' | 'Э' | 'Ъ' | 'Ё' => {
                    letters.only_russian += 1;
                }
                _ => {}
            }
        }
        letters
    }

    /// How much of the text is in this script: 0 to 1. Where the letters are those of the
    /// neighbour's language it is 0.
    pub(crate) fn share(&self, script: Script) -> f32 {
        let fits = match script {
            Script::Latin | Script::Cyrillic => true,
            Script::Ukrainian => self.only_ukrainian > self.only_russian,
            Script::Russian => self.only_russian >= self.only_ukrainian,
        };
        let count = match script {
            Script::Latin => self.latin,
            Script::Cyrillic | Script::Ukrainian | Script::Russian => self.cyrillic,
        };
        if !fits || self.all == 0 {
            return 0.0;
        }
        // Answers have fewer letters than an f32 counts exactly.
        #[expect(clippy::cast_precision_loss, reason = "a share need not be exact")]
        let share = count as f32 / self.all as f32;
        share
    }
}

/// The text without fenced blocks and `quoted` words: code is in Latin letters everywhere.
fn without_code(text: &str) -> String {
    text.split("```")
        .step_by(2)
        .flat_map(|outside| outside.split('`').step_by(2))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_blind_to_case_and_sees_lines() {
        let pattern = Pattern::try_from("^Двадцять$".to_owned()).unwrap();
        assert!(pattern.is_in("one\nДВАДЦЯТЬ\ntwo"));
        assert!(!pattern.is_in("не двадцять"));
        assert!(Pattern::try_from("[".to_owned()).is_err());
    }

    #[test]
    fn a_language_shows_in_its_letters() {
        let share = |text: &str, script| Letters::of(text).share(script);
        let ukrainian = "Привіт! Столиця Франції — Париж.";
        let russian = "Это столица Франции: Париж, объятый тишиной.";
        assert!(share(ukrainian, Script::Ukrainian) > 0.99);
        assert!(share(ukrainian, Script::Russian) < 0.01);
        assert!(share(russian, Script::Russian) > 0.99);
        assert!(share(russian, Script::Ukrainian) < 0.01);
        assert!(share(russian, Script::Cyrillic) > 0.99);
        assert!(share("The capital: Paris.", Script::Latin) > 0.99);
        assert!(
            share("42", Script::Latin) < 0.01,
            "no letters are no language"
        );
        let code = "Запустите `cargo run`:\n```sh\ncargo run --release\n```\nГотово.";
        assert!(share(code, Script::Russian) > 0.99);
    }
}
