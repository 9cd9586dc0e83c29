//! What a person looks for, and how it is shown where it was found. The databases' own
//! indexes find it; this parts words and folds letters as they do, so that what they find
//! is what is marked.

use crate::protocol::search::{Mark, Snippet};

/// How much of a query is heeded, in characters.
pub const MAX_QUERY: usize = 200;

/// How long a snippet is, and how much of that may stand before the first match, in
/// characters.
const SNIPPET: usize = 200;
const BEFORE: usize = 60;

/// Latin letters and what they are with a diacritic, in lower case.
const FOLDED: &[(char, &str)] = &[
    ('a', "àáâãäåāăąǎạảấầẩẫậắằẳẵặ"),
    ('c', "çćĉċč"),
    ('d', "ď"),
    ('e', "èéêëēĕėęěẹẻẽếềểễệ"),
    ('g', "ĝğġģǧ"),
    ('h', "ĥ"),
    ('i', "ìíîïĩīĭįǐỉị"),
    ('j', "ĵ"),
    ('k', "ķ"),
    ('l', "ĺļľ"),
    ('n', "ñńņň"),
    ('o', "òóôõöōŏőǒọỏốồổỗộ"),
    ('r', "ŕŗř"),
    ('s', "śŝşšș"),
    ('t', "ţťț"),
    ('u', "ùúûüũūŭůűųǔụủ"),
    ('w', "ŵ"),
    ('y', "ýÿŷỳỵỷỹ"),
    ('z', "źżž"),
];

/// What is to be found, all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    pub phrases: Vec<Phrase>,
}

/// Words that are to stand next to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phrase {
    /// At least one. Letters, digits and diacritics, nothing else.
    pub words: Vec<String>,
    /// Whether the last word may be the beginning of a longer one.
    pub is_open: bool,
}

impl SearchQuery {
    /// Any text is a query: each of its words is looked for, or what it begins; words in
    /// quotation marks as they stand. None where there is no word in it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let end = text.char_indices().nth(MAX_QUERY);
        let text = &text[..end.map_or(text.len(), |(index, _)| index)];
        let parts: Vec<&str> = text.split('"').collect();
        let mut phrases = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let words = words(part)
                .map(|(start, end)| part[start..end].to_owned())
                // Diacritics alone are none.
                .filter(|word| !fold(word).is_empty());
            if index % 2 == 0 {
                phrases.extend(words.map(|word| Phrase {
                    words: vec![word],
                    is_open: true,
                }));
                continue;
            }
            let words: Vec<String> = words.collect();
            if !words.is_empty() {
                phrases.push(Phrase {
                    words,
                    // A quotation that is still being typed.
                    is_open: index + 1 == parts.len(),
                });
            }
        }
        (!phrases.is_empty()).then_some(Self { phrases })
    }

    /// The place in the text where this was found, with what matched.
    #[must_use]
    pub fn snippet(&self, text: &str) -> Snippet {
        let all: Vec<Word> = words(text)
            .map(|(start, end)| Word {
                start,
                end,
                folded: fold(&text[start..end]),
            })
            .collect();
        let wanted: Vec<(Vec<String>, bool)> = self
            .phrases
            .iter()
            .map(|phrase| {
                let words = phrase.words.iter().map(|word| fold(word)).collect();
                (words, phrase.is_open)
            })
            .collect();
        let mut found: Vec<(usize, usize)> = Vec::new();
        for index in 0..all.len() {
            for (words, is_open) in &wanted {
                let Some(there) = all.get(index..index + words.len()) else {
                    continue;
                };
                if !matches(there, words, *is_open) {
                    continue;
                }
                let (start, end) = (there[0].start, there[there.len() - 1].end);
                match found.last_mut() {
                    Some(last) if start < last.1 => last.1 = last.1.max(end),
                    _ => found.push((start, end)),
                }
            }
        }
        let first = found.first().map_or(0, |(start, _)| *start);
        let (start, end) = window(text, first);
        render(text, start, end, &found)
    }
}

/// A word of a text, and where it stands in bytes.
#[derive(Debug)]
struct Word {
    start: usize,
    end: usize,
    folded: String,
}

fn matches(there: &[Word], wanted: &[String], is_open: bool) -> bool {
    let last = wanted.len() - 1;
    there
        .iter()
        .zip(wanted)
        .enumerate()
        .all(|(n, (word, wanted))| {
            if is_open && n == last {
                word.folded.starts_with(wanted.as_str())
            } else {
                word.folded == *wanted
            }
        })
}

/// Where the words of a text start and end, in bytes.
fn words(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text[rest..].find(is_of_word)?;
        let length = text[start..].find(|c| !is_of_word(c));
        rest = length.map_or(text.len(), |length| start + length);
        Some((start, rest))
    })
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || is_diacritic(c)
}

fn is_diacritic(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c)
}

fn fold(word: &str) -> String {
    word.chars()
        .flat_map(char::to_lowercase)
        .filter(|c| !is_diacritic(*c))
        .map(base)
        .collect()
}

fn base(c: char) -> char {
    if !matches!(c, '\u{e0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}') {
        return c;
    }
    FOLDED
        .iter()
        .find(|(_, variants)| variants.contains(c))
        .map_or(c, |(letter, _)| *letter)
}

/// What part of the text is shown, in bytes. `first` is where the first match starts.
fn window(text: &str, first: usize) -> (usize, usize) {
    let before = text[..first].char_indices().rev().take(BEFORE).last();
    let mut start = before.map_or(first, |(index, _)| index);
    if start > 0 {
        // Not in the middle of a word, where that can be helped.
        let next = text[start..first].find(char::is_whitespace);
        start = next.map_or(start, |space| start + space);
    }
    let end = text[start..].char_indices().nth(SNIPPET);
    (start, end.map_or(text.len(), |(index, _)| start + index))
}

/// The part of the text on one line, with what was found in it marked.
fn render(text: &str, start: usize, end: usize, found: &[(usize, usize)]) -> Snippet {
    let mut snippet = Snippet::default();
    let mut length = 0_u32;
    if !text[..start].trim().is_empty() {
        snippet.text.push('…');
        length += 1;
    }
    let mut found = found.iter().peekable();
    let mut open = None;
    let mut is_spaced = true;
    for (offset, c) in text[start..end].char_indices() {
        let at = start + offset;
        if let Some((mark, to)) = open
            && at >= to
        {
            snippet.marks.push(Mark {
                start: mark,
                end: length,
            });
            open = None;
        }
        if let Some((_, to)) = found.next_if(|(from, _)| *from <= at) {
            open = Some((length, *to));
        }
        let is_space = c.is_whitespace() || c.is_control();
        if is_space && is_spaced {
            continue;
        }
        let c = if is_space { ' ' } else { c };
        is_spaced = is_space;
        snippet.text.push(c);
        length += if c.len_utf16() == 2 { 2 } else { 1 };
    }
    if let Some((mark, _)) = open {
        snippet.marks.push(Mark {
            start: mark,
            end: length,
        });
    }
    if snippet.text.ends_with(' ') {
        snippet.text.pop();
    }
    if !text[end..].trim().is_empty() {
        snippet.text.push('…');
    }
    snippet
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
