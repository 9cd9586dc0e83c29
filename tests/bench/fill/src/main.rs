//! Fills a database with conversations, through Navi's own store: through her doors a hundred
//! thousand messages would take minutes. A package of its own, so that the benchmark is built
//! without the engine, and the pass-through, which is part of it, holds nothing of that.

mod text;

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use chrono::Utc;
use clap::Parser;
use navi_actors::domain::session::change::Closed;
use navi_actors::domain::session::write::{ChunkRow, EventRow, RunRow, Write};
use navi_actors::protocol::approval::ConsentMode;
use navi_actors::protocol::event::PartKind;
use navi_actors::protocol::ids::{MessageId, OwnerId, PartId, RunId, SessionId, UserId};
use navi_actors::protocol::message::Message;
use navi_actors::protocol::session::RunState;
use navi_actors::store::{Commit, Location, NewSession, Store, StoreConfig};
use serde_json::json;

use crate::text::Words;

const PROFILE: &str = "secretary";
/// Words of a question and of an answer: about 100 and 160 bytes, as people's are in the figures
/// that have their turns through the doors.
const QUESTION_WORDS: usize = 16;
const ANSWER_WORDS: usize = 26;
/// Events of a turn in the log.
const EVENTS: u64 = 3;
/// Turns of a commit, and commits of a transaction.
const TURNS_A_COMMIT: usize = 50;
const COMMITS_A_GROUP: usize = 50;

/// Fills a new database.
#[derive(Debug, Parser)]
struct Options {
    /// The data directory of a Navi that does not run.
    data_dir: PathBuf,
    #[arg(long)]
    sessions: usize,
    /// Of each session, questions and answers together.
    #[arg(long)]
    messages: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    fs::create_dir_all(&options.data_dir)?;
    let location = Location::Sqlite(options.data_dir.join("navi.db"));
    let store = Store::open(&StoreConfig { location }).await?;
    let user = store.local_user().await?.id;
    let mut filler = Filler {
        store: store.clone(),
        owner: OwnerId::new(),
        words: Words::default(),
        waiting: Vec::new(),
    };
    for _ in 0..options.sessions {
        let session = filler.session(user).await?;
        filler.turns(session, options.messages / 2).await?;
        writeln!(io::stdout(), "{}", session.id)?;
    }
    filler.commit().await?;
    store.close().await?;
    Ok(())
}

/// A session as its owner knows it.
#[derive(Clone, Copy, Debug)]
struct Owned {
    id: SessionId,
    epoch: i64,
}

struct Filler {
    store: Store,
    owner: OwnerId,
    words: Words,
    waiting: Vec<Commit>,
}

impl Filler {
    async fn session(&mut self, user_id: UserId) -> Result<Owned> {
        let id = SessionId::new();
        let new = NewSession {
            id,
            user_id,
            title: self.words.some(4),
            mode: ConsentMode::default(),
            ephemeral: false,
            model: None,
            profile_id: PROFILE.to_owned(),
            created_at: Utc::now(),
        };
        let loaded = self.store.create_session(new, &self.owner).await?;
        let epoch = loaded.epoch;
        Ok(Owned { id, epoch })
    }

    async fn turns(&mut self, session: Owned, count: usize) -> Result<()> {
        let mut writes = Vec::new();
        for (nth, turn) in (0..count as u64).enumerate() {
            self.turn(turn, &mut writes);
            if (nth + 1) % TURNS_A_COMMIT == 0 || nth + 1 == count {
                self.waiting.push(Commit {
                    session_id: session.id,
                    owner: self.owner.clone(),
                    epoch: session.epoch,
                    writes: std::mem::take(&mut writes),
                });
            }
            if self.waiting.len() == COMMITS_A_GROUP {
                self.commit().await?;
            }
        }
        Ok(())
    }

    async fn commit(&mut self) -> Result<()> {
        let fates = self.store.commit_group(std::mem::take(&mut self.waiting));
        for fate in fates.await {
            fate.context("a commit was refused")?;
        }
        Ok(())
    }

    /// A message and its answer, with what stands of them in the log.
    fn turn(&mut self, turn: u64, writes: &mut Vec<Write>) {
        let at = Utc::now();
        let run_id = RunId::new();
        let question = self.words.some(QUESTION_WORDS);
        let asked = Message::user(MessageId::new(), run_id, question, at);
        let text = self.words.some(ANSWER_WORDS);
        let mut answer = Message::assistant(MessageId::new(), run_id, at);
        answer.content = Some(text.clone());
        let first_seq = turn * EVENTS + 1;
        let event = |seq: u64, kind: &str| {
            let json = json!({"seq": seq, "run_id": run_id, "at": at, "type": kind});
            Write::Event(EventRow {
                seq,
                run_id: Some(run_id),
                kind: kind.to_owned(),
                json: json.to_string(),
                at,
            })
        };
        let run = RunRow {
            run_id,
            parent_run_id: None,
            call_id: None,
            message_id: asked.id,
            profile_id: PROFILE.to_owned(),
            backend: "openai".to_owned(),
            model: "bench".to_owned(),
            started_at: at,
        };
        let streamed = ChunkRow {
            after_seq: first_seq + 1,
            run_id,
            part_id: PartId::text(answer.id),
            kind: PartKind::Text,
            message_id: answer.id,
            offset: 0,
            text,
            parent_run_id: None,
            goes_on: None,
        };
        let ended = Write::RunEnded {
            run_id,
            state: RunState::Completed,
            reason: None,
            iterations: 1,
            prompt_tokens: 1_000,
            completion_tokens: 40,
            cached_tokens: 0,
            leaked_calls: 0,
            at,
        };
        writes.extend([
            event(first_seq, "message_accepted"),
            Write::Message(Arc::new(asked)),
            Write::RunStarted(run),
            event(first_seq + 1, "stream_start"),
            Write::Chunk(streamed),
            Write::Message(Arc::new(answer)),
            Write::Closed(Closed::Run(run_id)),
            event(first_seq + 2, "stream_end"),
            ended,
        ]);
    }
}
