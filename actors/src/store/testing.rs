//! A fresh database for each test, on both kinds, and short ways to fill it.

use std::future::Future;
use std::io::Write as _;
use std::panic::AssertUnwindSafe;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::FutureExt;
use sea_orm::sqlx::ConnectOptions;
use sea_orm::sqlx::postgres::PgConnectOptions;
use sea_orm::{ConnectionTrait, Database};
use tempfile::TempDir;
use uuid::Uuid;

use super::types::{Commit, NewSession};
use super::{Location, Store, StoreConfig, StoreError};
use crate::domain::session::stored::LoadedSession;
use crate::domain::session::write::{ChunkRow, EventRow, RunRow, Write};
use crate::protocol::event::{PartKind, utf16_len};
use crate::protocol::ids::{MessageId, OwnerId, PartId, RunId, SessionId};
use crate::protocol::message::Message;
use crate::protocol::session::RunState;

/// Where the PostgreSQL server for tests is.
const TEST_SERVER: &str = "NAVI_TEST_DATABASE_URL";

/// Runs each of these tests on SQLite and on PostgreSQL.
macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $test() {
                crate::store::testing::on_sqlite(super::$test).await;
            })+
        }

        mod postgres {
            $(#[tokio::test]
            async fn $test() {
                crate::store::testing::on_postgres(super::$test).await;
            })+
        }
    };
}
pub(super) use on_both;

/// An empty database.
#[derive(Clone, Debug)]
pub(super) struct TestDb {
    pub(super) config: StoreConfig,
}

impl TestDb {
    fn at(location: Location) -> Self {
        Self {
            config: StoreConfig { location },
        }
    }

    pub(super) async fn open(&self) -> Store {
        Store::open(&self.config).await.unwrap()
    }
}

pub(super) async fn on_sqlite<F: Future<Output = ()>>(test: impl FnOnce(TestDb) -> F) {
    let dir = TempDir::new().unwrap();
    test(TestDb::at(Location::Sqlite(dir.path().join("navi.db")))).await;
}

pub(super) async fn on_postgres<F: Future<Output = ()>>(test: impl FnOnce(TestDb) -> F) {
    let Ok(server) = std::env::var(TEST_SERVER) else {
        // Past the test harness, which hides what a passing test prints.
        let mut stderr = std::io::stderr();
        writeln!(stderr, "SKIPPED on PostgreSQL: {TEST_SERVER} is not set").unwrap();
        return;
    };
    let name = format!("navi_test_{}", Uuid::new_v4().simple());
    let admin = Database::connect(&server).await.unwrap();
    // Empty, where the server's own template has the schema.
    let create = format!("CREATE DATABASE {name} TEMPLATE template0");
    admin.execute_unprepared(&create).await.unwrap();
    let url = PgConnectOptions::from_str(&server)
        .unwrap()
        .database(&name)
        .to_url_lossy();
    let outcome = AssertUnwindSafe(test(TestDb::at(Location::Postgres(url.into()))))
        .catch_unwind()
        .await;
    let drop = format!("DROP DATABASE {name} WITH (FORCE)");
    admin.execute_unprepared(&drop).await.unwrap();
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

/// A moment that both databases keep exactly, `seconds` after another one.
pub(super) fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 123_456_000).unwrap() + TimeDelta::seconds(seconds)
}

/// A session and its owner, writing to it.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    pub(super) store: Store,
    pub(super) id: SessionId,
    pub(super) owner: OwnerId,
    pub(super) epoch: i64,
    pub(super) seq: Arc<AtomicU64>,
}

impl Writer {
    pub(super) async fn new(store: &Store) -> Self {
        Self::of_session(store, false).await
    }

    /// Of a session that is there for one answer.
    pub(super) async fn ephemeral(store: &Store) -> Self {
        Self::of_session(store, true).await
    }

    async fn of_session(store: &Store, ephemeral: bool) -> Self {
        let user_id = store.local_user().await.unwrap().id;
        let (id, owner) = (SessionId::new(), OwnerId::new());
        let new = NewSession {
            id,
            user_id,
            title: "A talk".to_owned(),
            mode: crate::protocol::approval::ConsentMode::default(),
            ephemeral,
            model: None,
            profile_id: "secretary".to_owned(),
            created_at: at(0),
        };
        let loaded = store.create_session(new, &owner).await.unwrap();
        Self {
            store: store.clone(),
            id,
            owner,
            epoch: loaded.epoch,
            seq: Arc::default(),
        }
    }

    pub(super) fn commit(&self, writes: Vec<Write>) -> Commit {
        Commit {
            session_id: self.id,
            owner: self.owner.clone(),
            epoch: self.epoch,
            writes,
        }
    }

    pub(super) async fn write(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        let fates = self.store.commit_group(vec![self.commit(writes)]).await;
        fates.into_iter().next().unwrap()
    }

    /// The next event.
    pub(super) fn event(&self) -> Write {
        Write::Event(event(self.seq.fetch_add(1, Ordering::Relaxed) + 1))
    }

    pub(super) async fn load(&self) -> LoadedSession {
        self.store.take_session(self.id, &self.owner).await.unwrap()
    }
}

pub(super) fn event(seq: u64) -> EventRow {
    EventRow {
        seq,
        run_id: Some(RunId(Uuid::from_u128(7))),
        kind: "notice".to_owned(),
        json: format!(r#"{{"seq":{seq},"type":"notice"}}"#),
        at: at(i64::try_from(seq).unwrap_or_default()),
    }
}

pub(super) fn user_message(text: &str) -> Message {
    Message::user(MessageId::new(), RunId::new(), text.to_owned(), at(1))
}

pub(super) fn run() -> RunRow {
    RunRow {
        run_id: RunId::new(),
        parent_run_id: None,
        call_id: None,
        message_id: MessageId::new(),
        profile_id: "secretary".to_owned(),
        backend: "ollama".to_owned(),
        model: "gemma4:e2b-it-q8_0".to_owned(),
        started_at: at(2),
    }
}

pub(super) fn ended(run: &RunRow, state: RunState) -> Write {
    Write::RunEnded {
        run_id: run.run_id,
        state,
        reason: None,
        iterations: 2,
        prompt_tokens: 1_000,
        completion_tokens: 20,
        cached_tokens: 0,
        leaked_calls: 0,
        at: at(9),
    }
}

/// A part that grows.
#[derive(Clone, Debug)]
pub(super) struct Part {
    run_id: RunId,
    message_id: MessageId,
    part_id: PartId,
    kind: PartKind,
    offset: u64,
}

impl Part {
    pub(super) fn text(run: &RunRow, message_id: MessageId) -> Self {
        Self::new(run, message_id, PartId::text(message_id), PartKind::Text)
    }

    pub(super) fn new(
        run: &RunRow,
        message_id: MessageId,
        part_id: PartId,
        kind: PartKind,
    ) -> Self {
        Self {
            run_id: run.run_id,
            message_id,
            part_id,
            kind,
            offset: 0,
        }
    }

    pub(super) fn part_id(&self) -> PartId {
        self.part_id.clone()
    }

    pub(super) fn piece(&mut self, after_seq: u64, text: &str) -> ChunkRow {
        let offset = self.offset;
        self.offset += utf16_len(text);
        ChunkRow {
            after_seq,
            run_id: self.run_id,
            part_id: self.part_id.clone(),
            kind: self.kind,
            message_id: self.message_id,
            offset,
            text: text.to_owned(),
            parent_run_id: None,
            goes_on: None,
        }
    }
}
