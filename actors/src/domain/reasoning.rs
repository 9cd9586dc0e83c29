//! Reasoning that is left in a text.

const END: &str = "</think>";

/// What stands behind reasoning whose beginning stood in the prompt, as some templates have it: a
/// server that knows nothing of it tells it as the answer.
#[must_use]
pub fn behind_reasoning(text: &str) -> &str {
    match text.rfind(END) {
        Some(end) if !text[..end].contains("<think>") => text[end + END.len()..].trim_start(),
        _ => text,
    }
}
