//! What the model is asked. Made for models of one to four billion parameters: short, concrete,
//! with examples. Keywords are English; the rest is in the user's language.

use std::fmt::Write as _;

use super::Task;
use crate::domain::shorten;
use crate::protocol::message::Role;

/// As many characters of the request as planning reads; the run itself reads all of it.
const MAX_REQUEST_CHARS: usize = 6_000;
/// As many messages before it, and characters of each.
const MAX_RECENT: usize = 6;
const MAX_RECENT_CHARS: usize = 400;
/// As many tools and profiles as are named, and characters of each description.
const MAX_NAMED: usize = 60;
const MAX_DESCRIPTION_CHARS: usize = 120;

/// One question of planning. Examples are told as turns of their own: a small model does what it
/// sees itself do, and hardly what it is told.
pub(super) struct Instructions {
    pub(super) system: String,
    /// Requests, each with the reply that is wanted.
    pub(super) examples: Vec<(String, String)>,
}

/// Phase 1: is it simple?
pub(super) fn analyse(task: &Task<'_>) -> Instructions {
    let mut system = "\
You sort a user's request: does it need a plan? Do not answer the request.

It needs no plan when one action is enough: small talk, a question, a short text, something to remember or to forget, one command, one file to read or to write. Then reply with one word:
DIRECT

It needs a plan when several things must be done one after the other: several files, research, finding out and then making. Then reply with a short analysis, at most six lines, in the language of the request: what the user wants in the end, what must be found out, what must be made. The last line is one of these two, in English:
REFLECT: yes
REFLECT: no
Say yes if something is risky, unclear or very large. Otherwise say no.
"
    .to_owned();
    if !task.tools.is_empty() {
        let names: Vec<_> = task
            .tools
            .iter()
            .take(MAX_NAMED)
            .map(|tool| tool.name.as_str())
            .collect();
        let _ = write!(system, "\nTools that there are: {}", names.join(", "));
    }
    let examples = [
        ("What is the tallest mountain?", "DIRECT"),
        (
            "Read the three reports in my folder, compare their figures and write a summary for my boss.",
            "\
The user wants one summary of three reports.
To find out: which files the reports are, and what figures they give.
To make: a comparison, then the summary as a file.
REFLECT: no",
        ),
        ("Скільки днів у лютому? Напиши одним реченням.", "DIRECT"),
        (
            "Make a file list.txt with the words milk and bread.",
            "DIRECT",
        ),
        (
            "Знайди мої зламані скрипти, виправ їх і запиши в changes.md, що зроблено.",
            "\
Користувач хоче робочі скрипти та список змін.
З'ясувати: які скрипти є, і які з них не працюють.
Зробити: виправлення, потім changes.md.
REFLECT: yes",
        ),
        ("Remember that my sister is called Ann.", "DIRECT"),
    ];
    Instructions {
        system,
        examples: examples
            .map(|(asked, reply)| (request(asked, &[]), reply.to_owned()))
            .into(),
    }
}

/// Phase 2: what could go wrong?
pub(super) fn review() -> Instructions {
    let system = "\
You check an analysis of a user's request before a plan is made. Do not solve the request and do not write the plan.

Reply with exactly these four sections, one to three short lines each. Headings in English, the rest in the language of the request. If a section has nothing, write: none.

RISKS: what could go wrong or break
MISSING: what is not known yet
ASSUMPTIONS: what is taken for granted and should be checked first
SIMPLER: a simpler way to reach the same goal
"
    .to_owned();
    let backups = request(
        "Delete the old backups on the server.",
        &[(
            "Analysis",
            "The user wants free space on the server.\nTo find out: which backups there are, and how old they are.",
        )],
    );
    let reply = "\
RISKS: a backup that is still needed is deleted; it cannot be undone
MISSING: which backups are old, and where they are
ASSUMPTIONS: newer backups exist and can be read: check first
SIMPLER: list the backups and let the user choose";
    Instructions {
        system,
        examples: vec![(backups, reply.to_owned())],
    }
}

/// Phase 3: the plan.
pub(super) fn write(task: &Task<'_>) -> Instructions {
    let tool = task.tools.first().map(|tool| tool.name.as_str());
    let agent = task.agents.first().map(|agent| agent.id);
    let mut system = "\
You write the plan for a user's request. Do not carry it out. Reply with the plan only, in the language of the request.

One step a line: its number, what is to be done, then who does it:
"
    .to_owned();
    if tool.is_some() {
        system.push_str("- TOOL: tool_name = one call of this tool\n");
    }
    if agent.is_some() {
        system.push_str(
            "- AGENT: profile_id = a separate subtask of three or more tool calls; the agent knows only what the step says\n",
        );
    }
    system.push_str(
        "- SELF = you: thinking, writing, or anything that needs this conversation

How many steps: a small task 2 to 3, a usual one 4 to 7, a large one 8 to 15 under lines like
MILESTONE: name

Comma test: if a step lists several things, with commas or with \"and\", write each as a step of its own.
",
    );
    let tools: Vec<_> = task
        .tools
        .iter()
        .map(|tool| (tool.name.as_str(), tool.description.as_str()))
        .collect();
    list(&mut system, "Tools (there are no others)", &tools);
    let agents: Vec<_> = task
        .agents
        .iter()
        .map(|agent| (agent.id, agent.description))
        .collect();
    list(&mut system, "Profiles (there are no others)", &agents);

    let tool = tool.map_or_else(|| "SELF".to_owned(), |name| format!("TOOL: {name}"));
    let agent = agent.map_or_else(|| "SELF".to_owned(), |id| format!("AGENT: {id}"));
    let reports = request(
        "Read my two reports, find out what changed on the market since then and write a summary.",
        &[(
            "Analysis",
            "The user wants one summary.\nTo find out: what the reports say, and what changed since.\nTo make: the summary.",
        )],
    );
    let reports_plan = format!(
        "\
1. Find the first report | {tool}
2. Find the second report | {tool}
3. Work out what changed on the market since then | {agent}
4. Write the summary | SELF"
    );
    let notes = request(
        "Прочитай мої нотатки і збережи з них список справ.",
        &[(
            "Analysis",
            "Користувач хоче список справ із нотаток.\nЗ'ясувати: що є в нотатках.\nЗробити: список у файлі.",
        )],
    );
    let notes_plan = format!(
        "\
1. Прочитати нотатки | {tool}
2. Скласти список справ | SELF
3. Зберегти список у файл | {tool}"
    );
    Instructions {
        system,
        examples: vec![(reports, reports_plan), (notes, notes_plan)],
    }
}

fn list(prompt: &mut String, title: &str, entries: &[(&str, &str)]) {
    if entries.is_empty() {
        return;
    }
    // Writing to a string cannot fail.
    let _ = write!(prompt, "\n{title}:");
    for (name, description) in entries.iter().take(MAX_NAMED) {
        let _ = write!(prompt, "\n- {name}: {}", first_sentence(description));
    }
    prompt.push('\n');
}

fn first_sentence(description: &str) -> String {
    let line = shorten::one_line(description, MAX_DESCRIPTION_CHARS);
    match line.split_once(". ") {
        Some((first, _)) => first.to_owned(),
        None => line,
    }
}

/// The task as the model reads it, with what earlier phases came to.
pub(super) fn task(task: &Task<'_>, analysis: Option<&str>, review: Option<&str>) -> String {
    let mut text = String::new();
    let said: Vec<_> = task
        .recent
        .iter()
        .filter_map(|(role, content)| match role {
            Role::User => Some(("User", content)),
            Role::Assistant => Some(("You", content)),
            Role::System | Role::Tool => None,
        })
        .collect();
    if !said.is_empty() {
        text.push_str("The conversation before:\n");
        for (who, content) in &said[said.len().saturating_sub(MAX_RECENT)..] {
            let content = shorten::one_line(content, MAX_RECENT_CHARS);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{who}: {content}");
        }
        text.push('\n');
    }
    let asked = shorten::without_middle(task.request.trim(), MAX_REQUEST_CHARS);
    let parts = [("Analysis", analysis), ("Review", review)];
    let parts: Vec<_> = parts
        .into_iter()
        .filter_map(|(title, part)| part.map(|part| (title, part)))
        .filter(|(_, part)| !part.is_empty())
        .collect();
    text.push_str(&request(&asked, &parts));
    text
}

/// A request as the model reads it, with what earlier phases came to.
fn request(request: &str, parts: &[(&str, &str)]) -> String {
    let mut text = format!("Request: {request}");
    for (title, part) in parts {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n\n{title}:\n{part}");
    }
    text
}
