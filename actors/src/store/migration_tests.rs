//! Databases of earlier releases, brought up to date and taken back.

use std::sync::Arc;

use navi_migrations::Migrator;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, EntityTrait, QueryOrder};
use sea_orm_migration::prelude::*;
use uuid::Uuid;

use super::Store;
use super::entities::chunk;
use super::open_tests::schema;
use super::testing::{TestDb, on_both, user_message};
use super::types::Commit;
use crate::domain::history::{Branch, ContextState};
use crate::domain::session::write::Write;
use crate::protocol::command::SendMode;
use crate::protocol::ids::{OwnerId, SessionId};

on_both!(
    a_database_of_the_first_release_comes_up_to_date,
    every_step_goes_down_and_up_again,
    what_a_stop_left_waiting_is_held_after_the_upgrade,
);

/// The first release's schema.
struct FirstRelease;

impl MigratorTrait for FirstRelease {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        Migrator::migrations().into_iter().take(1).collect()
    }
}

/// A session of the first release: two messages, a run, what it streamed, a message that waits.
async fn populate(db: &DatabaseConnection) -> SessionId {
    let id = |n: u128| {
        let hex = Uuid::from_u128(n).simple().to_string();
        match db.get_database_backend() {
            DbBackend::Sqlite => format!("x'{hex}'"),
            _ => format!("'{hex}'"),
        }
    };
    let at = "'2027-01-15 08:00:00+00:00'";
    let (user, session, run) = (id(1), id(2), id(3));
    let (asked, said, waits) = (id(4), id(5), id(6));
    for insert in [
        format!("users VALUES ({user}, 'Ann', 'user', {at})"),
        format!(
            "sessions VALUES ({session}, {user}, 'Old talk', 'secretary', FALSE, '[]', '{{}}',
             7, 0, 2, {run}, NULL, 1, NULL, {at}, {at})"
        ),
        format!(
            "messages (id, session_id, ordinal, run_id, role, content, state, is_summary, is_plan, created_at)
             VALUES ({asked}, {session}, 0, {run}, 'user', 'Where is Київ?', 'complete', FALSE, FALSE, {at}),
                    ({said}, {session}, 1, {run}, 'assistant', 'In Україна.', 'complete', FALSE, FALSE, {at})"
        ),
        format!(
            "runs VALUES ({run}, {session}, NULL, {asked}, 'secretary', 'ollama', 'm', 'completed',
             NULL, 1, 2, 3, {at}, {at})"
        ),
        format!(
            "chunks (id, session_id, after_seq, run_id, message_id, part_id, kind, \"offset\", text)
             VALUES (7, {session}, 0, {run}, {said}, 'p', 'text', 0, 'In '),
                    (9, {session}, 0, {run}, {said}, 'p', 'text', 3, 'Україна.')"
        ),
        format!(
            "queued_messages (session_id, message_id, run_id, content, created_at)
             VALUES ({session}, {waits}, {run}, 'and then?', {at})"
        ),
    ] {
        let insert = format!("INSERT INTO {insert}");
        db.execute_unprepared(&insert).await.unwrap();
    }
    SessionId(Uuid::from_u128(2))
}

/// What the log has of streamed text.
async fn streamed(store: &Store) -> Vec<(i64, i64, String)> {
    let rows = chunk::Entity::find().order_by_asc(chunk::Column::Id);
    let rows = rows.all(&store.read).await.unwrap().into_iter();
    rows.map(|row| (row.id, row.pieces, row.text.0)).collect()
}

async fn a_database_of_the_first_release_comes_up_to_date(db: TestDb) {
    let old = Store::open_as_it_is(&db.config).await.unwrap();
    navi_migrations::up::<FirstRelease>(&old.write)
        .await
        .unwrap();
    let id = populate(&old.write).await;
    old.close().await.unwrap();

    let store = db.open().await;
    let owner = OwnerId::new();
    let loaded = store.take_session(id, &owner).await.unwrap();
    assert_eq!(
        (loaded.branches, loaded.branch_id),
        (vec![Branch::root()], 0)
    );
    assert_eq!((loaded.message_count, loaded.messages.len()), (2, 2));
    assert_eq!(loaded.queue[0].mode, SendMode::Queue);
    assert!(!loaded.held, "its last run was not stopped");
    assert_eq!(loaded.plan, None);
    let expected = [(7, 1, "In ".to_owned()), (9, 1, "Україна.".to_owned())];
    assert_eq!(streamed(&store).await, expected);
    let user_id = loaded.summary.user_id;
    for (query, hits) in [("old", 1), ("КИЇВ", 1), ("україна", 1), ("then", 0)] {
        let found = store.search(user_id, query, 10, 0).await.unwrap();
        assert_eq!(found.len(), hits, "{query}");
    }
    let context = ContextState {
        start: 1,
        ..ContextState::default()
    };
    let commit = Commit {
        session_id: id,
        owner,
        epoch: loaded.epoch,
        writes: vec![
            Write::Context {
                branch_id: 0,
                context,
            },
            Write::Message(Arc::new(user_message("a third"))),
        ],
    };
    assert_eq!(store.commit_group(vec![commit]).await, [Ok(())]);
    assert_eq!(store.messages(id).await.unwrap().len(), 3);
    let found = store.search(user_id, "third", 10, 0).await.unwrap();
    assert_eq!(found.len(), 1);
}

async fn what_a_stop_left_waiting_is_held_after_the_upgrade(db: TestDb) {
    let old = Store::open_as_it_is(&db.config).await.unwrap();
    navi_migrations::up::<FirstRelease>(&old.write)
        .await
        .unwrap();
    let id = populate(&old.write).await;
    let stopped = "UPDATE runs SET state = 'stopped'";
    old.write.execute_unprepared(stopped).await.unwrap();
    old.close().await.unwrap();

    let store = db.open().await;
    let loaded = store.take_session(id, &OwnerId::new()).await.unwrap();
    assert_eq!((loaded.queue.len(), loaded.held), (1, true));
}

async fn every_step_goes_down_and_up_again(db: TestDb) {
    let store = Store::open_as_it_is(&db.config).await.unwrap();
    let steps = Migrator::migrations().len();
    navi_migrations::up::<FirstRelease>(&store.write)
        .await
        .unwrap();
    let id = populate(&store.write).await;
    let mut schemas = vec![schema(&store.write).await];
    for _ in 1..steps {
        Migrator::up(&store.write, Some(1)).await.unwrap();
        schemas.push(schema(&store.write).await);
    }
    for expected in schemas.iter().rev().skip(1) {
        Migrator::down(&store.write, Some(1)).await.unwrap();
        assert_eq!(schema(&store.write).await, *expected);
    }
    navi_migrations::up::<Migrator>(&store.write).await.unwrap();
    assert_eq!(schema(&store.write).await, *schemas.last().unwrap());
    assert_eq!(
        store.messages(id).await.unwrap().len(),
        2,
        "nothing was lost"
    );
    assert_eq!(streamed(&store).await.len(), 2);
}
