use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Barrier;
use std::thread;

use serde_json::{Value, json};

use super::super::tests::Fixture;
use super::super::{ChangeLog, Origin, write};
use super::*;
use crate::protocol::change::{Change, ChangeAction};
use crate::protocol::ids::ChangeId;
use crate::tools::workspace::InnerPath;

fn list(place: &Fixture) -> Vec<Change> {
    changes(place.access(), &place.workspace()).unwrap()
}

fn take_back(place: &Fixture, id: ChangeId) -> Result<Change, ChangeError> {
    undo(place.access(), &place.workspace(), id)
}

/// Makes the calls and takes each back, the last first; and then takes that back.
async fn there_and_back(place: &Fixture, calls: &[Value]) {
    let mut states = vec![state(place)];
    for call in calls {
        place.ok(call.clone()).await;
        states.push(state(place));
    }
    let mut undone = Vec::new();
    for (made, before) in list(place).into_iter().zip(states.iter().rev().skip(1)) {
        // Only once those after it are undone is everything as it left it.
        let change = list(place).into_iter().find(|it| it.id == made.id).unwrap();
        assert!(change.undoable, "{change:?}");
        assert!(change.run_id.is_some(), "{change:?}");
        undone.push(take_back(place, change.id).unwrap());
        assert_eq!(&state(place), before, "{change:?}");
    }
    for (change, after) in undone.iter().rev().zip(states.iter().skip(1)) {
        assert_eq!(change.action, ChangeAction::Undo);
        take_back(place, change.id).unwrap();
        assert_eq!(&state(place), after, "{change:?}");
    }
}

/// Everything in the workspace.
fn state(place: &Fixture) -> Vec<String> {
    fn walk(directory: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let content = if metadata.is_dir() {
                walk(&path, found);
                String::new()
            } else {
                fs::read_to_string(&path).unwrap()
            };
            let mode = metadata.permissions().mode() & 0o777;
            found.push(format!("{} {mode:o} {content}", path.display()));
        }
    }
    let mut found = Vec::new();
    walk(&place.workspace(), &mut found);
    found.sort();
    found
}

#[tokio::test]
async fn every_kind_of_change_is_taken_back_and_made_again() {
    let place = Fixture::new();
    place.put("plan.md", "one\ntwo\n");
    place.put("run.sh", "echo one\n");
    place.put("notes/a/b.md", "b");
    let script = place.workspace().join("run.sh");
    fs::set_permissions(script, fs::Permissions::from_mode(0o750)).unwrap();
    let calls = [
        json!({"action": "edit", "path": "plan.md", "old_text": "two", "new_text": "2"}),
        json!({"action": "write", "path": "run.sh", "content": "echo two\n"}),
        json!({"action": "write", "path": "new/deep/a.md", "content": "a"}),
        json!({"action": "move", "path": "plan.md", "to": "other/plan.md"}),
        json!({"action": "move", "path": "notes", "to": "archive"}),
        json!({"action": "delete", "path": "other/plan.md"}),
        json!({"action": "delete", "path": "archive"}),
    ];
    there_and_back(&place, &calls).await;
}

#[tokio::test]
async fn of_two_who_take_a_change_back_at_once_one_does() {
    let place = Fixture::new();
    place.put("plan.md", "one");
    let call = json!({"action": "edit", "path": "plan.md", "old_text": "one", "new_text": "two"});
    place.ok(call).await;
    let id = list(&place)[0].id;
    let (access, workspace, start) = (place.access(), place.workspace(), Barrier::new(2));
    let take_back = || {
        start.wait();
        undo(access, &workspace, id)
    };
    let both = thread::scope(|scope| {
        let tries = [scope.spawn(take_back), scope.spawn(take_back)];
        tries.map(|one| one.join().unwrap())
    });
    let refusals: Vec<String> = both
        .into_iter()
        .filter_map(Result::err)
        .map(|error| error.to_string())
        .collect();
    assert_eq!(refusals.len(), 1);
    assert!(refusals[0].contains("undone already"), "{refusals:?}");
    let plan = fs::read_to_string(workspace.join("plan.md")).unwrap();
    assert_eq!(plan, "one");
    assert_eq!(list(&place).len(), 2);
}

#[tokio::test]
async fn what_was_changed_since_is_left_alone() {
    let place = Fixture::new();
    place.put("a.md", "one");
    place.put("b.md", "b");
    place.put("c.md", "c");
    for call in [
        json!({"action": "edit", "path": "a.md", "old_text": "one", "new_text": "two"}),
        json!({"action": "write", "path": "new.md", "content": "new"}),
        json!({"action": "move", "path": "b.md", "to": "moved.md"}),
        json!({"action": "delete", "path": "c.md"}),
    ] {
        place.ok(call).await;
    }
    place.put("a.md", "three");
    place.put("new.md", "newer");
    place.put("moved.md", "b and more");
    place.put("c.md", "another c");
    let before = state(&place);
    let refusals: Vec<String> = list(&place)
        .into_iter()
        .map(|change| {
            assert!(!change.undoable);
            let ChangeError::Conflict(why) = take_back(&place, change.id).unwrap_err() else {
                panic!("{change:?}")
            };
            assert!(why.ends_with(&change.why_not.unwrap()), "{why}");
            why
        })
        .collect();
    assert_eq!(
        refusals,
        [
            "this cannot be undone: there is something else at `c.md` now",
            "this cannot be undone: `moved.md` has changed since",
            "this cannot be undone: `new.md` has changed since",
            "this cannot be undone: `a.md` has changed since",
        ]
    );
    assert_eq!(state(&place), before);
    // Back as it was left, it can be undone again.
    place.put("a.md", "two");
    let edit = list(&place).pop().unwrap();
    assert!(edit.undoable);
    take_back(&place, edit.id).unwrap();
    assert_eq!(place.content("a.md"), "one");
    let again = take_back(&place, edit.id).unwrap_err();
    assert!(again.to_string().contains("undone already"), "{again}");
    assert_eq!(
        take_back(&place, ChangeId::new()),
        Err(ChangeError::NotFound)
    );
}

#[tokio::test]
async fn a_failed_change_is_no_change() {
    let place = Fixture::new();
    place.put("a.md", "one");
    place.put("b.md", "b");
    for call in [
        json!({"action": "edit", "path": "a.md", "old_text": "two", "new_text": "x"}),
        json!({"action": "move", "path": "a.md", "to": "b.md/c"}),
        json!({"action": "move", "path": "a.md", "to": "b.md"}),
        json!({"action": "write", "path": "b.md/x/y", "content": "x"}),
    ] {
        place.error(call).await;
    }
    assert_eq!(list(&place), []);
    // A write of what is there already is none either.
    place
        .ok(json!({"action": "write", "path": "a.md", "content": "one"}))
        .await;
    assert_eq!(list(&place), []);
}

#[tokio::test]
async fn the_oldest_are_dropped_when_there_are_too_many() {
    let place = Fixture::new();
    let reach = place.reach();
    let open = || {
        let log = ChangeLog::open(&reach, ChangeAction::Write, Origin::default());
        let mut log = log.unwrap();
        log.max_bytes = 1_000;
        log
    };
    for n in 0..210 {
        let spot = reach.spot("a.md").unwrap();
        let content = format!("{n:0>100}");
        write::write(&open(), &spot, &content).unwrap();
    }
    let all = list(&place);
    assert_eq!(all.len(), 200);
    // Ten copies fit; the file was changed after each but the last.
    let why = |change: &Change| change.why_not.clone().unwrap_or_default();
    assert_eq!(why(&all[0]), "");
    assert!(
        why(&all[9]).contains("has changed since"),
        "{}",
        why(&all[9])
    );
    assert!(
        why(&all[10]).contains("dropped to make room"),
        "{}",
        why(&all[10])
    );
    let kept = fs::read_dir(changes_dir(&place.workspace()))
        .unwrap()
        .count();
    assert_eq!(kept, 11);
    // What could never be kept is not deleted.
    place.put("large.txt", "x".repeat(1_001));
    let spot = reach.spot("large.txt").unwrap();
    let refused = open().take_away(&spot);
    assert!(refused.unwrap_err().0.contains("can be kept"));
    assert!(place.workspace().join("large.txt").exists());
}

#[tokio::test]
async fn a_copy_that_is_gone_is_told() {
    let place = Fixture::new();
    place.put("a.md", "one");
    place.ok(json!({"action": "delete", "path": "a.md"})).await;
    let kept = changes_dir(&place.workspace());
    let change = list(&place).pop().unwrap();
    fs::remove_file(kept.join(change.id.to_string())).unwrap();
    let why = list(&place).pop().unwrap().why_not.unwrap();
    assert_eq!(why, "the copy that was kept of it is gone");
    fs::write(kept.join("changes.json"), "no json").unwrap();
    assert_eq!(list(&place), []);
}

#[tokio::test]
async fn what_is_kept_is_the_owners_alone() {
    let place = Fixture::new();
    place.put("a.md", "one");
    place.ok(json!({"action": "delete", "path": "a.md"})).await;
    let mode = fs::metadata(changes_dir(&place.workspace())).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o700);
}

/// Who wrote what in a file, newest first: what was done, and the lines that came and went.
fn told(place: &Fixture, path: &str) -> Vec<(ChangeAction, String)> {
    let path = InnerPath::file(path).unwrap();
    let told = changes_of_file(place.access(), &place.workspace(), &path).unwrap();
    let lines = |diff: Option<String>| match diff {
        Some(diff) => {
            let lines = diff.lines().filter(|line| !line.starts_with("@@"));
            lines.collect::<Vec<_>>().join("/")
        }
        None => "unknown".to_owned(),
    };
    told.into_iter()
        .map(|it| (it.change.action, lines(it.diff)))
        .collect()
}

#[tokio::test]
async fn each_change_of_a_file_is_told_with_what_it_changed() {
    let place = Fixture::new();
    let write = |content: &str| json!({"action": "write", "path": "old.md", "content": content});
    place.ok(write("one\n")).await;
    let edit = json!({"action": "edit", "path": "old.md", "old_text": "one", "new_text": "two"});
    place.ok(edit).await;
    let moved = json!({"action": "move", "path": "old.md", "to": "new.md"});
    place.ok(moved).await;
    let other = json!({"action": "write", "path": "other.md", "content": "x"});
    place.ok(other).await;
    let grown = json!({"action": "write", "path": "new.md", "content": "two\nthree\n"});
    place.ok(grown).await;
    let mut expected = vec![
        (ChangeAction::Write, " two/+three".to_owned()),
        (ChangeAction::Move, "unknown".to_owned()),
        (ChangeAction::Edit, "-one/+two".to_owned()),
        (ChangeAction::Write, "+one".to_owned()),
    ];
    assert_eq!(told(&place, "new.md"), expected);
    assert_eq!(told(&place, "nothing.md"), []);

    let newest = list(&place)[0].id;
    take_back(&place, newest).unwrap();
    expected.insert(0, (ChangeAction::Undo, " two/-three".to_owned()));
    assert_eq!(told(&place, "new.md"), expected);
    // What somebody else wrote meanwhile is nobody's change.
    place.put("new.md", "four\n");
    expected[0].1 = "unknown".to_owned();
    assert_eq!(told(&place, "new.md"), expected);
}
