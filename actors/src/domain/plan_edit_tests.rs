use std::collections::BTreeSet;

use chrono::TimeDelta;
use proptest::prelude::*;

use super::*;
use crate::domain::todo::{self, StepMark, TodoCommand, marked, of_plan};
use crate::protocol::plan::{Executor, PlanStep};

const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

fn plan(texts: &[&str]) -> Vec<PlanStep> {
    let step = |(number, text): (u32, &&str)| PlanStep {
        number,
        text: (*text).to_owned(),
        executor: Executor::Itself,
        milestone: None,
    };
    (1..).zip(texts).map(step).collect()
}

fn list(texts: &[&str]) -> Vec<TodoItem> {
    of_plan(&plan(texts), &[], NOW)
}

/// `edits` one after the other.
fn after(items: &[TodoItem], edits: impl IntoIterator<Item = PlanEdit>) -> Vec<TodoItem> {
    let edits = edits.into_iter();
    edits.fold(items.to_vec(), |items, edit| {
        apply(&items, edit, NOW).unwrap()
    })
}

fn add(text: &str, before: Option<u32>) -> PlanEdit {
    let text = text.to_owned();
    PlanEdit::Add { text, before }
}

fn rewrite(id: u32, text: &str) -> PlanEdit {
    let text = text.to_owned();
    PlanEdit::Rewrite { id, text }
}

fn mark(items: &[TodoItem], id: u32, status: TodoStatus) -> Result<Vec<TodoItem>, String> {
    let command = TodoCommand::Mark {
        ids: vec![id],
        status,
        note: None,
        validation: None,
    };
    todo::apply(items, command, false)
}

/// The list in one line.
fn shown(items: &[TodoItem]) -> String {
    let item = |item: &TodoItem| {
        let held = if item.held { " held" } else { "" };
        let edited = item.edited.map(|it| format!(" {:?}", it.how));
        let edited = edited.unwrap_or_default();
        format!("{} {} {:?}{held}{edited}", item.id, item.text, item.status)
    };
    items.iter().map(item).collect::<Vec<_>>().join(", ")
}

#[test]
fn each_edit_does_what_it_says() {
    let items = list(&["a", "b", "c"]);
    for (edit, then) in [
        (
            PlanEdit::Skip { id: 2 },
            "1 a Pending, 2 b Skipped Skipped, 3 c Pending",
        ),
        (
            PlanEdit::Hold { id: 2 },
            "1 a Pending, 2 b Pending held, 3 c Pending",
        ),
        (
            add(" d ", None),
            "1 a Pending, 2 b Pending, 3 c Pending, 4 d Pending Added",
        ),
        (
            add("d  e", Some(2)),
            "1 a Pending, 4 d e Pending Added, 2 b Pending, 3 c Pending",
        ),
        (
            PlanEdit::Move {
                id: 3,
                before: Some(1),
            },
            "3 c Pending Moved, 1 a Pending, 2 b Pending",
        ),
        (
            PlanEdit::Move {
                id: 1,
                before: None,
            },
            "2 b Pending, 3 c Pending, 1 a Pending Moved",
        ),
        (
            rewrite(1, "x"),
            "1 x Pending Rewritten, 2 b Pending, 3 c Pending",
        ),
    ] {
        assert_eq!(shown(&after(&items, [edit.clone()])), then, "{edit:?}");
    }
}

#[test]
fn what_is_taken_back_stands_as_before_and_says_so() {
    let items = list(&["a", "b"]);
    let back = after(
        &items,
        [PlanEdit::Skip { id: 1 }, PlanEdit::Restore { id: 1 }],
    );
    assert_eq!(shown(&back), "1 a Pending Restored, 2 b Pending");
    let back = after(
        &items,
        [PlanEdit::Hold { id: 1 }, PlanEdit::Release { id: 1 }],
    );
    assert_eq!(shown(&back), "1 a Pending Released, 2 b Pending");
    let failed = mark(&items, 2, TodoStatus::Failed).unwrap();
    let again = after(&failed, [PlanEdit::Restore { id: 2 }]);
    assert_eq!(shown(&again), "1 a Pending, 2 b Pending Restored");
    // One that is skipped is held no more.
    let skipped = after(&items, [PlanEdit::Hold { id: 1 }, PlanEdit::Skip { id: 1 }]);
    assert_eq!(shown(&skipped), "1 a Skipped Skipped, 2 b Pending");
}

#[test]
fn what_says_most_stays_said() {
    let items = after(
        &list(&["a"]),
        [
            add("b", None),
            rewrite(2, "c"),
            PlanEdit::Move {
                id: 2,
                before: Some(1),
            },
            rewrite(1, "d"),
            PlanEdit::Move {
                id: 1,
                before: Some(2),
            },
        ],
    );
    assert_eq!(shown(&items), "1 d Pending Rewritten, 2 c Pending Added");
}

#[test]
fn an_edit_that_was_made_already_changes_nothing() {
    let items = list(&["a", "b"]);
    let later = NOW + TimeDelta::seconds(1);
    for edit in [
        PlanEdit::Skip { id: 1 },
        PlanEdit::Hold { id: 1 },
        PlanEdit::Move {
            id: 1,
            before: None,
        },
        rewrite(1, "x"),
    ] {
        let once = after(&items, [edit.clone()]);
        assert_ne!(once, items);
        assert_eq!(apply(&once, edit, later).unwrap(), once);
    }
    for edit in [
        PlanEdit::Restore { id: 1 },
        PlanEdit::Release { id: 1 },
        PlanEdit::Move {
            id: 1,
            before: Some(1),
        },
        PlanEdit::Move {
            id: 1,
            before: Some(2),
        },
        rewrite(1, " a "),
    ] {
        assert_eq!(apply(&items, edit, later).unwrap(), items);
    }
}

#[test]
fn each_fault_has_its_code_and_says_what_stands_in_the_way() {
    let items = mark(&list(&["a", "b", "c", "d"]), 1, TodoStatus::Done).unwrap();
    let items = mark(&items, 2, TodoStatus::InProgress).unwrap();
    let items = mark(&items, 3, TodoStatus::Failed).unwrap();
    let move_to = |id, before| PlanEdit::Move { id, before };
    for (edit, code, says) in [
        (
            PlanEdit::Skip { id: 9 },
            ErrorCode::NotFound,
            "no step 9; the list has steps 1 to 4",
        ),
        (
            PlanEdit::Restore { id: 0 },
            ErrorCode::NotFound,
            "no step 0",
        ),
        (PlanEdit::Hold { id: 9 }, ErrorCode::NotFound, "no step 9"),
        (
            PlanEdit::Release { id: 9 },
            ErrorCode::NotFound,
            "no step 9",
        ),
        (move_to(9, None), ErrorCode::NotFound, "no step 9"),
        (move_to(4, Some(9)), ErrorCode::NotFound, "no step 9"),
        (add("x", Some(9)), ErrorCode::NotFound, "no step 9"),
        (rewrite(9, "x"), ErrorCode::NotFound, "no step 9"),
        (
            PlanEdit::Skip { id: 1 },
            ErrorCode::ChangeConflict,
            "step 1 is done",
        ),
        (
            PlanEdit::Restore { id: 1 },
            ErrorCode::ChangeConflict,
            "step 1 is done",
        ),
        (
            PlanEdit::Hold { id: 1 },
            ErrorCode::ChangeConflict,
            "cannot be held",
        ),
        (
            PlanEdit::Hold { id: 2 },
            ErrorCode::ChangeConflict,
            "step 2 has begun",
        ),
        (
            move_to(1, None),
            ErrorCode::ChangeConflict,
            "cannot be moved",
        ),
        (
            rewrite(3, "x"),
            ErrorCode::ChangeConflict,
            "step 3 has failed",
        ),
        (add("", None), ErrorCode::InvalidField, "text is empty"),
        (add(" \t ", None), ErrorCode::InvalidField, "text is empty"),
        (add("a\nb", None), ErrorCode::InvalidField, "one line"),
        (
            rewrite(4, "a\0b"),
            ErrorCode::InvalidField,
            "control characters",
        ),
        (
            rewrite(4, "a\u{202e}b"),
            ErrorCode::InvalidField,
            "marks of direction",
        ),
        (
            add(&"x".repeat(501), None),
            ErrorCode::InvalidField,
            "501 characters",
        ),
    ] {
        let error = apply(&items, edit.clone(), NOW).unwrap_err();
        assert_eq!(error.code, code, "{edit:?}");
        assert!(error.message.contains(says), "{edit:?}: {}", error.message);
    }
    let error = apply(&[], PlanEdit::Skip { id: 1 }, NOW).unwrap_err();
    assert_eq!(
        error.message,
        "there is no step 1; the list is empty: add steps first"
    );
}

#[test]
fn a_full_list_takes_one_more_where_a_step_is_over() {
    let texts: Vec<String> = (0..MAX_ITEMS).map(|n| n.to_string()).collect();
    let command = TodoCommand::Add { texts };
    let full = todo::apply(&[], command, false).unwrap();
    let error = apply(&full, add("x", None), NOW).unwrap_err();
    assert_eq!(error.code, ErrorCode::ChangeConflict);
    let over = mark(&full, 2, TodoStatus::Done).unwrap();
    for before in [2, 3] {
        // The one that makes the room stood there.
        let items = after(&over, [add("x", Some(before))]);
        assert_eq!(items.len(), MAX_ITEMS);
        let ids: Vec<u32> = items.iter().take(3).map(|item| item.id).collect();
        assert_eq!(ids, [1, 101, 3]);
    }
}

#[test]
fn the_model_neither_begins_what_is_held_nor_brings_back_what_is_skipped() {
    let edits = [PlanEdit::Skip { id: 1 }, PlanEdit::Hold { id: 2 }];
    let items = after(&list(&["a", "b", "c"]), edits);
    for status in [TodoStatus::InProgress, TodoStatus::Done, TodoStatus::Failed] {
        let error = mark(&items, 2, status).unwrap_err();
        assert!(error.contains("the user holds step 2"), "{error}");
        let error = mark(&items, 1, status).unwrap_err();
        assert!(error.contains("the user skipped step 1"), "{error}");
    }
    assert!(mark(&items, 2, TodoStatus::Skipped).is_err());
    assert_eq!(mark(&items, 2, TodoStatus::Pending).unwrap(), items);
    // Nor by adding it again.
    let texts = vec!["A".to_owned(), "b".to_owned()];
    let again = todo::apply(&items, TodoCommand::Add { texts }, false).unwrap();
    assert_eq!(again, items);
    // Nor by a call that was on its way.
    for (number, status) in [(1, TodoStatus::Done), (2, TodoStatus::InProgress)] {
        let mark = StepMark {
            number,
            status,
            note: None,
        };
        assert_eq!(marked(&items, &mark), items);
    }
    // What it skipped itself it may take up again.
    let skipped = mark(&items, 3, TodoStatus::Skipped).unwrap();
    assert!(mark(&skipped, 3, TodoStatus::InProgress).is_ok());
    assert!(
        after(&skipped, [PlanEdit::Skip { id: 3 }])[2]
            .edited
            .is_some()
    );
}

#[test]
fn a_new_plan_keeps_what_its_user_wants_on_the_list() {
    let edits = [
        add("mine", None),
        add("mine too", None),
        add("dropped", None),
        PlanEdit::Skip { id: 6 },
        PlanEdit::Hold { id: 2 },
        PlanEdit::Hold { id: 3 },
        rewrite(1, "other words"),
    ];
    let before = after(&list(&["a", "b", "c"]), edits);
    let later = NOW + TimeDelta::seconds(1);
    let items = of_plan(&plan(&["x", "B", "Mine too"]), &before, later);
    assert_eq!(
        shown(&items),
        "1 x Pending, 2 B Pending held, 3 Mine too Pending Added, 4 c Pending held, 5 mine Pending Added"
    );
    // The plan does not name it, so that is told.
    let told = note(&items, Some(later)).unwrap();
    assert!(told.contains("Added: 5 \"mine\"."), "{told}");
    // And no more than the list holds.
    let many = (4..=100).map(|n| add(&format!("step {n}"), None));
    let full = after(&list(&["a", "b", "c"]), many);
    assert_eq!(
        of_plan(&plan(&["x", "y", "z", "u"]), &full, NOW).len(),
        MAX_ITEMS
    );
}

#[test]
fn the_model_is_told_what_stands() {
    let edits = [
        PlanEdit::Skip { id: 1 },
        PlanEdit::Hold { id: 3 },
        rewrite(2, "write the letter in English"),
        add("ask Olha", Some(2)),
        PlanEdit::Skip { id: 4 },
        PlanEdit::Restore { id: 4 },
        PlanEdit::Hold { id: 5 },
        PlanEdit::Release { id: 5 },
    ];
    let texts = [
        "read the notes",
        "write the letter",
        "send it",
        "tidy up",
        "say so",
    ];
    let items = after(&list(&texts), edits);
    insta::assert_snapshot!(note(&items, None).unwrap());
}

#[test]
fn a_note_tells_of_what_is_new_and_of_what_is_held() {
    assert_eq!(note(&[], None), None);
    assert_eq!(note(&list(&["a"]), None), None);
    let later = NOW + TimeDelta::seconds(1);
    let skipped = after(&list(&["a"]), [PlanEdit::Skip { id: 1 }]);
    let told = note(&skipped, Some(NOW)).unwrap();
    assert!(told.ends_with("No step is left to be done."), "{told}");
    assert_eq!(note(&skipped, Some(later)), None);
    let held = after(&list(&["a"]), [PlanEdit::Hold { id: 1 }]);
    assert!(note(&held, Some(later)).unwrap().contains("(held)"));
    let moved = [PlanEdit::Move {
        id: 1,
        before: None,
    }];
    let moved = after(&list(&["a", "b"]), moved);
    assert!(note(&moved, None).unwrap().ends_with("order: 2, 1."));
    // What came of it since is no news of its user's.
    let done = mark(&moved, 1, TodoStatus::Done).unwrap();
    assert_eq!(note(&done, None), None);
}

#[test]
fn a_note_is_bounded() {
    let edits = (1..=100).map(|_| add(&"x".repeat(500), None));
    let told = note(&after(&[], edits), None).unwrap();
    assert!(told.contains(" and 80 more."), "{told}");
    assert!(told.len() < 12_000);
}

/// Something that happens to a list, of steps by their places.
#[derive(Clone, Debug)]
enum Happens {
    Edited(usize, usize, Option<usize>),
    Marked(usize, TodoStatus),
    Added,
    Planned,
}

fn any_happening() -> impl Strategy<Value = Happens> {
    let status = prop::sample::select(vec![
        TodoStatus::Pending,
        TodoStatus::InProgress,
        TodoStatus::Done,
        TodoStatus::Failed,
        TodoStatus::Skipped,
    ]);
    prop_oneof![
        6 => (0usize..7, 0usize..8, prop::option::of(0usize..8))
            .prop_map(|(kind, at, before)| Happens::Edited(kind, at, before)),
        3 => (0usize..8, status).prop_map(|(at, status)| Happens::Marked(at, status)),
        1 => Just(Happens::Added),
        1 => Just(Happens::Planned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_people_and_models_do_the_list_is_sound(
        all in prop::collection::vec(any_happening(), 0..80),
    ) {
        let mut items = list(&["a", "b"]);
        for (n, happens) in all.into_iter().enumerate() {
            let id = |at: usize| items.get(at).map_or(99, |item| item.id);
            let was_skipped: Vec<u32> =
                items.iter().filter(|item| is_skipped(item)).map(|item| item.id).collect();
            let by_model = matches!(happens, Happens::Marked(..) | Happens::Added);
            let next = match happens {
                Happens::Edited(kind, at, before) => {
                    let (id, before) = (id(at), before.map(id));
                    let edit = match kind {
                        0 => PlanEdit::Skip { id },
                        1 => PlanEdit::Restore { id },
                        2 => add(&format!("step {n}"), before),
                        3 => PlanEdit::Move { id, before },
                        4 => rewrite(id, &format!("step {n}")),
                        5 => PlanEdit::Hold { id },
                        _ => PlanEdit::Release { id },
                    };
                    apply(&items, edit, NOW).map_err(|error| error.message)
                }
                Happens::Marked(at, status) => mark(&items, id(at), status),
                Happens::Added => {
                    let texts = vec![format!("step {n}")];
                    todo::apply(&items, TodoCommand::Add { texts }, false)
                }
                Happens::Planned => Ok(of_plan(&plan(&["a", "b", "c"]), &items, NOW)),
            };
            let Ok(next) = next else { continue };
            let ids: BTreeSet<u32> = next.iter().map(|item| item.id).collect();
            prop_assert_eq!(ids.len(), next.len());
            prop_assert!(next.len() <= MAX_ITEMS);
            for item in &next {
                prop_assert!(!item.held || item.status == TodoStatus::Pending);
                prop_assert!(!by_model || !was_skipped.contains(&item.id) || is_skipped(item));
            }
            items = next;
        }
    }
}
