//! What is written in one transaction.

use std::path::Path;
use std::sync::Arc;

use actix::{Actor, System};
use futures_util::future::join_all;
use tempfile::TempDir;

use super::{Append, JournalActor};
use crate::domain::session::write::{ChunkRow, Write};
use crate::protocol::approval::ConsentMode;
use crate::protocol::event::PartKind;
use crate::protocol::ids::{MessageId, OwnerId, PartId, RunId, SessionId};
use crate::protocol::message::Message;
use crate::services::now;
use crate::store::{Commit, Location, NewSession, Store, StoreConfig};
use crate::supervision::Guard;

async fn open(path: &Path) -> Store {
    let location = Location::Sqlite(path.to_owned());
    Store::open(&StoreConfig { location }).await.unwrap()
}

/// A commit of a session of its own.
async fn commit(store: &Store, writes: Vec<Write>) -> Commit {
    let (id, owner) = (SessionId::new(), OwnerId::new());
    let new = NewSession {
        id,
        user_id: store.local_user().await.unwrap().id,
        title: "A talk".to_owned(),
        mode: ConsentMode::default(),
        ephemeral: false,
        model: None,
        profile_id: "secretary".to_owned(),
        created_at: now(),
    };
    let loaded = store.create_session(new, &owner).await.unwrap();
    Commit {
        session_id: id,
        owner,
        epoch: loaded.epoch,
        writes,
    }
}

fn text() -> Vec<Write> {
    let message_id = MessageId::new();
    vec![Write::Chunk(ChunkRow {
        after_seq: 0,
        run_id: RunId::new(),
        part_id: PartId::text(message_id),
        kind: PartKind::Text,
        message_id,
        offset: 0,
        text: "said".to_owned(),
        parent_run_id: None,
        goes_on: None,
    })]
}

/// How many transactions the database's log has: each ends with a page that says how large the
/// database is.
fn transactions(database: &Path) -> usize {
    const HEAD: usize = 32;
    const PAGE: usize = 24 + 1024;
    let log = std::fs::read(format!("{}-wal", database.display())).unwrap();
    let pages = log[HEAD..].chunks_exact(PAGE);
    pages.filter(|page| page[4..8] != [0; 4]).count()
}

/// Asks for all of these at once. In how many transactions they were written.
async fn written(store: &Store, database: &Path, commits: Vec<Commit>) -> usize {
    let journal = JournalActor::new(store.clone(), Guard::new(|_| {})).start();
    let before = transactions(database);
    let asked = commits
        .into_iter()
        .map(|commit| journal.send(Append(commit)));
    for done in join_all(asked).await {
        done.unwrap().unwrap();
    }
    transactions(database) - before
}

#[test]
fn text_of_sessions_that_stream_is_one_transaction() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("navi.db");
    System::new().block_on(async {
        let store = open(&path).await;
        let mut commits = Vec::new();
        for _ in 0..5 {
            commits.push(commit(&store, text()).await);
        }
        assert_eq!(written(&store, &path, commits).await, 1);
    });
}

#[test]
fn what_somebody_waits_for_takes_text_along_and_does_not_wait_for_it() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("navi.db");
    System::new().block_on(async {
        let store = open(&path).await;
        let message = Message::user(MessageId::new(), RunId::new(), "hello".to_owned(), now());
        let message = vec![Write::Message(Arc::new(message))];
        let commits = vec![
            commit(&store, text()).await,
            commit(&store, message).await,
            commit(&store, text()).await,
        ];
        let transactions = written(&store, &path, commits).await;
        assert_eq!(transactions, 2, "the text behind it came a moment later");
    });
}
