use super::*;
use crate::protocol::ids::RunId;

fn branch(id: u32, parent_id: u32, fork_ordinal: u64) -> Branch {
    Branch {
        id,
        parent_id: Some(parent_id),
        fork_ordinal,
        context: ContextState::default(),
    }
}

fn segment(branch: u32, below: impl Into<Option<u64>>) -> Segment {
    Segment {
        branch,
        below: below.into(),
    }
}

/// The root says 0 to 9; 1 forks after 4 and says 10 to 13; 2 says 10 anew as 14 and 15; 3
/// forks after 11 of 1; 4 begins anew.
fn tree() -> Vec<Branch> {
    vec![
        Branch::root(),
        branch(1, 0, 5),
        branch(2, 0, 5),
        branch(3, 1, 12),
        branch(4, 0, 0),
    ]
}

#[test]
fn a_path_goes_back_to_the_root() {
    assert_eq!(path(&tree(), 0), [segment(0, None)]);
    let third = [segment(0, 5), segment(1, 12), segment(3, None)];
    assert_eq!(path(&tree(), 3), third);
    assert_eq!(path(&tree(), 4), [segment(0, 0), segment(4, None)]);
    assert_eq!(path(&tree(), 9), []);
    // What a child shares of its parent's path ends where the parent's own share ends.
    let early = [Branch::root(), branch(1, 0, 5), branch(2, 1, 3)];
    let expected = [segment(0, 3), segment(1, 3), segment(2, None)];
    assert_eq!(path(&early, 2), expected);
}

#[test]
fn a_fork_stands_where_the_message_before_it_does() {
    let tree = tree();
    let after = |branch, ordinal| Some(MessagePosition { branch, ordinal });
    // The first message of branch 1 said anew: it forks from where 1 forked from.
    assert_eq!(fork(&tree, 1, after(0, 4), 10), Some(branch(5, 0, 5)));
    assert_eq!(fork(&tree, 3, after(1, 11), 16), Some(branch(5, 1, 12)));
    assert_eq!(fork(&tree, 0, None, 0), Some(branch(5, 0, 0)));
    let full = vec![Branch::root(); MAX_BRANCHES];
    assert_eq!(fork(&full, 0, None, 0), None);
}

#[test]
fn a_fork_inside_the_compressed_part_sees_every_word_again() {
    let summary = Message::user(
        MessageId::new(),
        RunId::new(),
        "so far".to_owned(),
        chrono::DateTime::UNIX_EPOCH,
    );
    let context = ContextState {
        start: 10,
        summary: Some(summary),
        plan: None,
        memory: Some("likes tea".to_owned()),
        ..ContextState::default()
    };
    let mut tree = tree();
    tree[1].context = context.clone();
    let after = |branch, ordinal| Some(MessagePosition { branch, ordinal });
    for (before, ordinal, kept) in [
        (after(1, 11), 12, true),
        // All of what the summary replaces stands before the fork, though 5 is below 10.
        (after(0, 4), 10, true),
        (after(0, 3), 4, false),
    ] {
        let forked = fork(&tree, 1, before, ordinal).unwrap();
        let expected = if kept {
            context.clone()
        } else {
            ContextState {
                plan: None,
                memory: context.memory.clone(),
                ..ContextState::default()
            }
        };
        assert_eq!(forked.context, expected, "{before:?} {ordinal}");
    }
}

#[test]
fn forks_stand_on_the_path_that_is_shown() {
    let tree = tree();
    let ids: Vec<MessageId> = (0..16).map(|_| MessageId::new()).collect();
    let told = |shown: u32, ordinals: &[u64]| {
        let first_from = |from| {
            let first = ordinals.iter().find(|ordinal| **ordinal >= from)?;
            ids.get(usize::try_from(*first).unwrap()).copied()
        };
        forks(&tree, shown, first_from)
    };
    let fork = |ordinal: usize, branch_ids: &[u32], shown| Fork {
        message_id: ids[ordinal],
        branch_ids: branch_ids.to_vec(),
        shown,
    };
    let root: Vec<u64> = (0..10).collect();
    let of_root = [fork(0, &[0, 4], 0), fork(5, &[0, 1, 2], 0)];
    assert_eq!(told(0, &root), of_root);
    let first: Vec<u64> = (0..5).chain(10..14).collect();
    let of_first = [
        fork(0, &[0, 4], 0),
        fork(10, &[0, 1, 2], 1),
        fork(12, &[1, 3], 1),
    ];
    assert_eq!(told(1, &first), of_first);
    let second: Vec<u64> = (0..5).chain(14..16).collect();
    let of_second = [fork(0, &[0, 4], 0), fork(14, &[0, 1, 2], 2)];
    assert_eq!(told(2, &second), of_second);
    // Begun anew, and what was said first is not told yet.
    assert_eq!(told(4, &[]), []);
    assert_eq!(told(4, &[14]), [fork(14, &[0, 4], 4)]);
}

/// Newest first, as a page's start is found: `u` is what a person said, `a` an answer, `t` a
/// result, each of the run that its number names, with gaps between the ordinals.
fn places(written: &str) -> Vec<Place> {
    let runs: Vec<RunId> = (0..10).map(|_| RunId::new()).collect();
    let mut places: Vec<Place> = Vec::new();
    for (ordinal, word) in (0..).step_by(10).zip(written.split(' ')) {
        let run: usize = word[1..].parse().unwrap();
        let role = match &word[..1] {
            "u" => Role::User,
            "a" => Role::Assistant,
            _ => Role::Tool,
        };
        places.insert(
            0,
            Place {
                ordinal,
                role,
                run_id: runs[run],
            },
        );
    }
    places
}

#[test]
fn a_page_begins_with_a_turn_where_it_can() {
    let whole = places("u1 a1 u2 a2 t2 a2");
    for most in 6..9 {
        assert_eq!(page_start(&whole, most), 0, "{most}");
    }
    // A turn begins two messages before the fourth, the third and so on.
    for most in 3..5 {
        assert_eq!(page_start(&whole, most), 11, "{most}");
    }
    // Within twice as many none begins: the answer is cut, and no result off its call.
    let long = places("u1 a1 t1 a1 t1 a1 t1");
    assert_eq!(page_start(&long[..5], 2), 41);
    let results = places("u1 a1 t1 t1 t1 t1 t1");
    assert_eq!(page_start(&results[..5], 2), 21, "of results alone");
    assert_eq!(page_start(&results, 3), 1);
}

#[test]
fn what_was_said_into_a_run_begins_no_turn() {
    let steered = places("u1 a1 t1 u1 a1 u2 a2");
    assert_eq!(page_start(&steered, 4), 0);
    assert_eq!(page_start(&steered, 2), 41);
}
