//! Guesses at tokens, where the backend has counted nothing yet.

use std::borrow::Cow;

use crate::protocol::chat::{ChatMessage, ChatRequest};
use crate::protocol::offered::OfferedTools;
use crate::protocol::prompt::PromptMessage;
use crate::protocol::tool::ToolSpec;

/// What an image costs. Models differ, from 256 (Gemma 3) to over a thousand for a large picture.
const IMAGE_TOKENS: u64 = 600;
/// What a chat template puts around a message.
const MESSAGE_TOKENS: u64 = 4;
/// What it puts around a tool's description.
const TOOL_TOKENS: u64 = 12;
/// A difference of so few tokens is no cut.
const CUT_TOKENS: u32 = 512;

/// A token in the unit that texts are summed up in.
const TOKEN: u64 = 12;
const LETTER: u64 = 3;
const SPACE: u64 = 2;

/// A guess at the tokens of a text.
///
/// Byte-pair vocabularies have a token for most English words and for pieces of other words, so
/// a letter costs by its script, and a short name in code as much as a word; a figure is mostly
/// a token of its own (Gemma, Qwen, SmolLM2), and half of the marks in code are. Measured with
/// the vocabulary of Qwen 2.5: English, Ukrainian, code and JSON come out within a third.
/// SmolLM2, which knows little but English, takes half as much again for Ukrainian. A plain
/// "four bytes a token" is half of what JSON takes, and a third of what logs do.
#[must_use]
pub fn text_tokens(text: &str) -> u32 {
    tokens(units(text))
}

/// On the safe side: what does not fit is refused, or cut in silence.
fn units(text: &str) -> u64 {
    let mut units = 0;
    // What the letters that stand together come to: a word, or a part of a name.
    let mut word = 0;
    let mut before = ' ';
    for c in text.chars() {
        let goes_on = before.is_ascii_alphabetic()
            && (c.is_ascii_lowercase() || (c.is_ascii_uppercase() && before.is_ascii_uppercase()));
        if !goes_on {
            units += rest_of(word);
            word = match c {
                c if !c.is_ascii_alphabetic() => 0,
                _ if before == ' ' => SPACE + LETTER,
                _ => LETTER,
            };
        } else {
            word += LETTER;
        }
        units += match c {
            'a'..='z' | 'A'..='Z' => LETTER,
            ' ' => SPACE,
            '0'..='9' => TOKEN,
            c if c.is_ascii() => 6,
            // Chinese, Japanese, Korean, emoji.
            '\u{2e80}'.. => 10,
            _ => 6,
        };
        before = c;
    }
    units + rest_of(word)
}

/// What a word lacks to a token: even the shortest name is one.
fn rest_of(word: u64) -> u64 {
    if word == 0 {
        0
    } else {
        TOKEN.saturating_sub(word)
    }
}

/// What no vocabulary does with less: a token for each word, figures in threes (Llama 3,
/// GPT-4o), letters of other scripts in sixes.
fn least_units(text: &str) -> u64 {
    let of_chunk = |chunk: &str| -> u64 {
        let costs = chunk.chars().map(|c| match c {
            '0'..='9' | '\u{2e80}'.. => 4,
            c if c.is_ascii() => 0,
            _ => 2,
        });
        costs.sum::<u64>().max(TOKEN)
    };
    text.split_whitespace().map(of_chunk).sum()
}

fn tokens(units: u64) -> u32 {
    u32::try_from(units.div_ceil(TOKEN)).unwrap_or(u32::MAX)
}

/// A guess at the tokens of messages, with their images and what a template puts around each.
#[must_use]
pub fn estimate_tokens(messages: &[PromptMessage]) -> u32 {
    messages
        .iter()
        .map(message_tokens)
        .fold(0, u32::saturating_add)
}

/// A guess at a whole prompt.
#[must_use]
pub fn request_tokens(request: &ChatRequest) -> u32 {
    estimate_tokens(&request.messages).saturating_add(tool_tokens(&request.tools))
}

/// Whole tokens for each message, so that parts of a conversation add up to the whole.
pub(super) fn message_tokens(message: &PromptMessage) -> u32 {
    *message.made().tokens.get_or_init(|| count_message(message))
}

fn count_message(message: &ChatMessage) -> u32 {
    let inside = match message {
        ChatMessage::System { content } => units(content),
        ChatMessage::User { content, images } => {
            units(content) + IMAGE_TOKENS * TOKEN * images.len() as u64
        }
        ChatMessage::Assistant {
            content,
            tool_calls,
        } => {
            let calls = tool_calls.iter().map(|call| {
                units(&call.name) + units(&call.arguments.to_string()) + MESSAGE_TOKENS * TOKEN
            });
            units(content) + calls.sum::<u64>()
        }
        ChatMessage::Tool { name, content, .. } => units(name) + units(content),
    };
    tokens(inside + MESSAGE_TOKENS * TOKEN)
}

/// A guess at the tokens of the tools' descriptions and schemas, which are part of the prompt.
#[must_use]
pub fn tool_tokens(tools: &OfferedTools) -> u32 {
    *tools.made().tokens.get_or_init(|| count(tools))
}

fn count(tools: &[ToolSpec]) -> u32 {
    let each = tools.iter().map(|tool| {
        units(&tool.name)
            + units(&tool.description)
            + units(&tool.parameters.to_string())
            + TOOL_TOKENS * TOKEN
    });
    tokens(each.sum())
}

/// Whether the backend read clearly less of a prompt than it was sent (DESIGN section 5): fewer
/// tokens than its messages come to in any vocabulary. What is in the backend's cache counts as
/// read; a count of 0 says nothing.
#[must_use]
pub fn prompt_was_cut(sent: &[PromptMessage], read: u32) -> bool {
    let least = sent.iter().map(|message| {
        let least = || least_units(&words(message));
        *message.made().least_units.get_or_init(least)
    });
    read > 0 && tokens(least.sum()) > read.saturating_add(CUT_TOKENS)
}

fn words(message: &ChatMessage) -> Cow<'_, str> {
    match message {
        ChatMessage::System { content }
        | ChatMessage::User { content, .. }
        | ChatMessage::Tool { content, .. } => Cow::Borrowed(content),
        ChatMessage::Assistant {
            content,
            tool_calls,
        } => {
            let arguments = tool_calls.iter().map(|call| call.arguments.to_string());
            Cow::Owned(content.clone() + &arguments.collect::<String>())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::talk::call;
    use crate::protocol::tool::Effect;

    /// Texts with what the vocabulary of Qwen 2.5 makes of them.
    const COUNTED: [(&str, u32); 4] = [
        (
            "The minutes of the last meeting say that the budget was agreed on Tuesday, and that Anna will write to the landlord before the end of March. Please remind me two days earlier, and draft a short, friendly letter that asks for the new contract.",
            50,
        ),
        (
            "У протоколі останньої зустрічі сказано, що бюджет погодили у вівторок, а Анна напише орендодавцю до кінця березня. Нагадай мені за два дні до того і склади короткого, привітного листа з проханням надіслати новий договір.",
            105,
        ),
        (
            "fn cut_middle(text: &str, limit: usize) -> String {\n    if text.len() <= limit {\n        return text.to_owned();\n    }\n    let room = limit.saturating_sub(note(text.len()).len());\n    let head = text.floor_char_boundary(room - room / 3);\n    format!(\"{}{}{}\", &text[..head], note(tail - head), &text[tail..])\n}\n",
            85,
        ),
        (
            r#"{"action":"mark","ids":[1,2,3],"status":"done","note":"checked 2026-03-14T09:26:53Z, 192.168.0.17 answered in 12 ms","path":"/var/log/nginx/access.log"}"#,
            70,
        ),
    ];

    #[test]
    fn english_ukrainian_code_and_json_are_guessed_within_a_third() {
        for (text, counted) in COUNTED {
            let guess = text_tokens(text);
            let near = guess * 3 >= counted * 2 && guess * 3 <= counted * 4;
            assert!(near, "{guess} for {counted}: {text}");
        }
    }

    #[test]
    fn images_calls_and_schemas_count() {
        let user = |images| {
            let shown = ChatMessage::User {
                content: "what is this?".to_owned(),
                images,
            };
            [shown.into()]
        };
        let plain = estimate_tokens(&user(Vec::new()));
        let picture = "A".repeat(100_000);
        let seen = estimate_tokens(&user(vec![picture.clone(), picture]));
        assert_eq!(seen, plain + 1200);

        let silent = ChatMessage::Assistant {
            content: String::new(),
            tool_calls: vec![call("a")],
        };
        assert!(estimate_tokens(&[silent.into()]) > 15);

        let tool = |words: usize| ToolSpec {
            name: "todo".to_owned(),
            description: "word ".repeat(words),
            parameters: json!({"type": "object", "properties": {"ids": {"type": "array"}}}),
            effect: Effect::Read,
            time_limit_ms: 1,
        };
        assert_eq!(count(&[]), 0);
        let (short, long) = (count(&[tool(0)]), count(&[tool(600)]));
        assert!(short > 25 && long > short + 500, "{short} {long}");
    }

    /// So many figures are about as many tokens (Gemma, Qwen), and code is made of short names.
    #[test]
    fn figures_and_code_are_not_taken_for_less_than_they_are() {
        assert_eq!(text_tokens(&"1234567890".repeat(900)), 9_000);
        // 20 tokens a line in the vocabulary of Qwen 2.5.
        let code = "for(let i=0;i<n;i++){a[i]=b[i]*x+y;}\n";
        assert!(text_tokens(&code.repeat(20)) >= 400);
        // A name is read in its parts, and no word costs more than its letters for that.
        assert!(text_tokens("aB cD") > text_tokens("ab cd"));
        assert_eq!(text_tokens("words together"), text_tokens("Words together"));
    }

    fn sent(text: &str) -> [PromptMessage; 1] {
        let said = ChatMessage::User {
            content: text.to_owned(),
            images: Vec::new(),
        };
        [said.into()]
    }

    #[test]
    fn a_prompt_that_was_cut_in_silence_is_noticed() {
        // Recorded: Ollama, `num_ctx` 1024, 2,510 tokens sent, `prompt_eval_count` 514.
        assert!(prompt_was_cut(&sent(&"word ".repeat(2500)), 514));
        // A question of 9,000 figures was dropped, and a note kept.
        assert!(prompt_was_cut(&sent(&"1234567890".repeat(900)), 900));
        // Far from any usual size of a window, or of half of one.
        assert!(prompt_was_cut(&sent(&"word ".repeat(30_000)), 11_111));
    }

    #[test]
    fn a_vocabulary_of_its_own_is_no_cut() {
        // Long words of a token each, figures in threes, a server that counts nothing.
        let words = sent(&"settlement ".repeat(3_000));
        assert!(!prompt_was_cut(&words, 3_000));
        assert!(!prompt_was_cut(&words, 0));
        assert!(!prompt_was_cut(&sent(&"1234567890".repeat(900)), 3_000));
        for (text, counted) in COUNTED {
            assert!(!prompt_was_cut(&sent(&text.repeat(100)), counted * 100));
        }
        assert!(!prompt_was_cut(&sent("hello"), 1));
    }
}
