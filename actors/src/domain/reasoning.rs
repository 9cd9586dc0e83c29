//! Reasoning that is left in a text.

const END: &str = "</think>";

/// Reasoning whose beginning stood in the prompt, as some templates have it, and what stands behind
/// it: a server that knows nothing of it tells both as the answer. Its end stands at the beginning
/// or the end of a line and in no code; elsewhere the text speaks of it.
#[must_use]
pub fn split_reasoning(text: &str) -> Option<(&str, &str)> {
    let (mut at, mut in_code, mut end) = (0, false, None);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            end = end_in(line).map(|place| at + place).or(end);
        }
        at += line.len();
    }
    let (thinking, answer) = text.split_at(end?);
    let answer = answer.strip_prefix(END)?;
    (!thinking.contains("<think>")).then(|| (thinking.trim_end(), answer.trim_start()))
}

/// Where reasoning ends in a line.
fn end_in(line: &str) -> Option<usize> {
    let before = line.trim_end().strip_suffix(END);
    let before = before.filter(|before| before.matches('`').count() % 2 == 0);
    before.map(str::len).or_else(|| {
        let words = line.trim_start();
        words.starts_with(END).then_some(line.len() - words.len())
    })
}

/// What stands behind such reasoning in a text that nobody would speak of it in.
#[must_use]
pub fn behind_reasoning(text: &str) -> &str {
    match text.rfind(END) {
        Some(end) if !text[..end].contains("<think>") => text[end + END.len()..].trim_start(),
        _ => text,
    }
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
            ("Write <think>hm</think>", None),
            ("It ends with \"</think>\", and then answers.", None),
            ("{\"end\": \"</think>\", \"n\": 1}", None),
            ("Hi", None),
        ] {
            assert_eq!(split_reasoning(text), expected, "{text}");
        }
        assert_eq!(behind_reasoning("hm</think> Hi"), "Hi");
    }
}
