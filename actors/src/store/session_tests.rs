//! Which sessions there are, and what their actor finds.

use std::sync::Arc;

use super::StoreError;
use super::testing::{Part, TestDb, Writer, at, ended, on_both, run, user_message};
use super::types::{Listed, NewSession};
use crate::domain::run_loop::EndReason;
use crate::domain::session::write::{RunRow, Write};
use crate::protocol::command::SendMode;
use crate::protocol::event::PartKind;
use crate::protocol::ids::{CallId, MessageId, OwnerId, PartId, RunId, SessionId, UserId};
use crate::protocol::message::{Message, ToolCall, ToolOutcome};
use crate::protocol::people::UserRole;
use crate::protocol::phrase::{Phrase, PhraseCode};
use crate::protocol::session::{QueuedMessage, RunState, SessionState};

on_both!(
    the_list_is_pinned_first_then_latest,
    what_is_put_away_stands_in_a_list_of_its_own,
    a_session_of_one_answer_is_in_no_list_and_goes_by_itself,
    a_session_is_its_users_alone,
    a_deleted_session_can_be_restored_until_it_is_purged,
    unfinished_parts_are_what_no_message_holds,
    parts_of_the_newest_run_are_known_to_go_across_events,
    the_last_run_is_the_newest_in_the_foreground,
    why_the_last_run_ended_is_read_with_its_code,
    two_handles_write_at_once,
    a_session_that_is_seized_fences_its_own_owner,
    sessions_with_a_message_that_waits_are_known,
);

async fn the_list_is_pinned_first_then_latest(db: TestDb) {
    let store = db.open().await;
    let user_id = store.local_user().await.unwrap().id;
    let mut ids = Vec::new();
    for (pinned, active) in [(false, 5), (true, 1), (false, 9), (true, 3)] {
        let writer = Writer::new(&store).await;
        let writes = vec![Write::Pinned(pinned), Write::Active(at(active))];
        writer.write(writes).await.unwrap();
        ids.push(writer.id);
    }
    let list = store.list_sessions(user_id, Listed::Current).await.unwrap();
    let order: Vec<_> = list.iter().map(|summary| summary.id).collect();
    assert_eq!(order, [ids[3], ids[1], ids[2], ids[0]]);
    assert!(list.iter().all(|s| s.state == SessionState::Idle));
    for summary in list {
        let found = store.find_session(user_id, summary.id).await.unwrap();
        assert_eq!(found, summary);
    }
}

async fn a_session_of_one_answer_is_in_no_list_and_goes_by_itself(db: TestDb) {
    let store = db.open().await;
    let user_id = store.local_user().await.unwrap().id;
    let writer = Writer::ephemeral(&store).await;
    let run = run();
    let writes = vec![
        Write::Active(at(5)),
        Write::Message(Arc::new(user_message("mountains"))),
        Write::RunStarted(run.clone()),
    ];
    writer.write(writes).await.unwrap();
    let list = store.list_sessions(user_id, Listed::Current).await.unwrap();
    assert_eq!(list, []);
    assert_eq!(store.search(user_id, "mountains", 5, 0).await, Ok(vec![]));
    let unread = store.unread_sessions(user_id, at(100), 5).await.unwrap();
    assert_eq!(unread, []);
    let found = store.find_session(user_id, writer.id).await.unwrap();
    assert!(found.ephemeral);

    // Not while it answers, and not before its time.
    let gone = async |before| {
        let gone = store.delete_ephemeral(before, at(200)).await.unwrap();
        assert_eq!(store.deleted_before(at(300)).await.unwrap(), gone);
        gone
    };
    assert_eq!(gone(at(100)).await, []);
    let over = vec![ended(&run, RunState::Completed)];
    writer.write(over).await.unwrap();
    assert_eq!(gone(at(5)).await, []);
    assert_eq!(gone(at(6)).await, [writer.id]);
}

async fn what_is_put_away_stands_in_a_list_of_its_own(db: TestDb) {
    let store = db.open().await;
    let user_id = store.local_user().await.unwrap().id;
    let (kept, away) = (Writer::new(&store).await, Writer::new(&store).await);
    let title = "Autumn in the mountains".to_owned();
    let tags = vec!["trips".to_owned(), "Карпати \"23\"".to_owned()];
    let writes = vec![
        Write::Title(title),
        Write::Archived(true),
        Write::Tags(tags.clone()),
    ];
    away.write(writes).await.unwrap();
    let ids = async |listed| -> Vec<SessionId> {
        let list = store.list_sessions(user_id, listed).await.unwrap();
        list.iter().map(|summary| summary.id).collect()
    };
    assert_eq!(ids(Listed::Current).await, [kept.id]);
    assert_eq!(ids(Listed::Archived).await, [away.id]);
    assert!(away.load().await.summary.archived);
    assert_eq!(away.load().await.summary.tags, tags);
    let listed = store.list_sessions(user_id, Listed::Archived).await;
    assert_eq!(listed.unwrap()[0].tags, tags);
    assert!(!kept.load().await.summary.archived);
    let found = store.search(user_id, "autumn", 10, 0).await.unwrap();
    assert!(found.len() == 1 && found[0].session_archived, "{found:?}");

    let delete = vec![Write::Deleted(Some(at(1)))];
    away.write(delete).await.unwrap();
    assert_eq!(ids(Listed::Archived).await, []);
    assert!(store.restore(user_id, away.id).await.unwrap().archived);
    away.write(vec![Write::Archived(false)]).await.unwrap();
    assert_eq!(ids(Listed::Archived).await, []);
    let found = store.search(user_id, "autumn", 10, 0).await.unwrap();
    assert!(!found[0].session_archived);
}

async fn a_session_is_its_users_alone(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let owner = store.session_owner_user(writer.id).await.unwrap();
    let other = store.create_user("Ann\0", UserRole::User).await.unwrap();
    assert_eq!(store.user(other.id).await.unwrap(), Some(other.clone()));
    assert_eq!(owner, store.local_user().await.unwrap().id);
    let missing = Err(StoreError::SessionNotFound);
    assert_eq!(store.find_session(other.id, writer.id).await, missing);
    let of_other = store.list_sessions(other.id, Listed::Current).await;
    assert_eq!(of_other, Ok(vec![]));
    let delete = vec![Write::Deleted(Some(at(1)))];
    writer.write(delete).await.unwrap();
    assert_eq!(store.restore(other.id, writer.id).await, missing);

    let unknown_user = NewSession {
        id: SessionId::new(),
        user_id: UserId::new(),
        title: String::new(),
        mode: crate::protocol::approval::ConsentMode::default(),
        model: None,
        profile_id: String::new(),
        ephemeral: false,
        created_at: at(0),
    };
    let refused = store.create_session(unknown_user, &writer.owner).await;
    assert!(
        matches!(refused, Err(StoreError::Corrupt(_))),
        "{refused:?}"
    );
    assert_eq!(other.role, UserRole::User);
}

async fn a_deleted_session_can_be_restored_until_it_is_purged(db: TestDb) {
    let store = db.open().await;
    let user_id = store.local_user().await.unwrap().id;
    let writer = Writer::new(&store).await;
    let run = run();
    let mut part = Part::text(&run, MessageId::new());
    let writes = vec![
        writer.event(),
        Write::Message(Arc::new(user_message("hi"))),
        Write::RunStarted(run),
        Write::Chunk(part.piece(1, "he")),
    ];
    writer.write(writes).await.unwrap();
    let before = writer.load().await;
    let missing = StoreError::SessionNotFound;
    let purged = store.purge_session(writer.id, at(0)).await;
    assert_eq!(purged, Err(missing.clone()));
    assert_eq!(
        store.restore(user_id, writer.id).await,
        Err(missing.clone())
    );

    let delete = vec![Write::Deleted(Some(at(10)))];
    writer.write(delete.clone()).await.unwrap();
    let id = writer.id;
    assert_eq!(store.find_session(user_id, id).await, Err(missing.clone()));
    assert_eq!(store.session_owner_user(id).await, Err(missing.clone()));
    assert_eq!(store.messages(id).await, Err(missing.clone()));
    let taken = store.take_session(id, &OwnerId::new()).await;
    assert_eq!(taken, Err(missing.clone()));
    assert_eq!(store.running_sessions().await.unwrap(), []);
    assert_eq!(store.deleted_before(at(10)).await.unwrap(), []);
    assert_eq!(store.deleted_before(at(11)).await.unwrap(), [id]);

    let restored = store.restore(user_id, id).await.unwrap();
    assert_eq!(restored, before.summary);
    assert_eq!(writer.load().await, before);

    writer.write(delete).await.unwrap();
    store.purge_session(id, at(0)).await.unwrap();
    assert_eq!(store.restore(user_id, id).await, Err(missing));
    for table in ["messages", "runs", "events", "chunks", "branches"] {
        assert_eq!(count(&store, table).await, 0, "{table}");
    }
}

async fn count(store: &super::Store, table: &str) -> i64 {
    use sea_orm::{ConnectionTrait, Statement};

    let sql = format!("SELECT COUNT(*) FROM {table}");
    let statement = Statement::from_string(store.read.get_database_backend(), sql);
    let row = store.read.query_one_raw(statement).await.unwrap();
    row.unwrap().try_get_by(0).unwrap()
}

async fn unfinished_parts_are_what_no_message_holds(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let (old, run) = (run(), run());
    let call = |name: &str| ToolCall {
        id: CallId::new(),
        name: name.to_owned(),
        arguments: serde_json::json!({}),
    };
    let (answered, open) = (call("answered"), call("open"));
    let asking = Message {
        content: Some("I look".to_owned()),
        tool_calls: vec![answered.clone(), open.clone()],
        ..Message::assistant(MessageId::new(), run.run_id, at(3))
    };
    let result = Message::tool_result(
        run.run_id,
        &answered,
        ToolOutcome::Success,
        "out".to_owned(),
        at(4),
    );
    let next = MessageId::new();
    let output = |call: &ToolCall| {
        Part::new(
            &run,
            asking.id,
            PartId::output(&call.id),
            PartKind::ToolOutput,
        )
    };
    let mut of_old = Part::text(&old, MessageId::new());
    let mut held = Part::text(&run, asking.id);
    let (mut out_held, mut out_open) = (output(&answered), output(&open));
    let mut thinking = Part::new(&run, next, PartId::thinking(next), PartKind::Thinking);
    let mut text = Part::text(&run, next);
    writer
        .write(vec![
            Write::RunStarted(old.clone()),
            writer.event(),
            Write::Chunk(of_old.piece(1, "ended")),
            ended(&old, RunState::Completed),
            Write::RunStarted(run.clone()),
            writer.event(),
            Write::Chunk(held.piece(2, "I look")),
            Write::Message(Arc::new(asking.clone())),
            Write::Chunk(out_held.piece(2, "out")),
            Write::Chunk(out_open.piece(2, "li")),
            Write::Message(Arc::new(result)),
            writer.event(),
            Write::Chunk(thinking.piece(3, "so ")),
            Write::Chunk(out_open.piece(3, "ne")),
            Write::Chunk(thinking.piece(3, "far")),
            writer.event(),
            Write::Chunk(text.piece(4, "Wö")),
        ])
        .await
        .unwrap();
    writer
        .write(vec![Write::Chunk(text.piece(4, "rd"))])
        .await
        .unwrap();

    assert_eq!(store.running_sessions().await.unwrap(), [writer.id]);
    let loaded = store
        .take_session(writer.id, &OwnerId::new())
        .await
        .unwrap();
    let parts: Vec<_> = loaded
        .unfinished_parts
        .iter()
        .map(|part| (part.kind, part.text.as_str(), part.offset, part.after_seq))
        .collect();
    assert_eq!(
        parts,
        [
            (PartKind::ToolOutput, "line", 0, 3),
            (PartKind::Thinking, "so far", 0, 3),
            (PartKind::Text, "Wörd", 0, 4),
        ]
    );

    let recovering = Writer {
        epoch: loaded.epoch,
        owner: writer.owner.clone(),
        ..writer.clone()
    };
    let taken_back = recovering.load().await;
    let recovering = Writer {
        epoch: taken_back.epoch,
        ..recovering
    };
    recovering
        .write(vec![ended(&run, RunState::Interrupted)])
        .await
        .unwrap();
    let loaded = recovering.load().await;
    assert_eq!(loaded.unfinished_parts, []);
    assert_eq!(loaded.summary.state, SessionState::Interrupted);
    assert_eq!(store.running_sessions().await.unwrap(), []);
}

async fn parts_of_the_newest_run_are_known_to_go_across_events(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let (old, run) = (run(), run());
    let child = RunRow {
        run_id: RunId::new(),
        parent_run_id: Some(run.run_id),
        ..run.clone()
    };
    let answer = Message::assistant(MessageId::new(), run.run_id, at(3));
    let mut of_old = Part::text(&old, MessageId::new());
    let mut of_child = Part::text(&child, MessageId::new());
    let mut ends = Part::text(&run, answer.id);
    let mut goes_on = Part::text(&run, MessageId::new());
    writer
        .write(vec![
            Write::RunStarted(old.clone()),
            writer.event(),
            Write::Chunk(of_old.piece(1, "old")),
            ended(&old, RunState::Completed),
            Write::RunStarted(run.clone()),
            writer.event(),
            Write::Chunk(ends.piece(2, "one ")),
            Write::RunStarted(child),
            writer.event(),
            Write::Chunk(of_child.piece(3, "child")),
            Write::Chunk(ends.piece(3, "two")),
            Write::Message(Arc::new(answer)),
            writer.event(),
            Write::Chunk(goes_on.piece(4, "Wö")),
            writer.event(),
            Write::Chunk(goes_on.piece(5, "rd")),
        ])
        .await
        .unwrap();
    let known: Vec<_> = writer
        .load()
        .await
        .spans
        .into_iter()
        .map(|span| (span.part_id, span.after, span.until))
        .collect();
    assert_eq!(
        known,
        [
            (ends.part_id(), 2, 4),
            (of_child.part_id(), 3, 5),
            (goes_on.part_id(), 4, 5),
        ]
    );
}

async fn why_the_last_run_ended_is_read_with_its_code(db: TestDb) {
    let store = db.open().await;
    let phrase = Phrase::from(PhraseCode::Remedied)
        .with("problem", PhraseCode::StarterOff)
        .with("remedy", PhraseCode::UnsetStarter);
    for code in [None, Some(phrase)] {
        let failed = run();
        let expected = EndReason {
            text: "the starter model is turned off".to_owned(),
            phrase: code,
        };
        let mut end = ended(&failed, RunState::Failed);
        if let Write::RunEnded { reason, .. } = &mut end {
            *reason = Some(expected.clone());
        }
        let writes = vec![Write::RunStarted(failed), end];
        let writer = Writer::new(&store).await;
        writer.write(writes).await.unwrap();
        let read = writer.load().await.last_run.unwrap().reason;
        assert_eq!(read, Some(expected));
    }
}

async fn the_last_run_is_the_newest_in_the_foreground(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    assert_eq!(writer.load().await.last_run, None);
    let (first, second) = (run(), run());
    let child = RunRow {
        run_id: RunId::new(),
        parent_run_id: Some(second.run_id),
        call_id: None,
        ..second.clone()
    };
    writer
        .write(vec![
            Write::RunStarted(first.clone()),
            ended(&first, RunState::Failed),
        ])
        .await
        .unwrap();
    assert_eq!(writer.load().await.summary.state, SessionState::Failed);
    writer
        .write(vec![
            Write::RunStarted(second.clone()),
            Write::RunStarted(child.clone()),
            ended(&child, RunState::Completed),
        ])
        .await
        .unwrap();
    let loaded = writer.load().await;
    assert_eq!(loaded.last_run.unwrap().row, second);
    assert_eq!(loaded.summary.state, SessionState::Running);
}

async fn two_handles_write_at_once(db: TestDb) {
    let (one, two) = (db.open().await, db.open().await);
    let write_many = async |store: &super::Store| {
        let writers = [Writer::new(store).await, Writer::new(store).await];
        for n in 0..50 {
            let group = writers.iter().map(|writer| {
                let message = user_message(&format!("message {n}"));
                writer.commit(vec![writer.event(), Write::Message(Arc::new(message))])
            });
            let fates = store.commit_group(group.collect()).await;
            assert_eq!(fates, [Ok(()), Ok(())]);
        }
        writers
    };
    let (of_one, of_two) = futures_util::future::join(write_many(&one), write_many(&two)).await;
    for writer in of_one.into_iter().chain(of_two) {
        for store in [&one, &two] {
            assert_eq!(store.messages(writer.id).await.unwrap().len(), 50);
        }
    }
}

async fn a_session_that_is_seized_fences_its_own_owner(db: TestDb) {
    let store = db.open().await;
    let hangs = Writer::new(&store).await;
    let seized = store.seize_session(hangs.id, &hangs.owner).await.unwrap();
    assert_eq!(seized.epoch, hangs.epoch + 1);
    let late = vec![Write::Message(Arc::new(user_message("late")))];
    assert_eq!(hangs.write(late).await, Err(StoreError::Fenced));
    let kept = store.take_session(hangs.id, &hangs.owner).await.unwrap();
    assert_eq!(kept, seized, "it is only moved on where it is seized");
}

async fn sessions_with_a_message_that_waits_are_known(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    assert_eq!(store.waiting_sessions().await.unwrap(), []);
    let waits = QueuedMessage {
        message_id: MessageId::new(),
        run_id: RunId::new(),
        content: "and then".to_owned(),
        images: Vec::new(),
        files: Vec::new(),
        client_id: None,
        mode: SendMode::Queue,
        author: None,
        created_at: at(1),
    };
    writer.write(vec![Write::Enqueue(waits)]).await.unwrap();
    assert_eq!(store.waiting_sessions().await.unwrap(), [writer.id]);
    writer.write(vec![Write::Held(true)]).await.unwrap();
    assert_eq!(store.waiting_sessions().await.unwrap(), [], "held back");
    let gone = vec![Write::Held(false), Write::Deleted(Some(at(2)))];
    writer.write(gone).await.unwrap();
    assert_eq!(store.waiting_sessions().await.unwrap(), [], "deleted");
}
