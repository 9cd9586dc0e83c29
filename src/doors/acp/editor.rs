//! What an editor lends: its files and terminals, as tools of the run that a prompt begins.

mod lends;
mod project;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    CreateTerminalRequest, KillTerminalRequest, ReadTextFileRequest, ReleaseTerminalRequest,
    SessionNotification, Terminal, TerminalExitStatus, TerminalId, TerminalOutputRequest,
    ToolCallContent, ToolCallUpdateFields, WaitForTerminalExitRequest, WriteTextFileRequest,
};
use agent_client_protocol::{Error, JsonRpcRequest};
use navi_actors::protocol::ids::{CallId, RunId, SessionId};
use navi_actors::tools::lent::{LentCall, Returned};
use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use self::lends::MAX_RUN_SECONDS;
pub(super) use self::lends::{Lends, READ, TERMINAL, WRITE, is_its};
use self::project::{inside, reading};
use super::agent::Door;
use super::shapes::changed;
use crate::client::ClientError;
use crate::http::lent::{LentTools, ReturnedCall, WaitingCalls};

/// A call that was told to begin waits for the editor soon, unless it is refused.
const LOOK_AFTER: Duration = Duration::from_millis(20);
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long an editor may take for a file, or to begin and end a terminal.
const FILE_LIMIT: Duration = Duration::from_secs(60);
/// As much of a file is read at a time.
const MAX_FILE_BYTES: usize = 256 * 1024;
/// How long a command may run where the model does not say.
const RUN_SECONDS: u64 = 120;
/// As much of a command's output as the editor keeps, its end.
const OUTPUT_BYTES: u64 = 64 * 1024;

#[derive(Debug, Deserialize)]
struct ReadArgs {
    path: String,
    line: Option<u32>,
    limit: Option<u32>,
}

#[derive(Debug, Deserialize)]
struct WriteArgs {
    path: String,
    content: String,
}

#[derive(Debug, Deserialize)]
struct RunArgs {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    timeout_seconds: Option<u64>,
}

/// The editor for one session.
#[derive(Clone)]
pub(super) struct Editor {
    door: Arc<Door>,
    session: SessionId,
    project: PathBuf,
}

impl Editor {
    pub(super) fn new(door: Arc<Door>, session: SessionId, project: PathBuf) -> Self {
        Self {
            door,
            session,
            project,
        }
    }

    /// Lends what the editor can to the run that the message with this id will begin.
    ///
    /// # Errors
    /// What the service says, or that it says nothing.
    pub(super) async fn lend(&self, client_id: &str) -> Result<(), ClientError> {
        let to_read = reading(&self.project).await;
        let tools = self.door.lends().tools(&self.project, to_read);
        if tools.is_empty() {
            return Ok(());
        }
        let lent = LentTools {
            client_id: client_id.to_owned(),
            tools,
            lender: Some(self.door.own.clone()),
        };
        let path = format!("/sessions/{}/lent", self.session);
        self.door.client.send(Method::POST, &path, &lent).await
    }

    /// Does what a call of the run asks, and says what came of it, unless the call ends before.
    async fn serve(self, run_id: RunId, call_id: CallId, ended: CancellationToken) {
        let path = waiting(run_id);
        let call = ended.run_until_cancelled(self.waiting(&path, &call_id));
        let Some(call) = call.await else {
            return;
        };
        let returned = self.done(&call, &ended).await;
        if ended.is_cancelled() {
            return;
        }
        if let Err(error) = self.answer(&path, &call_id, returned).await {
            tracing::warn!(%error, "what came of a call was not taken");
            // The run goes on knowing that.
            let why = Err(format!("what came of it could not be passed on: {error}"));
            let _ = self.answer(&path, &call_id, why).await;
        }
    }

    async fn answer(
        &self,
        path: &str,
        call_id: &CallId,
        returned: Returned,
    ) -> Result<(), ClientError> {
        let failed = returned.is_err();
        let returned = ReturnedCall {
            call_id: call_id.clone(),
            content: returned.unwrap_or_else(|why| why),
            failed,
        };
        self.door.client.send(Method::POST, path, &returned).await
    }

    /// The call as it was allowed, with the arguments that its tool takes.
    async fn waiting(&self, path: &str, call_id: &CallId) -> LentCall {
        let mut pause = LOOK_AFTER;
        loop {
            let calls = self.waiting_at(path).await;
            if let Some(call) = calls.into_iter().find(|call| call.id == *call_id) {
                return call;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LOOK_EVERY);
        }
    }

    /// The calls of a run that wait.
    pub(super) async fn calls(&self, run_id: RunId) -> Vec<LentCall> {
        self.waiting_at(&waiting(run_id)).await
    }

    async fn waiting_at(&self, path: &str) -> Vec<LentCall> {
        let waits: Result<WaitingCalls, _> = self.door.client.get(path).await;
        waits.map(|it| it.calls).unwrap_or_default()
    }

    async fn done(&self, call: &LentCall, ended: &CancellationToken) -> Returned {
        match call.name.as_str() {
            READ => {
                let args: ReadArgs = read(&call.args)?;
                let path = inside(&self.project, &args.path).await?;
                let request = ReadTextFileRequest::new(self.id(), path);
                let request = request.line(args.line).limit(args.limit);
                let content = self.asked_for(ended, request).await?.content;
                if content.len() > MAX_FILE_BYTES {
                    return Err(format!(
                        "that has {} bytes and the limit is {MAX_FILE_BYTES}; read a part of it, by `line` and `limit`",
                        content.len()
                    ));
                }
                Ok(content)
            }
            WRITE => {
                let args: WriteArgs = read(&call.args)?;
                let path = inside(&self.project, &args.path).await?;
                let said = format!("wrote {}", path.display());
                let request = WriteTextFileRequest::new(self.id(), path, args.content);
                self.asked_for(ended, request).await.map(|_| said)
            }
            TERMINAL => self.run(call, ended).await,
            other => Err(format!("the editor has no tool `{other}`")),
        }
    }

    async fn run(&self, call: &LentCall, ended: &CancellationToken) -> Returned {
        let args: RunArgs = read(&call.args)?;
        let seconds = args
            .timeout_seconds
            .unwrap_or(RUN_SECONDS)
            .min(MAX_RUN_SECONDS);
        let until = Instant::now() + Duration::from_secs(seconds);
        let request = CreateTerminalRequest::new(self.id(), args.command)
            .args(args.args)
            .cwd(self.project.clone())
            .output_byte_limit(OUTPUT_BYTES);
        let terminal = self.asked_for(ended, request).await?.terminal_id;
        self.show(&call.id, terminal.clone()).await;
        let exit = WaitForTerminalExitRequest::new(self.id(), terminal.clone());
        let exit = self.door.cx.send_request(exit).block_task();
        let exited = tokio::select! {
            exit = exit => Some(exit.map(|it| it.exit_status).map_err(|error| told(&error))),
            () = sleep_until(until) => None,
            () = ended.cancelled() => None,
        };
        if exited.is_none() {
            let kill = KillTerminalRequest::new(self.id(), terminal.clone());
            // What it has said until then counts all the same.
            let _ = self.asked(kill).await;
        }
        let output = TerminalOutputRequest::new(self.id(), terminal.clone());
        let output = self.asked(output).await;
        let release = ReleaseTerminalRequest::new(self.id(), terminal);
        // It is the editor's from now on, whatever it says.
        let _ = self.asked(release).await;
        let how = match exited {
            Some(exit) => how_it_ended(&exit?),
            None => format!("stopped after {seconds} s"),
        };
        let output = output?;
        let cut = if output.truncated {
            "(the beginning is left out)\n"
        } else {
            ""
        };
        Ok(format!("{how}\n{cut}{}", output.output))
    }

    /// The call's terminal, live.
    async fn show(&self, call: &CallId, terminal: TerminalId) {
        let content = ToolCallContent::Terminal(Terminal::new(terminal));
        let fields = ToolCallUpdateFields::new().content(vec![content]);
        self.door.room.take().await;
        let update = SessionNotification::new(self.id(), changed(call, fields));
        if let Err(error) = self.door.cx.send_notification(update) {
            tracing::debug!(%error, "the client is gone");
        }
    }

    /// Asks the editor for what the call wants, unless that has ended before it could be sent.
    async fn asked_for<R: JsonRpcRequest>(
        &self,
        ended: &CancellationToken,
        request: R,
    ) -> Result<R::Response, String> {
        let room = ended.run_until_cancelled(self.door.room.take()).await;
        if room.is_none() || ended.is_cancelled() {
            return Err("the call has ended".to_owned());
        }
        self.answered(request).await
    }

    async fn asked<R: JsonRpcRequest>(&self, request: R) -> Result<R::Response, String> {
        self.door.room.take().await;
        self.answered(request).await
    }

    async fn answered<R: JsonRpcRequest>(&self, request: R) -> Result<R::Response, String> {
        let answer = self.door.cx.send_request(request).block_task();
        match timeout(FILE_LIMIT, answer).await {
            Ok(answer) => answer.map_err(|error| told(&error)),
            Err(_) => Err(format!(
                "the editor did not answer within {} s",
                FILE_LIMIT.as_secs()
            )),
        }
    }

    fn id(&self) -> String {
        self.session.to_string()
    }
}

/// Where a run's calls wait.
fn waiting(run_id: RunId) -> String {
    format!("/runs/{run_id}/lent")
}

fn read<'a, T: Deserialize<'a>>(args: &'a Value) -> Result<T, String> {
    T::deserialize(args).map_err(|error| error.to_string())
}

fn told(error: &Error) -> String {
    format!("the editor says: {error}")
}

fn how_it_ended(exit: &TerminalExitStatus) -> String {
    match (exit.exit_code, &exit.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// The calls of a session that its editor serves.
#[derive(Default)]
pub(super) struct Served {
    tasks: JoinSet<()>,
    ends: HashMap<CallId, CancellationToken>,
}

impl Served {
    pub(super) fn begin(&mut self, editor: Editor, run_id: RunId, call: CallId) {
        if self.ends.contains_key(&call) {
            return;
        }
        // What is done is forgotten.
        while self.tasks.try_join_next().is_some() {}
        let ended = CancellationToken::new();
        self.ends.insert(call.clone(), ended.clone());
        self.tasks.spawn(editor.serve(run_id, call, ended));
    }

    /// The call is over, or was never made.
    pub(super) fn end(&mut self, call: &CallId) {
        if let Some(ended) = self.ends.remove(call) {
            ended.cancel();
        }
    }

    /// The run is over, and so are its calls.
    pub(super) fn end_all(&mut self) {
        for (_, ended) in self.ends.drain() {
            ended.cancel();
        }
    }

    /// The session is not served any more. What ends in the editor ends within its limits.
    pub(super) fn leave(&mut self) {
        self.end_all();
        self.tasks.detach_all();
    }
}
