//! What a session's commands leave for the next one: where they ended, and those that still run.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use itertools::Itertools as _;
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::output::readable;
use super::run::how_it_ended;
use crate::programs;
use crate::protocol::ids::{RunId, SessionId};
use crate::tools::output::{decoded, decoder, shortened};
use crate::tools::sandbox::running::{Report, Running};
use crate::tools::{ToolContext, ToolError, ToolResult};

/// How many commands of one session run in the background at once.
const RUNNING: usize = 8;
/// How many are kept in all, for a look at how they ended.
const KEPT: usize = 16;
/// Of how many subagents the directory is kept: the newest, by their ids. More do not work at once.
const SUBAGENTS: usize = 64;

/// As much of the output of one in the background as is kept: the newest.
const KEPT_BYTES: usize = 256 * 1024;

/// How long its end may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// Every session that ran a command.
#[derive(Debug, Default)]
pub(super) struct Shells(Mutex<HashMap<SessionId, Shell>>);

#[derive(Debug, Default)]
struct Shell {
    /// Where the commands of each subagent ended, which work side by side, and those of the
    /// session itself (none), where that is not the workspace.
    directories: BTreeMap<Option<RunId>, PathBuf>,
    background: BTreeMap<u64, Background>,
    /// How many were started.
    started: u64,
}

impl Shells {
    /// Where the last command ended, of the session's own or of the subagent that asks.
    pub(super) fn directory(&self, context: &ToolContext) -> Option<PathBuf> {
        let all = self.0.lock();
        let shell = all.get(&context.session_id)?;
        shell.directories.get(&subagent(context)).cloned()
    }

    pub(super) fn set_directory(&self, context: &ToolContext, directory: &Path, workspace: &Path) {
        let mut all = self.0.lock();
        if directory == workspace {
            let shell = all.get_mut(&context.session_id);
            shell.map(|shell| shell.directories.remove(&subagent(context)));
            return;
        }
        let known = &mut all.entry(context.session_id).or_default().directories;
        known.insert(subagent(context), directory.to_owned());
        let of_subagents = known.keys().flatten();
        if of_subagents.clone().count() > SUBAGENTS {
            let oldest = of_subagents.min().copied();
            known.remove(&oldest);
        }
    }

    /// Whether one more may be started.
    pub(super) fn has_room(&self, session: SessionId) -> ToolResult<()> {
        let all = self.0.lock();
        let kept = all.get(&session).map(|shell| shell.background.values());
        let running = kept.into_iter().flatten().filter(|one| one.is_running());
        refuse_if!(
            running.count() >= RUNNING,
            "{RUNNING} commands run in the background already; end one with {{\"action\":\"end\",\"id\":1}}"
        );
        Ok(())
    }

    /// Keeps a command that was started. Gives back its number.
    pub(super) fn keep(&self, session: SessionId, started: Background) -> u64 {
        let mut all = self.0.lock();
        let shell = all.entry(session).or_default();
        shell.started += 1;
        let id = shell.started;
        shell.background.insert(id, started);
        let kept = &mut shell.background;
        let is_over = |(id, one): (&u64, &Background)| (!one.is_running()).then_some(*id);
        while kept.len() > KEPT
            && let Some(id) = kept.iter().find_map(is_over)
        {
            kept.remove(&id);
        }
        id
    }

    /// What there is to see of a background command.
    pub(super) fn of(
        &self,
        session: SessionId,
        id: u64,
        see: impl FnOnce(&Background) -> String,
    ) -> ToolResult<String> {
        let all = self.0.lock();
        let shell = all.get(&session);
        let found = shell.and_then(|shell| shell.background.get(&id));
        found.map(see).ok_or_else(|| unknown(id))
    }

    /// Ends a background command.
    pub(super) async fn end(&self, session: SessionId, id: u64) -> ToolResult<String> {
        let take = |shell: &mut Shell| shell.background.remove(&id);
        let taken = self.0.lock().get_mut(&session).and_then(take);
        Ok(taken.ok_or_else(|| unknown(id))?.end().await)
    }

    pub(super) fn list(&self, session: SessionId) -> String {
        let all = self.0.lock();
        let kept = all.get(&session).into_iter();
        let lines = kept
            .flat_map(|shell| &shell.background)
            .map(|(id, one)| format!("{id}: {}", one.line()))
            .join("\n");
        if lines.is_empty() {
            return "nothing runs in the background".to_owned();
        }
        lines
    }

    /// Ends everything of a session.
    pub(super) fn forget(&self, session: SessionId) {
        let shell = self.0.lock().remove(&session);
        // After the lock is free: it ends what runs.
        drop(shell);
    }
}

/// The subagent that makes a call, where one does.
fn subagent(context: &ToolContext) -> Option<RunId> {
    context.is_subagent.then_some(context.run_id)
}

fn unknown(id: u64) -> ToolError {
    refusal!("there is no background command {id}; {{\"action\":\"list\"}} shows which there are")
}

/// A command that nobody waits for. Dropping it ends the command.
#[derive(Debug)]
pub(super) struct Background {
    pub(super) command: String,
    began: Instant,
    state: Arc<Mutex<State>>,
    stop: CancellationToken,
    task: AbortOnDropHandle<()>,
}

#[derive(Debug, Default)]
struct State {
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
        let state = Arc::<Mutex<State>>::default();
        let stop = CancellationToken::new();
        let ends = [stop.clone(), stopped];
        let task = tokio::spawn(follow(running, Arc::clone(&state), time, ends));
        Self {
            command: command.to_owned(),
            began: Instant::now(),
            state,
            stop,
            task: AbortOnDropHandle::new(task),
        }
    }

    fn is_running(&self) -> bool {
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
        said.push_str(&format!("\n[{}]", self.how_it_stands(&state)));
        said
    }

    /// One line for a list.
    fn line(&self) -> String {
        let command = shortened(&self.command, 120);
        format!("{command} [{}]", self.how_it_stands(&self.state.lock()))
    }

    fn how_it_stands(&self, state: &State) -> String {
        match &state.ended {
            Some((report, took)) => how_it_ended(report, *took),
            None => format!("running for {} s", self.began.elapsed().as_secs()),
        }
    }

    /// Ends it, with what it said last.
    async fn end(mut self) -> String {
        self.stop.cancel();
        // Its end is only waited for so long: dropping this ends it in any case.
        let _ = timeout(PATIENCE, &mut self.task).await;
        self.look()
    }
}

impl State {
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
    let began = Instant::now();
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
            state.lock().ended = Some((report, began.elapsed()));
            return;
        }
    };
    let mut report = running.end().await;
    report.cut = why.or(report.cut);
    state.lock().ended = Some((report, began.elapsed()));
}
