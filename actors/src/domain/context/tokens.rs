//! Guesses at tokens, where the backend has counted nothing yet.

use crate::protocol::chat::ChatMessage;
use crate::protocol::tool::ToolSpec;

/// What an image costs. Models differ, from 256 (Gemma 3) to over a thousand for a large picture.
const IMAGE_TOKENS: u64 = 600;
/// What a chat template puts around a message.
const MESSAGE_TOKENS: u64 = 4;
/// What it puts around a tool's description.
const TOOL_TOKENS: u64 = 12;

/// A token in the unit that texts are summed up in.
const TOKEN: u64 = 12;

/// A guess at the tokens of a text.
///
/// Byte-pair vocabularies have a token for most English words and for pieces of other words, so
/// a letter costs by its script; a figure is mostly a token of its own (Gemma, Qwen), and half
/// of the marks in code are. Measured with the vocabulary of Qwen 2.5: English, Ukrainian, code
/// and JSON come out within a third. SmolLM2, which knows little but English, takes half as much
/// again for Ukrainian. A plain "four bytes a token" is half of what JSON takes, and a third of
/// what logs do.
#[must_use]
pub fn text_tokens(text: &str) -> u32 {
    tokens(units(text))
}

fn units(text: &str) -> u64 {
    text.chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' => 3,
            ' ' => 2,
            '0'..='9' => 9,
            c if c.is_ascii() => 6,
            // Chinese, Japanese, Korean, emoji.
            '\u{2e80}'.. => 10,
            _ => 6,
        })
        .sum()
}

fn tokens(units: u64) -> u32 {
    u32::try_from(units.div_ceil(TOKEN)).unwrap_or(u32::MAX)
}

/// A guess at the tokens of messages, with their images and what a template puts around each.
#[must_use]
pub fn estimate_tokens(messages: &[ChatMessage]) -> u32 {
    messages
        .iter()
        .map(message_tokens)
        .fold(0, u32::saturating_add)
}

/// Whole tokens for each message, so that parts of a conversation add up to the whole.
pub(super) fn message_tokens(message: &ChatMessage) -> u32 {
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
pub fn tool_tokens(tools: &[ToolSpec]) -> u32 {
    let each = tools.iter().map(|tool| {
        units(&tool.name)
            + units(&tool.description)
            + units(&tool.parameters.to_string())
            + TOOL_TOKENS * TOKEN
    });
    tokens(each.sum())
}

/// Whether the backend read clearly less of a prompt than it was sent (DESIGN section 5). All
/// three in tokens: our guess, what the backend says it read, the window that we asked for.
///
/// A smaller count alone proves nothing: older versions of Ollama count only what was not in
/// their cache, mostly a few hundred tokens, and our guess may be off by a third. So the count
/// must be clearly smaller, and look like what a cut leaves:
/// - we were about to fill the window, and the count lies between half of it and all of it: a
///   server that cuts keeps at least half (Ollama: 514 of 2,510 tokens in a window of 1,024);
/// - or the server has a smaller window than we asked for: the count is close to a usual size of
///   one (a power of two), or to half of one, which comes to the same.
///
/// A cut by whole messages in such a smaller window can leave any number, and is not noticed.
#[must_use]
pub fn prompt_was_cut(estimated: u32, reported: u32, window: u32) -> bool {
    let (sent, read, window) = (u64::from(estimated), u64::from(reported), u64::from(window));
    if read == 0 || sent * 2 < read * 3 {
        return false;
    }
    let filled_ours = sent * 10 >= window * 9 && read * 20 >= window * 9 && read <= window;
    let filled_a_smaller = sent >= read * 2
        && (9..u32::BITS)
            .map(|power| 1u64 << power)
            .take_while(|size| *size < window)
            .any(|size| (size - size / 128..=size + 8).contains(&read));
    filled_ours || filled_a_smaller
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
            [ChatMessage::User {
                content: "what is this?".to_owned(),
                images,
            }]
        };
        let plain = estimate_tokens(&user(Vec::new()));
        let picture = "A".repeat(100_000);
        let seen = estimate_tokens(&user(vec![picture.clone(), picture]));
        assert_eq!(seen, plain + 1200);

        let silent = ChatMessage::Assistant {
            content: String::new(),
            tool_calls: vec![call("a")],
        };
        assert!(estimate_tokens(&[silent]) > 15);

        let tool = |words: usize| ToolSpec {
            name: "todo".to_owned(),
            description: "word ".repeat(words),
            parameters: json!({"type": "object", "properties": {"ids": {"type": "array"}}}),
            effect: Effect::Read,
            time_limit_ms: 1,
        };
        assert_eq!(tool_tokens(&[]), 0);
        let (short, long) = (tool_tokens(&[tool(0)]), tool_tokens(&[tool(600)]));
        assert!(short > 25 && long > short + 500, "{short} {long}");
    }

    #[test]
    fn a_prompt_that_was_cut_in_silence_is_noticed() {
        // Recorded: Ollama, `num_ctx` 1024, 2,510 tokens sent, `prompt_eval_count` 514.
        let sent = estimate_tokens(&[ChatMessage::User {
            content: "word ".repeat(2500),
            images: Vec::new(),
        }]);
        assert!(prompt_was_cut(sent, 514, 1024), "{sent}");
        // A server that keeps the whole window's worth.
        assert!(prompt_was_cut(9_000, 4_096, 4_096));
        // One whose window is smaller than what we asked for, cut to all or half of it.
        assert!(prompt_was_cut(20_000, 4_090, 65_536));
        assert!(prompt_was_cut(20_000, 2_050, 65_536));
    }

    #[test]
    fn a_cache_or_a_bad_guess_is_no_cut() {
        // Only the part that was not in the cache is counted.
        assert!(!prompt_was_cut(30_000, 310, 65_536));
        assert!(!prompt_was_cut(60_000, 1_500, 65_536));
        assert!(!prompt_was_cut(1_000, 26, 4_096));
        // The guess was high, the window far away.
        assert!(!prompt_was_cut(3_000, 2_050, 65_536));
        assert!(!prompt_was_cut(4_000, 4_090, 4_096));
        // The backend counts nothing.
        assert!(!prompt_was_cut(5_000, 0, 4_096));
        // A window that nobody knows.
        assert!(!prompt_was_cut(5_000, 3_000, 0));
    }
}
