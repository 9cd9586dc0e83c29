//! The thread that owns the model. Computing blocks for as long as a person waits, so it has
//! an operating-system thread of its own, and only channels lead to it.
//!
//! Requests come one at a time through a bounded channel, answers go out through another; a
//! dropped answer stops the work within a token, since the thread asks after every step. The
//! model is loaded for the first request and dropped after a while without one; the thread
//! stays and sleeps. A panic ends the thread, with an error to whoever waited, and the next
//! request starts a new one.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::error::ModelError;
use crate::llm::LlmError;
use crate::protocol::chat::{ChatDelta, ChatRequest};
use crate::protocol::phrase::{Phrase, PhraseCode, Trouble};

/// Requests that wait for the one that is answered. The actor above sends one at a time; a
/// second can come while the thread still notices that the first was dropped.
const WAITING: usize = 2;

/// Deltas that the reader has not taken yet; then the thread waits for it.
const UNREAD: usize = 64;

/// Where an answer goes. Says false once nobody listens.
pub(super) type Emit<'a> = &'a mut dyn FnMut(ChatDelta) -> bool;

/// A loaded model, as the thread sees it.
pub(super) trait Model {
    /// Sends the whole answer through `emit`, with `Done` at its end.
    fn answer(
        &mut self,
        request: &ChatRequest,
        emit: Emit<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), ModelError>;
}

/// Loads a model from its file. The seam by which tests bring models that wait or panic.
pub(super) type Load = Arc<dyn Fn(&Path) -> Result<Box<dyn Model>, ModelError> + Send + Sync>;

/// A request on its way to the thread.
struct Job {
    path: PathBuf,
    request: ChatRequest,
    answer: mpsc::Sender<Result<ChatDelta, LlmError>>,
}

/// The way to the thread; starts it when it is needed.
pub(super) struct Engine {
    load: Load,
    idle: Duration,
    /// None before the first request. Held only to hand a request over, never while waiting.
    thread: Mutex<Option<SyncSender<Job>>>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// `idle` is how long a model stays in memory without requests.
    pub(super) fn new(load: Load, idle: Duration) -> Self {
        Self {
            load,
            idle,
            thread: Mutex::new(None),
        }
    }

    /// Asks the model in this file. Never blocks. The answer ends with `Done` or an error; if
    /// it ends otherwise, the thread died without a word.
    pub(super) fn ask(
        &self,
        path: PathBuf,
        request: ChatRequest,
    ) -> Result<mpsc::Receiver<Result<ChatDelta, LlmError>>, LlmError> {
        let (answer, receiver) = mpsc::channel(UNREAD);
        let mut job = Job {
            path,
            request,
            answer,
        };
        let mut thread = self.thread.lock();
        if let Some(jobs) = thread.as_ref() {
            match jobs.try_send(job) {
                Ok(()) => return Ok(receiver),
                Err(TrySendError::Full(_)) => return Err(busy()),
                Err(TrySendError::Disconnected(returned)) => job = returned,
            }
        }
        let jobs = self.start()?;
        jobs.try_send(job).map_err(|_| busy())?;
        *thread = Some(jobs);
        Ok(receiver)
    }

    fn start(&self) -> Result<SyncSender<Job>, LlmError> {
        let (sender, jobs) = sync_channel(WAITING);
        let (load, idle) = (Arc::clone(&self.load), self.idle);
        std::thread::Builder::new()
            .name("starter-model".to_owned())
            .spawn(move || run(&load, idle, jobs))
            .map_err(|error| {
                let reason = [("reason", error.to_string())];
                LlmError::NotReady(Trouble::new(
                    Phrase::new(PhraseCode::NoThread, reason),
                    PhraseCode::CloseForThread,
                ))
            })?;
        Ok(sender)
    }
}

fn busy() -> LlmError {
    LlmError::Busy {
        status: 503,
        message: "the model in this process is answering another request".to_owned(),
        retry_after: None,
    }
}

/// What is in memory, and from which file.
type Loaded = Option<(PathBuf, Box<dyn Model>)>;

fn run(load: &Load, idle: Duration, jobs: Receiver<Job>) {
    let mut loaded: Loaded = None;
    loop {
        let next = match loaded {
            Some(_) => jobs.recv_timeout(idle),
            None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let job = match next {
            Ok(job) => job,
            Err(RecvTimeoutError::Timeout) => {
                tracing::info!("the model is put out of memory: nobody asked it for a while");
                loaded = None;
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        match catch_unwind(AssertUnwindSafe(|| answer(load, &mut loaded, &job))) {
            Ok(Ok(()) | Err(ModelError::Cancelled)) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the model in this process could not answer");
                // A reader that is gone needs no error.
                let _ = job.answer.blocking_send(Err(error.into()));
            }
            Err(_) => {
                tracing::error!("the model's thread panicked; the next request starts a new one");
                // First the channel, so that a reader that asks again at once finds it closed.
                drop(jobs);
                drop(loaded);
                let crashed = Trouble::new(PhraseCode::ModelCrashed, PhraseCode::SendAgain);
                let _ = job.answer.blocking_send(Err(LlmError::NotReady(crashed)));
                return;
            }
        }
    }
}

fn answer(load: &Load, loaded: &mut Loaded, job: &Job) -> Result<(), ModelError> {
    if job.answer.is_closed() {
        return Err(ModelError::Cancelled);
    }
    let mut model = match loaded.take() {
        Some((path, model)) if path == job.path => model,
        other => {
            // Two models at once may be more than the machine has room for.
            drop(other);
            load(&job.path)?
        }
    };
    let answered = model.answer(
        &job.request,
        &mut |delta| job.answer.blocking_send(Ok(delta)).is_ok(),
        &|| job.answer.is_closed(),
    );
    *loaded = Some((job.path.clone(), model));
    answered
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod engine_tests;
