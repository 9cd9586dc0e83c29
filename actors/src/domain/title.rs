//! A session's title: first the start of its first message, then what a model makes of its
//! first exchange (SPEC section 2).

use crate::protocol::chat::ChatMessage;

/// The temperature of the call that asks for one.
pub const TEMPERATURE: f32 = 0.3;

/// The most that its answer may take, in tokens.
pub const MAX_TOKENS: u32 = 40;

/// The most characters of a title that nobody chose.
const MAX_CHARS: usize = 60;

/// As much of the question and of the answer as the call is shown, in characters.
const SHOWN_CHARS: usize = 600;

const INSTRUCTION: &str = "Give this conversation a title: two to six words, in the language of the user's message, saying what it is about. Answer with the title alone, without quotes and without a full stop.";

/// The start of a text as a title: one line, cut at a word.
#[must_use]
pub fn from_text(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_CHARS {
        return line;
    }
    let head: String = line.chars().take(MAX_CHARS).collect();
    let cut = head.rfind(' ').filter(|at| *at > MAX_CHARS / 2);
    format!("{}…", &head[..cut.unwrap_or(head.len())])
}

/// What is asked of the model.
#[must_use]
pub fn question(asked: &str, answered: &str) -> Vec<ChatMessage> {
    let shown = |text: &str| text.chars().take(SHOWN_CHARS).collect::<String>();
    vec![
        ChatMessage::System {
            content: INSTRUCTION.to_owned(),
        },
        ChatMessage::User {
            content: format!(
                "User: {}\n\nAssistant: {}\n\nThe title:",
                shown(asked),
                shown(answered)
            ),
            images: Vec::new(),
        },
    ]
}

/// The title in a model's answer. None where it gave none that can stand in a list: nothing,
/// or a text that is no title.
#[must_use]
pub fn from_answer(answer: &str) -> Option<String> {
    let line = answer
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())?;
    let line = line
        .trim_start_matches(['#', '*', '-', ' '])
        .trim_start_matches("Title:")
        .trim_matches(['"', '\'', '*', '«', '»', '“', '”', '`', '.', ' ']);
    let chars = line.chars().count();
    (chars > 0 && chars <= 2 * MAX_CHARS).then(|| from_text(line))
}

#[cfg(test)]
mod tests {
    use super::{from_answer, from_text};

    #[test]
    fn short_text_is_its_own_title() {
        assert_eq!(from_text("  buy\nmilk "), "buy milk");
    }

    #[test]
    fn long_text_is_cut_at_a_word() {
        let title = from_text(&"wörter ".repeat(40));
        assert!(title.ends_with("wörter…"), "{title}");
        assert!(title.chars().count() <= 61);
    }

    #[test]
    fn one_long_word_is_cut_anywhere() {
        assert_eq!(from_text(&"ї".repeat(100)).chars().count(), 61);
    }

    #[test]
    fn a_models_answer_is_freed_of_what_is_no_title() {
        let cases = [
            ("\"Покупка молока.\"\n", Some("Покупка молока")),
            ("## Title: Trip to Lviv", Some("Trip to Lviv")),
            (
                "\n\n**Disk full on web-1**\nmore",
                Some("Disk full on web-1"),
            ),
            ("", None),
            ("  \"\" ", None),
        ];
        for (answer, title) in cases {
            assert_eq!(from_answer(answer).as_deref(), title, "{answer}");
        }
        let talk = "I am sorry, but as a language model I would need more of it. ".repeat(4);
        assert_eq!(from_answer(&talk), None);
    }
}
