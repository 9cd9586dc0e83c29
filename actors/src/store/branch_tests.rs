//! Which messages stand on which branch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::TimeDelta;

use super::conversation::MAX_ORDINAL;
use super::testing::{TestDb, Writer, at, ended, event, on_both, run, user_message};
use super::{Store, StoreError};
use crate::domain::history::{Branch, ContextState, MessagePosition, fork, path};
use crate::domain::session::write::{EventRow, RunRow, Write};
use crate::protocol::command::CallDecision;
use crate::protocol::ids::{CallId, MessageId};
use crate::protocol::message::Message;
use crate::protocol::session::RunState;

on_both!(
    messages_stand_on_the_branch_that_is_shown,
    a_page_holds_the_newest_of_what_is_shown,
    a_context_reads_its_own_stretch,
    what_a_context_gained_is_known_without_reading_it,
    a_context_belongs_to_its_branch,
    commits_of_one_group_follow_each_other,
    a_branch_that_makes_no_sense_is_refused,
    a_message_is_found_with_its_place,
    a_run_that_said_nothing_is_on_the_branch_that_it_began_on,
);

fn branch(id: u32, parent_id: u32, fork_ordinal: u64) -> Branch {
    Branch {
        id,
        parent_id: Some(parent_id),
        fork_ordinal,
        context: ContextState::default(),
    }
}

fn says(text: &str) -> Write {
    Write::Message(Arc::new(user_message(text)))
}

async fn texts(store: &Store, writer: &Writer, branch_id: u32) -> Vec<(u64, String)> {
    page(store, writer, branch_id, 100, None).await.0
}

/// The texts of a page, from where it goes, and how many messages stand before it.
async fn page(
    store: &Store,
    writer: &Writer,
    branch_id: u32,
    below: u64,
    most: Option<u32>,
) -> (Vec<(u64, String)>, u64, u64) {
    let path = path(&writer.load().await.branches, branch_id);
    let read = store.conversation(writer.id, &path, below, most);
    let read = read.await.unwrap();
    let texts = read.messages.into_iter();
    let texts = texts.map(|(n, m)| (n, m.content.unwrap())).collect();
    (texts, read.from, read.earlier)
}

fn told(expected: &[(u64, &str)]) -> Vec<(u64, String)> {
    expected
        .iter()
        .map(|(n, t)| (*n, (*t).to_owned()))
        .collect()
}

/// The root says a, b, c, d; 1 forks after b and says e, f; 2 forks after e and says g.
async fn fill(writer: &Writer) {
    // What was submitted before the fork stands before it, though one commit holds both.
    let first = vec![
        says("a"),
        says("b"),
        says("c"),
        says("d"),
        Write::Fork(branch(1, 0, 2)),
        says("e"),
    ];
    writer.write(first).await.unwrap();
    writer.write(vec![says("f")]).await.unwrap();
    let second = vec![Write::Fork(branch(2, 1, 5)), says("g")];
    writer.write(second).await.unwrap();
}

async fn messages_stand_on_the_branch_that_is_shown(db: TestDb) {
    let store = db.open().await;
    let (writer, other) = (Writer::new(&store).await, Writer::new(&store).await);
    fill(&other).await;
    fill(&writer).await;
    let root = told(&[(0, "a"), (1, "b"), (2, "c"), (3, "d")]);
    let first = told(&[(0, "a"), (1, "b"), (4, "e"), (5, "f")]);
    let second = told(&[(0, "a"), (1, "b"), (4, "e"), (6, "g")]);
    for (branch_id, expected) in [(0, root), (1, first), (2, second.clone()), (3, Vec::new())] {
        assert_eq!(texts(&store, &writer, branch_id).await, expected);
    }
    let shown = store.messages(writer.id).await.unwrap();
    let shown: Vec<_> = shown.into_iter().filter_map(|m| m.content).collect();
    assert_eq!(shown, ["a", "b", "e", "g"]);
    let loaded = writer.load().await;
    assert_eq!((loaded.branch_id, loaded.message_count), (2, 7));
    let branches = vec![Branch::root(), branch(1, 0, 2), branch(2, 1, 5)];
    assert_eq!(loaded.branches, branches);

    let back = vec![
        Write::ShowBranch(1),
        says("h"),
        Write::ShowBranch(0),
        says("i"),
    ];
    writer.write(back).await.unwrap();
    let first = told(&[(0, "a"), (1, "b"), (4, "e"), (5, "f"), (7, "h")]);
    assert_eq!(texts(&store, &writer, 1).await, first);
    let root = told(&[(0, "a"), (1, "b"), (2, "c"), (3, "d"), (8, "i")]);
    assert_eq!(texts(&store, &writer, 0).await, root);
    assert_eq!(
        texts(&store, &writer, 2).await,
        second,
        "it ends where it ended"
    );
    assert_eq!(writer.load().await.branch_id, 0);

    let gone = vec![Write::Deleted(Some(at(1)))];
    writer.write(gone).await.unwrap();
    let path = path(&[Branch::root()], 0);
    let missing = store.conversation(writer.id, &path, 100, None).await;
    assert_eq!(missing, Err(StoreError::SessionNotFound));
}

async fn a_page_holds_the_newest_of_what_is_shown(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    fill(&writer).await;
    let newest = page(&store, &writer, 2, 100, Some(2)).await;
    assert_eq!(newest, (told(&[(4, "e"), (6, "g")]), 2, 2));
    let before = page(&store, &writer, 2, 4, Some(2)).await;
    assert_eq!(before, (told(&[(0, "a"), (1, "b")]), 0, 0));
    let one = page(&store, &writer, 2, 4, Some(1)).await;
    assert_eq!(one, (told(&[(1, "b")]), 1, 1));
    let all = page(&store, &writer, 2, 100, Some(4)).await;
    assert_eq!((all.0.len(), all.1, all.2), (4, 0, 0));
    let path = path(&writer.load().await.branches, 2);
    let all: Vec<_> = store
        .conversation(writer.id, &path, 100, None)
        .await
        .unwrap()
        .messages;
    for (range, place) in [(0..100, 0), (2..100, 2), (5..100, 3)] {
        let first = store.first_message(writer.id, &path, range).await.unwrap();
        assert_eq!(first, Some(all[place].1.id));
    }
    let none = store.first_message(writer.id, &path, 2..4).await.unwrap();
    assert_eq!(none, None);
}

async fn a_context_reads_its_own_stretch(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    fill(&writer).await;
    let branches = writer.load().await.branches;
    let read = async |shown: u32, from: u64| -> Vec<u64> {
        let path = path(&branches, shown);
        let messages = store
            .context_messages(writer.id, &path, from..MAX_ORDINAL)
            .await;
        messages.unwrap().into_iter().map(|(n, _)| n).collect()
    };
    assert_eq!(read(2, 0).await, [0, 1, 4, 6]);
    assert_eq!(read(2, 1).await, [1, 4, 6]);
    assert_eq!(read(2, 2).await, [4, 6]);
    assert_eq!(read(2, 5).await, [6]);
    assert_eq!(read(2, 7).await, [0_u64; 0]);
    assert_eq!(read(0, 3).await, [3]);
    assert_eq!(read(9, 0).await, [0_u64; 0], "there is no such branch");

    let before = async |shown: u32, ordinal: u64| {
        let path = path(&branches, shown);
        store
            .message_before(writer.id, &path, ordinal)
            .await
            .unwrap()
    };
    let place = |branch, ordinal| Some(MessagePosition { branch, ordinal });
    assert_eq!(before(2, 6).await, place(1, 4));
    assert_eq!(before(2, 4).await, place(0, 1));
    assert_eq!(before(1, u64::MAX >> 1).await, place(1, 5));
    assert_eq!(before(2, 0).await, None);

    // The answer to b made anew once more: beside the first and the second.
    let anew = fork(&branches, 1, before(1, 4).await, 4).unwrap();
    assert_eq!(anew, branch(3, 0, 2));
    writer
        .write(vec![Write::Fork(anew), says("j")])
        .await
        .unwrap();
    let expected = told(&[(0, "a"), (1, "b"), (7, "j")]);
    assert_eq!(texts(&store, &writer, 3).await, expected);
}

async fn what_a_context_gained_is_known_without_reading_it(db: TestDb) {
    let mut store = db.open().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    store.on_statement(move |_| _ = count.fetch_add(1, Ordering::Relaxed));
    let writer = Writer::new(&store).await;
    // Whether all was known; what is known is what is there.
    let is_known = async |next: u64| {
        let loaded = writer.load().await;
        let path = path(&loaded.branches, loaded.branch_id);
        let before = asked.load(Ordering::Relaxed);
        let known = store.context_messages(writer.id, &path, 0..next).await;
        let is_known = asked.load(Ordering::Relaxed) == before;
        let fresh = store.clone().keeping(0);
        let there = fresh.context_messages(writer.id, &path, 0..next).await;
        assert_eq!(known, there);
        is_known
    };
    fill(&writer).await;
    assert!(!is_known(7).await);
    assert!(is_known(7).await);
    let precise = Message {
        decision: Some(CallDecision::Done),
        image_urls: vec!["elsewhere".to_owned()],
        created_at: at(1) + TimeDelta::nanoseconds(789),
        ..user_message("h\0i")
    };
    writer
        .write(vec![Write::Message(Arc::new(precise)), says("i")])
        .await
        .unwrap();
    assert!(is_known(9).await);
    assert!(is_known(8).await, "a part of it");

    // One that is refused takes the others' usual way, and what they wrote is read.
    let twice = vec![says("j"), Write::Fork(branch(2, 1, 5))];
    let group = vec![writer.commit(vec![says("k")]), writer.commit(twice)];
    let fates = store.commit_group(group).await;
    assert!(matches!(fates[..], [Ok(()), Err(_)]), "{fates:?}");
    assert!(!is_known(10).await);
    assert!(is_known(10).await);
    writer.write(vec![says("l")]).await.unwrap();
    assert!(is_known(11).await);

    let back = vec![Write::ShowBranch(1), says("m"), Write::ShowBranch(2)];
    writer.write(back).await.unwrap();
    writer.write(vec![says("n")]).await.unwrap();
    assert!(!is_known(13).await, "another branch's stands between");
    writer
        .write(vec![Write::Fork(branch(3, 2, 13)), says("o")])
        .await
        .unwrap();
    assert!(!is_known(14).await);
    writer.write(vec![says("p")]).await.unwrap();
    assert!(is_known(15).await);
}

async fn a_context_belongs_to_its_branch(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let compressed = |start, text: &str| ContextState {
        start,
        summary: Some(user_message(text)),
        plan: None,
        memory: Some("likes tea\0".to_owned()),
        decisions: BTreeMap::from([(CallId("c\0".to_owned()), CallDecision::Done)]),
    };
    let context = |branch_id, context: &ContextState| Write::Context {
        branch_id,
        context: context.clone(),
    };
    let (old, new) = (compressed(2, "old"), compressed(5, "new"));
    let forked = Branch {
        context: old.clone(),
        ..branch(1, 0, 2)
    };
    let last = compressed(6, "last");
    writer
        .write(vec![
            context(0, &compressed(1, "first")),
            context(0, &old),
            Write::Fork(forked),
            context(1, &new),
        ])
        .await
        .unwrap();
    let contexts = async || -> Vec<ContextState> {
        let branches = writer.load().await.branches;
        branches.into_iter().map(|branch| branch.context).collect()
    };
    assert_eq!(contexts().await, [old.clone(), new]);
    writer
        .write(vec![context(1, &last), Write::ShowBranch(0)])
        .await
        .unwrap();
    assert_eq!(contexts().await, [old, last.clone()]);
    let whole = ContextState::default();
    writer.write(vec![context(0, &whole)]).await.unwrap();
    assert_eq!(contexts().await, [whole, last]);
}

async fn commits_of_one_group_follow_each_other(db: TestDb) {
    let store = db.open().await;
    let (a, b) = (Writer::new(&store).await, Writer::new(&store).await);
    let group = vec![
        a.commit(vec![says("a"), Write::Fork(branch(1, 0, 0)), says("b")]),
        b.commit(vec![says("other")]),
        a.commit(vec![says("c"), Write::ShowBranch(0)]),
        a.commit(vec![says("d")]),
    ];
    let fates = store.commit_group(group).await;
    assert!(fates.iter().all(Result::is_ok), "{fates:?}");
    let root = told(&[(0, "a"), (3, "d")]);
    assert_eq!(texts(&store, &a, 0).await, root);
    assert_eq!(texts(&store, &a, 1).await, told(&[(1, "b"), (2, "c")]));
    assert_eq!(texts(&store, &b, 0).await, told(&[(0, "other")]));
}

async fn a_branch_that_makes_no_sense_is_refused(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    fill(&writer).await;
    let before = writer.load().await;
    for bad in [
        Write::ShowBranch(3),
        Write::Fork(branch(2, 0, 1)),
        Write::Fork(branch(3, 3, 1)),
        Write::Fork(branch(3, 4, 1)),
        Write::Fork(Branch::root()),
        Write::Fork(Branch {
            parent_id: None,
            ..branch(3, 0, 0)
        }),
    ] {
        let fate = writer
            .write(vec![says("no"), bad.clone(), says("no")])
            .await;
        assert!(
            matches!(fate, Err(StoreError::Corrupt(_))),
            "{bad:?} {fate:?}"
        );
    }
    assert_eq!(writer.load().await, before);
}

async fn a_message_is_found_with_its_place(db: TestDb) {
    let store = db.open().await;
    let (writer, other) = (Writer::new(&store).await, Writer::new(&store).await);
    fill(&writer).await;
    for (ordinal, branch_id) in [(0, 0), (4, 1), (6, 2)] {
        let path = path(&writer.load().await.branches, branch_id);
        let ordinals = ordinal..MAX_ORDINAL;
        let stretch = store.context_messages(writer.id, &path, ordinals).await;
        let message = stretch.unwrap().remove(0).1;
        let found = store.message_ordinal(writer.id, message.id).await.unwrap();
        assert_eq!(found, Some((ordinal, branch_id, Message::clone(&message))));
        let elsewhere = store.message_ordinal(other.id, message.id).await;
        assert_eq!(elsewhere, Ok(None));
    }
    let unknown = store.message_ordinal(writer.id, MessageId::new()).await;
    assert_eq!(unknown, Ok(None));
}

async fn a_run_that_said_nothing_is_on_the_branch_that_it_began_on(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let first = run();
    let question = Message {
        id: first.message_id,
        run_id: first.run_id,
        ..user_message("a")
    };
    writer
        .write(vec![
            Write::Message(Arc::new(question)),
            Write::RunStarted(first.clone()),
            ended(&first, RunState::Completed),
        ])
        .await
        .unwrap();
    let branch_of_run = async || writer.load().await.last_run_branch;
    assert_eq!(branch_of_run().await, 0);

    let answers = |run: RunRow| RunRow {
        message_id: first.message_id,
        ..run
    };
    let anew = answers(run());
    let told = EventRow {
        run_id: Some(anew.run_id),
        kind: "branch_changed".to_owned(),
        json: r#"{"seq":1,"type":"branch_changed","branch_id":1}"#.to_owned(),
        ..event(1)
    };
    writer
        .write(vec![
            Write::Fork(branch(1, 0, 1)),
            Write::RunStarted(anew.clone()),
            Write::Event(told),
        ])
        .await
        .unwrap();
    assert_eq!(branch_of_run().await, 1, "it goes");

    writer
        .write(vec![ended(&anew, RunState::Failed)])
        .await
        .unwrap();
    assert_eq!(branch_of_run().await, 1, "it failed");

    let goes_on = answers(run());
    let writes = vec![
        Write::RunStarted(goes_on.clone()),
        ended(&goes_on, RunState::Failed),
        Write::ShowBranch(0),
    ];
    writer.write(writes).await.unwrap();
    let loaded = writer.load().await;
    assert_eq!((loaded.branch_id, loaded.last_run_branch), (0, 1));
}
