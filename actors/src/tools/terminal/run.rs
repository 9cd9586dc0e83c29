//! A command from its arguments to its result.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::output::{asks, misses_network, readable};
use super::shell::Background;
use super::{NAME, Terminal, TerminalArgs, USUAL_TIME};
use crate::programs::{Bounds, Cut};
use crate::tools::output::{bounded_for, decoded, decoder, human_size, shortened};
use crate::tools::sandbox::running::{Report, Running};
use crate::tools::sandbox::{FAILED, FAILED_WORDS, Fence, Order};
use crate::tools::trust::open_regular;
use crate::tools::{ToolContext, ToolError, ToolResult, blocking, check_command};

/// Runs its argument and tells where it ended, whatever ended it.
const SCRIPT: &str = r#"trap 'pwd -P >"$NAVI_DIRECTORY_FILE" 2>/dev/null' EXIT
navi_command=$1; shift
eval "$navi_command""#;

/// Where a command is told to write that into which nobody looks.
const NOWHERE: &str = "/dev/null";

/// The most that one command may write before it is ended: nobody reads more.
const MAX_BYTES: usize = 8 << 20;

/// How long a start in the background is watched, for a command that fails at once.
const FIRST_LOOK: Duration = Duration::from_millis(700);

/// A command that may be run, with everything that it depends on.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) command: String,
    /// With links followed in its workspace and its directory.
    pub(super) order: Order,
    pub(super) time: Duration,
    pub(super) background: bool,
    /// What the model should know of how its wish was taken.
    note: Option<String>,
}

impl Wanted {
    /// A directory as it is told: from the workspace down where it is inside, and empty where it
    /// is the workspace.
    pub(super) fn told(&self, directory: &Path) -> String {
        let inside = directory.strip_prefix(&self.order.workspace);
        inside.unwrap_or(directory).display().to_string()
    }
}

impl Terminal {
    /// Checks what the model asks for, and finds where it would run.
    pub(super) async fn wanted(
        &self,
        args: TerminalArgs,
        context: &ToolContext,
    ) -> ToolResult<Wanted> {
        let command = args.command.trim();
        check_command(
            command,
            "write a script with the filesystem tool and run that",
        )?;
        let mut words = self.allowed.words(command)?;
        let program = words.remove(0);
        let asked = args.timeout_seconds.map(Duration::from_secs);
        let usual = match args.background {
            true => self.max_time,
            false => USUAL_TIME,
        };
        let time = asked.map_or(usual, |time| time.max(Duration::from_secs(1)));
        let note = (asked > Some(self.max_time)).then(|| {
            let most = self.max_time.as_secs();
            format!("{most} s is the most that it may take")
        });
        let last = self.shells.directory(context);
        let free = self.fence() == Fence::Lifted;
        let workspace = context.workspace.clone();
        let directory = args.directory;
        let found = blocking(NAME, move || find(&workspace, directory, last, free));
        let (workspace, directory) = found.await?;
        Ok(Wanted {
            command: command.to_owned(),
            order: Order {
                program,
                args: words,
                directory,
                workspace,
                scratch: self.sandbox.scratch_of(&context.session_id.to_string()),
                uid: context.means.uid,
                fence: self.fence(),
                limits: self.sandbox.config.limits,
                ..Order::default()
            },
            time: time.min(self.max_time),
            background: args.background,
            note,
        })
    }

    /// Starts a command that writes to `tells` where it ended.
    async fn start(&self, wanted: &Wanted, tells: &Path) -> ToolResult<Running> {
        let mut order = wanted.order.clone();
        let (name, tells) = ("NAVI_DIRECTORY_FILE", tells.display().to_string());
        order.environment.insert(name.to_owned(), tells);
        let started = self.sandbox.start(order).await;
        started.map_err(|error| refusal!("the command cannot be started: {error}"))
    }

    /// Runs a command to its end.
    pub(super) async fn run(&self, wanted: Wanted, context: &ToolContext) -> ToolResult {
        let began = Instant::now();
        let tells = format!(".directory-{}", context.call_id);
        let tells = wanted.order.scratch.join(tells);
        let running = self.start(&wanted, &tells).await?;
        let (mut decoder, mut text) = (decoder(), String::new());
        let bounds = Bounds {
            time: wanted.time,
            output_bytes: MAX_BYTES,
        };
        let show = |bytes: &[u8]| {
            let piece = decoded(&mut decoder, bytes, false);
            context.output.push(&piece);
            text.push_str(&piece);
            piece.len()
        };
        let (report, cut, _) = running.read(bounds, show).await;
        let took = began.elapsed();
        let text = readable(&text);
        if report.code == Some(i32::from(FAILED)) && text.contains(FAILED_WORDS) {
            return Err(ToolError(text.trim().to_owned()));
        }
        let mut end = match cut {
            Some(Cut::TimedOut) => format!(
                "it did not end within {} s and was ended; give it more with `timeout_seconds`, or run it with `background`",
                wanted.time.as_secs()
            ),
            Some(Cut::TooMuch) => format!(
                "it wrote more than {} and was ended; write less, such as with head, or to a file",
                human_size(MAX_BYTES as u64)
            ),
            None => how_it_ended(&report, took),
        };
        end.push_str(&self.ended_elsewhere(&wanted, tells, context).await);
        let lost = cut.is_some() || report.code != Some(0);
        if lost && asks(&text) {
            end.push_str("; it waits for input, and nobody can type: give it as arguments, or use flags such as -y");
        }
        if lost && self.fence() == Fence::Inside && misses_network(&text) {
            end.push_str("; commands here have no network; use web_fetch for pages");
        }
        if let Some(note) = &wanted.note {
            end.push_str(&format!("; {note}"));
        }
        let mut result = bounded_for(text, context).await?;
        if !matches!(result.chars().last(), None | Some('\n')) {
            result.push('\n');
        }
        result.push_str(&format!("[{end}]"));
        if cut.is_some() || report.cut.is_some() {
            return Err(ToolError(result));
        }
        Ok(result.into())
    }

    /// Keeps the directory in which a command ended, and says so where it is another one.
    async fn ended_elsewhere(
        &self,
        wanted: &Wanted,
        tells: PathBuf,
        context: &ToolContext,
    ) -> String {
        let order = wanted.order.clone();
        let read = tokio::task::spawn_blocking(move || {
            let directory = read_directory(&tells, &order);
            // One that is left is gone with the session.
            let _ = std::fs::remove_file(&tells);
            directory.unwrap_or(order.directory)
        });
        let directory = read.await;
        let directory = directory.unwrap_or_else(|_| wanted.order.directory.clone());
        self.shells
            .set_directory(context, &directory, &wanted.order.workspace);
        match wanted.told(&directory) {
            told if told.is_empty() => told,
            told => format!(", in {told}"),
        }
    }

    /// Starts a command and does not wait for its end.
    pub(super) async fn start_in_background(
        &self,
        wanted: Wanted,
        context: &ToolContext,
    ) -> ToolResult {
        self.shells.has_room(context.session_id)?;
        let running = self.start(&wanted, Path::new(NOWHERE)).await?;
        let stopped = context.stopped.clone();
        let started = Background::new(&wanted.command, running, wanted.time, stopped);
        let id = self.shells.keep(context.session_id, started);
        tokio::time::sleep(FIRST_LOOK).await;
        let first = self.shells.of(context.session_id, id, Background::look)?;
        let first = bounded_for(first, context).await?;
        tracing::debug!(
            tool = NAME,
            id,
            command = shortened(&wanted.command, 80),
            "background command started"
        );
        Ok(format!(
            "started in the background as {id}; {{\"action\":\"look\",\"id\":{id}}} shows what it says, end ends it\n{first}"
        )
        .into())
    }
}

/// How a command ended, for the model.
pub(super) fn how_it_ended(report: &Report, took: Duration) -> String {
    let took = format!("after {:.1} s", took.as_secs_f64());
    match (&report.cut, report.code, report.signal) {
        (Some(why), ..) => format!("ended {took} because {why}"),
        (None, Some(code), _) => format!("exit code {code} {took}"),
        (None, None, Some(25)) => {
            format!("ended {took} because it wrote a file larger than it may")
        }
        (None, None, Some(signal)) => format!("ended by signal {signal} {took}"),
        (None, None, None) => format!("ended {took}"),
    }
}

/// The words by which a shell runs a command.
pub(super) fn by_shell(command: &str) -> Vec<String> {
    let shell = match Path::new("/bin/bash").exists() {
        true => "/bin/bash",
        false => "/bin/sh",
    };
    [shell, "-c", SCRIPT, shell, command]
        .map(str::to_owned)
        .to_vec()
}

/// The workspace and the directory to run in, links followed.
fn find(
    workspace: &Path,
    asked: Option<String>,
    last: Option<PathBuf>,
    free: bool,
) -> ToolResult<(PathBuf, PathBuf)> {
    let workspace = std::fs::create_dir_all(workspace)
        .and_then(|()| workspace.canonicalize())
        .map_err(|error| refusal!("the workspace cannot be used: {error}"))?;
    let inside = |path: &PathBuf| free || path.starts_with(&workspace);
    let directory = match asked.filter(|asked| !asked.trim().is_empty()) {
        Some(asked) => {
            let shown = shortened(&asked, 120);
            let found = workspace.join(&asked).canonicalize().map_err(|_| {
                refusal!(
                    "there is no directory `{shown}` in the workspace; make it first, or leave `directory` out"
                )
            })?;
            refuse_if!(
                !inside(&found),
                "the directory `{shown}` is outside the workspace; commands run inside of it"
            );
            found
        }
        // One that was deleted meanwhile is none.
        None => last
            .and_then(|last| last.canonicalize().ok())
            .filter(inside)
            .unwrap_or_else(|| workspace.clone()),
    };
    refuse_if!(
        !directory.is_dir(),
        "`directory` is a file; name a directory"
    );
    Ok((workspace, directory))
}

/// What the script wrote, where it is a directory that the next command may start in. The
/// command could have put anything there: it is read with care and taken as data.
fn read_directory(file: &Path, order: &Order) -> Option<PathBuf> {
    let (file, _) = open_regular(file, OFlags::NOFOLLOW).ok()?;
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text).ok()?;
    let directory = Path::new(text.trim_end_matches('\n')).canonicalize().ok()?;
    let is_reached = order.fence == Fence::Lifted || directory.starts_with(&order.workspace);
    (directory.is_dir() && is_reached).then_some(directory)
}
