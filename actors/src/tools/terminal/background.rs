//! A command that nobody waits for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::output::readable;
use super::run::how_it_ended;
use crate::programs;
use crate::tools::output::{decoded, decoder, shortened};
use crate::tools::sandbox::running::{Report, Running};

/// As much of its output as is kept: the newest.
const KEPT_BYTES: usize = 256 * 1024;

/// How long an end may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// See the module. Dropping it ends the command.
#[derive(Debug)]
pub(super) struct Background {
    pub(super) command: String,
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
        let ends = [stop.clone(), stopped];
        let task = tokio::spawn(follow(running, Arc::clone(&state), time, ends));
        Self {
            command: command.to_owned(),
            state,
            stop,
            task: AbortOnDropHandle::new(task),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.state.lock().ended.is_none()
    }

    /// What is new of its output, and how it stands.
    pub(super) fn look(&self) -> String {
        let mut state = self.state.lock();
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
        format!("{command} [{}]", self.state.lock().how_it_stands())
    }

    /// Ends it, with what it said last.
    pub(super) async fn end(mut self) -> String {
        self.stop.cancel();
        // Its end is only waited for so long: dropping this ends it in any case.
        let _ = timeout(PATIENCE, &mut self.task).await;
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

    fn end(&mut self, report: Report) {
        self.ended = Some((report, self.began.elapsed()));
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

/// Keeps what a command says, to its end, or to one that comes before.
async fn follow(
    mut running: Running,
    state: Arc<Mutex<State>>,
    time: Duration,
    [end, stopped]: [CancellationToken; 2],
) {
    let mut decoder = decoder();
    let keep = |bytes: &[u8]| {
        state.lock().push(&decoded(&mut decoder, bytes, false));
        bytes.len()
    };
    let why = tokio::select! {
        biased;
        () = end.cancelled() => None,
        () = stopped.cancelled() => Some("the run that started it was stopped".to_owned()),
        () = sleep(time) => Some(format!(
            "its {} s were up; give it more with `timeout_seconds`",
            time.as_secs()
        )),
        _ = programs::read(Some(&mut running.output), usize::MAX, keep) => {
            let report = running.ended().await;
            state.lock().end(report);
            return;
        }
    };
    let mut report = running.end().await;
    report.cut = why.or(report.cut);
    state.lock().end(report);
}
