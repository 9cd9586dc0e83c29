//! Who carries a step out, as the model wrote it into the step's text.

use std::ops::Range;

use super::Task;
use crate::protocol::plan::Executor;

/// A step's text without its executor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Untagged {
    pub text: String,
    /// None where the model named none; `SELF` where it named one that there is not.
    pub executor: Option<Executor>,
    /// Whether it named one that there is not.
    pub is_unknown: bool,
}

/// Parts a step, on one line, from what names its executor: `TOOL: name`, `AGENT: profile_id`
/// or `SELF`, at either end or in brackets. Of several, the first counts; all are taken out.
pub(super) fn untag(step: &str, task: &Task<'_>) -> Untagged {
    let mut text = step.replace("**", "");
    let mut executor = None;
    let mut is_unknown = false;
    while let Some(tag) = find(&text, task) {
        is_unknown |= tag.executor.is_none();
        executor = executor.or(Some(tag.executor.unwrap_or(Executor::Itself)));
        let range = with_surroundings(&text, tag.range);
        text.replace_range(range, " ");
        text = tidy(&text);
    }
    Untagged {
        text: text.split_whitespace().collect::<Vec<_>>().join(" "),
        executor,
        is_unknown,
    }
}

struct Tag {
    range: Range<usize>,
    /// None where there is no such tool or profile.
    executor: Option<Executor>,
}

fn find(text: &str, task: &Task<'_>) -> Option<Tag> {
    let mut before = None;
    for (at, c) in text.char_indices() {
        let starts_word = before.is_none_or(|b: char| !is_word(b));
        before = Some(c);
        if starts_word && c.is_ascii_alphabetic() {
            let found = named(text, at, task).or_else(|| itself(text, at));
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

/// `TOOL: name` or `AGENT: name` here. Not in capitals, it must name one that there is: people
/// write "agent: …" too.
fn named(text: &str, at: usize, task: &Task<'_>) -> Option<Tag> {
    let rest = &text[at..];
    let (word, is_tool) = keyword(rest, "TOOL")
        .map(|word| (word, true))
        .or_else(|| keyword(rest, "AGENT").map(|word| (word, false)))?;
    let after = rest[word.len()..].trim_start_matches([' ', '*', '`']);
    let after = after.strip_prefix([':', '：'])?;
    let name = after.trim_start_matches([' ', '*', '`', '"', '\'', '<']);
    let opened = &after[..after.len() - name.len()];
    let (name_len, executor) = if is_tool {
        tool(name, task)
    } else {
        agent(name, task)
    };
    if name_len == 0 || (executor.is_none() && word.chars().any(char::is_lowercase)) {
        return None;
    }
    // What was opened before the name is closed after it; the rest belongs to the step.
    let behind = name[name_len..]
        .trim_start_matches("()")
        .trim_start_matches(|c| opened.contains(if c == '>' { '<' } else { c }) && c != ' ');
    Some(Tag {
        range: at..text.len() - behind.len(),
        executor,
    })
}

fn tool(after: &str, task: &Task<'_>) -> (usize, Option<Executor>) {
    let name = name(after);
    let known = task
        .tools
        .iter()
        .find(|tool| tool.name.eq_ignore_ascii_case(name));
    let executor = known.map(|tool| Executor::Tool {
        tool: tool.name.clone(),
    });
    (name.len(), executor)
}

/// A profile by its id, or by its name, which has spaces.
fn agent(after: &str, task: &Task<'_>) -> (usize, Option<Executor>) {
    let executor = |id: &str| {
        Some(Executor::Agent {
            profile_id: id.to_owned(),
        })
    };
    let name = name(after);
    if let Some(known) = task.agents.iter().find(|a| a.id.eq_ignore_ascii_case(name)) {
        return (name.len(), executor(known.id));
    }
    let by_name = task
        .agents
        .iter()
        .find(|agent| !agent.name.is_empty() && after.starts_with(agent.name));
    match by_name {
        Some(known) => (known.name.len(), executor(known.id)),
        None => (name.len(), None),
    }
}

/// `SELF` here, standing apart: at an end of the step, or after a bar, a dash or a bracket.
fn itself(text: &str, at: usize) -> Option<Tag> {
    let word = keyword(&text[at..], "SELF")?;
    let end = at + word.len();
    let (before, after) = (text[..at].trim_end(), text[end..].trim());
    if text[end..].starts_with(['-', '\'', '’']) {
        return None;
    }
    let is_set_off = before.is_empty() || before.ends_with(SEPARATORS);
    let is_last = after.is_empty() || after.chars().all(|c| CLOSERS.contains(&c) || c == '.');
    let stands = if word.chars().any(char::is_lowercase) {
        is_set_off && !before.is_empty() && is_last
    } else {
        is_set_off || is_last
    };
    stands.then_some(Tag {
        range: at..end,
        executor: Some(Executor::Itself),
    })
}

/// The keyword as it is written here, in whatever case.
fn keyword<'a>(rest: &'a str, keyword: &str) -> Option<&'a str> {
    let word = rest.get(..keyword.len())?;
    let ends = rest[word.len()..]
        .chars()
        .next()
        .is_none_or(|c| !is_word(c));
    (ends && word.eq_ignore_ascii_case(keyword)).then_some(word)
}

fn name(text: &str) -> &str {
    let end = text
        .find(|c: char| !(is_word(c) || matches!(c, '-' | '.' | '/')))
        .unwrap_or(text.len());
    text[..end].trim_end_matches(['.', '-', '/'])
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

const SEPARATORS: [char; 11] = ['|', '(', '[', '{', '<', '`', '–', '—', '→', ':', '-'];
const OPENERS: [char; 5] = ['(', '[', '{', '<', '`'];
const CLOSERS: [char; 5] = [')', ']', '}', '>', '`'];

/// The range with what was only there for it: brackets around, and a label before.
fn with_surroundings(text: &str, mut range: Range<usize>) -> Range<usize> {
    const LABEL: &str = "executor";
    let before = text[..range.start].trim_end_matches([' ', ':', '=']);
    if let Some(at) = before.len().checked_sub(LABEL.len())
        && before
            .get(at..)
            .is_some_and(|end| end.eq_ignore_ascii_case(LABEL))
    {
        range.start = at;
    }
    loop {
        let before = text[..range.start].trim_end();
        let after = text[range.end..].trim_start();
        let pair = OPENERS.into_iter().zip(CLOSERS).find_map(|(open, close)| {
            Some((before.strip_suffix(open)?, after.strip_prefix(close)?))
        });
        let Some((before, after)) = pair else {
            return range;
        };
        range = before.len()..text.len() - after.len();
    }
}

/// The text without what only set the executor off.
fn tidy(text: &str) -> String {
    const AROUND: [char; 10] = [' ', '|', '-', '–', '—', '→', ':', ',', ';', '*'];
    let text = text.trim_matches(AROUND);
    match text.strip_suffix('.') {
        // A full stop that stood behind the executor.
        Some("") => String::new(),
        Some(before) if before.ends_with(AROUND) => {
            format!("{}.", before.trim_end_matches(AROUND))
        }
        _ => text.to_owned(),
    }
}
