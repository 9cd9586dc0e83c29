//! A command from its arguments to its result.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use tokio::io::AsyncReadExt as _;

use super::allowed::Line;
use super::background::Background;
use super::output::{Collector, MAX_BYTES, asks, misses_network};
use super::{NAME, Terminal, TerminalArgs, USUAL_TIME};
use crate::protocol::ids::CallId;
use crate::tools::output::{RESULT_LIMIT_BYTES, cut_middle, human_size, shortened};
use crate::tools::sandbox::running::{Report, Running};
use crate::tools::sandbox::{FAILED, FAILED_WORDS, Fence, Order, Streams};
use crate::tools::spill::bounded;
use crate::tools::{COMMAND_BYTES, ToolContext, ToolError, ToolResult};

/// Runs its argument and tells where it ended, whatever ended it.
const SCRIPT: &str = r#"trap 'pwd -P >"$NAVI_DIRECTORY_FILE" 2>/dev/null' EXIT
navi_command=$1; shift
eval "$navi_command""#;

/// Where a command is told to write that into which nobody looks.
const NOWHERE: &str = "/dev/null";

/// Where output is kept that is too long for the model: a folder of the workspace.
const OUTPUT_FOLDER: &str = ".terminal";

/// How long a start in the background is watched, for a command that fails at once.
const FIRST_LOOK: Duration = Duration::from_millis(700);

/// A command that may be run, with everything that it depends on.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) command: String,
    pub(super) line: Line,
    /// Links followed, both.
    pub(super) workspace: PathBuf,
    pub(super) directory: PathBuf,
    pub(super) scratch: PathBuf,
    pub(super) time: Duration,
    /// What the model should know of how its wish was taken.
    note: Option<String>,
}

impl Terminal {
    /// Checks what the model asks for, and finds where it would run.
    pub(super) async fn wanted(
        &self,
        args: TerminalArgs,
        context: &ToolContext,
    ) -> Result<Wanted, ToolError> {
        let command = args.command.unwrap_or_default();
        let command = command.trim();
        if command.is_empty() {
            return Err(ToolError(
                "`command` is missing; for example {\"action\":\"run\",\"command\":\"ls -la\"}"
                    .to_owned(),
            ));
        }
        if command.len() > COMMAND_BYTES {
            return Err(ToolError(format!(
                "the command has {} bytes, and {COMMAND_BYTES} is the limit; write a script with the filesystem tool and run that",
                command.len()
            )));
        }
        if command.contains('\0') {
            return Err(ToolError(
                "the command has a NUL byte; leave it out".to_owned(),
            ));
        }
        let line = self.allowed.line(command)?;
        let (time, note) = match args.timeout_seconds.map(Duration::from_secs) {
            None if args.background => (self.max_time, None),
            None => (USUAL_TIME.min(self.max_time), None),
            Some(time) if time > self.max_time => (
                self.max_time,
                Some(format!(
                    "{} s is the most that it may take",
                    self.max_time.as_secs()
                )),
            ),
            Some(time) => (time.max(Duration::from_secs(1)), None),
        };
        let last = self.shells.directory(context);
        let free = self.fence() == Fence::Lifted;
        let workspace = context.workspace.clone();
        let directory = args.directory;
        let found = tokio::task::spawn_blocking(move || find(&workspace, directory, last, free));
        let (workspace, directory) = found.await.map_err(|_| went_wrong())??;
        Ok(Wanted {
            command: command.to_owned(),
            line,
            scratch: self.sandbox.scratch_of(&context.session_id.to_string()),
            workspace,
            directory,
            time,
            note,
        })
    }

    pub(super) fn order(&self, wanted: &Wanted) -> Order {
        let (program, args) = match &wanted.line {
            Line::Words(words) => (words[0].clone(), words[1..].to_vec()),
            Line::Shell(command) => {
                let shell = shell();
                let args = ["-c", SCRIPT, shell, command].map(str::to_owned);
                (shell.to_owned(), args.to_vec())
            }
        };
        Order {
            program,
            args,
            directory: wanted.directory.clone(),
            workspace: wanted.workspace.clone(),
            scratch: wanted.scratch.clone(),
            read: Vec::new(),
            environment: BTreeMap::new(),
            input: None,
            streams: Streams::Merged,
            fence: self.fence(),
            limits: self.sandbox.limits(),
        }
    }

    /// Starts a command that writes to `tells` where it ended.
    async fn start(&self, wanted: &Wanted, tells: &Path) -> Result<Running, ToolError> {
        let mut order = self.order(wanted);
        let tells = tells.display().to_string();
        order
            .environment
            .insert("NAVI_DIRECTORY_FILE".to_owned(), tells);
        let started = self.sandbox.start(order).await;
        started.map_err(|error| ToolError(format!("the command cannot be started: {error}")))
    }

    /// Runs a command to its end.
    pub(super) async fn run(&self, wanted: Wanted, context: &ToolContext) -> ToolResult {
        let began = Instant::now();
        let tells = wanted
            .scratch
            .join(format!(".directory-{}", context.call_id));
        let mut running = self.start(&wanted, &tells).await?;
        let mut said = Collector::new(context.output.clone());
        let mut buffer = vec![0; 16 * 1024];
        let time_up = tokio::time::sleep(wanted.time);
        tokio::pin!(time_up);
        let mut problem = None;
        let report = loop {
            tokio::select! {
                biased;
                () = &mut time_up => {
                    problem = Some(format!("it did not end within {} s and was ended; give it more with `timeout_seconds`, or run it with `background`", wanted.time.as_secs()));
                    break running.end().await;
                }
                read = running.output.read(&mut buffer) => match read {
                    Ok(0) | Err(_) => break running.ended().await,
                    Ok(count) => said.push(&buffer[..count]),
                },
            }
            if said.is_endless() {
                problem = Some(format!(
                    "it wrote more than {} and was ended; write less, such as with head, or to a file",
                    human_size(MAX_BYTES as u64)
                ));
                break running.end().await;
            }
        };
        let took = began.elapsed();
        let text = said.readable();
        let failed = i32::from(FAILED);
        if report.code == Some(failed) && text.contains(FAILED_WORDS) {
            return Err(ToolError(text.trim().to_owned()));
        }
        let mut end = match &problem {
            Some(problem) => problem.clone(),
            None => how_it_ended(&report, took),
        };
        end.push_str(&self.ended_elsewhere(&wanted, tells, context).await);
        let lost = problem.is_some() || report.code != Some(0);
        for hint in hints(&text, lost, self.fence())
            .into_iter()
            .chain(wanted.note)
        {
            end.push_str("; ");
            end.push_str(&hint);
        }
        let text = shown(text, &wanted.workspace, &context.call_id).await;
        let result = format!("{text}[{end}]");
        if problem.is_some() || report.cut.is_some() {
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
        let workspace = wanted.workspace.clone();
        let free = self.fence() == Fence::Lifted;
        let read = tokio::task::spawn_blocking(move || {
            let directory = read_directory(&tells, &workspace, free);
            // One that is left is gone with the session.
            let _ = std::fs::remove_file(&tells);
            directory
        });
        let directory = read.await.ok().flatten();
        let directory = directory.unwrap_or_else(|| wanted.directory.clone());
        self.shells
            .set_directory(context, &directory, &wanted.workspace);
        match directory.strip_prefix(&wanted.workspace) {
            Ok(inside) if inside.as_os_str().is_empty() => String::new(),
            Ok(inside) => format!(", in {}", inside.display()),
            Err(_) => format!(", in {}", directory.display()),
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
        let id = self.shells.keep(
            context.session_id,
            Background::new(
                &wanted.command,
                running,
                wanted.time,
                context.stopped.clone(),
            ),
        );
        tokio::time::sleep(FIRST_LOOK).await;
        let first = self.shells.look(context.session_id, id)?;
        let first = kept(first, context).await?;
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
    match report {
        Report { cut: Some(why), .. } => format!("ended {took} because {why}"),
        Report {
            code: Some(code), ..
        } => format!("exit code {code} {took}"),
        Report {
            signal: Some(25), ..
        } => {
            format!("ended {took} because it wrote a file larger than it may")
        }
        Report {
            signal: Some(signal),
            ..
        } => format!("ended by signal {signal} {took}"),
        Report { .. } => format!("ended {took}"),
    }
}

fn hints(text: &str, lost: bool, fence: Fence) -> Vec<String> {
    let mut hints = Vec::new();
    if lost && asks(text) {
        hints.push(
            "it waits for input, and nobody can type: give it as arguments, or use flags such as -y"
                .to_owned(),
        );
    }
    if lost && fence == Fence::Inside && misses_network(text) {
        hints.push("commands here have no network; use web_fetch for pages".to_owned());
    }
    hints
}

fn shell() -> &'static str {
    if Path::new("/bin/bash").exists() {
        "/bin/bash"
    } else {
        "/bin/sh"
    }
}

/// The workspace and the directory to run in, links followed.
fn find(
    workspace: &Path,
    asked: Option<String>,
    last: Option<PathBuf>,
    free: bool,
) -> Result<(PathBuf, PathBuf), ToolError> {
    std::fs::create_dir_all(workspace)
        .and_then(|()| workspace.canonicalize())
        .map_err(|error| ToolError(format!("the workspace cannot be used: {error}")))
        .and_then(|workspace| {
            let inside = |path: &PathBuf| free || path.starts_with(&workspace);
            let directory = match asked.filter(|asked| !asked.trim().is_empty()) {
                Some(asked) => {
                    let shown = shortened(&asked, 120);
                    let found = workspace.join(&asked).canonicalize().map_err(|_| {
                        ToolError(format!(
                            "there is no directory `{shown}` in the workspace; make it first, or leave `directory` out"
                        ))
                    })?;
                    if !inside(&found) {
                        return Err(ToolError(format!(
                            "the directory `{shown}` is outside the workspace; commands run inside of it"
                        )));
                    }
                    found
                }
                // One that was deleted meanwhile is none.
                None => last
                    .and_then(|last| last.canonicalize().ok())
                    .filter(inside)
                    .unwrap_or_else(|| workspace.clone()),
            };
            if !directory.is_dir() {
                return Err(ToolError("`directory` is a file; name a directory".to_owned()));
            }
            Ok((workspace, directory))
        })
}

/// What the script wrote, where it is a directory that the next command may start in. The
/// command could have put anything there: it is read with care and taken as data.
fn read_directory(file: &Path, workspace: &Path, free: bool) -> Option<PathBuf> {
    let file = File::options()
        .read(true)
        .custom_flags(
            rustix::fs::OFlags::NOFOLLOW.bits() as i32 | rustix::fs::OFlags::NONBLOCK.bits() as i32,
        )
        .open(file)
        .ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text).ok()?;
    let directory = PathBuf::from(text.trim_end_matches('\n'))
        .canonicalize()
        .ok()?;
    (directory.is_dir() && (free || directory.starts_with(workspace))).then_some(directory)
}

/// The output as the result has it: cut in the middle where it is long, and then kept whole in
/// a file of the workspace.
async fn shown(text: String, workspace: &Path, call: &CallId) -> String {
    if text.is_empty() {
        return String::new();
    }
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    if text.len() <= RESULT_LIMIT_BYTES {
        return text + newline;
    }
    let short = cut_middle(&text, RESULT_LIMIT_BYTES);
    let size = human_size(text.len() as u64);
    let (workspace, name) = (workspace.to_owned(), format!("{call}.txt"));
    let kept = tokio::task::spawn_blocking(move || keep(&workspace, &name, &text)).await;
    match kept {
        Ok(Ok(path)) => format!("{short}{newline}[all of it, {size}, is in {path}]\n"),
        _ => format!("{short}{newline}[the whole output had {size} and could not be kept]\n"),
    }
}

/// Opened from the workspace down, so that no link that a command made leads out.
fn keep(workspace: &Path, name: &str, text: &str) -> std::io::Result<String> {
    let workspace = Dir::open_ambient_dir(workspace, ambient_authority())?;
    workspace.create_dir_all(OUTPUT_FOLDER)?;
    let path = format!("{OUTPUT_FOLDER}/{name}");
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    workspace
        .open_with(&path, &options)?
        .write_all(text.as_bytes())?;
    Ok(path)
}

/// What a background command said, as the result has it: kept whole in a file where it is long.
pub(super) async fn kept(text: String, context: &ToolContext) -> Result<String, ToolError> {
    let (workspace, call_id) = (context.workspace.clone(), context.call_id.clone());
    let kept = tokio::task::spawn_blocking(move || bounded(text, &workspace, &call_id)).await;
    kept.map_err(|_| went_wrong())
}

fn went_wrong() -> ToolError {
    ToolError("the terminal failed inside; try again".to_owned())
}
