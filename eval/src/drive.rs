//! Has one task's conversation, as a person in front of a tab would, and sees what came of it.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::StreamExt as _;
use navi_actors::domain::permissions::Memory;
use navi_actors::feed::Feed;
use navi_actors::protocol::chat::ChatMessage;
use navi_actors::protocol::command::{NewSessionRequest, UserInput};
use navi_actors::protocol::event::{Envelope, Event};
use navi_actors::protocol::ids::{RunId, SessionId, UserId};
use navi_actors::protocol::session::SessionSnapshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::house::House;
use crate::meter::Meter;
use crate::outcome::{End, Outcome, Turn};
use crate::tasks::Task;

/// How long the model must have nothing to do before a turn counts as over: titles,
/// compressions and memory begin right after it.
const QUIET: Duration = Duration::from_millis(400);

/// How long those are waited for.
const AFTERWARDS: Duration = Duration::from_secs(90);

/// How often something in the background is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// How long a stopped run has to say so.
const STOPPING: Duration = Duration::from_secs(5);

/// How the message about the user begins (SPEC section 7).
const MEMORY: &str = "## What I remember about the user";

/// What a task may use, and who may end it.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) time: Duration,
    pub(crate) model_calls: u64,
    pub(crate) cancelled: CancellationToken,
}

/// Has the conversation.
///
/// # Errors
/// What is no fault of the model: the engine or the temporary directory.
pub(crate) async fn drive(
    house: &House,
    meter: &Meter,
    task: &Task,
    bounds: Bounds,
) -> anyhow::Result<Outcome> {
    let before = meter.read();
    let user = house.new_user(&task.past).await?;
    let mut driver = Driver {
        house,
        meter,
        task,
        user,
        deadline: Instant::now() + bounds.time,
        calls_limit: before.calls + bounds.model_calls,
        bounds,
        events: Vec::new(),
    };
    let mut turns = Vec::new();
    let mut tab = driver.open().await?;
    for say in &task.say {
        if say.new_session && !turns.is_empty() {
            driver.finish(&mut tab).await?;
            tab = driver.open().await?;
        }
        let turn = driver.turn(&mut tab, &say.text).await?;
        let is_over = turn.end.trouble().is_some();
        turns.push(turn);
        if is_over {
            break;
        }
        driver.settle().await;
    }
    let snapshot = driver.finish(&mut tab).await?;
    let engine = &house.engine;
    let mut outcome = Outcome {
        events: driver.events,
        turns,
        workspace: house.workspace(user, snapshot.summary.id),
        session: snapshot,
        remembered: None,
        spent: meter.read().since(before),
        tools: engine
            .tools()
            .into_iter()
            .map(|tool| tool.spec.name)
            .collect(),
        profiles: engine.profiles().into_iter().map(|p| p.id).collect(),
    };
    if outcome.trouble().is_none() {
        wait_for_memory(house, task, user, driver.deadline, &mut outcome).await?;
        outcome.spent = meter.read().since(before);
    }
    Ok(outcome)
}

/// A session, watched.
struct Tab {
    session: SessionId,
    feed: Feed,
    /// The last numbered event that was read.
    seq: u64,
}

struct Driver<'a> {
    house: &'a House,
    meter: &'a Meter,
    task: &'a Task,
    user: UserId,
    deadline: Instant,
    /// Where the meter stands when the task has used up its calls.
    calls_limit: u64,
    bounds: Bounds,
    events: Vec<Envelope>,
}

impl Driver<'_> {
    /// A new session with the task's files.
    async fn open(&self) -> anyhow::Result<Tab> {
        let engine = &self.house.engine;
        let wish = NewSessionRequest {
            profile_id: self.task.profile.clone(),
            ..NewSessionRequest::default()
        };
        let created = engine.create_session(self.user, wish);
        let session = created.await?.id;
        let workspace = self.house.workspace(self.user, session);
        for (path, text) in &self.task.files {
            let place = path.in_dir(&workspace);
            put(&place, text)
                .await
                .with_context(|| format!("the task's file {path} cannot be written"))?;
        }
        let feed = engine.attach(self.user, session, None, None, None).await?;
        Ok(Tab {
            session,
            feed,
            seq: 0,
        })
    }

    /// Says something and waits for the end of its run.
    async fn turn(&mut self, tab: &mut Tab, text: &str) -> anyhow::Result<Turn> {
        let input = UserInput {
            content: text.to_owned(),
            ..UserInput::default()
        };
        let engine = &self.house.engine;
        let run_id = engine.send(self.user, tab.session, input).await?.run_id;
        let deadline = self.deadline;
        let seconds = self.bounds.time.as_secs();
        let cancelled = self.bounds.cancelled.clone();
        let ended = tokio::select! {
            turn = self.read_to_end(tab, run_id) => Ok(turn?),
            () = tokio::time::sleep_until(deadline) => Err(End::OutOfTime { seconds }),
            () = cancelled.cancelled() => Err(End::Cancelled),
        };
        match ended {
            Ok(turn) if !matches!(turn.end, End::OutOfCalls { .. }) => Ok(turn),
            Ok(turn) => self.stop(tab, run_id, turn.end).await,
            Err(end) => self.stop(tab, run_id, end).await,
        }
    }

    /// Stops the run, and keeps what it still says.
    async fn stop(&mut self, tab: &mut Tab, run_id: RunId, end: End) -> anyhow::Result<Turn> {
        self.calls_limit = u64::MAX;
        self.house.engine.stop(self.user, tab.session).await?;
        // Where it does not end in time, the next step tells.
        let rest = tokio::time::timeout(STOPPING, self.read_to_end(tab, run_id)).await;
        let answer = match rest {
            Ok(turn) => turn?.answer,
            Err(_) => None,
        };
        Ok(Turn { answer, end })
    }

    async fn read_to_end(&mut self, tab: &mut Tab, run_id: RunId) -> anyhow::Result<Turn> {
        loop {
            let envelope = self.read(tab).await?;
            if envelope.run_id == Some(run_id)
                && let Some(turn) = end_of_run(&envelope.event)
            {
                return Ok(turn);
            }
            if self.meter.read().calls > self.calls_limit {
                return Ok(Turn {
                    answer: None,
                    end: End::OutOfCalls {
                        limit: self.bounds.model_calls,
                    },
                });
            }
        }
    }

    /// The next frame. It is kept where it is numbered.
    async fn read(&mut self, tab: &mut Tab) -> anyhow::Result<Envelope> {
        let frame = tab.feed.next().await;
        let frame = frame.context("the session's feed ended")?;
        let envelope: Envelope = serde_json::from_str(&frame)?;
        if let Some(seq) = envelope.seq {
            tab.seq = seq;
            self.events.push(envelope.clone());
        }
        Ok(envelope)
    }

    /// Waits for what follows a turn.
    async fn settle(&self) {
        let idle = self.meter.idle_for(QUIET);
        tokio::select! {
            // Whatever goes on after that is the next task's noise.
            _ = tokio::time::timeout(AFTERWARDS, idle) => {}
            () = self.bounds.cancelled.cancelled() => {}
        }
    }

    /// Reads the session's events to the last one.
    async fn finish(&mut self, tab: &mut Tab) -> anyhow::Result<SessionSnapshot> {
        self.settle().await;
        let engine = &self.house.engine;
        let snapshot = engine.snapshot(self.user, tab.session).await?;
        let reading = async {
            while tab.seq < snapshot.last_seq {
                self.read(tab).await?;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(STOPPING, reading)
            .await
            .context("the session's last events did not come")??;
        Ok(snapshot)
    }
}

/// The turn, where this event ends its run.
fn end_of_run(event: &Event) -> Option<Turn> {
    let (answer, end) = match event {
        Event::StreamEnd {
            content, completed, ..
        } => (
            Some(content.clone()),
            End::Answered {
                completed: *completed,
            },
        ),
        Event::Error {
            message,
            recoverable: false,
            code,
            ..
        } => (
            None,
            End::Failed {
                code: *code,
                message: message.clone(),
            },
        ),
        Event::StreamStopped {} | Event::RunInterrupted { .. } => (None, End::CutOff),
        _ => return None,
    };
    Some(Turn { answer, end })
}

async fn put(place: &Path, text: &str) -> std::io::Result<()> {
    if let Some(dir) = place.parent() {
        tokio::fs::create_dir_all(dir).await?;
    }
    tokio::fs::write(place, text).await
}

/// Waits until what the task's checks say of the memory is so, within a limit: sessions are
/// read in the background, and the summary is written a while after the facts.
async fn wait_for_memory(
    house: &House,
    task: &Task,
    user: UserId,
    deadline: Instant,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let waited: Vec<_> = task.checks.iter().filter(|c| c.is_waited_for()).collect();
    if waited.is_empty() {
        return Ok(());
    }
    let until = deadline.min(Instant::now() + AFTERWARDS);
    loop {
        outcome.remembered = remembered(house, user).await?;
        let is_so = waited.iter().all(|check| check.look(outcome).is_ok());
        if is_so || Instant::now() >= until {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What a new session of the user is told of them.
async fn remembered(house: &House, user: UserId) -> anyhow::Result<Option<String>> {
    let wish = NewSessionRequest::default();
    let created = house.engine.create_session(user, wish);
    let session = created.await?.id;
    let context = house.engine.context(user, session, Memory::Shown).await?;
    Ok(context
        .messages
        .iter()
        .find_map(|message| match &**message {
            ChatMessage::System { content } if content.starts_with(MEMORY) => Some(content.clone()),
            _ => None,
        }))
}
