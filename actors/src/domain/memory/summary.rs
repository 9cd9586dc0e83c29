//! The summary of a user's facts, which stands at the beginning of every conversation.

use std::fmt::Write as _;

use super::{cut_chars, is_confirmed};
use crate::protocol::chat::ChatMessage;
use crate::protocol::memory::Fact;

/// The most characters of a summary.
pub const MAX_CHARS: usize = 2_000;
/// As much of the facts as a model is shown, in bytes.
const SHOWN_BYTES: usize = 8_000;

const INSTRUCTION: &str = "You write a short note about a user, for the assistant that talks with \
them. Use only the facts that you are given and leave none of the important ones out. Third \
person, plain sentences in the language of most of the facts, at most 150 words: who they are, \
then the people, places, work and projects, then how they like to be answered. No heading, no \
list, no advice. Answer with the note alone.";

/// A summary without a model: a line a fact, the newest where not all fit. Empty where there
/// is no confirmed fact.
#[must_use]
pub fn fallback(facts: &[Fact]) -> String {
    let mut text = String::new();
    let mut left_out = 0_usize;
    // Room for the line that says how many are missing.
    let room = MAX_CHARS - 80;
    let mut chars = 0;
    for fact in newest_first(facts) {
        let line = format!("- {}: {}\n", label(fact), fact.value);
        let length = line.chars().count();
        if chars + length > room {
            left_out += 1;
            continue;
        }
        chars += length;
        text.push_str(&line);
    }
    if left_out > 0 {
        // Writing to a string cannot fail.
        let _ = write!(text, "- and {left_out} more, which memory_search finds");
    }
    text.trim_end().to_owned()
}

/// What the model is asked; none where there is nothing to say.
#[must_use]
pub fn prompt(facts: &[Fact]) -> Option<Vec<ChatMessage>> {
    let mut shown = String::new();
    for fact in newest_first(facts) {
        let line = format!("- {}: {}\n", label(fact), fact.value);
        if shown.len() + line.len() > SHOWN_BYTES {
            break;
        }
        shown.push_str(&line);
    }
    (!shown.is_empty()).then(|| {
        vec![
            ChatMessage::System {
                content: INSTRUCTION.to_owned(),
            },
            ChatMessage::User {
                content: format!("The facts:\n{shown}\nThe note:"),
                images: Vec::new(),
            },
        ]
    })
}

/// The model's answer as a summary of at most [`MAX_CHARS`]; none where it says nothing.
#[must_use]
pub fn from_answer(answer: &str) -> Option<String> {
    let text = answer.trim().trim_matches('`').trim();
    if text.is_empty() {
        return None;
    }
    let head = cut_chars(text, MAX_CHARS);
    if head.len() == text.len() {
        return Some(text.to_owned());
    }
    // A model that doesn't stop is cut where a sentence ends, if one does.
    let end = head.rfind(['.', '!', '?', '\n']);
    let end = end.filter(|end| *end > head.len() / 2);
    Some(
        head[..end.map_or(head.len(), |end| end + 1)]
            .trim_end()
            .to_owned(),
    )
}

fn newest_first(facts: &[Fact]) -> Vec<&Fact> {
    let mut confirmed: Vec<&Fact> = facts.iter().filter(|fact| is_confirmed(fact)).collect();
    confirmed.sort_by(|a, b| {
        let by_name = || (&a.category, &a.key).cmp(&(&b.category, &b.key));
        b.updated_at.cmp(&a.updated_at).then_with(by_name)
    });
    confirmed
}

fn label(fact: &Fact) -> String {
    format!("{}, {}", fact.category, fact.key.replace('_', " "))
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
