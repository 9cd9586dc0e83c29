//! A session that a client has open: its prompts, its events, and what its user is asked.

mod opening;
mod prompts;
mod serving;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    CloseSessionResponse, ConfigOptionUpdate, ContentBlock, CurrentModeUpdate, LoadSessionResponse,
    ResumeSessionResponse, SessionNotification, SessionUpdate, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
};
use agent_client_protocol::v1::{Responder, schema};
use navi_actors::protocol::approval::ApprovalRequest;
use navi_actors::protocol::command::{ClientFrame, Decision};
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::event::Envelope;
use navi_actors::protocol::ids::{ApprovalId, CallId, RunId, SessionId};
use navi_actors::protocol::message::Role;
use navi_actors::protocol::session::{SessionSnapshot, SessionState, SessionSummary};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

pub(super) use self::opening::Open;
use self::prompts::Prompts;
use super::agent::Door;
use super::editor::Served;
use super::options::mode_id;
use super::permissions::{self, Answer, Permissions};
use super::updates::{Ending, Told, interrupted};
use super::{refusal, replay};
use crate::client::ClientError;

/// How long a session that is closed waits for the run that it stopped.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);

/// What a session is asked, in the client's order.
pub(super) enum Ask {
    Load(PathBuf, Responder<LoadSessionResponse>),
    Resume(PathBuf, Responder<ResumeSessionResponse>),
    Prompt(Vec<ContentBlock>, Responder<schema::PromptResponse>),
    Cancel,
    SetMode(SetSessionModeRequest, Responder<SetSessionModeResponse>),
    SetOption(
        SetSessionConfigOptionRequest,
        Responder<SetSessionConfigOptionResponse>,
    ),
    Close(Responder<CloseSessionResponse>),
    /// Its row in the list changed.
    Row(Box<SessionSummary>),
}

/// See the module. Started by the client's first word about it; ends when the client closes it,
/// with the connection, or when it is no more.
pub(super) struct Session {
    door: Arc<Door>,
    id: SessionId,
    asks: mpsc::Receiver<Ask>,
    open: Option<Open>,
    prompts: Prompts,
    permissions: Permissions,
    /// Where the editor has its project.
    project: Option<PathBuf>,
    served: Served,
    closing: Option<(Instant, Responder<CloseSessionResponse>)>,
}

/// Whether the session goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    GoOn,
    End,
}

impl Session {
    pub(super) fn new(door: Arc<Door>, id: SessionId, asks: mpsc::Receiver<Ask>) -> Self {
        let prompts = Prompts::new(door.own.clone());
        Self {
            door,
            id,
            asks,
            open: None,
            prompts,
            permissions: Permissions::default(),
            project: None,
            served: Served::default(),
            closing: None,
        }
    }

    /// One that was just made, for the editor's project. It is told where Navi's own tools reach it.
    pub(super) fn begun(mut self, open: Open, project: PathBuf, told: Option<PathBuf>) -> Self {
        self.open = Some(open);
        self.project = Some(project);
        self.prompts.tell_project(told);
        self
    }

    /// Until its end.
    pub(super) async fn run(mut self) {
        loop {
            if let Some((_, closed)) = self.closing.take_if(|_| self.prompts.is_empty()) {
                self.open = None;
                respond(closed, Ok(CloseSessionResponse::new()));
                if self.leave() {
                    return;
                }
            }
            let next = match &mut self.open {
                None => {
                    if let Some(ask) = self.asks.recv().await {
                        self.take(ask).await;
                    }
                    let is_wanted = self.open.is_some() || self.closing.is_some();
                    if is_wanted { Next::GoOn } else { Next::End }
                }
                Some(open) => {
                    let due = open.view.due();
                    let closing = self.closing.as_ref().map(|(until, _)| *until);
                    tokio::select! {
                        ask = self.asks.recv() => match ask {
                            Some(ask) => self.take(ask).await,
                            None => Next::End,
                        },
                        told = open.events.next() => self.hear(told).await,
                        (id, answer) = self.permissions.next() => self.answer(id, answer),
                        () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                            for update in open.view.take_due(Instant::now()) {
                                self.tell(update).await;
                            }
                            Next::GoOn
                        }
                        () = sleep_until(closing.unwrap_or_else(Instant::now)), if closing.is_some() => {
                            self.prompts.cancel_all();
                            Next::GoOn
                        }
                    }
                }
            };
            if next == Next::End && self.leave() {
                return;
            }
        }
    }

    /// Whether it may end. What was asked of it meanwhile begins it anew.
    fn leave(&mut self) -> bool {
        self.open = None;
        self.permissions.withdraw_all_but(&[]);
        self.served.leave();
        self.door.leave(self.id, &self.asks)
    }

    async fn take(&mut self, ask: Ask) -> Next {
        match ask {
            Ask::Load(project, responder) => match self.load().await {
                Ok(options) => {
                    self.project = Some(project);
                    let loaded = LoadSessionResponse::new()
                        .modes(options.modes())
                        .config_options(options.list());
                    respond(responder, Ok(loaded));
                    self.ask_what_waits().await;
                    self.serve_what_waits().await;
                }
                Err(error) => {
                    respond(responder, Err(refusal(&error)));
                    return self.unless_open();
                }
            },
            Ask::Resume(project, responder) => match self.resume().await {
                Ok(options) => {
                    self.project = Some(project);
                    let resumed = ResumeSessionResponse::new()
                        .modes(options.modes())
                        .config_options(options.list());
                    respond(responder, Ok(resumed));
                    self.ask_what_waits().await;
                    self.serve_what_waits().await;
                }
                Err(error) => {
                    respond(responder, Err(refusal(&error)));
                    return self.unless_open();
                }
            },
            Ask::Prompt(blocks, responder) => {
                let Some(responder) = self.opened_for(responder).await else {
                    return Next::End;
                };
                self.prompt(blocks, responder).await;
            }
            Ask::Cancel => {
                // Its answers to these are that the turn was cancelled.
                self.permissions.forget();
                self.cancel();
            }
            Ask::SetMode(request, responder) => {
                let Some(responder) = self.opened_for(responder).await else {
                    return Next::End;
                };
                if let Some(open) = &mut self.open {
                    let mode = &request.mode_id.0;
                    let set = open.options.set_mode(&self.door.client, self.id, mode);
                    let set = set.await.map(|()| SetSessionModeResponse::new());
                    respond(responder, set);
                }
            }
            Ask::SetOption(request, responder) => {
                let Some(responder) = self.opened_for(responder).await else {
                    return Next::End;
                };
                if let Some(open) = &mut self.open {
                    let what = &request.config_id.0;
                    let value = request.value.as_value_id();
                    let value = value.map(|value| value.0.to_string()).unwrap_or_default();
                    let options = &mut open.options;
                    let chosen = options.choose(&self.door.client, self.id, what, &value);
                    let chosen = chosen.await;
                    let list = chosen.map(|()| SetSessionConfigOptionResponse::new(options.list()));
                    respond(responder, list);
                }
            }
            Ask::Close(responder) => {
                self.cancel();
                self.closing = Some((Instant::now() + CLOSE_LIMIT, responder));
            }
            Ask::Row(row) => self.take_row(*row).await,
        }
        Next::GoOn
    }

    async fn prompt(
        &mut self,
        blocks: Vec<ContentBlock>,
        responder: Responder<schema::PromptResponse>,
    ) {
        if prompts::is_continue(&blocks) {
            if let Some(client_id) = self.prompts.newest().map(str::to_owned) {
                self.lend(&client_id).await;
            }
            match self.door.go_on(self.id).await {
                Ok(run_id) => self.prompts.follow(run_id, responder),
                Err(error) => respond(responder, Err(refusal(&error))),
            }
            return;
        }
        let client_id = self.prompts.next_id();
        self.lend(&client_id).await;
        let Some(open) = &mut self.open else {
            return;
        };
        match self.prompts.message(blocks, client_id.clone()) {
            Ok(input) => {
                let frame = ClientFrame::Message(input);
                match open.events.say(frame.clone()) {
                    Ok(()) => self.prompts.push(client_id, frame, responder),
                    Err(error) => respond(responder, Err(refusal(&error))),
                }
            }
            Err(error) => respond(responder, Err(error)),
        }
    }

    /// Stops what goes, and takes back what waits.
    fn cancel(&mut self) {
        for message_id in self.prompts.cancel() {
            self.say(ClientFrame::Withdraw { message_id });
        }
        if !self.prompts.is_empty() {
            self.say(ClientFrame::Stop {
                hold: false,
                run_id: None,
            });
        }
    }

    fn say(&mut self, frame: ClientFrame) {
        if let Some(open) = &mut self.open
            && let Err(error) = open.events.say(frame)
        {
            tracing::error!(%error, "a frame could not be said");
        }
    }

    /// Takes the client's answer to a request.
    fn answer(&mut self, id: ApprovalId, answer: Answer) -> Next {
        let (decision, note) = match answer {
            Answer::Decided(decision) => (decision, None),
            Answer::TurnCancelled => {
                self.cancel();
                return Next::GoOn;
            }
            Answer::CannotAsk => {
                let why = "the program in which this is said cannot ask for consent";
                (Decision::Deny, Some(why.to_owned()))
            }
        };
        self.say(ClientFrame::Approve {
            approval_id: id,
            decision,
            note,
        });
        Next::GoOn
    }

    async fn hear(&mut self, told: Result<Envelope, ClientError>) -> Next {
        let envelope = match told {
            Ok(envelope) => envelope,
            Err(error) => {
                self.prompts.fail_all(&refusal(&error));
                if let Some(open) = &mut self.open {
                    open.events.give_up_messages();
                }
                let is_over = matches!(&error, ClientError::Refused(_));
                tracing::warn!(%error, session = %self.id, "the session's events are away");
                return if is_over { Next::End } else { Next::GoOn };
            }
        };
        let told = match &mut self.open {
            Some(open) => open.view.take(envelope),
            None => Vec::new(),
        };
        for told in told {
            self.show(told).await;
        }
        Next::GoOn
    }

    async fn show(&mut self, told: Told) {
        match told {
            Told::Update(update) => self.tell(*update).await,
            Told::Accepted {
                client_id,
                message_id,
                run_id,
                queued,
            } => {
                let client_id = client_id.unwrap_or_default();
                // Or it was on its way when the client stopped it.
                let stop = self.prompts.accept(&client_id, message_id, run_id, queued);
                stop.into_iter().for_each(|frame| self.say(frame));
            }
            Told::Withdrawn(message_id) => self.prompts.withdrawn(message_id),
            Told::Steered(message_id, run_id) => self.prompts.steered(message_id, run_id),
            Told::Refused(client_id, error) => self.refused(client_id, error),
            Told::Asked(id, call, request) => self.ask(id, &call, &request).await,
            Told::Answered(id) => self.permissions.withdraw(id),
            Told::Lent(run_id, call) => {
                // Another client of this session has an editor, too: it serves what it lent.
                if let Some(editor) = self.editor().filter(|_| self.prompts.have(run_id)) {
                    self.served.begin(editor, run_id, call);
                }
            }
            Told::Returned(call) => self.served.end(&call),
            Told::Over(run_id, ending) => {
                self.served.end_all();
                self.prompts.over(run_id, &ending);
            }
            Told::Mode(mode) => {
                if let Some(open) = &mut self.open {
                    open.options.mode = mode;
                    let list = open.options.list();
                    let mode = CurrentModeUpdate::new(mode_id(mode));
                    self.tell(SessionUpdate::CurrentModeUpdate(mode)).await;
                    self.tell_options(list).await;
                }
            }
            Told::Chosen => {
                if let Ok(snapshot) = self.door.newest(self.id).await {
                    self.take_row(snapshot.summary).await;
                }
            }
            Told::Stands(snapshot) => self.catch_up(*snapshot).await,
        }
    }

    /// Has the client ask its user.
    async fn ask(&mut self, id: ApprovalId, call: &CallId, request: &ApprovalRequest) {
        let Some(open) = &self.open else {
            return;
        };
        let request = permissions::request(self.id, call, request, open.view.workspace());
        self.door.room.take().await;
        self.permissions.ask(&self.door.cx, id, request);
    }

    fn refused(&mut self, client_id: Option<String>, error: NaviError) {
        match client_id {
            Some(client_id) => {
                let error = refusal(&ClientError::Refused(error));
                self.prompts.refused(&client_id, &error);
            }
            // It was answered elsewhere meanwhile, or is over.
            None => tracing::debug!(%error, "a frame was refused"),
        }
    }

    /// Events are missing: what can be told is the answer as it is stored, and how the run ended.
    async fn catch_up(&mut self, snapshot: SessionSnapshot) {
        self.prompts.remember(&snapshot);
        let Some(open) = &mut self.open else {
            return;
        };
        let runs = self.prompts.runs();
        let texts = snapshot.messages.iter().filter_map(|message| {
            let content = message.content.as_deref().unwrap_or_default();
            let is_answer = message.role == Role::Assistant
                && !message.is_plan
                && runs.contains(&message.run_id);
            is_answer
                .then(|| open.view.rest(message.id, content))
                .flatten()
        });
        let mut updates: Vec<_> = texts.collect();
        updates.extend(replay::state(&snapshot));
        updates.extend(open.view.may_continue(snapshot.can_continue));
        for update in updates {
            self.tell(update).await;
        }
        for run_id in runs {
            if let Some(ending) = ending_of(&snapshot, run_id) {
                self.served.end_all();
                self.prompts.over(run_id, &ending);
            }
        }
        let waits: Vec<_> = snapshot.approvals.iter().map(|it| it.approval_id).collect();
        self.permissions.withdraw_all_but(&waits);
        self.ask_what_waits().await;
        self.serve_what_waits().await;
        self.take_row(snapshot.summary).await;
    }

    async fn take_row(&mut self, row: SessionSummary) {
        let Some(open) = &mut self.open else {
            return;
        };
        let is_chosen = open.options.take(&row);
        let is_titled = open.title != row.title;
        open.title.clone_from(&row.title);
        let list = open.options.list();
        if is_chosen {
            self.tell_options(list).await;
        }
        if is_titled {
            self.tell(replay::info(&row)).await;
        }
    }

    async fn tell_options(&mut self, list: Vec<schema::SessionConfigOption>) {
        let options = ConfigOptionUpdate::new(list);
        self.tell(SessionUpdate::ConfigOptionUpdate(options)).await;
    }

    /// Waits while the client does not read what it was told before.
    async fn tell(&mut self, update: SessionUpdate) {
        self.door.room.take().await;
        let told = SessionNotification::new(self.id.to_string(), update);
        if let Err(error) = self.door.cx.send_notification(told) {
            tracing::debug!(%error, "the client is gone");
        }
    }
}

/// How a run ended of which no event told; none where it goes on.
fn ending_of(snapshot: &SessionSnapshot, run_id: RunId) -> Option<Ending> {
    let goes = snapshot
        .run
        .as_ref()
        .is_some_and(|run| run.run_id == run_id);
    if goes || snapshot.queue.iter().any(|it| it.run_id == run_id) {
        return None;
    }
    let reason = snapshot.reason.clone().unwrap_or_default();
    Some(match snapshot.summary.state {
        SessionState::Interrupted => Ending::Failed(interrupted(&reason, snapshot.can_continue)),
        SessionState::Failed => Ending::Failed(NaviError::new(ErrorCode::RunFailed, reason)),
        SessionState::Idle | SessionState::Running => Ending::Whole,
    })
}

/// A client that went away hears nothing.
pub(super) fn respond<T: agent_client_protocol::JsonRpcResponse>(
    responder: Responder<T>,
    answer: Result<T, agent_client_protocol::Error>,
) {
    if let Err(error) = responder.respond_with_result(answer) {
        tracing::debug!(%error, "the client is gone");
    }
}
