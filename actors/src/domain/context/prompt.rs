//! A profile's prompt for the tools that are there: what it says of others is left out.
//!
//! A profile names tools in backticks, `like_this`. Which of them a run has depends on the
//! settings, on what is allowed and on the model, and a model that reads of a tool calls it.

/// The prompt without what it says of tools that it names and that are not `offered`; what is
/// a tool, `is_tool` says. In a line that begins with tools (``- `a`, `b`: what for``) the others
/// go from its head, and the line with the last of them; everywhere else the sentence goes. What
/// was said of nothing but such tools leaves no heading behind.
#[must_use]
pub fn for_tools(
    prompt: &str,
    is_tool: impl Fn(&str) -> bool,
    offered: impl Fn(&str) -> bool,
) -> String {
    let lacks = |name: &str| is_tool(name) && !offered(name);
    let mut lines: Vec<String> = Vec::new();
    let mut left_out = false;
    for line in prompt.lines() {
        let kept = match line
            .strip_prefix("- `")
            .and_then(|rest| rest.split_once(':'))
        {
            Some((head, what_for)) => {
                head_of(&format!("`{head}"), &lacks).map(|head| (format!("- {head}:"), what_for))
            }
            None => Some(match line.strip_prefix("- ") {
                Some(text) => ("- ".to_owned(), text),
                None => (String::new(), line),
            }),
        };
        let kept = kept.and_then(|(head, text)| Some(head + &sentences_of(text, &lacks)?));
        left_out |= kept.is_none();
        if let Some(kept) = kept {
            if kept.is_empty() && std::mem::take(&mut left_out) && without_heading(&mut lines) {
                continue;
            }
            lines.push(kept);
        }
    }
    if left_out {
        without_heading(&mut lines);
    }
    lines.join("\n")
}

/// The head of a line without the tools that are not there. None where no tool is left in it.
fn head_of(head: &str, lacks: &impl Fn(&str) -> bool) -> Option<String> {
    let parts: Vec<&str> = head
        .split(", ")
        .filter(|part| !names(part).any(lacks))
        .collect();
    parts.first()?.starts_with('`').then(|| parts.join(", "))
}

/// A text without its sentences about tools that are not there. None where none is left.
fn sentences_of(text: &str, lacks: &impl Fn(&str) -> bool) -> Option<String> {
    let kept: String = text
        .split_inclusive(". ")
        .filter(|sentence| !names(sentence).any(lacks))
        .collect();
    // A full stop may be left of them.
    let stands = kept.len() == text.len() || kept.trim().len() > 1;
    stands.then(|| kept.trim_end().to_owned())
}

/// What stands in backticks.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Takes away a last line that announces what is not there any more. Whether there was one.
fn without_heading(lines: &mut Vec<String>) -> bool {
    let stands = lines.last().is_some_and(|line| line.ends_with(':'));
    if stands {
        lines.pop();
    }
    stands
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "\
You help.

How:
- With `home` you see devices. Without it you write files.
- Say `true` where it is.

Which tool when:
- `web_search`: for what is new. Then read pages with `web_fetch`. Say where from.
- `ssh`, where you have it: for hosts.
- `web_search`, `web_fetch`: for manuals.
- `todo`: for long work.

Be short.";

    fn with(offered: &[&str]) -> String {
        let tools = ["home", "web_search", "web_fetch", "ssh", "todo"];
        for_tools(
            PROMPT,
            |name| tools.contains(&name),
            |name| offered.contains(&name),
        )
    }

    #[test]
    fn a_line_that_names_no_tool_stays_however_short_it_is() {
        let prompt = "As JSON:\n{\n  \"a\": 1\n}\n\nGrades:\n- A\n- B\n\nEnd.";
        assert_eq!(for_tools(prompt, |_| true, |_| false), prompt);
    }

    #[test]
    fn a_prompt_names_the_tools_that_are_there_and_no_others() {
        assert_eq!(
            with(&["home", "web_search", "web_fetch", "ssh", "todo"]),
            PROMPT
        );
        assert_eq!(
            with(&["web_search", "todo"]),
            "\
You help.

How:
- Without it you write files.
- Say `true` where it is.

Which tool when:
- `web_search`: for what is new. Say where from.
- `web_search`: for manuals.
- `todo`: for long work.

Be short."
        );
        assert_eq!(
            with(&[]),
            "\
You help.

How:
- Without it you write files.
- Say `true` where it is.

Be short."
        );
    }
}
