//! Facts out of a conversation: what the model is asked, and what of its answer is believed.
//!
//! Only what the user said is believed. What the assistant said is shown, shortened, so that
//! the user's words make sense; a fact that stands in it and not in the user's words is
//! dropped. Results of tools are never shown: a web page must not write the memory. Nor is what
//! the assistant said once the session had read text from outside, and what is found there
//! counts as certain only where one message of the user holds all of its words.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{
    CATEGORIES, FactName, MAX_KEY_CHARS, MAX_VALUE_CHARS, NewFact, OTHER, UNCONFIRMED, cut_chars,
    in_form, known_category, one_line, search, snake_case, words,
};
use crate::domain::cut::cut_middle;
use crate::protocol::chat::ChatMessage;
use crate::protocol::error::ErrorCode;
use crate::protocol::ids::{MessageId, SessionId};
use crate::protocol::memory::{Fact, FactSource};

/// The most facts that are taken from one answer.
const MAX_FOUND: usize = 30;
/// As much of the facts that are known as the model is shown, in bytes.
const KNOWN_BYTES: usize = 1_500;
/// As much of an answer of the assistant as is shown, in characters.
pub const ASSISTANT_CHARS: usize = 300;
/// As much of a message of the user as is read, in characters.
pub const USER_CHARS: usize = 6_000;
/// A part of a message is no smaller, however small the room, in bytes.
const LEAST_PART: usize = 100;
/// As many broken starts of JSON as are looked at in an answer.
const MAX_BROKEN: usize = 200;
/// A fact whose confidence the model leaves out.
const USUAL_CONFIDENCE: f32 = 0.8;

const INSTRUCTION: &str = "You keep notes about a user. Read the conversation and write down the \
lasting facts that the user tells about themselves.

Write down only what will still be true next month and was said by the user.
Leave out:
- what is only about the present task, question or file
- what the assistant said, guessed or proposed
- passwords, codes, keys, tokens, card numbers and health, unless the user asked to remember them
- what the user asked to forget

Answer with a JSON array and nothing else. Each fact is
{\"category\": \"…\", \"key\": \"…\", \"value\": \"…\", \"confidence\": 0.9}
- category: one of the list below
- key: two or three English words in snake_case that name the fact
- value: short, in the user's own words and language
- confidence: 0 to 1; below 0.6 where you are not sure
Where a known fact has a new value, use its category and key. Where there is nothing lasting, \
answer [].

Categories:";

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    User,
    Assistant,
}

/// Something that was said in the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub message_id: MessageId,
    pub by: Speaker,
    /// Shortened to [`USER_CHARS`] or [`ASSISTANT_CHARS`].
    pub text: String,
    /// The session had read text from outside by then: the assistant may be repeating it.
    pub tainted: bool,
    pub at: DateTime<Utc>,
}

impl Said {
    /// What a message said, as much of it as is read.
    #[must_use]
    pub fn new(message_id: MessageId, by: Speaker, text: &str, at: DateTime<Utc>) -> Self {
        let most = match by {
            Speaker::User => USER_CHARS,
            Speaker::Assistant => ASSISTANT_CHARS,
        };
        Self {
            message_id,
            by,
            text: cut_chars(text.trim(), most).to_owned(),
            tainted: false,
            at,
        }
    }

    /// What stands of it in the prompt: nothing where it is empty, or where the assistant may be
    /// repeating text from outside.
    #[must_use]
    pub fn shown(&self) -> String {
        let name = match self.by {
            _ if self.text.is_empty() => return String::new(),
            Speaker::Assistant if self.tainted => return String::new(),
            Speaker::User => "User",
            Speaker::Assistant => "Assistant",
        };
        format!("{name}: {}\n\n", self.text)
    }
}

/// How much of a conversation is read at once, in bytes, by a model with this window in
/// tokens: a byte or two a token, since not all languages are as short as English.
#[must_use]
pub fn reading_bytes(window: u32) -> usize {
    let room = window.saturating_sub(2_000) as usize;
    (room * 3 / 2).clamp(1_500, 16_000)
}

/// What was said, in parts of which the prompt shows each whole in `most_bytes`: a message of the
/// user that is larger alone stands in several, one behind the other.
#[must_use]
pub fn parts(said: &[Said], most_bytes: usize) -> Vec<Vec<Said>> {
    let mut parts = vec![Vec::new()];
    let mut bytes = 0;
    for said in said {
        for piece in pieces(said, most_bytes) {
            let shown = piece.shown().len();
            if bytes > 0 && bytes + shown > most_bytes {
                parts.push(Vec::new());
                bytes = 0;
            }
            bytes += shown;
            if let Some(part) = parts.last_mut() {
                part.push(piece);
            }
        }
    }
    parts
}

/// A message, or what it is made of where it does not fit.
fn pieces(said: &Said, most_bytes: usize) -> Vec<Said> {
    let shown = said.shown().len();
    if shown <= most_bytes {
        return vec![said.clone()];
    }
    let around = shown - said.text.len();
    let room = most_bytes.saturating_sub(around).max(LEAST_PART);
    let mut pieces = Vec::new();
    let mut rest = said.text.as_str();
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(end_within(rest, room));
        pieces.push(Said {
            text: piece.trim_end().to_owned(),
            ..said.clone()
        });
        rest = behind.trim_start();
    }
    pieces
}

/// Where to part a text so that what stands before it fits: behind a sentence, else a word, in
/// the latter half of the room.
fn end_within(text: &str, room: usize) -> usize {
    if text.len() <= room {
        return text.len();
    }
    let end = text.floor_char_boundary(room);
    let from = text.floor_char_boundary(room / 2);
    let spaces = || {
        let found = text[from..end].rmatch_indices(char::is_whitespace);
        found.map(move |(at, _)| from + at)
    };
    let ends_sentence =
        |at: &usize| text[..*at].ends_with(['.', '!', '?', '…']) || text[*at..].starts_with('\n');
    let sentence = spaces().find(ends_sentence);
    sentence.or_else(|| spaces().next()).unwrap_or(end)
}

/// Whether there is anything to believe in what was said.
#[must_use]
pub fn is_worth_reading(said: &[Said]) -> bool {
    said.iter().any(|said| said.by == Speaker::User)
}

/// Whether a session that failed so is to blame for it. Anything else would have failed with
/// any session: the model is away, or busy, or nobody may use it.
#[must_use]
pub fn is_the_sessions_fault(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::BackendError
            | ErrorCode::BackendStreamBroken
            | ErrorCode::ContextOverflow
            | ErrorCode::EmptyReply
            | ErrorCode::FirstChunkTimeout
            | ErrorCode::ChunkTimeout
            | ErrorCode::ReplyTooLong
    )
}

/// What the model is asked. `known` are the user's facts; of what was said no more than
/// `most_bytes` is shown, in whole messages. The first one, where it is too large alone, is cut
/// in the middle.
#[must_use]
pub fn prompt(said: &[Said], known: &[Fact], most_bytes: usize) -> Vec<ChatMessage> {
    let mut system = INSTRUCTION.to_owned();
    for (name, meaning) in CATEGORIES {
        // Writing to a string cannot fail.
        let _ = write!(system, "\n- {name}: {meaning}");
    }
    let mut shown = String::new();
    for fact in search(known, "") {
        let line = format!("\n- {}/{}: {}", fact.category, fact.key, fact.value);
        if shown.len() + line.len() > KNOWN_BYTES {
            break;
        }
        shown.push_str(&line);
    }
    if !shown.is_empty() {
        let _ = write!(system, "\n\nKnown facts:{shown}");
    }
    let mut talk = String::new();
    for shown in said.iter().map(Said::shown) {
        let room = most_bytes.saturating_sub(talk.len());
        if shown.len() > room && !talk.is_empty() {
            break;
        }
        talk.push_str(&cut_middle(&shown, room));
    }
    vec![
        ChatMessage::System { content: system },
        ChatMessage::User {
            content: format!("The conversation:\n\n{talk}The JSON array of lasting facts:"),
            images: Vec::new(),
        },
    ]
}

/// A fact as the model wrote it, put into its form.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub name: FactName,
    pub value: String,
    pub confidence: f32,
}

/// The facts of an answer; none where it holds no JSON at all. Takes JSON within other text,
/// single objects, and the whole facts of a list that was cut off.
#[must_use]
pub fn parse(answer: &str) -> Option<Vec<Found>> {
    let mut found = Vec::new();
    let mut any = false;
    let mut broken = 0;
    let mut rest = answer;
    while let Some(start) = rest.find(['[', '{']) {
        rest = &rest[start..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                any |= collect(&value, &mut found);
                rest = &rest[values.byte_offset()..];
            }
            _ => {
                broken += 1;
                rest = &rest[1..];
            }
        }
        if broken >= MAX_BROKEN || found.len() >= MAX_FOUND {
            break;
        }
    }
    found.truncate(MAX_FOUND);
    any.then_some(found)
}

/// Takes the facts out of JSON. Tells whether it was an answer, be it an empty one.
fn collect(value: &Value, found: &mut Vec<Found>) -> bool {
    match value {
        Value::Array(items) => {
            for item in items {
                found.extend(found_in(item));
            }
            items.iter().all(Value::is_object)
        }
        Value::Object(fields) => match fields.get("facts") {
            Some(list @ Value::Array(_)) => collect(list, found),
            _ => {
                found.extend(found_in(value));
                true
            }
        },
        _ => false,
    }
}

fn found_in(item: &Value) -> Option<Found> {
    let category = item["category"].as_str().unwrap_or_default();
    let key = in_form(item["key"].as_str()?);
    let key = cut_chars(&key, MAX_KEY_CHARS).trim_end_matches('_');
    let value = one_line(&text_of(&item["value"])?);
    let value = cut_chars(&value, MAX_VALUE_CHARS).trim_end();
    if key.is_empty() || says_nothing(value) || is_secret(&snake_case(key), value) {
        return None;
    }
    let confidence = match &item["confidence"] {
        Value::Number(number) => number.as_f64().map(|number| number as f32),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    Some(Found {
        name: FactName {
            category: known_category(category).unwrap_or(OTHER).to_owned(),
            key: key.to_owned(),
        },
        value: value.to_owned(),
        confidence: confidence
            .filter(|confidence| confidence.is_finite())
            .unwrap_or(USUAL_CONFIDENCE)
            .clamp(0.0, 1.0),
    })
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(true) => Some("yes".to_owned()),
        Value::Bool(false) => Some("no".to_owned()),
        Value::Array(items) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            (!texts.is_empty()).then(|| texts.join(", "))
        }
        Value::Null | Value::Object(_) => None,
    }
}

/// Models fill in fields for what they did not find.
fn says_nothing(value: &str) -> bool {
    const EMPTY: [&str; 9] = [
        "",
        "…",
        "...",
        "unknown",
        "none",
        "null",
        "n/a",
        "not specified",
        "not mentioned",
    ];
    EMPTY.contains(&value.to_lowercase().as_str())
}

/// What is never kept unasked, whatever the model thinks of it. A user who wants it kept
/// says so, and `memory_save` keeps it.
fn is_secret(key: &str, value: &str) -> bool {
    const NAMES: [&str; 12] = [
        "password",
        "passwd",
        "passphrase",
        "passcode",
        "secret",
        "token",
        "api_key",
        "private_key",
        "pin_code",
        "cvv",
        "card_number",
        "credential",
    ];
    NAMES.iter().any(|name| key.contains(name)) || value.split(' ').any(looks_like_key)
}

/// A long word of letters and digits mixed, or the digits of a card.
fn looks_like_key(word: &str) -> bool {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let letters = word.chars().filter(char::is_ascii_alphabetic).count();
    let is_address = word.contains("://") || word.contains('@');
    !is_address && ((letters >= 8 && digits >= 4 && word.len() >= 20) || digits >= 13)
}

/// What is believed of what the model found: each with the message of the user that holds its
/// words best, or the last one.
#[must_use]
pub fn believed(found: Vec<Found>, said: &[Said], session_id: SessionId) -> Vec<NewFact> {
    let by = |speaker| said.iter().filter(move |said| said.by == speaker);
    let Some(last) = by(Speaker::User).next_back() else {
        return Vec::new();
    };
    found
        .into_iter()
        .filter_map(|found| {
            let wanted = telling_words(&found.value);
            // Of equals the last, which is the newest.
            let best = by(Speaker::User)
                .map(|said| (held(&wanted, &said.text), said))
                .max_by_key(|(held, _)| *held)
                .filter(|(held, _)| *held > 0);
            let repeats = |least: usize| {
                by(Speaker::Assistant).any(|said| said.tainted && held(&wanted, &said.text) > least)
            };
            let (source, confidence) = match best {
                Some((held, said)) if said.tainted && held < wanted.len() => {
                    if repeats(held) {
                        return None;
                    }
                    (said, found.confidence.min(UNCONFIRMED))
                }
                Some((_, said)) => (said, found.confidence),
                None if by(Speaker::Assistant).any(|said| held(&wanted, &said.text) > 0) => {
                    return None;
                }
                // Said in other words, perhaps. It is kept, and not taken for certain.
                None => (last, found.confidence.min(UNCONFIRMED)),
            };
            Some(NewFact {
                name: found.name,
                value: found.value,
                source: FactSource {
                    session_id: Some(session_id),
                    message_id: Some(source.message_id),
                },
                confidence,
                at: source.at,
            })
        })
        .collect()
}

/// The words by which a value is found again: the long ones and the numbers, or all.
fn telling_words(value: &str) -> Vec<String> {
    let all = words(value);
    let telling: Vec<String> = all
        .iter()
        .filter(|word| word.chars().count() >= 3 || word.contains(|c: char| c.is_ascii_digit()))
        .cloned()
        .collect();
    if telling.is_empty() { all } else { telling }
}

/// How many of these words a text holds, endings aside.
fn held(wanted: &[String], text: &str) -> usize {
    let words = words(text);
    wanted
        .iter()
        .filter(|wanted| words.iter().any(|word| is_same_word(wanted, word)))
        .count()
}

fn is_same_word(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    let shared = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    shared >= 3 && shared * 2 >= a.chars().count().max(b.chars().count())
}

#[cfg(test)]
#[path = "extraction_tests.rs"]
mod tests;
