//! What the model replied to planning.

use super::executor::{Untagged, untag};
use super::{MAX_STEPS, MIN_STEPS, PlannedSteps, Task};
use crate::domain::reasoning::behind_reasoning;
use crate::domain::shorten;
use crate::domain::todo::MAX_TEXT_CHARS;
use crate::protocol::plan::{Executor, PlanStep};

/// As much of a reply as is read. Not every backend keeps to the limit that it is given.
const MAX_REPLY_CHARS: usize = 20_000;
const MAX_MILESTONE_CHARS: usize = 200;

/// The reply without reasoning that was left in it, and without code fences.
pub(super) fn cleaned(reply: &str) -> String {
    let text = without_thinking(&shorten::cut(reply, MAX_REPLY_CHARS));
    let lines: Vec<_> = text.lines().filter(|line| !is_fence(line)).collect();
    lines.join("\n").trim().to_owned()
}

/// Reasoning whose end never comes is reasoning to the end, and one whose beginning stood in
/// the prompt is reasoning from the start.
fn without_thinking(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = behind_reasoning(text);
    while let Some((before, thinking)) = rest.split_once("<think>") {
        kept.push_str(before);
        rest = thinking.split_once("</think>").map_or("", |(_, rest)| rest);
    }
    kept + rest
}

fn is_fence(line: &str) -> bool {
    line.trim()
        .strip_prefix("```")
        .is_some_and(|info| info.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// Whether phase 1 says that the request is simple. Other words that begin so, and a sentence
/// that begins with "direct", do not say it.
pub(super) fn is_direct(reply: &str) -> bool {
    const WORD: &str = "DIRECT";
    let start = reply.trim_start_matches(|c: char| {
        c.is_whitespace()
            || matches!(
                c,
                '*' | '_' | '#' | '>' | '`' | '"' | '\'' | '«' | '“' | '„' | '[' | '('
            )
    });
    let Some(word) = start.get(..WORD.len()) else {
        return false;
    };
    if !word.eq_ignore_ascii_case(WORD) {
        return false;
    }
    let rest = &start[WORD.len()..];
    let goes_on = rest.trim_start_matches([' ', '\t', '-']);
    let ends_here = goes_on.chars().next().is_none_or(|c| !c.is_alphanumeric());
    let is_whole_word = rest.chars().next().is_none_or(|c| !c.is_alphanumeric());
    is_whole_word && (word == WORD || ends_here)
}

/// The analysis without the word at its end, and whether that asks for a review.
pub(super) fn analysis(reply: &str) -> (String, bool) {
    const WORD: &str = "reflect";
    const MARKS: [char; 9] = [' ', '*', '_', '`', '"', '[', '<', '#', '-'];
    let mut reflect = false;
    let mut kept = Vec::new();
    for line in reply.lines() {
        // Same length as the line: only ASCII letters change.
        let lower = line.to_ascii_lowercase();
        let answer = lower.rfind(WORD).and_then(|at| {
            let behind = lower[at + WORD.len()..].trim_start_matches(MARKS);
            Some((at, behind.strip_prefix([':', '='])?))
        });
        match answer {
            // The last one counts: a model may repeat the choice first.
            Some((at, answer)) => {
                reflect = answer.trim_start_matches(MARKS).starts_with("yes");
                kept.push(line[..at].trim_end_matches(MARKS));
            }
            None => kept.push(line),
        }
    }
    (kept.join("\n").trim().to_owned(), reflect)
}

/// The plan, or none where there are not several numbered steps.
pub(super) fn plan(reply: &str, task: &Task<'_>) -> Option<PlannedSteps> {
    let mut steps: Vec<PlanStep> = Vec::new();
    let mut lines: Vec<String> = Vec::new();
    let mut milestone: Option<String> = None;
    // Whether the last step may still be told its executor on a line of its own.
    let mut is_open = false;
    for line in reply.lines() {
        let Some(numbered) = numbered(line) else {
            match unnumbered(line, is_open, task) {
                Line::Executor(executor) => {
                    if let Some(step) = steps.last_mut() {
                        step.executor = executor;
                    }
                    is_open = false;
                }
                Line::Milestone(name) => {
                    milestone = Some(name);
                    is_open = false;
                }
                Line::UnknownExecutor => continue,
                Line::Other => {}
            }
            lines.push(line.trim_end().to_owned());
            continue;
        };
        let text = without_checkbox(numbered.text);
        if let Some(name) = milestone_keyword(text) {
            lines.push(text.to_owned());
            milestone = Some(name);
            is_open = false;
            continue;
        }
        let Untagged {
            text: what,
            executor,
            is_unknown,
        } = untag(text, task);
        if what.is_empty() {
            continue;
        }
        if steps.len() == MAX_STEPS {
            break;
        }
        let number = u32::try_from(steps.len())
            .unwrap_or(u32::MAX)
            .saturating_add(1);
        lines.push(if is_unknown {
            format!("{}{number}. {what} | SELF", numbered.indent)
        } else {
            numbered.with_number(number)
        });
        is_open = executor.is_none();
        steps.push(PlanStep {
            number,
            text: shorten::cut(&what, MAX_TEXT_CHARS),
            executor: executor.unwrap_or(Executor::Itself),
            milestone: milestone.clone(),
        });
    }
    (steps.len() >= MIN_STEPS).then(|| PlannedSteps {
        text: lines.join("\n").trim().to_owned(),
        steps,
    })
}

/// A line `^\s*\d+[.)]`, with numbers below the first (`2.1`) taken as part of it.
struct Numbered<'a> {
    indent: &'a str,
    marker: &'a str,
    text: &'a str,
}

impl Numbered<'_> {
    /// The line as it was, with our number.
    fn with_number(&self, number: u32) -> String {
        let close = if self.marker.ends_with(')') { ')' } else { '.' };
        let gap = &self.text[..self.text.len() - self.text.trim_start().len()];
        let gap = if gap.is_empty() { " " } else { gap };
        format!("{}{number}{close}{gap}{}", self.indent, self.text.trim())
    }
}

fn numbered(line: &str) -> Option<Numbered<'_>> {
    let digits =
        |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let body = line.trim_start();
    let first = digits(body);
    if first == 0 || !body[first..].starts_with(['.', ')']) {
        return None;
    }
    let mut end = first + 1;
    loop {
        let below = digits(&body[end..]);
        let behind = &body[end + below..];
        let closed = usize::from(behind.starts_with(['.', ')']));
        let next = &behind[closed..];
        // "1.5kg" is no number of a step.
        if below == 0 || !next.starts_with(|c: char| c.is_whitespace() || c.is_ascii_digit()) {
            break;
        }
        end += below + closed;
    }
    Some(Numbered {
        indent: &line[..line.len() - body.len()],
        marker: &body[..end],
        text: &body[end..],
    })
}

fn without_checkbox(text: &str) -> &str {
    let text = text.trim();
    ["[ ]", "[x]", "[X]"]
        .iter()
        .find_map(|mark| text.strip_prefix(mark))
        .map_or(text, str::trim_start)
}

/// What a line that is no step says.
enum Line {
    Milestone(String),
    /// The executor of the step above.
    Executor(Executor),
    /// One that there is not.
    UnknownExecutor,
    Other,
}

fn unnumbered(line: &str, is_open: bool, task: &Task<'_>) -> Line {
    let bare = line.trim().trim_start_matches(['-', '•', '>', ' ', '*']);
    if is_open && !bare.is_empty() {
        let untagged = untag(bare, task);
        if untagged.text.is_empty() {
            match untagged.executor {
                Some(_) if untagged.is_unknown => return Line::UnknownExecutor,
                Some(executor) => return Line::Executor(executor),
                None => {}
            }
        }
    }
    milestone(line).map_or(Line::Other, Line::Milestone)
}

/// A heading, a line in bold, or one that begins with the keyword.
fn milestone(line: &str) -> Option<String> {
    let line = line.trim();
    if let Some(name) = milestone_keyword(line) {
        return Some(name);
    }
    let is_bold =
        line.len() > 4 && line.starts_with("**") && line.trim_end_matches(':').ends_with("**");
    if !line.starts_with('#') && !is_bold {
        return None;
    }
    let name = unmarked(line);
    // The title of the whole is no milestone.
    let is_title =
        ["plan", "steps", "план", "кроки", "шаги"].contains(&name.to_lowercase().as_str());
    (!name.is_empty() && !is_title).then(|| shorten::one_line(name, MAX_MILESTONE_CHARS))
}

/// `MILESTONE: name`, also counted: `Milestone 2 - name`. A sentence that begins with the word
/// is none.
fn milestone_keyword(line: &str) -> Option<String> {
    const WORD: &str = "milestone";
    let line = unmarked(line);
    if !line.get(..WORD.len())?.eq_ignore_ascii_case(WORD) {
        return None;
    }
    let behind = line[WORD.len()..]
        .trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ' ' | '#' | '*'));
    let name = behind.trim_start_matches([':', '.', ')', '-', '–', '—', ' ', '*']);
    if name.len() == behind.len() && !name.is_empty() {
        return None;
    }
    let name = if name.is_empty() { line } else { name };
    Some(shorten::one_line(
        &name.replace("**", ""),
        MAX_MILESTONE_CHARS,
    ))
}

/// A line without Markdown and bullets around it.
fn unmarked(line: &str) -> &str {
    line.trim_matches(['#', '*', '_', ' ', ':', '>', '•', '-'])
}
