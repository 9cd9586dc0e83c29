//! Reasoning that is left in a text.

const END: &str = "</think>";

/// Reasoning whose beginning stood in the prompt, as some templates have it, and what stands behind
/// it: a server that knows nothing of it tells both as the answer.
#[must_use]
pub fn split_reasoning(text: &str) -> Option<(&str, &str)> {
    let (thinking, answer) = text
        .rmatch_indices(END)
        .map(|(at, _)| (&text[..at], &text[at + END.len()..]))
        .find(|(before, _)| !ends_in_code(before))?;
    (!thinking.contains("<think>")).then(|| (thinking.trim_end(), answer.trim_start()))
}

/// A text without such reasoning.
#[must_use]
pub fn behind_reasoning(text: &str) -> &str {
    split_reasoning(text).map_or(text, |(_, answer)| answer)
}

/// Whether a text breaks off in code, as Markdown has it.
fn ends_in_code(text: &str) -> bool {
    let is_fence = |line: &str| line.trim_start().starts_with("```");
    let fences = text.lines().filter(|line| is_fence(line)).count();
    let last = text.rsplit('\n').next().unwrap_or(text);
    fences % 2 == 1 || !is_fence(last) && last.matches('`').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_reasoning_that_began_before_parts_a_text() {
        for (text, expected) in [
            ("hm</think>\n\nHi", Some(("hm", "Hi"))),
            ("a `b` c\n</think>Hi", Some(("a `b` c", "Hi"))),
            (
                "hm</think>\nWrite `</think>`.",
                Some(("hm", "Write `</think>`.")),
            ),
            ("hm</think>", Some(("hm", ""))),
            ("Write `</think>`.", None),
            ("So:\n```\nhm</think>\n```\n", None),
            ("Write <think>hm</think>.", None),
            ("Hi", None),
        ] {
            assert_eq!(split_reasoning(text), expected, "{text}");
        }
    }
}
