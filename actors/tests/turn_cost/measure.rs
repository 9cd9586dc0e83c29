//! What turns cost on a session of a given length: statements, bytes, rows, time.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chrono::Utc;
use navi_actors::domain::history::ContextState;
use navi_actors::domain::session::change::Closed;
use navi_actors::domain::session::write::{ChunkRow, EventRow, RunRow, Write};
use navi_actors::protocol::event::PartKind;
use navi_actors::protocol::ids::{MessageId, OwnerId, PartId, RunId, SessionId, UserId};
use navi_actors::protocol::message::Message;
use navi_actors::protocol::session::RunState;
use navi_actors::store::{Commit, Location, NewSession, Store, StoreConfig};
use serde_json::json;

use crate::house::{House, Say, Setup, Tab, in_system, write_call};

/// Messages that a compressed context keeps word for word.
const KEPT: u64 = 10;

const WORDS: &str = "We went through the notes of the week and found what had been promised. ";

/// What one turn cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) statements: usize,
    /// By the whole process, as the kernel counts what is handed to `write`. The database's
    /// journal and what is moved out of it are in this.
    pub(crate) written: u64,
    pub(crate) read: u64,
    /// Messages of the last request.
    pub(crate) sent: usize,
    pub(crate) time: Duration,
}

/// Of several turns on one session.
#[derive(Clone, Debug)]
pub(crate) struct Costs {
    pub(crate) messages: u64,
    /// The first turn after a start: the session is read from the store.
    pub(crate) first: Cost,
    /// The others' medians, each by itself.
    pub(crate) usual: Cost,
    /// The others' least, each by itself: without what a busy machine and the database's own
    /// housekeeping add to a turn by chance.
    pub(crate) least: Cost,
    /// The statements of the last turn.
    pub(crate) last_statements: Vec<String>,
}

/// Makes a conversation of `messages` messages and measures `turns` turns on it.
pub(crate) fn measure(messages: u64, turns: usize) -> Costs {
    let mut costs = None;
    in_system(|runtime, dir| {
        let costs = &mut costs;
        async move {
            let session = fill(&dir, messages).await;
            let statements = Arc::<Mutex<Vec<String>>>::default();
            let setup = Setup {
                statements: Some(Arc::clone(&statements)),
                // The conversation is to grow by the turns alone.
                window: 1 << 20,
                ..Setup::default()
            };
            let house = House::open_with(&dir, runtime, setup).await;
            quiet(&statements).await;
            let mut all = Vec::new();
            let mut tab = None;
            for _ in 0..=turns {
                all.push(turn(&house, &mut tab, session, &statements).await);
            }
            let last_statements = statements.lock().unwrap().clone();
            *costs = Some(Costs {
                messages,
                first: all[0],
                usual: ranked(&all[1..], turns / 2),
                least: ranked(&all[1..], 0),
                last_statements,
            });
            house.engine.shutdown(Duration::from_secs(5)).await;
        }
    });
    costs.unwrap()
}

/// Waits until nothing is asked of the store any more: what is done once after a start is not the
/// turns' cost, and nothing tells that it is done.
async fn quiet(statements: &Mutex<Vec<String>>) {
    let mut made = None;
    loop {
        let now = statements.lock().unwrap().len();
        if made.replace(now) == Some(now) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// A message, a tool's call, and the answer.
async fn turn(
    house: &House,
    tab: &mut Option<Tab>,
    session: SessionId,
    statements: &Mutex<Vec<String>>,
) -> Cost {
    house.script([write_call("notes.txt", WORDS)]);
    house.script([Say::Text(WORDS.repeat(4))]);
    statements.lock().unwrap().clear();
    let (read, written) = bytes();
    let began = Instant::now();
    let tab = match tab {
        Some(tab) => tab,
        None => tab.insert(house.tab(session, None).await),
    };
    house.say(session, WORDS).await;
    tab.until("stream_end").await;
    let time = began.elapsed();
    let (read_after, written_after) = bytes();
    Cost {
        statements: statements.lock().unwrap().len(),
        written: written_after - written,
        read: read_after - read,
        sent: house.asked().last().unwrap().messages.len(),
        time,
    }
}

/// Bytes that this process read and wrote so far.
fn bytes() -> (u64, u64) {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    let of = |name: &str| -> u64 {
        let line = io.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().parse().unwrap()
    };
    (of("rchar:"), of("wchar:"))
}

/// Each figure's value at this rank, the smallest first.
fn ranked(costs: &[Cost], rank: usize) -> Cost {
    fn at<T: Ord + Copy>(costs: &[Cost], rank: usize, of: impl Fn(&Cost) -> T) -> T {
        let mut all: Vec<T> = costs.iter().map(of).collect();
        all.sort_unstable();
        all[rank]
    }
    Cost {
        statements: at(costs, rank, |cost| cost.statements),
        written: at(costs, rank, |cost| cost.written),
        read: at(costs, rank, |cost| cost.read),
        sent: at(costs, rank, |cost| cost.sent),
        time: at(costs, rank, |cost| cost.time),
    }
}

/// A store with one session of this length, its context compressed to its last messages.
async fn fill(dir: &Path, messages: u64) -> SessionId {
    let store = Store::open(&StoreConfig {
        location: Location::Sqlite(dir.join("navi.db")),
    })
    .await
    .unwrap();
    let user = store.local_user().await.unwrap().id;
    let filler = Filler::new(&store, user).await;
    let mut writes = Vec::new();
    for turn in 0..messages / 2 {
        filler.turn(turn, &mut writes);
        if writes.len() > 200 {
            filler.commit(std::mem::take(&mut writes)).await;
        }
    }
    let mut summary = Message::user(MessageId::new(), RunId::new(), WORDS.repeat(5), Utc::now());
    summary.is_summary = true;
    let context = ContextState {
        start: messages - KEPT,
        summary: Some(summary),
        plan: None,
        memory: Some(String::new()),
        ..ContextState::default()
    };
    writes.push(Write::Context {
        branch_id: 0,
        context,
    });
    filler.commit(writes).await;
    store.close().await.unwrap();
    filler.id
}

struct Filler {
    store: Store,
    id: SessionId,
    owner: OwnerId,
    epoch: i64,
}

impl Filler {
    async fn new(store: &Store, user_id: UserId) -> Self {
        let (id, owner) = (SessionId::new(), OwnerId::new());
        let new = NewSession {
            id,
            user_id,
            title: "The notes of the week".to_owned(),
            mode: navi_actors::protocol::approval::ConsentMode::default(),
            ephemeral: false,
            model: None,
            profile_id: "plain".to_owned(),
            created_at: Utc::now(),
        };
        let loaded = store.create_session(new, &owner).await.unwrap();
        Self {
            store: store.clone(),
            id,
            owner,
            epoch: loaded.epoch,
        }
    }

    /// A message and its answer, with what stands in the log of them.
    fn turn(&self, turn: u64, writes: &mut Vec<Write>) {
        let now = Utc::now();
        let run_id = RunId::new();
        let asked = Message::user(MessageId::new(), run_id, WORDS.to_owned(), now);
        let mut answer = Message::assistant(MessageId::new(), run_id, now);
        answer.content = Some(WORDS.repeat(4));
        let event = |nth: u64, kind: &str| {
            let seq = turn * 3 + nth;
            let json = json!({"type": kind, "seq": seq, "run_id": run_id, "at": now});
            Write::Event(EventRow {
                seq,
                run_id: Some(run_id),
                kind: kind.to_owned(),
                json: json.to_string(),
                at: now,
            })
        };
        let row = RunRow {
            run_id,
            parent_run_id: None,
            call_id: None,
            message_id: asked.id,
            profile_id: "plain".to_owned(),
            backend: "ollama".to_owned(),
            model: "scripted".to_owned(),
            started_at: now,
        };
        writes.extend([
            event(1, "message_accepted"),
            Write::Message(Arc::new(asked)),
            Write::RunStarted(row),
            event(2, "stream_start"),
            Write::Chunk(ChunkRow {
                after_seq: turn * 3 + 2,
                run_id,
                part_id: PartId::text(answer.id),
                kind: PartKind::Text,
                message_id: answer.id,
                offset: 0,
                text: WORDS.repeat(4),
                parent_run_id: None,
                goes_on: None,
            }),
            Write::Message(Arc::new(answer)),
            Write::Closed(Closed::Run(run_id)),
            event(3, "stream_end"),
            Write::RunEnded {
                run_id,
                state: RunState::Completed,
                reason: None,
                iterations: 1,
                prompt_tokens: 1_000,
                completion_tokens: 100,
                cached_tokens: 0,
                leaked_calls: 0,
                at: now,
            },
        ]);
    }

    async fn commit(&self, writes: Vec<Write>) {
        let commit = Commit {
            session_id: self.id,
            owner: self.owner.clone(),
            epoch: self.epoch,
            writes,
        };
        let fates = self.store.commit_group(vec![commit]).await;
        fates.into_iter().next().unwrap().unwrap();
    }
}
