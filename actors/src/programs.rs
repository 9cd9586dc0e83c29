//! Programs that are started here: fed, read within bounds, limited in time, and ended with all
//! that they started.

use std::collections::BTreeSet;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

/// As much of standard error as is kept: its end.
pub const TAIL_BYTES: usize = 4 * 1024;

/// For this program, where a limit counts what it may write to: its allocator would ask for more
/// than that at once, before it knows of the limit.
pub const SPARING_ALLOCATOR: (&str, &str) = ("MIMALLOC_ARENA_EAGER_COMMIT", "0");

/// A program that another thread of ours was just writing is busy for a moment.
const BUSY_TRIES: u32 = 10;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// How long output is waited for when the program has ended: it is in the pipe by then.
const LINGER: Duration = Duration::from_millis(500);

/// How far a program may go.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub time: Duration,
    /// More than this on standard output ends it.
    pub output_bytes: usize,
}

/// Why a program was ended before its own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    TimedOut,
    TooMuch,
}

/// How a program ended.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// None where a signal or a bound ended it.
    pub code: Option<i32>,
    pub cut: Option<Cut>,
    pub stdout: Vec<u8>,
    /// The end of standard error.
    pub stderr: Vec<u8>,
}

/// The last that a program says.
#[derive(Debug, Default)]
pub struct Tail {
    pub bytes: Vec<u8>,
    pub is_cut: bool,
}

impl Tail {
    /// Takes in what was said last, and gives back how much that was.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        self.bytes.extend_from_slice(bytes);
        let too_much = self.bytes.len().saturating_sub(TAIL_BYTES);
        self.is_cut |= too_much > 0;
        self.bytes.drain(..too_much);
        bytes.len()
    }
}

/// A program under way, with its three streams. Dropping it ends its process group.
#[derive(Debug)]
pub struct Program {
    // Before the child, whose number is another program's once it is dropped.
    _group: Group,
    pub child: Child,
}

impl Program {
    /// Starts a program in a process group of its own.
    ///
    /// # Errors
    /// It could not be started.
    pub async fn start(command: &mut Command) -> io::Result<Self> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut tries = 0;
        let child = loop {
            match command.spawn() {
                Err(error)
                    if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES =>
                {
                    tries += 1;
                    sleep(BUSY_PAUSE).await;
                }
                spawned => break spawned?,
            }
        };
        Ok(Self {
            _group: Group::of(child.id()),
            child,
        })
    }
}

/// Runs a program to its end, with this on its standard input. Dropping the future ends it.
///
/// # Errors
/// It could not be started.
pub async fn run(mut command: Command, input: &[u8], bounds: Bounds) -> io::Result<Ended> {
    let mut program = Program::start(&mut command).await?;
    let child = &mut program.child;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let limit = Instant::now() + bounds.time;
    let (mut ended, mut errors) = (Ended::default(), Tail::default());
    let how = {
        let said = &mut ended.stdout;
        let streams = async {
            let feed = async {
                if let Some(mut stdin) = stdin {
                    // A program may answer without reading what it was sent.
                    let _ = stdin.write_all(input).await;
                }
                Ok(())
            };
            tokio::try_join!(
                feed,
                read(stdout, bounds.output_bytes, |bytes| {
                    said.extend_from_slice(bytes);
                    bytes.len()
                }),
                read(stderr, usize::MAX, |bytes| errors.push(bytes)),
            )
        };
        tokio::pin!(streams);
        tokio::select! {
            told = &mut streams => match told {
                Err(cut) => Err(cut),
                Ok(_) => timeout_at(limit, child.wait()).await.map_err(|_| Cut::TimedOut),
            },
            // What it started may hold its streams open for ever: its own end counts.
            status = child.wait() => match timeout(LINGER, &mut streams).await {
                Ok(Err(cut)) => Err(cut),
                Ok(Ok(_)) | Err(_) => Ok(status),
            },
            () = sleep_until(limit) => Err(Cut::TimedOut),
        }
    };
    match how {
        Ok(status) => ended.code = status?.code(),
        Err(cut) => ended.cut = Some(cut),
    }
    ended.stderr = errors.bytes;
    Ok(ended)
}

/// Shows what a program says to its end, within bounds, and gives back the last of its errors.
pub async fn follow(
    output: impl AsyncRead + Unpin,
    errors: Option<impl AsyncRead + Unpin>,
    bounds: Bounds,
    show: impl FnMut(&[u8]) -> usize,
) -> (Tail, Result<(), Cut>) {
    let mut tail = Tail::default();
    let streams = async {
        // A flood ends both: its errors may never end.
        tokio::try_join!(
            read(Some(output), bounds.output_bytes, show),
            read(errors, usize::MAX, |bytes| tail.push(bytes)),
        )
    };
    let read = timeout(bounds.time, streams).await;
    let read = read.unwrap_or(Err(Cut::TimedOut));
    (tail, read.map(|_| ()))
}

/// Shows a stream to its end, a piece at a time, and of more than `most` bytes the first. What is
/// shown a piece gives back how many bytes it made of it.
///
/// # Errors
/// There was more.
pub async fn read(
    stream: Option<impl AsyncRead + Unpin>,
    most: usize,
    mut show: impl FnMut(&[u8]) -> usize,
) -> Result<(), Cut> {
    let Some(mut stream) = stream else {
        return Ok(());
    };
    let mut room = most;
    let mut buffer = vec![0; 16 * 1024];
    // A stream that breaks off has ended.
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        let made = show(&buffer[..count.min(room)]);
        room = room.checked_sub(made.max(count)).ok_or(Cut::TooMuch)?;
    }
    Ok(())
}

/// Ends a process group when it goes: the program, and what it started and left behind.
#[derive(Debug)]
struct Group(Option<i32>);

/// The groups that live, for an end of the service that drops nothing.
static LIVING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
/// As many as are kept: more than limits elsewhere let there be.
const MAX_LIVING: usize = 4096;

impl Group {
    /// Of the process that leads it; none where it is gone already.
    fn of(leader: Option<u32>) -> Self {
        let group = leader.and_then(|id| i32::try_from(id).ok());
        let mut living = LIVING.lock();
        if living.len() < MAX_LIVING {
            living.extend(group);
        }
        Self(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            kill(group);
            LIVING.lock().remove(&group);
        }
    }
}

/// Ends every process group that lives, right before an end of the service at which nothing is
/// dropped.
pub fn end_groups() {
    for group in std::mem::take(&mut *LIVING.lock()) {
        kill(group);
    }
}

fn kill(group: i32) {
    if let Some(group) = Pid::from_raw(group) {
        // It is gone already, as a rule.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;

    #[test]
    fn a_group_is_known_while_it_lives_and_ends_with_its_guard() {
        let mut command = std::process::Command::new("sleep");
        let mut child = command.arg("300").process_group(0).spawn().unwrap();
        let group = i32::try_from(child.id()).unwrap();
        let guard = Group::of(Some(child.id()));
        assert!(LIVING.lock().contains(&group));
        drop(guard);
        assert!(!LIVING.lock().contains(&group));
        assert!(!child.wait().unwrap().success());
    }
}
