//! A command on a host: started, watched, ended. What it writes is shown while it comes, and kept
//! up to a limit.

use std::sync::Arc;
use std::time::Duration;

use russh::client::Msg;
use russh::{Channel, ChannelMsg, ChannelReadHalf, ChannelWriteHalf, Sig};
use tokio::time::{Instant, timeout, timeout_at};
use uuid::Uuid;

use super::pool::Lease;
use crate::tools::output::{decoded, decoder, human_size};
use crate::tools::{LiveOutput, ToolResult};

/// How long a command that has exited may hold its output open: a process that it left in the
/// background does that for ever.
const AFTER_EXIT: Duration = Duration::from_secs(2);
/// How long a command that was asked to end has before it is killed.
const BEFORE_KILL: Duration = Duration::from_secs(1);
/// How long each of the last words to a host may take.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How much of an output is kept, from its beginning.
pub(super) const KEPT_BYTES: usize = 4 << 20;
/// How much of its end is kept beside that.
const TAIL_BYTES: usize = 16 * 1024;
/// A command that writes more than this is ended.
const MAX_BYTES: u64 = 64 << 20;

/// Who gets no signals.
const ROOT: &str = "root";
/// `navi-`, a tag, `-`, and a number.
const MAX_LINE_BYTES: usize = 40;

/// How a command came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Exit(u32),
    /// By a signal, as in `KILL`.
    Signal(String),
    /// At its time limit.
    TimedOut,
    /// It wrote too much.
    TooMuch,
    /// The connection went, or the host hung up without a word.
    Lost,
}

/// A command that was run.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) end: End,
    /// It exited, and something that it started did not.
    left_running: bool,
    pub(super) output: String,
}

/// Runs a command in the user's shell there. Its input is empty. Dropping the future ends it.
pub(super) async fn run(
    (lease, channel): (Lease, Channel<Msg>),
    (user, command): (&str, &str),
    limit: Duration,
    live: LiveOutput,
) -> ToolResult<Ran> {
    let deadline = Instant::now() + limit;
    let (mut from_host, to_host) = channel.split();
    let (mark, command) = Mark::of(user, command);
    let mut running = Running {
        to_host: Arc::new(to_host),
        lease,
        mark,
        is_over: false,
    };
    let lost = |_| refusal!("the connection was lost before the command was sent");
    running.to_host.exec(true, command).await.map_err(lost)?;
    running.to_host.eof().await.map_err(lost)?;
    let mut capture = Capture::new(live);
    let watched = watch(&mut from_host, &mut running.mark, &mut capture, deadline);
    let (end, left_running) = watched.await?;
    capture.push(&running.mark.rest());
    if !matches!(end, End::TimedOut | End::TooMuch) {
        // The channel is all that there is to close.
        running.is_over = true;
        let _ = timeout(LAST_WORDS, running.to_host.close()).await;
    }
    Ok(Ran {
        end,
        left_running,
        output: capture.finish(),
    })
}

async fn watch(
    from_host: &mut ChannelReadHalf,
    mark: &mut Mark,
    capture: &mut Capture,
    mut deadline: Instant,
) -> ToolResult<(End, bool)> {
    let mut end = None;
    loop {
        let Ok(message) = timeout_at(deadline, from_host.wait()).await else {
            let left_running = end.is_some();
            return Ok((end.unwrap_or(End::TimedOut), left_running));
        };
        match message {
            Some(ChannelMsg::Data { data }) => capture.push(&data),
            Some(ChannelMsg::ExtendedData { data, .. }) => capture.push(&mark.without_line(&data)),
            Some(ChannelMsg::ExitStatus { exit_status }) => end = Some(End::Exit(exit_status)),
            Some(ChannelMsg::ExitSignal { signal_name, .. }) => {
                end = Some(End::Signal(match signal_name {
                    // One that a host makes up could say anything.
                    Sig::Custom(_) => "another signal".to_owned(),
                    signal => format!("{signal:?}"),
                }));
            }
            Some(ChannelMsg::Failure) => {
                refuse!("the host does not let this user run commands; tell the user");
            }
            Some(ChannelMsg::Close) | None => return Ok((end.unwrap_or(End::Lost), false)),
            Some(_) => {}
        }
        if end.is_some() {
            deadline = deadline.min(Instant::now() + AFTER_EXIT);
        }
        if capture.total_bytes > MAX_BYTES {
            return Ok((End::TooMuch, false));
        }
    }
}

/// The way to a command that runs. Dropping it ends the command: a call that is stopped is
/// dropped, and must leave nothing behind.
struct Running {
    to_host: Arc<ChannelWriteHalf<Msg>>,
    lease: Lease,
    mark: Mark,
    is_over: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Without a runtime the whole service is ending, and its connections with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && !self.is_over
        {
            let (to_host, lease) = (Arc::clone(&self.to_host), self.lease.clone());
            runtime.spawn(end_command(to_host, lease, self.mark.killer()));
        }
    }
}

/// By signals (RFC 4254, section 6.9), and where those do not come through, by `killer`.
async fn end_command(to_host: Arc<ChannelWriteHalf<Msg>>, lease: Lease, killer: Option<String>) {
    if let Some(killer) = killer {
        let killed = timeout(2 * LAST_WORDS, async {
            let mut channel = lease.connection.channel().await.ok()?;
            channel.exec(true, killer).await.ok()?;
            while channel.wait().await.is_some() {}
            Some(())
        });
        if !matches!(killed.await, Ok(Some(()))) {
            tracing::warn!("a command that was stopped may still run on its host");
        }
    } else {
        let _ = timeout(LAST_WORDS, to_host.signal(Sig::TERM)).await;
        tokio::time::sleep(BEFORE_KILL).await;
        let _ = timeout(LAST_WORDS, to_host.signal(Sig::KILL)).await;
    }
    let _ = timeout(LAST_WORDS, to_host.close()).await;
}

/// The process of a command, for where the host does not pass signals on.
///
/// OpenSSH sends no signals to the commands of root (its `session_signal_req` wants the privilege
/// separation that root's sessions go without), and closing a channel ends nothing by itself. So
/// root's shell first tells its own process, in a line of standard error that is taken out again.
#[derive(Debug, Default)]
struct Mark {
    /// What the line begins with; none where no line comes.
    begins: Option<String>,
    /// What may still become the line.
    held: Vec<u8>,
    process: Option<u32>,
}

impl Mark {
    /// The mark of a user's command, and the command with what tells it.
    fn of(user: &str, command: &str) -> (Self, String) {
        let mut mark = Self::default();
        if user != ROOT {
            return (mark, command.to_owned());
        }
        let tag = Uuid::new_v4().simple().to_string();
        let begins = format!("navi-{}-", &tag[..12]);
        let command = format!("printf '{begins}%s\\n' \"$$\" >&2\n{command}");
        mark.begins = Some(begins);
        (mark, command)
    }

    /// The next of standard error, without the line.
    fn without_line(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Some(begins) = &self.begins else {
            return bytes.to_vec();
        };
        self.held.extend_from_slice(bytes);
        if let Some(end) = self.held.iter().position(|&byte| byte == b'\n') {
            let line = String::from_utf8_lossy(&self.held[..end]).into_owned();
            // A shell of another kind may say something else: that is output like any other.
            if let Some(number) = line.strip_prefix(begins.as_str()) {
                self.process = number.parse().ok().filter(|process| *process > 1);
                self.held.drain(..=end);
            }
        } else if self.held.len() < MAX_LINE_BYTES {
            return Vec::new();
        }
        self.rest()
    }

    /// What was held back, where no line came.
    fn rest(&mut self) -> Vec<u8> {
        self.begins = None;
        std::mem::take(&mut self.held)
    }

    /// What ends the process and all that it has started, run on the same host.
    fn killer(&self) -> Option<String> {
        let process = self.process?;
        Some(format!(
            "kill -TERM -- -{process} 2>/dev/null && sleep 1; kill -KILL -- -{process} 2>/dev/null"
        ))
    }
}

/// Gathers output. Standard output and standard error are one text here, in the order in which
/// they came: that is how a person would see it.
struct Capture {
    live: LiveOutput,
    /// The beginning, and of what came after it the end.
    kept: Vec<u8>,
    total_bytes: u64,
    shown: encoding_rs::Decoder,
}

impl Capture {
    fn new(live: LiveOutput) -> Self {
        Self {
            live,
            kept: Vec::new(),
            total_bytes: 0,
            shown: decoder(),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total_bytes = self.total_bytes.saturating_add(bytes.len() as u64);
        self.live.push(&decoded(&mut self.shown, bytes, false));
        self.kept.extend_from_slice(bytes);
        let surplus = self.kept.len().saturating_sub(KEPT_BYTES + TAIL_BYTES);
        if surplus > 0 {
            self.kept.drain(KEPT_BYTES..KEPT_BYTES + surplus);
        }
    }

    /// What was kept; where that is not all, with a note of how much is missing.
    fn finish(mut self) -> String {
        self.live.push(&decoded(&mut self.shown, &[], true));
        let missing = self.total_bytes - self.kept.len() as u64;
        if missing == 0 {
            return String::from_utf8_lossy(&self.kept).into_owned();
        }
        let (first, last) = self.kept.split_at(KEPT_BYTES);
        let [first, last] = [first, last].map(String::from_utf8_lossy);
        format!("{first}\n[… {missing} bytes were not kept …]\n{last}")
    }
}

/// How a command ended, for the first line of a result.
pub(super) fn told(ran: &Ran, limit: Duration) -> String {
    let end = match &ran.end {
        End::Exit(code) => format!("exit code {code}"),
        End::Signal(name) => format!("ended by signal {name}"),
        End::TimedOut => format!(
            "not done within {} s, so it was ended; it may have taken effect in part. For longer work set timeout_seconds, or start it in the background with nohup",
            limit.as_secs()
        ),
        End::TooMuch => format!(
            "ended, since it wrote more than {}; filter its output, or write it to a file there",
            human_size(MAX_BYTES)
        ),
        End::Lost => {
            "the connection was lost before it ended; it may have taken effect in part".to_owned()
        }
    };
    if ran.left_running {
        format!("{end}; something that it started still runs there")
    } else {
        end
    }
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod capture_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_taken_out_however_it_comes() {
        let (mut mark, command) = Mark::of("root", "uptime");
        assert!(command.ends_with("\nuptime"), "{command}");
        let begins = mark.begins.clone().unwrap_or_default();
        let mut shown = Vec::new();
        for byte in format!("{begins}4711\nfirst\nsecond\n").bytes() {
            shown.extend(mark.without_line(&[byte]));
        }
        assert_eq!(shown, b"first\nsecond\n");
        assert!(
            mark.killer()
                .is_some_and(|killer| killer.contains("-KILL -- -4711"))
        );
    }

    #[test]
    fn other_output_stays_as_it_is() {
        let (mut mark, command) = Mark::of("me", "uptime");
        assert_eq!(command, "uptime");
        assert_eq!(mark.without_line(b"navi-1\n"), b"navi-1\n");
        for text in ["other\nmore\n", "navi-forged-1\n", "navi-000000000000-1\n"] {
            let (mut mark, _) = Mark::of("root", "uptime");
            assert_eq!(mark.without_line(text.as_bytes()), text.as_bytes());
            assert_eq!(mark.killer(), None);
        }
        mark = Mark::of("root", "uptime").0;
        let begins = mark.begins.clone().unwrap_or_default();
        // Every process, and the first one, are nothing to end.
        for number in ["1", "0", "-1", "4294967296", ""] {
            mark.begins = Some(begins.clone());
            assert!(
                mark.without_line(format!("{begins}{number}\n").as_bytes())
                    .is_empty()
            );
            assert_eq!(mark.killer(), None, "{number}");
        }
        let (mut mark, _) = Mark::of("root", "uptime");
        assert!(mark.without_line(b"half").is_empty());
        assert_eq!(mark.rest(), b"half");
    }
}
