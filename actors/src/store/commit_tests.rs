//! What a group of commits does to each of them.

use std::sync::Arc;

use super::testing::{Part, TestDb, Writer, at, ended, event, on_both, run, user_message};
use super::types::{Listed, LogRange, PageLimits};
use super::{KnownMessage, LogItem, StoreError};
use crate::domain::session::write::Write;
use crate::protocol::command::SendMode;
use crate::protocol::file::AttachedFile;
use crate::protocol::ids::{CallId, FileId, MessageId, OwnerId, RunId, SessionId, UserId};
use crate::protocol::message::{Message, MessageState, ToolCall, ToolOutcome};
use crate::protocol::people::PersonRef;
use crate::protocol::plan::{Executor, Plan, PlanStep};
use crate::protocol::session::{QueuedMessage, RunState, SessionState};
use crate::protocol::todo::{Scratchpad, TodoItem, TodoStatus};

on_both!(
    everything_comes_back,
    another_owner_is_fenced,
    one_bad_commit_does_not_cost_the_others,
    seq_goes_on_from_the_last,
    text_cannot_stand_after_an_event_to_come,
    the_same_commit_twice_is_once,
    a_broken_rule_costs_its_own_commit,
    what_is_not_there_cannot_change,
    a_failing_database_writes_nothing,
    a_deleted_session_takes_only_its_restoration,
    a_client_id_is_found_in_queue_and_conversation,
    any_text_survives,
    two_commits_of_a_session_share_a_group,
    of_many_that_stream_each_has_its_own_fate,
);

fn person(name: &str) -> PersonRef {
    PersonRef {
        id: UserId(uuid::Uuid::from_u128(7)),
        name: name.to_owned(),
    }
}

fn a_file() -> AttachedFile {
    AttachedFile {
        file_id: FileId::new(),
        name: "зві\0т.pdf".to_owned(),
        path: "uploads/3f9a1c02.pdf".to_owned(),
        media_type: "application/pdf".to_owned(),
        bytes: 4000,
        image: false,
    }
}

async fn everything_comes_back(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let run = run();
    let user = Message {
        images: vec!["aGk=".to_owned()],
        files: vec![a_file()],
        client_id: Some("c1".to_owned()),
        run_id: run.run_id,
        ..user_message("Hello")
    };
    let call = ToolCall {
        id: CallId::new(),
        name: "todo".to_owned(),
        arguments: serde_json::json!({"b": 1, "a": [null, "ü"]}),
    };
    let assistant = Message {
        thinking: Some("hm".to_owned()),
        tool_calls: vec![call.clone()],
        state: MessageState::Stopped,
        is_plan: true,
        ..Message::assistant(MessageId::new(), run.run_id, at(3))
    };
    let result = Message {
        duration_ms: Some(12),
        ..Message::tool_result(
            run.run_id,
            &call,
            ToolOutcome::OutcomeUnknown,
            "?".to_owned(),
            at(4),
        )
    };
    let queued = QueuedMessage {
        message_id: MessageId::new(),
        run_id: RunId::new(),
        content: "and then".to_owned(),
        images: vec!["eA==".to_owned()],
        files: vec![a_file()],
        client_id: Some("c2".to_owned()),
        mode: SendMode::Steer,
        author: Some(person("Anna")),
        created_at: at(5),
    };
    let todo = vec![TodoItem {
        id: 1,
        text: "look".to_owned(),
        status: TodoStatus::Failed,
        note: Some("could not".to_owned()),
        held: false,
        edited: None,
    }];
    let notes = Scratchpad::from([("findings".to_owned(), "none".to_owned())]);
    let plan = Plan {
        run_id: run.run_id,
        message_id: assistant.id,
        text: "1. look".to_owned(),
        steps: vec![PlanStep {
            number: 1,
            text: "look".to_owned(),
            executor: Executor::Tool {
                tool: "todo".to_owned(),
            },
            milestone: None,
        }],
    };
    let first = writer.event();
    writer
        .write(vec![
            first,
            Write::Message(Arc::new(user.clone())),
            Write::RunStarted(run.clone()),
            Write::Message(Arc::new(assistant.clone())),
            Write::Message(Arc::new(result.clone())),
            Write::Enqueue(queued.clone()),
            Write::EditQueued {
                message_id: queued.message_id,
                content: "and now".to_owned(),
                author: Some(person("Olha")),
            },
            Write::Title("first".to_owned()),
            Write::Title("Greeting".to_owned()),
            Write::Pinned(true),
            Write::Profile("server_admin".to_owned()),
            Write::Model(Some("big:7b".to_owned())),
            Write::ContextTokens(321),
            Write::Plan(None),
            Write::Plan(Some(plan.clone())),
            Write::Todo(todo.clone()),
            Write::Scratchpad(notes.clone()),
            Write::Active(at(6)),
        ])
        .await
        .unwrap();

    let loaded = writer.load().await;
    assert_eq!(loaded.messages, [user, assistant, result]);
    assert_eq!(
        loaded.queue,
        [QueuedMessage {
            content: "and now".to_owned(),
            author: Some(person("Olha")),
            ..queued.clone()
        }]
    );
    assert_eq!(loaded.message_count, 3);
    assert_eq!(loaded.plan, Some(plan));
    assert_eq!((loaded.todo, loaded.scratchpad), (todo, notes));
    assert_eq!((loaded.last_seq, loaded.epoch), (1, 1));
    let last_run = loaded.last_run.unwrap();
    assert_eq!((&last_run.row, last_run.state), (&run, RunState::Running));
    assert_eq!(loaded.summary.title, "Greeting");
    assert_eq!(loaded.summary.profile_id, "server_admin");
    assert_eq!(loaded.summary.context_token_count, 321);
    assert_eq!(loaded.summary.last_active, at(6));
    assert_eq!(loaded.summary.state, SessionState::Running);
    assert!(loaded.summary.pinned);

    writer
        .write(vec![
            ended(&run, RunState::Completed),
            Write::Dequeue(queued.message_id),
            Write::Plan(None),
        ])
        .await
        .unwrap();
    let loaded = writer.load().await;
    assert_eq!((loaded.queue, loaded.plan), (Vec::new(), None));
    assert_eq!(loaded.last_run.unwrap().state, RunState::Completed);
    assert_eq!(loaded.summary.state, SessionState::Idle);
}

async fn another_owner_is_fenced(db: TestDb) {
    let store = db.open().await;
    let old = Writer::new(&store).await;
    let first = old.event();
    old.write(vec![first]).await.unwrap();

    let new_owner = OwnerId::new();
    let taken = store.take_session(old.id, &new_owner).await.unwrap();
    assert_eq!(taken.epoch, old.epoch + 1);
    let again = store.take_session(old.id, &new_owner).await.unwrap();
    assert_eq!(again.epoch, taken.epoch, "it has it already");

    let late = vec![
        Write::Event(event(2)),
        Write::Message(Arc::new(user_message("late"))),
        Write::Title("late".to_owned()),
    ];
    assert_eq!(old.write(late.clone()).await, Err(StoreError::Fenced));
    let of_old_epoch = Writer {
        owner: new_owner.clone(),
        ..old.clone()
    };
    assert_eq!(of_old_epoch.write(late).await, Err(StoreError::Fenced));
    assert_eq!(
        store.take_session(old.id, &new_owner).await.unwrap(),
        taken,
        "nothing of it was written"
    );
}

async fn one_bad_commit_does_not_cost_the_others(db: TestDb) {
    let store = db.open().await;
    let (a, b, c) = (
        Writer::new(&store).await,
        Writer::new(&store).await,
        Writer::new(&store).await,
    );
    store.take_session(b.id, &OwnerId::new()).await.unwrap();
    let unknown = Writer {
        id: SessionId::new(),
        ..a.clone()
    };
    let group = vec![
        a.commit(vec![a.event(), Write::Message(Arc::new(user_message("a")))]),
        b.commit(vec![b.event(), Write::Message(Arc::new(user_message("b")))]),
        unknown.commit(vec![Write::Pinned(true)]),
        c.commit(vec![c.event(), Write::Message(Arc::new(user_message("c")))]),
    ];
    assert_eq!(
        store.commit_group(group).await,
        [
            Ok(()),
            Err(StoreError::Fenced),
            Err(StoreError::SessionNotFound),
            Ok(())
        ]
    );
    for (writer, messages, seq) in [(&a, 1, 1), (&b, 0, 0), (&c, 1, 1)] {
        let loaded = writer.load().await;
        assert_eq!((loaded.message_count, loaded.last_seq), (messages, seq));
    }
    assert_eq!(store.commit_group(Vec::new()).await, []);
}

async fn seq_goes_on_from_the_last(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let events = |seqs: &[u64]| seqs.iter().map(|s| Write::Event(event(*s))).collect();
    for bad in [&[0_u64][..], &[2], &[1, 3], &[1, 1], &[2, 1], &[u64::MAX]] {
        let fate = writer.write(events(bad)).await;
        assert!(
            matches!(fate, Err(StoreError::Corrupt(_))),
            "{bad:?}: {fate:?}"
        );
    }
    writer.write(events(&[1, 2, 3])).await.unwrap();
    writer.write(events(&[4])).await.unwrap();
    for bad in [&[4_u64, 5][..], &[6], &[3, 4, 5]] {
        let mut writes: Vec<Write> = events(bad);
        writes.push(Write::Message(Arc::new(user_message("no"))));
        let fate = writer.write(writes).await;
        assert!(
            matches!(fate, Err(StoreError::Corrupt(_))),
            "{bad:?}: {fate:?}"
        );
    }
    let loaded = writer.load().await;
    assert_eq!((loaded.last_seq, loaded.message_count), (4, 0));
}

async fn text_cannot_stand_after_an_event_to_come(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let mut part = Part::text(&run(), MessageId::new());
    let mut chunk = |after| Write::Chunk(part.piece(after, "x"));
    let early = writer.write(vec![chunk(1)]).await;
    assert!(matches!(early, Err(StoreError::Corrupt(_))), "{early:?}");
    let early = writer.write(vec![Write::Event(event(1)), chunk(2)]).await;
    assert!(matches!(early, Err(StoreError::Corrupt(_))), "{early:?}");
    writer
        .write(vec![chunk(0), Write::Event(event(1)), chunk(1)])
        .await
        .unwrap();
    writer.write(vec![chunk(1)]).await.unwrap();
}

async fn the_same_commit_twice_is_once(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let mut part = Part::text(&run(), MessageId::new());
    let writes = vec![
        writer.event(),
        Write::Message(Arc::new(user_message("once"))),
        Write::Chunk(part.piece(1, "once")),
    ];
    writer.write(writes.clone()).await.unwrap();
    writer.write(writes).await.unwrap();
    // Text alone carries no event to know it by: its place in its part does.
    let text = Write::Chunk(part.piece(1, " more"));
    writer.write(vec![text.clone()]).await.unwrap();
    writer.write(vec![text]).await.unwrap();
    let end = writer.event();
    writer.write(vec![end]).await.unwrap();

    assert_eq!(store.messages(writer.id).await.unwrap().len(), 1);
    let range = LogRange {
        from: Default::default(),
        to_seq: 2,
    };
    let limits = PageLimits {
        items: 10,
        bytes: 1_000,
    };
    let page = store
        .log_page(writer.id, range, limits)
        .await
        .unwrap()
        .unwrap();
    let texts: Vec<_> = page
        .items
        .iter()
        .filter_map(|item| match item {
            LogItem::Chunk(chunk) => Some(chunk.text.as_str()),
            LogItem::Event(_) => None,
        })
        .collect();
    assert_eq!(texts, ["once more"]);
}

async fn a_broken_rule_costs_its_own_commit(db: TestDb) {
    let store = db.open().await;
    let (a, b) = (Writer::new(&store).await, Writer::new(&store).await);
    let twice = Message {
        client_id: Some("same".to_owned()),
        ..user_message("first")
    };
    a.write(vec![Write::Message(Arc::new(twice.clone()))])
        .await
        .unwrap();
    let second = Message {
        id: MessageId::new(),
        ..twice
    };
    let group = vec![
        b.commit(vec![b.event(), Write::Message(Arc::new(user_message("b")))]),
        a.commit(vec![a.event(), Write::Message(Arc::new(second))]),
        b.commit(vec![b.event()]),
    ];
    let fates = store.commit_group(group).await;
    assert_eq!((&fates[0], &fates[2]), (&Ok(()), &Ok(())));
    assert!(matches!(fates[1], Err(StoreError::Corrupt(_))), "{fates:?}");
    let (a, b) = (a.load().await, b.load().await);
    assert_eq!((a.message_count, a.last_seq), (1, 0));
    assert_eq!((b.message_count, b.last_seq), (1, 2));
}

async fn what_is_not_there_cannot_change(db: TestDb) {
    let store = db.open().await;
    let (a, b) = (Writer::new(&store).await, Writer::new(&store).await);
    let run = run();
    a.write(vec![Write::RunStarted(run.clone())]).await.unwrap();
    for bad in [
        Write::Dequeue(MessageId::new()),
        Write::EditQueued {
            message_id: MessageId::new(),
            content: String::new(),
            author: None,
        },
        ended(&run, RunState::Failed),
    ] {
        let fate = b.write(vec![Write::Pinned(true), bad]).await;
        assert!(matches!(fate, Err(StoreError::Corrupt(_))), "{fate:?}");
    }
    assert!(!b.load().await.summary.pinned);
    assert_eq!(a.load().await.last_run.unwrap().state, RunState::Running);
}

async fn a_failing_database_writes_nothing(db: TestDb) {
    use sea_orm::ConnectionTrait;

    let store = db.open().await;
    let (a, b) = (Writer::new(&store).await, Writer::new(&store).await);
    let rename = |from, to| format!("ALTER TABLE {from} RENAME TO {to}");
    let broken = rename("messages", "messages_away");
    store.write.execute_unprepared(&broken).await.unwrap();
    let group = vec![
        a.commit(vec![a.event()]),
        b.commit(vec![b.event(), Write::Message(Arc::new(user_message("b")))]),
    ];
    let fates = store.commit_group(group.clone()).await;
    assert!(
        fates
            .iter()
            .all(|fate| matches!(fate, Err(StoreError::Unavailable(_)))),
        "{fates:?}"
    );
    let mended = rename("messages_away", "messages");
    store.write.execute_unprepared(&mended).await.unwrap();
    assert_eq!(a.load().await.last_seq, 0);
    assert_eq!(store.commit_group(group).await, [Ok(()), Ok(())]);

    store.close().await.unwrap();
    let closed = a.write(vec![Write::Pinned(true)]).await;
    assert!(
        matches!(closed, Err(StoreError::Unavailable(_))),
        "{closed:?}"
    );
}

async fn a_deleted_session_takes_only_its_restoration(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let user_id = store.local_user().await.unwrap().id;
    let gone = Err(StoreError::SessionNotFound);
    writer
        .write(vec![Write::Deleted(Some(at(7)))])
        .await
        .unwrap();
    assert_eq!(writer.write(vec![Write::Pinned(true)]).await, gone);
    let again = vec![Write::Deleted(Some(at(8)))];
    assert_eq!(writer.write(again).await, gone);
    assert_eq!(
        store.list_sessions(user_id, Listed::Current).await.unwrap(),
        []
    );
    writer.write(vec![Write::Deleted(None)]).await.unwrap();
    writer.write(vec![Write::Pinned(true)]).await.unwrap();
    assert_eq!(
        store
            .list_sessions(user_id, Listed::Current)
            .await
            .unwrap()
            .len(),
        1
    );
}

async fn a_client_id_is_found_in_queue_and_conversation(db: TestDb) {
    let store = db.open().await;
    let (writer, other) = (Writer::new(&store).await, Writer::new(&store).await);
    let queued = QueuedMessage {
        message_id: MessageId::new(),
        run_id: RunId::new(),
        content: "later".to_owned(),
        images: Vec::new(),
        files: Vec::new(),
        client_id: Some("c\0".to_owned()),
        mode: SendMode::Queue,
        author: None,
        created_at: at(1),
    };
    writer
        .write(vec![Write::Enqueue(queued.clone())])
        .await
        .unwrap();
    let find =
        async |writer: &Writer, id: &str| store.message_by_client_id(writer.id, id).await.unwrap();
    assert_eq!(
        find(&writer, "c\0").await,
        Some(KnownMessage::Queued(queued.clone()))
    );
    assert_eq!(find(&other, "c\0").await, None);
    assert_eq!(find(&writer, "c").await, None);

    let message = Message {
        id: queued.message_id,
        run_id: queued.run_id,
        client_id: queued.client_id.clone(),
        ..user_message("later")
    };
    writer
        .write(vec![
            Write::Dequeue(queued.message_id),
            Write::Message(Arc::new(message.clone())),
        ])
        .await
        .unwrap();
    assert_eq!(
        find(&writer, "c\0").await,
        Some(KnownMessage::Sent(message))
    );
}

async fn any_text_survives(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let text = "\0 ü 👩‍👩‍👧 \u{FDD0}0 \u{FFFF} \r\n'\"\\ \u{202e}end\0";
    let (run, message_id) = (run(), MessageId::new());
    let mut part = Part::text(&run, message_id);
    let event = writer.event();
    writer
        .write(vec![
            event,
            Write::Title(text.to_owned()),
            Write::Message(Arc::new(user_message(text))),
            Write::RunStarted(run),
            Write::Chunk(part.piece(1, text)),
            Write::Todo(vec![TodoItem {
                id: 1,
                text: text.to_owned(),
                status: TodoStatus::Pending,
                note: None,
                held: false,
                edited: None,
            }]),
        ])
        .await
        .unwrap();
    let loaded = writer.load().await;
    assert_eq!(loaded.summary.title, text);
    let messages = store.messages(writer.id).await.unwrap();
    assert_eq!(messages[0].content.as_deref(), Some(text));
    assert_eq!(loaded.unfinished_parts[0].text, text);
    assert_eq!(loaded.todo[0].text, text);
}

async fn two_commits_of_a_session_share_a_group(db: TestDb) {
    let store = db.open().await;
    let writer = Writer::new(&store).await;
    let texts: Vec<_> = (0..450).map(|n| format!("message {n}")).collect();
    let group = texts
        .chunks(150)
        .map(|texts| {
            let mut writes = vec![writer.event()];
            writes.extend(
                texts
                    .iter()
                    .map(|t| Write::Message(Arc::new(user_message(t)))),
            );
            writer.commit(writes)
        })
        .collect();
    let fates = store.commit_group(group).await;
    assert!(fates.iter().all(Result::is_ok), "{fates:?}");
    let messages = store.messages(writer.id).await.unwrap();
    let read: Vec<_> = messages.into_iter().filter_map(|m| m.content).collect();
    assert_eq!(read, texts);
}

async fn of_many_that_stream_each_has_its_own_fate(db: TestDb) {
    let store = db.open().await;
    let text = |writer: &Writer, after| {
        let mut part = Part::text(&run(), MessageId::new());
        writer.commit(vec![Write::Chunk(part.piece(after, "x"))])
    };
    let (first, fenced, deleted, goes_on) = (
        Writer::new(&store).await,
        Writer::new(&store).await,
        Writer::new(&store).await,
        Writer::new(&store).await,
    );
    let new_owner = OwnerId::new();
    store.take_session(fenced.id, &new_owner).await.unwrap();
    let gone = vec![Write::Deleted(Some(at(7)))];
    deleted.write(gone).await.unwrap();
    let fates = store
        .commit_group(vec![
            text(&first, 0),
            text(&fenced, 0),
            text(&deleted, 0),
            goes_on.commit(vec![Write::Event(event(1))]),
            text(&goes_on, 1),
        ])
        .await;
    let refused = [StoreError::Fenced, StoreError::SessionNotFound].map(Err);
    assert_eq!(fates[1..3], refused);
    assert_eq!([&fates[0], &fates[3], &fates[4]], [&Ok(()); 3]);
    let range = LogRange {
        from: Default::default(),
        to_seq: 2,
    };
    let limits = PageLimits {
        items: 9,
        bytes: 1_000,
    };
    for (writer, items) in [(first, 1), (goes_on, 2), (fenced, 0)] {
        let page = store.log_page(writer.id, range, limits).await.unwrap();
        assert_eq!(page.unwrap().items.len(), items);
    }
}
