//! What a person changes of the list of steps, what stays of that, and what the model is told.
//!
//! The model is told what stands, in a note at the end of each call, and not what was changed one by
//! one: so a call that a crash took, or one whose answer nobody kept, costs it nothing.

use chrono::{DateTime, Utc};

use super::shorten;
use super::todo::{
    MAX_ITEMS, MAX_TEXT_CHARS, checked, is_over, is_same, known, next_id, pending, with_room,
};
use super::unseen::is_moving;
use crate::protocol::command::PlanEdit;
use crate::protocol::error::{ErrorCode, NaviError, invalid};
use crate::protocol::todo::{StepEdit, StepEdited, TodoItem, TodoStatus};

/// How many steps of a kind a note names.
const NAMED_STEPS: usize = 20;
/// As much of a step's text as tells which one it is.
const GIST_CHARS: usize = 80;

/// The list after an edit. One that was made already changes nothing: two people may have the same
/// wish.
///
/// # Errors
/// `invalid_field` for a text that is none, `not_found` for a step that there is not, and
/// `change_conflict` where the step, or the list, does not stand so that this can be done.
pub fn apply(
    items: &[TodoItem],
    edit: PlanEdit,
    now: DateTime<Utc>,
) -> Result<Vec<TodoItem>, NaviError> {
    let mut items = items.to_vec();
    match edit {
        PlanEdit::Skip { id } => {
            let item = step(&mut items, id)?;
            if item.status == TodoStatus::Done {
                return Err(conflict(format!(
                    "step {id} is done, there is nothing to skip"
                )));
            }
            if !is_skipped(item) {
                item.status = TodoStatus::Skipped;
                item.held = false;
                note_edit(item, StepEdit::Skipped, now);
            }
        }
        PlanEdit::Restore { id } => {
            let item = step(&mut items, id)?;
            match item.status {
                TodoStatus::Done => {
                    return Err(conflict(format!(
                        "step {id} is done; add another step where it is to be done again"
                    )));
                }
                TodoStatus::Skipped | TodoStatus::Failed => {
                    item.status = TodoStatus::Pending;
                    // Why it was left or failed is no news any more.
                    item.note = None;
                    note_edit(item, StepEdit::Restored, now);
                }
                TodoStatus::Pending | TodoStatus::InProgress => {}
            }
        }
        PlanEdit::Add { text, before } => {
            let text = valid_text(&text)?;
            let at = place(&items, before)?;
            let mut item = pending(next_id(&items).map_err(conflict)?, &text);
            note_edit(&mut item, StepEdit::Added, now);
            let mut kept = with_room(&items, 1).map_err(conflict)?;
            // What made the room may have stood before it.
            let before = items[..at].iter().filter(|item| kept.contains(item));
            kept.insert(before.count(), item);
            items = kept;
        }
        PlanEdit::Move { id, before } => {
            let mut item = open_step(&mut items, id, "moved")?.clone();
            place(&items, before)?;
            if before == Some(id) {
                return Ok(items);
            }
            let stood = items.clone();
            items.retain(|item| item.id != id);
            let at = place(&items, before)?;
            items.insert(at, item.clone());
            if items != stood {
                note_edit(&mut item, StepEdit::Moved, now);
                items[at] = item;
            }
        }
        PlanEdit::Rewrite { id, text } => {
            let text = valid_text(&text)?;
            let item = open_step(&mut items, id, "reworded")?;
            if item.text != text {
                item.text = text;
                note_edit(item, StepEdit::Rewritten, now);
            }
        }
        PlanEdit::Hold { id } => {
            let item = open_step(&mut items, id, "held")?;
            if item.status == TodoStatus::InProgress {
                return Err(conflict(format!(
                    "step {id} has begun, and cannot be held; skip it, or stop the run"
                )));
            }
            item.held = true;
        }
        PlanEdit::Release { id } => {
            let item = step(&mut items, id)?;
            if std::mem::take(&mut item.held) {
                note_edit(item, StepEdit::Released, now);
            }
        }
    }
    Ok(items)
}

/// Whether its user skipped it.
#[must_use]
pub fn is_skipped(item: &TodoItem) -> bool {
    let how = item.edited.map(|edited| edited.how);
    item.status == TodoStatus::Skipped && how == Some(StepEdit::Skipped)
}

/// Why the model may not give a step this status, where its user has said otherwise.
#[must_use]
pub fn forbids(item: &TodoItem, status: TodoStatus) -> Option<String> {
    let id = item.id;
    if item.held && status != TodoStatus::Pending {
        return Some(format!(
            "the user holds step {id} to look at it first: do not begin it before they release it; go on with the other steps, and where only held ones are left tell the user so and end your turn"
        ));
    }
    (is_skipped(item) && status != TodoStatus::Skipped)
        .then(|| format!("the user skipped step {id}: leave it out and go on with the other steps"))
}

/// The list of a new plan, with the open steps of the one before that their user added, brought
/// back or holds. Where the plan has such a step, it is that one.
pub(super) fn kept(
    mut plan: Vec<TodoItem>,
    before: &[TodoItem],
    now: DateTime<Utc>,
) -> Vec<TodoItem> {
    let is_wanted = |item: &&TodoItem| {
        let how = item.edited.map(|edited| edited.how);
        let is_theirs = matches!(how, Some(StepEdit::Added | StepEdit::Restored));
        (item.held || is_theirs) && !is_over(item.status)
    };
    for wanted in before.iter().filter(is_wanted) {
        if let Some(same) = plan
            .iter_mut()
            .find(|item| is_same(&item.text, &wanted.text))
        {
            same.held = wanted.held;
            same.edited = wanted.edited;
        } else if let (Ok(id), true) = (next_id(&plan), plan.len() < MAX_ITEMS) {
            // The plan does not name it: that is told anew.
            let edited = wanted.edited.map(|edited| StepEdited { at: now, ..edited });
            plan.push(TodoItem {
                held: wanted.held,
                edited,
                ..pending(id, &wanted.text)
            });
        }
    }
    plan
}

/// What the model is told of the list: what is held, and what its user changed of it since then.
#[must_use]
pub fn note(items: &[TodoItem], since: Option<DateTime<Utc>>) -> Option<String> {
    let changed = |how: StepEdit| {
        items.iter().filter(move |item| {
            let stands = how == StepEdit::Skipped || !is_over(item.status);
            let edited = item.edited.filter(|edited| edited.how == how);
            stands && edited.is_some_and(|edited| since.is_none_or(|since| edited.at >= since))
        })
    };
    let held = || items.iter().filter(|item| item.held);
    let gist = |item: &TodoItem| shorten::cut(&item.text, GIST_CHARS);
    let whole = |item: &TodoItem| item.text.clone();
    let lines: Vec<String> = [
        line("Skipped, leave out", changed(StepEdit::Skipped), gist, ""),
        line(
            "Held, do not begin before the user releases it",
            held(),
            gist,
            " Go on with the others; where only held steps are left, tell the user so and end your turn.",
        ),
        line("Added", changed(StepEdit::Added), whole, ""),
        line("Reworded", changed(StepEdit::Rewritten), whole, ""),
        line("To be done after all", changed(StepEdit::Restored), gist, ""),
        line("Released, may be done now", changed(StepEdit::Released), gist, ""),
    ]
    .into_iter()
    .flatten()
    .collect();
    if lines.is_empty() && changed(StepEdit::Moved).next().is_none() {
        return None;
    }
    Some(format!(
        "[plan] What the user says of the steps, which stands over the plan above:\n{}{}",
        lines.concat(),
        order(items)
    ))
}

fn line<'a>(
    heading: &str,
    items: impl Iterator<Item = &'a TodoItem>,
    text: impl Fn(&TodoItem) -> String,
    then: &str,
) -> Option<String> {
    let named: Vec<String> = items
        .map(|item| format!("{} \"{}\"", item.id, text(item)))
        .collect();
    let more = named.len().saturating_sub(NAMED_STEPS);
    let more = (more > 0).then(|| format!(" and {more} more"));
    let some = named.get(..NAMED_STEPS).unwrap_or(&named).join("; ");
    (!named.is_empty()).then(|| format!("{heading}: {some}{}.{then}\n", more.unwrap_or_default()))
}

fn order(items: &[TodoItem]) -> String {
    let open = items.iter().filter(|item| !is_over(item.status));
    let open: Vec<String> = open
        .map(|item| format!("{}{}", item.id, if item.held { " (held)" } else { "" }))
        .collect();
    if open.is_empty() {
        return "No step is left to be done.".to_owned();
    }
    format!("Open steps in their order: {}.", open.join(", "))
}

/// What says most about the step stays said; when is when anything was done last.
fn note_edit(item: &mut TodoItem, how: StepEdit, at: DateTime<Utc>) {
    use StepEdit::{Added, Moved, Released, Rewritten};
    let how = match (item.edited.map(|edited| edited.how), how) {
        (Some(Added), Rewritten | Moved | Released) => Added,
        (Some(Rewritten), Moved | Released) => Rewritten,
        (_, how) => how,
    };
    item.edited = Some(StepEdited { how, at });
}

fn step(items: &mut [TodoItem], id: u32) -> Result<&mut TodoItem, NaviError> {
    let at = index(items, id)?;
    Ok(&mut items[at])
}

fn open_step<'a>(
    items: &'a mut [TodoItem],
    id: u32,
    done_to_it: &str,
) -> Result<&'a mut TodoItem, NaviError> {
    let item = step(items, id)?;
    let stands = match item.status {
        TodoStatus::Pending | TodoStatus::InProgress => return Ok(item),
        TodoStatus::Done => "is done",
        TodoStatus::Failed => "has failed",
        TodoStatus::Skipped => "is skipped",
    };
    Err(conflict(format!(
        "step {id} {stands}, and cannot be {done_to_it}; add another step, or restore one that is not done"
    )))
}

/// Where a step comes to stand.
fn place(items: &[TodoItem], before: Option<u32>) -> Result<usize, NaviError> {
    before.map_or(Ok(items.len()), |id| index(items, id))
}

fn index(items: &[TodoItem], id: u32) -> Result<usize, NaviError> {
    let at = items.iter().position(|item| item.id == id);
    at.ok_or_else(|| {
        let known = known(items);
        NaviError::new(
            ErrorCode::NotFound,
            format!("there is no step {id}; {known}"),
        )
    })
}

fn valid_text(text: &str) -> Result<String, NaviError> {
    let sent = text.chars().count();
    if sent > MAX_TEXT_CHARS {
        return Err(invalid(format!(
            "text has {sent} characters, and {MAX_TEXT_CHARS} is the limit; make it shorter, or several steps"
        )));
    }
    let text = text.trim();
    if text.chars().any(is_moving) {
        return Err(invalid(
            "text: one line, without control characters and marks of direction",
        ));
    }
    checked(text, "text", MAX_TEXT_CHARS).map_err(invalid)
}

fn conflict(message: String) -> NaviError {
    NaviError::new(ErrorCode::ChangeConflict, message)
}

#[cfg(test)]
#[path = "plan_edit_tests.rs"]
mod tests;
