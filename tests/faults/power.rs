//! The row "power cut": what was acknowledged is on the disk, not only on its way there.

use std::fs;

use sea_orm::{ConnectionTrait as _, Database, DbBackend, Statement};
use serde_json::{Value, json};

use crate::fake_model::{FakeModel, Reply, Step};
use crate::lost_power::{Unsynced, rebuild};
use crate::rounds::{Chance, rounds};
use crate::server::{House, Server};
use crate::shim::Shim;

/// A message that fills the log of writes soon, so that it is moved into the database on the way.
const LONG: usize = 150_000;

/// What Navi said was done, and how long the trace was when it said so.
#[derive(Debug)]
struct Promise {
    at: usize,
    session: String,
    kept: Kept,
}

#[derive(Debug)]
enum Kept {
    Session,
    Title(String),
    Message(String),
    /// By its message's id.
    Answer(String),
}

impl Promise {
    fn is_kept(&self, snapshot: &Value) -> bool {
        let messages = snapshot["messages"].as_array().expect("messages");
        match &self.kept {
            Kept::Session => true,
            Kept::Title(title) => snapshot["title"] == *title,
            Kept::Message(id) => messages.iter().any(|message| message["client_id"] == *id),
            Kept::Answer(id) => messages
                .iter()
                .any(|message| message["id"] == *id && message["content"] == "It is done."),
        }
    }
}

/// Whether SQLite finds the file whole.
async fn assert_whole(house: &House) {
    let file = house.data_dir().join("navi.db");
    let database = Database::connect(format!("sqlite://{}", file.display()));
    let database = database.await.expect("it opens");
    let check = Statement::from_string(DbBackend::Sqlite, "PRAGMA integrity_check");
    let row = database.query_one_raw(check).await.expect("it is asked");
    let said: String = row.expect("a row").try_get_by_index(0).expect("a text");
    assert_eq!(said, "ok");
    database.close().await.expect("closed");
}

/// Every promise of a conversation with this server, in order.
async fn converse(server: &Server, shim: &Shim) -> Vec<Promise> {
    let trace = shim.trace();
    let now = || {
        let length = fs::metadata(&trace).expect("the trace").len();
        usize::try_from(length).expect("it fits")
    };
    let mut promises = Vec::new();
    for round in 0..rounds(30, 40) {
        let session = server.new_session().await;
        let mut promise = |kept| {
            promises.push(Promise {
                at: now(),
                session: session.clone(),
                kept,
            });
        };
        promise(Kept::Session);
        let title = format!("title {round}");
        let path = format!("/sessions/{session}");
        let renamed = server
            .call(reqwest::Method::PATCH, &path, Some(json!({"title": title})))
            .await;
        assert!(renamed.0.is_success(), "{renamed:?}");
        promise(Kept::Title(title));
        let mut tab = server.tab(&session, None).await;
        let client_id = format!("c{round}");
        let content = "long ".repeat(LONG / 5);
        tab.send(&json!({"type": "message", "content": content, "client_id": client_id}))
            .await;
        tab.next_of("message_accepted").await;
        promise(Kept::Message(client_id));
        let end = tab.next_of("stream_end").await;
        let id = end["message_id"].as_str().expect("an id").to_owned();
        promise(Kept::Answer(id));
    }
    promises
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_power_cut() {
    let mut chance = Chance::new();
    let model = FakeModel::start();
    model.script(Reply::new([Step::text("It is done.")]).always());
    let model_url = model.url();
    let variables = [
        ("OLLAMA_HOST", model_url.as_str()),
        ("CONTEXT_COMPRESSION_ENABLED", "false"),
    ];
    let house = House::new(&variables);
    if house.variable("DATABASE_URL").is_some() {
        // What PostgreSQL acknowledges, its own log keeps.
        return;
    }
    let (shim, house) = Shim::load(house);
    let server = shim.traced(house).start();
    let promises = converse(&server, &shim).await;
    drop(server);
    let trace = fs::read(shim.trace()).expect("the trace");
    let moved = trace.len() > 4096 * 1000;
    assert!(
        moved,
        "too little was written for a checkpoint: {}",
        trace.len()
    );

    for round in 0..rounds(6, 24) {
        let last = usize::try_from(chance.between(0, promises.len() as u64)).expect("it fits");
        let unsynced = [Unsynced::Lost, Unsynced::LostWithNames, Unsynced::Torn][round % 3];
        let after = House::new(&variables);
        let cut = &trace[..promises[last].at];
        rebuild(cut, unsynced, &mut chance, &after.data_dir());
        let server = after.start();
        for promise in &promises[..=last] {
            let snapshot = server.get(&format!("/sessions/{}", promise.session)).await;
            assert!(
                promise.is_kept(&snapshot),
                "{unsynced:?} after {last}: {promise:?} is lost: {snapshot}"
            );
        }
        drop(server);
        assert_whole(&after).await;
    }
}
