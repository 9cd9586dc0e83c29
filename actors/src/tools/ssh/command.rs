//! A command on a host: started, watched, ended.

use std::sync::Arc;
use std::time::Duration;

use russh::client::Msg;
use russh::{Channel, ChannelMsg, ChannelReadHalf, ChannelWriteHalf, Sig};
use tokio::time::{Instant, timeout, timeout_at};

use super::capture::{Capture, Captured, MAX_BYTES};
use super::connection::Connection;
use super::mark::Mark;
use crate::tools::output::human_size;
use crate::tools::{LiveOutput, ToolError};

/// How long a command that has exited may hold its output open: a process that it left in the
/// background does that for ever.
const AFTER_EXIT: Duration = Duration::from_secs(2);
/// How long a command that was asked to end has before it is killed.
const BEFORE_KILL: Duration = Duration::from_secs(1);
/// How long each of the last words to a host may take.
const LAST_WORDS: Duration = Duration::from_secs(2);

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
    pub(super) left_running: bool,
    pub(super) output: Captured,
}

/// Runs a command in the user's shell there. Its input is empty. Dropping the future ends it.
pub(super) async fn run(
    (connection, channel): (&Arc<Connection>, Channel<Msg>),
    (mark, command): (Mark, String),
    limit: Duration,
    live: LiveOutput,
) -> Result<Ran, ToolError> {
    let deadline = Instant::now() + limit;
    let (mut from_host, to_host) = channel.split();
    let mut running = Running {
        to_host: Some(to_host),
        connection: Arc::clone(connection),
        mark,
    };
    let lost = |_| ToolError("the connection was lost before the command was sent".to_owned());
    if let Some(to_host) = &running.to_host {
        to_host.exec(true, command).await.map_err(lost)?;
        to_host.eof().await.map_err(lost)?;
    }
    let mut capture = Capture::new(live);
    let watched = watch(&mut from_host, &mut running.mark, &mut capture, deadline);
    let (end, left_running) = watched.await?;
    capture.push(&running.mark.rest());
    match end {
        // It is over, the channel is all that there is to close.
        End::Exit(_) | End::Signal(_) | End::Lost => running.close().await,
        End::TimedOut | End::TooMuch => drop(running),
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
    limit: Instant,
) -> Result<(End, bool), ToolError> {
    let mut end = None;
    let mut deadline = limit;
    loop {
        let message = match timeout_at(deadline, from_host.wait()).await {
            Ok(message) => message,
            Err(_) => {
                let left_running = end.is_some();
                return Ok((end.unwrap_or(End::TimedOut), left_running));
            }
        };
        match message {
            Some(message @ (ChannelMsg::Data { .. } | ChannelMsg::ExtendedData { .. })) => {
                match message {
                    ChannelMsg::Data { data } => capture.push(&data),
                    ChannelMsg::ExtendedData { data, .. } => {
                        capture.push(&mark.without_line(&data));
                    }
                    _ => {}
                }
                if capture.is_too_much() {
                    return Ok((End::TooMuch, false));
                }
            }
            Some(ChannelMsg::ExitStatus { exit_status }) => {
                end = Some(End::Exit(exit_status));
                deadline = limit.min(Instant::now() + AFTER_EXIT);
            }
            Some(ChannelMsg::ExitSignal { signal_name, .. }) => {
                end = Some(End::Signal(named(&signal_name)));
                deadline = limit.min(Instant::now() + AFTER_EXIT);
            }
            Some(ChannelMsg::Failure) => {
                return Err(ToolError(
                    "the host does not let this user run commands; tell the user".to_owned(),
                ));
            }
            Some(ChannelMsg::Close) | None => return Ok((end.unwrap_or(End::Lost), false)),
            Some(_) => {}
        }
    }
}

/// The signal's name. One that a host makes up could say anything.
fn named(signal: &Sig) -> String {
    match signal {
        Sig::Custom(_) => "another signal".to_owned(),
        signal => format!("{signal:?}"),
    }
}

/// The way to a command that runs. Dropping it ends the command: a call that is stopped is
/// dropped, and must leave nothing behind.
struct Running {
    to_host: Option<ChannelWriteHalf<Msg>>,
    connection: Arc<Connection>,
    mark: Mark,
}

impl Running {
    async fn close(mut self) {
        if let Some(to_host) = self.to_host.take() {
            let _ = timeout(LAST_WORDS, to_host.close()).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(to_host) = self.to_host.take() else {
            return;
        };
        // Without a runtime the whole service is ending, and its connections with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (connection, killer) = (Arc::clone(&self.connection), self.mark.killer());
            runtime.spawn(end_command(to_host, connection, killer));
        }
    }
}

/// By signals (RFC 4254, section 6.9), and where those do not come through, by `killer`.
async fn end_command(
    to_host: ChannelWriteHalf<Msg>,
    connection: Arc<Connection>,
    killer: Option<String>,
) {
    if let Some(killer) = killer {
        let killed = timeout(2 * LAST_WORDS, async {
            let mut channel = connection.channel().await.ok()?;
            channel.exec(true, killer).await.ok()?;
            while channel.wait().await.is_some() {}
            Some(())
        });
        if !matches!(killed.await, Ok(Some(()))) {
            tracing::warn!("a command that was stopped may still run on its host");
        }
        let _ = timeout(LAST_WORDS, to_host.close()).await;
        return;
    }
    let _ = timeout(LAST_WORDS, to_host.signal(Sig::TERM)).await;
    tokio::time::sleep(BEFORE_KILL).await;
    let _ = timeout(LAST_WORDS, to_host.signal(Sig::KILL)).await;
    let _ = timeout(LAST_WORDS, to_host.close()).await;
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
