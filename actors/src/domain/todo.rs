//! The todo list: its commands and what they change.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::plan_edit;
use crate::protocol::plan::PlanStep;
use crate::protocol::todo::{TodoItem, TodoStatus};

/// As many items as a list holds.
pub const MAX_ITEMS: usize = 100;
/// As many characters as an item's text has.
pub const MAX_TEXT_CHARS: usize = 500;
/// As many characters as a note has.
pub const MAX_NOTE_CHARS: usize = 2_000;

/// What can be done to the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TodoCommand {
    List,
    /// Puts steps at the end, in this order.
    Add {
        texts: Vec<String>,
    },
    /// Moves steps to a status. A note replaces the one that stood there; none leaves it.
    /// For steps that are done, what shows it (`validation`) is the note.
    Mark {
        ids: Vec<u32>,
        status: TodoStatus,
        note: Option<String>,
        validation: Option<String>,
    },
}

/// What a run's loop says of a step of its plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepMark {
    /// The id of its item.
    pub number: u32,
    pub status: TodoStatus,
    /// Why it failed.
    pub note: Option<String>,
}

/// The list of a plan: a step an item. A plan and its list cannot differ: this is where the list
/// comes from. What stood there before goes, but for what its user wants there.
#[must_use]
pub fn of_plan(steps: &[PlanStep], before: &[TodoItem], now: DateTime<Utc>) -> Vec<TodoItem> {
    let items = steps.iter().map(|step| pending(step.number, &step.text));
    plan_edit::kept(items.collect(), before, now)
}

pub(super) fn pending(id: u32, text: &str) -> TodoItem {
    TodoItem {
        id,
        text: text.to_owned(),
        status: TodoStatus::Pending,
        note: None,
        held: false,
        edited: None,
    }
}

/// The list after a call began or ended that carries out a step. What the model, or an earlier
/// call, has done with stays so, and so does what is held: such a call was on its way when its
/// user held the step.
#[must_use]
pub fn marked(items: &[TodoItem], mark: &StepMark) -> Vec<TodoItem> {
    let mut items = items.to_vec();
    let is_open = |item: &TodoItem| {
        !item.held && !matches!(item.status, TodoStatus::Done | TodoStatus::Skipped)
    };
    let item = items.iter_mut().find(|item| item.id == mark.number);
    if let Some(item) = item.filter(|item| is_open(item)) {
        if item.status == TodoStatus::Failed || mark.note.is_some() {
            // Why it failed is no news once it is tried again.
            item.note.clone_from(&mark.note);
        }
        item.status = mark.status;
    }
    items
}

/// The list as it stands after a command, or a sentence that tells the model what to do instead.
/// A command takes effect whole or not at all.
///
/// Several steps may be in progress at once: subagents work on them side by side.
///
/// With `step_validation` (a profile's `step_validation_enabled`), no step is done without a
/// text that shows it.
///
/// A full list makes room by itself: steps that are done, failed or skipped leave it, oldest
/// first. Ids stay unique all the same, since a new id is one more than the highest of the list,
/// and the highest never leaves before a higher one has come, unless a plan replaces the list.
pub fn apply(
    items: &[TodoItem],
    command: TodoCommand,
    step_validation: bool,
) -> Result<Vec<TodoItem>, String> {
    match command {
        TodoCommand::List => Ok(items.to_vec()),
        TodoCommand::Add { texts } => add(items, &texts),
        TodoCommand::Mark {
            ids,
            status,
            note,
            validation,
        } => {
            let validation = given(validation.as_deref());
            let is_done = status == TodoStatus::Done;
            if is_done && step_validation && validation.is_none() {
                return Err(
                    "a step is only done when it is shown: give `validation`, a sentence on what you checked and what came of it, for example \"the file report.md is there and has 3 sections\"; if nothing shows it, leave the step in_progress or mark it failed"
                        .to_owned(),
                );
            }
            let note = given(note.as_deref());
            let note = if is_done { validation.or(note) } else { note };
            mark(items, &ids, status, note)
        }
    }
}

/// Models fill in fields that they have nothing to say in.
fn given(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

fn add(items: &[TodoItem], texts: &[String]) -> Result<Vec<TodoItem>, String> {
    if texts.is_empty() {
        return Err("there is nothing to add: give at least one text".to_owned());
    }
    if texts.len() > MAX_ITEMS {
        return Err(format!(
            "{} steps are too many: a list holds {MAX_ITEMS}; add fewer, larger steps",
            texts.len()
        ));
    }
    let texts = missing(items, texts)?;
    let mut added: Vec<TodoItem> = Vec::with_capacity(texts.len());
    for text in &texts {
        let id = next_id(added.last().map_or(items, std::slice::from_ref))?;
        added.push(pending(id, text));
    }
    let mut kept = with_room(items, added.len())?;
    kept.extend(added);
    Ok(kept)
}

/// The id of a step that comes to this list.
pub(super) fn next_id(items: &[TodoItem]) -> Result<u32, String> {
    let last = items.iter().map(|item| item.id).max().unwrap_or(0);
    last.checked_add(1)
        .ok_or_else(|| "the list has run out of ids; start a new session".to_owned())
}

/// The list with room for so many more: steps that are over make it, oldest first.
pub(super) fn with_room(items: &[TodoItem], more: usize) -> Result<Vec<TodoItem>, String> {
    let mut surplus = (items.len() + more).saturating_sub(MAX_ITEMS);
    let mut kept = Vec::with_capacity(MAX_ITEMS);
    for item in items {
        if surplus > 0 && is_over(item.status) {
            surplus -= 1;
        } else {
            kept.push(item.clone());
        }
    }
    if surplus > 0 {
        return Err(format!(
            "the list holds {MAX_ITEMS} steps and would have {}; mark some as done, failed or skipped first, or add fewer",
            MAX_ITEMS + surplus
        ));
    }
    Ok(kept)
}

/// The texts that no open step has yet: models put the steps of their plan on the list again. One
/// that its user skipped does not come back that way.
fn missing(items: &[TodoItem], texts: &[String]) -> Result<Vec<String>, String> {
    let stands = |text: &String| {
        let mut standing = items
            .iter()
            .filter(|item| !is_over(item.status) || plan_edit::is_skipped(item));
        standing.any(|item| is_same(&item.text, text))
    };
    let texts = texts
        .iter()
        .map(|text| checked(text, "a step's text", MAX_TEXT_CHARS));
    let texts: Vec<String> = texts.collect::<Result<_, _>>()?;
    Ok(texts.into_iter().filter(|text| !stands(text)).collect())
}

fn mark(
    items: &[TodoItem],
    ids: &[u32],
    status: TodoStatus,
    note: Option<&str>,
) -> Result<Vec<TodoItem>, String> {
    if ids.is_empty() {
        return Err(format!("no step is named: give ids; {}", known(items)));
    }
    if let Some(id) = ids.iter().find(|id| items.iter().all(|i| i.id != **id)) {
        return Err(format!("there is no step {id}; {}", known(items)));
    }
    let mut named = items.iter().filter(|item| ids.contains(&item.id));
    if let Some(problem) = named.find_map(|item| plan_edit::forbids(item, status)) {
        return Err(problem);
    }
    let note = note
        .map(|note| checked(note, "a note", MAX_NOTE_CHARS))
        .transpose()?;
    let mut items = items.to_vec();
    for item in items.iter_mut().filter(|item| ids.contains(&item.id)) {
        item.status = status;
        if note.is_some() {
            item.note.clone_from(&note);
        }
    }
    Ok(items)
}

/// Whether two steps say the same.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// Whether nothing more is to be done for a step.
pub(super) fn is_over(status: TodoStatus) -> bool {
    match status {
        TodoStatus::Done | TodoStatus::Failed | TodoStatus::Skipped => true,
        TodoStatus::Pending | TodoStatus::InProgress => false,
    }
}

/// A text on one line, since the list shows a step a line.
pub(super) fn checked(text: &str, what: &str, max_chars: usize) -> Result<String, String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() {
        return Err(format!("{what} is empty: say what is to be done"));
    }
    let chars = text.chars().count();
    if chars > max_chars {
        return Err(format!(
            "{what} has {chars} characters, and {max_chars} is the limit; make it shorter, or several steps"
        ));
    }
    Ok(text)
}

/// Which ids there are, as ranges.
pub(super) fn known(items: &[TodoItem]) -> String {
    let ids: BTreeSet<u32> = items.iter().map(|item| item.id).collect();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for id in ids {
        match ranges.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(id) => *end = id,
            _ => ranges.push((id, id)),
        }
    }
    if ranges.is_empty() {
        return "the list is empty: add steps first".to_owned();
    }
    let ranges: Vec<String> = ranges
        .into_iter()
        .map(|(start, end)| {
            if start == end {
                start.to_string()
            } else {
                format!("{start} to {end}")
            }
        })
        .collect();
    format!("the list has steps {}", ranges.join(", "))
}

#[cfg(test)]
#[path = "todo_tests.rs"]
mod tests;
