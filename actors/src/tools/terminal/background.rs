//! A command that nobody waits for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::output::{Decoder, readable};
use super::run::how_it_ended;
use crate::tools::output::shortened;
use crate::tools::sandbox::running::{Report, Running};

/// As much of its output as is kept: the newest.
const KEPT_BYTES: usize = 256 * 1024;

/// How long an end may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// See the module. Dropping it ends the command.
#[derive(Debug)]
pub(super) struct Background {
    command: String,
    state: Arc<Mutex<State>>,
    stop: CancellationToken,
    task: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct State {
    began: Instant,
    text: String,
    /// How much of the text was dropped, and how much was looked at, of all that there was.
    dropped: usize,
    seen: usize,
    ended: Option<(Report, Duration)>,
}

impl Background {
    /// Follows a command for at most this time, and no longer than until `stopped`.
    pub(super) fn new(
        command: &str,
        running: Running,
        time: Duration,
        stopped: CancellationToken,
    ) -> Self {
        let state = Arc::new(Mutex::new(State {
            began: Instant::now(),
            text: String::new(),
            dropped: 0,
            seen: 0,
            ended: None,
        }));
        let stop = CancellationToken::new();
        let ends = Ends {
            end: stop.clone(),
            stopped,
            time,
        };
        let task = tokio::spawn(follow(running, Arc::clone(&state), ends));
        Self {
            command: command.to_owned(),
            state,
            stop,
            task: AbortOnDropHandle::new(task),
        }
    }

    pub(super) fn command(&self) -> &str {
        &self.command
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(super) fn is_running(&self) -> bool {
        self.state().ended.is_none()
    }

    /// What is new of its output, and how it stands.
    pub(super) fn look(&self) -> String {
        let mut state = self.state();
        let from = state.seen.saturating_sub(state.dropped);
        let missed = state.dropped.saturating_sub(state.seen);
        let new = readable(&state.text[state.text.ceil_char_boundary(from)..]);
        state.seen = state.dropped + state.text.len();
        let mut said = String::new();
        if missed > 0 {
            said.push_str(&format!("[… {missed} bytes were dropped here …]\n"));
        }
        said.push_str(new.trim_end());
        if said.is_empty() {
            said.push_str("[no new output]");
        }
        said.push_str(&format!("\n[{}]", state.how_it_stands()));
        said
    }

    /// One line for a list.
    pub(super) fn line(&self) -> String {
        let command = shortened(&self.command, 120);
        format!("{command} [{}]", self.state().how_it_stands())
    }

    /// Ends it, with what it said last.
    pub(super) async fn end(mut self) -> String {
        self.stop.cancel();
        // Its end is only waited for so long: dropping this ends it in any case.
        let _ = tokio::time::timeout(PATIENCE, &mut self.task).await;
        self.look()
    }
}

impl State {
    fn how_it_stands(&self) -> String {
        match &self.ended {
            Some((report, took)) => how_it_ended(report, *took),
            None => format!("running for {} s", self.began.elapsed().as_secs()),
        }
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        if self.text.len() > KEPT_BYTES {
            let cut = self.text.len() - KEPT_BYTES / 2;
            let cut = self.text.ceil_char_boundary(cut);
            self.text.drain(..cut);
            self.dropped += cut;
        }
    }
}

/// What ends it before its own end.
struct Ends {
    end: CancellationToken,
    stopped: CancellationToken,
    time: Duration,
}

async fn follow(mut running: Running, state: Arc<Mutex<State>>, ends: Ends) {
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; 16 * 1024];
    let time_up = tokio::time::sleep(ends.time);
    tokio::pin!(time_up);
    let report = loop {
        tokio::select! {
            biased;
            () = ends.end.cancelled() => break running.end().await,
            () = ends.stopped.cancelled() => {
                break running.end_because("the run that started it was stopped".to_owned()).await;
            }
            () = &mut time_up => {
                let seconds = ends.time.as_secs();
                break running.end_because(format!("its {seconds} s were up; give it more with `timeout_seconds`")).await;
            }
            read = running.output.read(&mut buffer) => match read {
                Ok(0) | Err(_) => break running.ended().await,
                Ok(count) => {
                    let text = decoder.push(&buffer[..count]);
                    lock(&state).push(&text);
                }
            },
        }
    };
    let mut state = lock(&state);
    let took = state.began.elapsed();
    state.ended = Some((report, took));
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
