//! Limits of single people.

use std::collections::HashMap;

use uuid::Uuid;

use super::testing::{TestDb, Writer, at, ended, on_both, run};
use super::{Changed, FileQuota, Held, NewFile};
use crate::domain::session::write::{RunRow, Write};
use crate::protocol::file::{AttachedFile, FileSource};
use crate::protocol::ids::{FileId, RunId, UserId};
use crate::protocol::limits::{LimitsChange, OwnLimits};
use crate::protocol::people::UserRole;
use crate::protocol::session::RunState;

on_both!(
    limits_are_one_persons_and_go_with_them,
    what_people_have_is_counted,
);

async fn limits_are_one_persons_and_go_with_them(db: TestDb) {
    let store = db.open().await;
    let ann = store.create_user("Ann", UserRole::User).await.unwrap().id;
    let local = store.local_user().await.unwrap().id;
    let change = |user, change| store.change_limits(user, change);
    let some = LimitsChange {
        runs: Some(Some(2)),
        tokens_a_day: Some(Some(1_000_000_000_000)),
        ..LimitsChange::default()
    };
    let own = OwnLimits {
        runs: Some(2),
        tokens_a_day: Some(1_000_000_000_000),
        ..OwnLimits::default()
    };
    assert_eq!(change(ann, some).await.unwrap(), Some(own));
    let more = LimitsChange {
        runs: Some(None),
        files_mb: Some(Some(5)),
        ..LimitsChange::default()
    };
    let own = OwnLimits {
        runs: None,
        files_mb: Some(5),
        ..own
    };
    assert_eq!(change(ann, more).await.unwrap(), Some(own));
    assert_eq!(
        store.own_limits().await.unwrap(),
        HashMap::from([(ann, own)])
    );
    // Who has none of their own is as everybody.
    change(local, some).await.unwrap();
    let none = LimitsChange {
        runs: Some(None),
        tokens_a_day: Some(None),
        ..LimitsChange::default()
    };
    let usual = Some(OwnLimits::default());
    assert_eq!(change(local, none).await.unwrap(), usual);
    assert_eq!(store.own_limits().await.unwrap().len(), 1);
    let nobody = UserId(Uuid::from_u128(9));
    assert_eq!(change(nobody, some).await.unwrap(), None);
    let removed = store.remove_person(ann, at(2)).await.unwrap();
    assert!(matches!(removed, Changed::Done(_)));
    assert_eq!(store.own_limits().await.unwrap(), HashMap::new());
    assert_eq!(change(ann, some).await.unwrap(), None);
}

async fn what_people_have_is_counted(db: TestDb) {
    let store = db.open().await;
    let local = store.local_user().await.unwrap().id;
    let ann = store.create_user("Ann", UserRole::User).await.unwrap().id;
    let day = at(100);
    let all = async |of| store.held_by_people(of, day).await.unwrap();
    assert_eq!(all(None).await, HashMap::new());
    let (one, two) = (Writer::new(&store).await, Writer::new(&store).await);
    // It is there for one answer, and its tokens count all the same.
    let brief = Writer::ephemeral(&store).await;
    let file = NewFile {
        file: AttachedFile {
            file_id: FileId::new(),
            name: "a.txt".to_owned(),
            path: "uploads/a.txt".to_owned(),
            media_type: "text/plain".to_owned(),
            bytes: 60,
            image: false,
        },
        source: FileSource::Upload,
        text: None,
        text_bytes: 0,
        problem: None,
    };
    let quota = FileQuota {
        files: 10,
        bytes: 1_000,
    };
    assert!(
        store
            .add_files(one.id, vec![file], quota, at(1))
            .await
            .unwrap()
    );
    for (writer, began) in [(&one, 99), (&one, 100), (&two, 101), (&brief, 102)] {
        let row = RunRow {
            run_id: RunId::new(),
            started_at: at(began),
            ..run()
        };
        let end = ended(&row, RunState::Completed);
        writer
            .write(vec![Write::RunStarted(row), end])
            .await
            .unwrap();
    }
    let held = Held {
        sessions: 2,
        file_bytes: 60,
        tokens: 3 * 1_020,
    };
    assert_eq!(all(None).await, HashMap::from([(local, held)]));
    assert_eq!(all(Some(local)).await, HashMap::from([(local, held)]));
    assert_eq!(all(Some(ann)).await, HashMap::new());
    // As the same is counted one by one.
    assert_eq!(store.sessions_held(local).await.unwrap(), held.sessions);
    assert_eq!(store.file_bytes_of(local).await.unwrap(), held.file_bytes);
}
