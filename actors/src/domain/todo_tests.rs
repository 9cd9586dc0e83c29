use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::domain::planning;
use crate::protocol::plan::Executor;

fn add_texts(items: &[TodoItem], texts: &[&str]) -> Result<Vec<TodoItem>, String> {
    let texts = texts.iter().map(|&text| text.to_owned()).collect();
    apply(items, TodoCommand::Add { texts }, false)
}

fn mark_all(
    items: &[TodoItem],
    ids: &[u32],
    status: TodoStatus,
    note: Option<&str>,
) -> Result<Vec<TodoItem>, String> {
    let command = TodoCommand::Mark {
        ids: ids.to_vec(),
        status,
        note: note.map(str::to_owned),
        validation: None,
    };
    apply(items, command, false)
}

fn done(
    items: &[TodoItem],
    note: Option<&str>,
    validation: Option<&str>,
    step_validation: bool,
) -> Result<Vec<TodoItem>, String> {
    let command = TodoCommand::Mark {
        ids: vec![1],
        status: TodoStatus::Done,
        note: note.map(str::to_owned),
        validation: validation.map(str::to_owned),
    };
    apply(items, command, step_validation)
}

#[test]
fn steps_are_added_in_order_and_counted_from_one() {
    let items = add_texts(&[], &["read the notes", " write\n  the   report "]).unwrap();
    let seen: Vec<_> = items
        .iter()
        .map(|item| (item.id, item.text.as_str(), item.status))
        .collect();
    assert_eq!(
        seen,
        [
            (1, "read the notes", TodoStatus::Pending),
            (2, "write the report", TodoStatus::Pending),
        ]
    );
    assert_eq!(apply(&items, TodoCommand::List, false).unwrap(), items);
}

#[test]
fn several_steps_are_marked_at_once_and_notes_stay() {
    let items = add_texts(&[], &["a", "b", "c"]).unwrap();
    let items = mark_all(&items, &[1, 3], TodoStatus::InProgress, None).unwrap();
    let items = mark_all(&items, &[3], TodoStatus::Failed, Some(" no network ")).unwrap();
    let items = mark_all(&items, &[3], TodoStatus::Pending, Some("  ")).unwrap();
    assert_eq!(
        items.iter().map(|i| i.status).collect::<Vec<_>>(),
        [
            TodoStatus::InProgress,
            TodoStatus::Pending,
            TodoStatus::Pending
        ]
    );
    assert_eq!(items[2].note.as_deref(), Some("no network"));
}

#[test]
fn errors_name_what_is_wrong_and_what_there_is() {
    let mut items = add_texts(&[], &["a", "b", "c", "d"]).unwrap();
    items.remove(2);
    let long = "x".repeat(MAX_TEXT_CHARS + 1);
    let many = vec!["x"; MAX_ITEMS + 1];
    let errors = [
        mark_all(&items, &[1, 7], TodoStatus::Done, None).unwrap_err(),
        mark_all(&items, &[], TodoStatus::Done, None).unwrap_err(),
        mark_all(&[], &[1], TodoStatus::Done, None).unwrap_err(),
        mark_all(
            &items,
            &[1],
            TodoStatus::Done,
            Some(&"x".repeat(MAX_NOTE_CHARS + 1)),
        )
        .unwrap_err(),
        add_texts(&items, &[]).unwrap_err(),
        add_texts(&items, &["fine", " \n "]).unwrap_err(),
        add_texts(&items, &[&long]).unwrap_err(),
        add_texts(&items, &many).unwrap_err(),
    ];
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn a_full_list_makes_room_by_dropping_the_oldest_finished_steps() {
    let full = add_texts(&[], &vec!["x"; MAX_ITEMS]).unwrap();
    let error = add_texts(&full, &["one more"]).unwrap_err();
    assert!(error.contains("would have 101"), "{error}");

    let some_done = mark_all(&full, &[2, 5, 100], TodoStatus::Done, None).unwrap();
    let next = add_texts(&some_done, &["y", "z"]).unwrap();
    let ids: BTreeSet<u32> = next.iter().map(|item| item.id).collect();
    assert_eq!(next.len(), MAX_ITEMS);
    assert!(!ids.contains(&2) && !ids.contains(&5));
    assert!(ids.contains(&100) && ids.contains(&101) && ids.contains(&102));
}

#[test]
fn the_last_id_is_an_error_and_no_overflow() {
    let last = TodoItem {
        id: u32::MAX,
        text: "x".to_owned(),
        status: TodoStatus::Done,
        note: None,
        held: false,
        edited: None,
    };
    assert!(add_texts(&[last], &["y"]).is_err());
}

fn steps(texts: &[&str]) -> Vec<PlanStep> {
    let step = |(number, text): (u32, &&str)| PlanStep {
        number,
        text: (*text).to_owned(),
        executor: Executor::Itself,
        milestone: None,
    };
    (1..).zip(texts).map(step).collect()
}

fn plan_of(steps: &[PlanStep]) -> Vec<TodoItem> {
    of_plan(steps, &[], DateTime::default())
}

#[test]
fn a_plan_is_the_list_step_by_step() {
    let plan = steps(&["x", "y"]);
    assert_eq!(plan_of(&plan), add_texts(&[], &["x", "y"]).unwrap());
    // Whatever a plan may have, its list has too.
    let most = vec!["x"; planning::MAX_STEPS];
    assert_eq!(plan_of(&steps(&most)).len(), planning::MAX_STEPS);
    const { assert!(planning::MAX_STEPS <= MAX_ITEMS) };
}

#[test]
fn steps_that_stand_open_are_not_added_again() {
    let items = plan_of(&steps(&["Read the notes", "Write the report"]));
    let again = add_texts(&items, &["read  the notes", "Write the report"]).unwrap();
    assert_eq!(again, items);
    let more = add_texts(&items, &["Write the report", "Send it"]).unwrap();
    assert_eq!(more.len(), 3);
    assert_eq!((more[2].id, more[2].text.as_str()), (3, "Send it"));
    // What is over may come again.
    let over = mark_all(&items, &[1], TodoStatus::Done, None).unwrap();
    assert_eq!(add_texts(&over, &["Read the notes"]).unwrap().len(), 3);
}

#[test]
fn a_loop_marks_steps_and_leaves_what_is_over() {
    let mark = |number, status, note: Option<&str>| StepMark {
        number,
        status,
        note: note.map(str::to_owned),
    };
    let begun = TodoStatus::InProgress;
    let items = plan_of(&steps(&["a", "b"]));
    let failed = marked(&items, &mark(1, TodoStatus::Failed, Some("no network")));
    assert_eq!(failed[0].note.as_deref(), Some("no network"));
    let again = marked(&failed, &mark(1, begun, None));
    assert_eq!((again[0].status, &again[0].note), (begun, &None));
    let done = marked(&again, &mark(1, TodoStatus::Done, None));
    assert_eq!(done[0].status, TodoStatus::Done);
    assert_eq!(done[1], items[1]);
    assert_eq!(marked(&done, &mark(1, begun, None)), done);
    assert_eq!(marked(&done, &mark(9, begun, None)), done);
}

#[test]
fn step_validation_enabled_a_step_is_only_done_with_a_validation_text() {
    let items = add_texts(&[], &["a"]).unwrap();
    for missing in [None, Some(" \n ")] {
        let error = done(&items, Some("all fine"), missing, true).unwrap_err();
        assert!(error.contains("give `validation`"), "{error}");
    }
    let shown = done(&items, Some("all fine"), Some(" 3 files  there "), true).unwrap();
    assert_eq!(shown[0].status, TodoStatus::Done);
    assert_eq!(shown[0].note.as_deref(), Some("3 files there"));
    let long = "x".repeat(MAX_NOTE_CHARS + 1);
    assert!(done(&items, None, Some(&long), true).is_err());

    // Other statuses need none, and a text in the wrong field is no reason for a failure.
    let failed = TodoCommand::Mark {
        ids: vec![1],
        status: TodoStatus::Failed,
        note: Some("no network".to_owned()),
        validation: Some("none".to_owned()),
    };
    let failed = apply(&items, failed, true).unwrap();
    assert_eq!(failed[0].note.as_deref(), Some("no network"));
}

#[test]
fn without_step_validation_a_validation_text_may_be_given() {
    let items = add_texts(&[], &["a"]).unwrap();
    assert_eq!(done(&items, None, None, false).unwrap()[0].note, None);
    let noted = done(&items, Some("why"), None, false).unwrap();
    assert_eq!(noted[0].note.as_deref(), Some("why"));
    let shown = done(&items, Some("why"), Some("seen"), false).unwrap();
    assert_eq!(shown[0].note.as_deref(), Some("seen"));
}

/// A command whose ids are chosen when the list is known.
#[derive(Clone, Debug)]
enum Step {
    Add(usize),
    Mark(Vec<prop::sample::Index>, TodoStatus),
}

impl Step {
    fn command(&self, items: &[TodoItem]) -> TodoCommand {
        match self {
            Self::Add(count) => TodoCommand::Add {
                texts: vec!["step".to_owned(); *count],
            },
            Self::Mark(picks, status) => TodoCommand::Mark {
                ids: picks
                    .iter()
                    .filter(|_| !items.is_empty())
                    .map(|pick| pick.get(items).id)
                    .collect(),
                status: *status,
                note: None,
                validation: None,
            },
        }
    }
}

fn any_step() -> impl Strategy<Value = Step> {
    let status = prop_oneof![
        Just(TodoStatus::Pending),
        Just(TodoStatus::InProgress),
        Just(TodoStatus::Done),
        Just(TodoStatus::Failed),
        Just(TodoStatus::Skipped),
    ];
    prop_oneof![
        (0usize..60).prop_map(Step::Add),
        (
            prop::collection::vec(any::<prop::sample::Index>(), 0..60),
            status
        )
            .prop_map(|(picks, status)| Step::Mark(picks, status)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ids_are_unique_and_never_come_back(steps in prop::collection::vec(any_step(), 0..40)) {
        let mut items: Vec<TodoItem> = Vec::new();
        let mut ever = BTreeSet::new();
        for step in steps {
            let before: BTreeSet<u32> = items.iter().map(|item| item.id).collect();
            let Ok(next) = apply(&items, step.command(&items), false) else { continue };
            for item in &next {
                if !before.contains(&item.id) {
                    prop_assert!(ever.insert(item.id), "id {} came back", item.id);
                }
            }
            let ids: BTreeSet<u32> = next.iter().map(|item| item.id).collect();
            prop_assert_eq!(ids.len(), next.len());
            prop_assert!(next.len() <= MAX_ITEMS);
            prop_assert!(next.is_sorted_by_key(|item| item.id));
            items = next;
        }
    }
}
