//! What is remembered of a user (SPEC section 9): names of facts, what a new value does to an
//! old one, and the search.

pub mod extraction;
pub mod summary;

use chrono::{DateTime, Utc};

use crate::protocol::memory::{Fact, FactSource};

/// The categories that are proposed, each with what belongs into it; there may be others.
pub const CATEGORIES: [(&str, &str); 8] = [
    ("identity", "name, age, birthday, languages"),
    ("people", "family, friends, colleagues, pets"),
    ("places", "home, city, places they go to"),
    ("work", "job, employer, studies, skills"),
    (
        "preferences",
        "likes, dislikes, how they want to be answered",
    ),
    ("projects", "what they work on for longer"),
    (
        "devices",
        "computers, phones, servers, home devices, software",
    ),
    ("other", "anything else that lasts"),
];

/// Where a fact goes that was read out of a conversation with no known category.
pub const OTHER: &str = "other";

/// As many facts as are kept of a user.
pub const MAX_FACTS: u64 = 2_000;
/// As many earlier values as are kept of a fact.
pub const MAX_HISTORY: u64 = 20;
/// As many names of deleted facts as are kept of a user.
pub const MAX_FORGOTTEN: u64 = 500;
/// The most characters of a key, and of a category.
pub const MAX_KEY_CHARS: usize = 60;
/// The most characters of a value.
pub const MAX_VALUE_CHARS: usize = 500;

/// A fact of at most this confidence is unconfirmed: it is shown and found, and does not
/// stand in the summary, which every conversation begins with.
pub const UNCONFIRMED: f32 = 0.5;

/// What names a fact of a user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FactName {
    /// One of [`CATEGORIES`], or another.
    pub category: String,
    pub key: String,
}

impl FactName {
    /// A name from what a person or a model wrote: a word stays as it is, anything else is
    /// brought into snake_case, a known category into its own letters.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn new(category: &str, key: &str) -> Result<Self, String> {
        let category = match known_category(category) {
            Some(known) => known.to_owned(),
            None => named("category", category, "people")?,
        };
        let key = named("key", key, "sister_name")?;
        Ok(Self { category, key })
    }

    /// The name of a fact that is there.
    #[must_use]
    pub fn of(fact: &Fact) -> Self {
        Self {
            category: fact.category.clone(),
            key: fact.key.clone(),
        }
    }
}

impl std::fmt::Display for FactName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.category, self.key)
    }
}

/// A fact on its way into the memory.
#[derive(Clone, Debug, PartialEq)]
pub struct NewFact {
    pub name: FactName,
    pub value: String,
    pub source: FactSource,
    pub confidence: f32,
    /// When it was said or written.
    pub at: DateTime<Utc>,
}

/// A value as it is kept: on one line, without control characters.
///
/// # Errors
/// A sentence that says what is wrong with its length.
pub fn value(text: &str) -> Result<String, String> {
    let value = one_line(text);
    let chars = text.chars().filter(|_| !value.is_empty()).count();
    if chars == 0 || chars > MAX_VALUE_CHARS {
        return Err(format!(
            "value must have 1 to {MAX_VALUE_CHARS} characters; this one has {chars}"
        ));
    }
    Ok(value)
}

/// What a new fact does to what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Nothing: it says the same as before, or is older or less certain than what is known.
    Keep,
    /// The same value, said again later.
    Renew,
    /// The same value, now with more confidence.
    Confirm,
    Create,
    /// Its value replaces another, which goes into the history.
    Replace,
}

/// Newer wins, unless it is unconfirmed and the old value is not; so does an equal value, which
/// makes what is known newer. What was said before the fact was forgotten stays forgotten.
#[must_use]
pub fn merge(known: Option<&Fact>, forgotten_at: Option<DateTime<Utc>>, new: &NewFact) -> Merge {
    match known {
        None if forgotten_at.is_some_and(|forgotten| forgotten >= new.at) => Merge::Keep,
        None => Merge::Create,
        Some(known) if known.value == new.value && new.confidence > known.confidence => {
            Merge::Confirm
        }
        Some(known) if new.at < known.updated_at => Merge::Keep,
        Some(known) if is_confirmed(known) && new.confidence <= UNCONFIRMED => Merge::Keep,
        Some(known) if known.value == new.value => Merge::Renew,
        Some(_) => Merge::Replace,
    }
}

/// Whether a fact counts as what the user said.
#[must_use]
pub fn is_confirmed(fact: &Fact) -> bool {
    fact.confidence > UNCONFIRMED
}

/// The facts that hold words of the query, those with the most of them first; of a query
/// without words all, newest first.
#[must_use]
pub fn search<'a>(facts: &'a [Fact], query: &str) -> Vec<&'a Fact> {
    let mut wanted = words(query);
    // A letter alone stands in almost every text.
    if wanted.iter().any(|word| word.chars().count() > 1) {
        wanted.retain(|word| word.chars().count() > 1);
    }
    let mut found: Vec<(usize, &Fact)> = facts
        .iter()
        .map(|fact| {
            let text = format!("{} {} {}", fact.category, fact.key, fact.value).to_lowercase();
            let score = wanted.iter().map(|word| likeness(&text, word)).sum();
            (score, fact)
        })
        .filter(|(score, _)| wanted.is_empty() || *score > 0)
        .collect();
    found.sort_by(|(a_score, a), (b_score, b)| {
        (b_score, b.updated_at).cmp(&(a_score, a.updated_at))
    });
    found.into_iter().map(|(_, fact)| fact).collect()
}

/// How well a text holds a word: best where one of its words begins so, less where that is so
/// without the ending, which many languages change, or where it stands within another.
fn likeness(text: &str, word: &str) -> usize {
    let begins = |start: &str| words(text).iter().any(|known| known.starts_with(start));
    if begins(word) {
        return 3;
    }
    let chars = word.chars().count();
    let stem: String = word.chars().take(chars.saturating_sub(2)).collect();
    usize::from(text.contains(word) || chars >= 5 && begins(&stem))
}

/// The words of a text in lower case; an underscore parts words too.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn known_category(text: &str) -> Option<&'static str> {
    let text = text.trim();
    CATEGORIES
        .iter()
        .map(|(name, _)| *name)
        .find(|name| name.eq_ignore_ascii_case(text))
}

/// A part of a name in its form.
fn named(part: &str, text: &str, example: &str) -> Result<String, String> {
    let name = in_form(text);
    match name.chars().count() {
        1..=MAX_KEY_CHARS => Ok(name),
        chars => Err(format!(
            "{part} must be 1 to {MAX_KEY_CHARS} letters, digits and underscores, for example {example}; this one has {chars}"
        )),
    }
}

/// One word, dots and dashes in it, as it is; anything else in snake_case.
fn in_form(text: &str) -> String {
    let text = text.trim();
    let is_word = text.contains(char::is_alphanumeric)
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if is_word {
        text.to_owned()
    } else {
        snake_case(text)
    }
}

/// Letters and digits in lower case, anything else an underscore between them.
fn snake_case(text: &str) -> String {
    let mut key = String::with_capacity(text.len());
    let mut was_lower = false;
    for c in text.chars() {
        if !c.is_alphanumeric() {
            if !key.is_empty() && !key.ends_with('_') {
                key.push('_');
            }
            was_lower = false;
            continue;
        }
        if c.is_uppercase() && was_lower {
            key.push('_');
        }
        was_lower = c.is_lowercase();
        key.extend(c.to_lowercase());
    }
    key.truncate(key.trim_end_matches('_').len());
    key
}

fn one_line(text: &str) -> String {
    let visible: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cut_chars(text: &str, most: usize) -> &str {
    text.char_indices()
        .nth(most)
        .map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
