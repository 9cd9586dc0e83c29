//! What the fake answers where no script says so: the same to the same, and steerable by
//! the words of the last user message, so that a browser alone can drive it. Each line of
//! it that begins with one of these words is a command:
//!
//! | line | effect |
//! | --- | --- |
//! | `use the tool: NAME {json}` | calls the tool (several lines, several calls), then tells its result |
//! | `think` | reasons first |
//! | `slow [WORDS] [MS]` | streams WORDS (20) words, one every MS (100) |
//! | `hold GATE` | waits for the gate in mid-answer |
//! | `silence` | says nothing at all |
//! | `fail` | breaks off with an error in mid-answer |
//! | `cut` | closes the connection in mid-answer |
//! | `markdown` | answers with headings, a list, a table and code |
//!
//! Anything else is answered with `You said: …`.
//!
//! A call that is neither streamed nor offers tools is Navi's own (a plan, a title, memory):
//! it quotes the user's words, and none of them is a command there. One whose prompt speaks of
//! `DIRECT` is a planner's first, and is answered `DIRECT`: the run goes on without a plan.
//! A pull finds no model of that name.

use serde_json::Value;

use super::script::{Step, is_streamed, offers_tools};

/// How the notes of a run begin.
const NOTE: &str = "[navi-note-";

const MARKDOWN: &str = "# Title\n\nSome **bold** text, `code` and a [link](https://example.com/).\n\n- one\n- two\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n```rust\nfn main() {}\n```\n\nThe end.";

pub(super) fn last_user_text(body: &Value) -> String {
    let messages = messages(body);
    let user = messages.iter().rfind(is_of_user);
    user.map(without_notes).unwrap_or_default()
}

/// Whether somebody said it, and not only Navi her notes.
fn is_of_user(message: &&&Value) -> bool {
    let text = text_of(message);
    role(message) == "user" && !text.starts_with(NOTE)
}

/// The model that is to be pulled; none where this is a call.
pub(super) fn pulled(body: &Value) -> Option<&str> {
    let is_pull = body.get("messages").is_none();
    is_pull.then(|| body["model"].as_str()).flatten()
}

pub(super) fn reply_to(body: &Value) -> Vec<Step> {
    if pulled(body).is_some() {
        let unknown = "pull model manifest: file does not exist";
        return vec![Step::Error(unknown.to_owned())];
    }
    let messages = messages(body);
    let asked_at = messages.iter().rposition(|message| is_of_user(&message));
    let asked = last_user_text(body);
    if !is_streamed(body) && !offers_tools(body) {
        let plans = messages.iter().any(|it| text_of(it).contains("DIRECT"));
        return words(&if plans {
            "DIRECT".to_owned()
        } else {
            format!("You said: {asked}")
        });
    }
    let since = &messages[asked_at.map_or(0, |at| at + 1)..];
    let results: Vec<String> = since
        .iter()
        .filter(|message| role(message) == "tool")
        .map(without_notes)
        .collect();
    if !results.is_empty() {
        return words(&format!("The tool said: {}", results.join("; ")));
    }
    let mut steps = Vec::new();
    let mut calls = Vec::new();
    for line in asked.lines().map(str::trim) {
        if let Some(call) = line.strip_prefix("use the tool:").and_then(read_call) {
            calls.extend(offers(body, &call.0).then(|| Step::tool_call(&call.0, call.1)));
            continue;
        }
        let mut parts = line.split_whitespace();
        let command = parts.next().unwrap_or_default().to_lowercase();
        let argument = parts.next();
        match command.as_str() {
            "think" => {
                let thoughts = words("Let me think about this. Yes.");
                steps.extend(thoughts.into_iter().map(|step| match step {
                    Step::Text(text) => Step::Thinking(text),
                    other => other,
                }));
            }
            "slow" => {
                let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
                let count = number(argument).unwrap_or(20);
                let pause = number(parts.next()).unwrap_or(100);
                for at in 1..=count {
                    steps.extend([Step::Text(format!("word{at} ")), Step::DelayMs(pause)]);
                }
            }
            "hold" => steps.extend([
                Step::text("before "),
                Step::hold(argument.unwrap_or("gate")),
                Step::text("after "),
            ]),
            "silence" => steps.push(Step::Silence),
            "fail" => steps.extend([
                Step::text("Here it comes: "),
                Step::Error("the fake model fails as it was told".to_owned()),
            ]),
            "cut" => steps.extend([Step::text("Here it comes: "), Step::Close]),
            "markdown" => steps.extend(MARKDOWN.split_inclusive(' ').map(Step::text)),
            _ => {}
        }
    }
    let silent = !steps.iter().any(|step| !matches!(step, Step::Thinking(_)));
    if calls.is_empty() && silent {
        steps.extend(words(&format!("You said: {asked}")));
    }
    steps.extend(calls);
    steps
}

/// How many tool results stand after the last user message.
pub(super) fn results_since_the_user(messages: &[&Value]) -> usize {
    let after = messages.iter().rev();
    let after = after.take_while(|message| !is_of_user(message));
    after.filter(|message| role(message) == "tool").count()
}

/// `NAME {json}`.
fn read_call(text: &str) -> Option<(String, Value)> {
    let (name, arguments) = text.trim().split_once(char::is_whitespace)?;
    let arguments = serde_json::from_str(arguments.trim()).ok()?;
    Some((name.to_owned(), arguments))
}

fn offers(body: &Value, name: &str) -> bool {
    let tools = body.get("tools").and_then(Value::as_array);
    tools
        .into_iter()
        .flatten()
        .any(|tool| tool["function"]["name"] == name)
}

/// A word a step; of a long text several words, since each step costs whoever reads it.
fn words(text: &str) -> Vec<Step> {
    const STEPS: usize = 200;
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let a_step = words.len().div_ceil(STEPS).max(1);
    words
        .chunks(a_step)
        .map(|words| Step::Text(words.concat()))
        .collect()
}

pub(super) fn messages(body: &Value) -> Vec<&Value> {
    let messages = body.get("messages").and_then(Value::as_array);
    messages.into_iter().flatten().collect()
}

pub(super) fn role<'a>(message: &'a &Value) -> &'a str {
    message
        .get("role")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The text of a message, also of one in parts.
/// A message's own text, before the notes of its run.
fn without_notes(message: &&Value) -> String {
    let mut text = text_of(message);
    let own = text.find(&format!("\n\n{NOTE}")).unwrap_or(text.len());
    text.truncate(own);
    text
}

pub(super) fn text_of(message: &&Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    }
}
