//! `navi mcp`: a pipe between a program that starts its MCP servers itself and the service that
//! runs, a line of JSON a message. What a message means is the service's matter; here stand the
//! headers that its revision demands, and what becomes of a message where there is no service.
//! Nothing but the protocol is written to standard output.

mod carried;
mod line;

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use self::carried::Carrier;
use self::line::{Line, refusal};
use super::SERVER_ERROR;
use crate::settings::{Door, Settings};

/// The service's own limit is lower; this bounds what is kept of a line without an end.
const MAX_LINE_BYTES: u64 = 4 * 1024 * 1024;
/// Requests that go at once.
const MAX_REQUESTS: usize = 64;
/// Lines that wait for a program which does not read.
const LINES: usize = 64;
/// How long what was asked before the end of standard input may take.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// How long the service has to hear that this ends.
const FAREWELL: Duration = Duration::from_secs(1);

/// Serves until standard input ends.
///
/// # Errors
/// The door is closed, or consent is asked for where it cannot be given.
pub(crate) async fn run(settings: &Settings, consent: bool) -> anyhow::Result<ExitCode> {
    if !settings.doors.contains(Door::Mcp) {
        anyhow::bail!("this door is closed; NAVI_DOORS names those that are open, and lacks mcp");
    }
    if consent && settings.api_token.is_some() {
        anyhow::bail!(
            "--consent: NAVI_API_TOKEN may not pass on answers to requests for consent; leave one of both out"
        );
    }
    let (lines, written) = mpsc::channel(LINES);
    let writing = tokio::task::spawn_blocking(move || write(written));
    let carrier = Arc::new(Carrier::new(settings.clone(), consent));
    let mut pipe = Pipe {
        carrier: Arc::clone(&carrier),
        lines,
        going: JoinSet::new(),
        requests: Vec::new(),
    };
    let (to_say, mut said) = mpsc::channel(1);
    std::thread::spawn(move || read(&to_say));
    while !writing.is_finished()
        && let Some(said) = said.recv().await
    {
        match said {
            Said::Line(line) => pipe.take(&line).await,
            Said::TooLong => {
                let message = format!("a message must have at most {MAX_LINE_BYTES} bytes");
                pipe.tell(refusal(&Value::Null, SERVER_ERROR, &message))
                    .await;
            }
        }
    }
    let answering = async { while pipe.going.join_next().await.is_some() {} };
    let _ = timeout(LAST_ANSWERS, answering).await;
    pipe.going.abort_all();
    // The writer ends with the last who writes.
    drop(pipe);
    let _ = timeout(FAREWELL, writing).await;
    let _ = timeout(FAREWELL, carrier.leave()).await;
    Ok(ExitCode::SUCCESS)
}

/// What goes on.
struct Pipe {
    carrier: Arc<Carrier>,
    lines: Sender<String>,
    going: JoinSet<()>,
    /// By the id of their request.
    requests: Vec<(Value, AbortHandle)>,
}

impl Pipe {
    async fn take(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        while self.going.try_join_next().is_some() {}
        self.requests.retain(|(_, task)| !task.is_finished());
        let line = match Line::read(text) {
            Ok(line) => line,
            Err(error) => return self.tell(error).await,
        };
        if let Some(id) = line.cancels() {
            self.cancel(&id);
            // From 2026-07-28 on a request is cancelled by its connection alone.
            if !self.carrier.has_session().await {
                return;
            }
        }
        if self.going.len() >= MAX_REQUESTS {
            if let Some(id) = line.asks() {
                let message = format!("{MAX_REQUESTS} requests go already; wait for one of them");
                self.tell(refusal(id, SERVER_ERROR, &message)).await;
            }
            return;
        }
        let id = line.asks().cloned();
        if line.begins() || id.is_none() {
            // What comes behind goes by what is agreed on there, and in this order.
            self.carrier.carry(line, &self.lines).await;
            return;
        }
        let (carrier, lines) = (Arc::clone(&self.carrier), self.lines.clone());
        let going = async move { carrier.carry(line, &lines).await };
        let task = self.going.spawn(going);
        self.requests.extend(id.map(|id| (id, task)));
    }

    fn cancel(&mut self, id: &Value) {
        for (known, task) in &self.requests {
            if known == id {
                task.abort();
            }
        }
    }

    async fn tell(&self, line: String) {
        // Nobody reads any more: standard input ends soon.
        let _ = self.lines.send(line).await;
    }
}

/// A line as it came.
enum Said {
    Line(String),
    TooLong,
}

/// Reads lines to the end of standard input, in a thread of its own: whoever waits for input can
/// only be left behind.
fn read(said: &Sender<Said>) {
    let mut input = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        let mut bounded = (&mut input).take(MAX_LINE_BYTES);
        let said_now = match bounded.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if line.ends_with(b"\n") || bounded.limit() > 0 => {
                Said::Line(String::from_utf8_lossy(&line).into_owned())
            }
            Ok(_) => match input.skip_until(b'\n') {
                Ok(_) => Said::TooLong,
                Err(_) => return,
            },
        };
        if said.blocking_send(said_now).is_err() {
            return;
        }
    }
}

/// Writes whole lines, until there are no more, or nobody reads them.
fn write(mut lines: Receiver<String>) {
    let mut out = io::stdout().lock();
    while let Some(line) = lines.blocking_recv() {
        let written = writeln!(out, "{line}").and_then(|()| out.flush());
        if written.is_err() {
            return;
        }
    }
}
