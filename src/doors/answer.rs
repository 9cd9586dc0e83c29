//! A run as a program is told of it, in no protocol's terms: where the conversation is, how the
//! run is joined, and what of its events becomes words of an answer.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use futures_util::StreamExt as _;
use navi_actors::engine::{LentByProgram, NewSessionWish, ProgramSession};
use navi_actors::feed::Feed;
use navi_actors::protocol::command::UserInput;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::event::{Delta, Envelope, Event, behind_utf16, utf16_len};
use navi_actors::protocol::ids::{CallId, PartId, RunId, SessionId};
use navi_actors::protocol::import::ImportedMessage;
use navi_actors::protocol::message::Role;
use navi_actors::protocol::session::{SessionSnapshot, SessionState};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::access::Principal;
use crate::http::App;
use crate::http::ws::Admission;

/// After this long without a word an answer shows that it goes on: proxies close what is silent.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long calls of lent tools may come one after the other, which are handed over together.
const TOGETHER: Duration = Duration::from_millis(100);
/// The sender's id of the one message of an ephemeral session.
const ONLY: &str = "answer";

/// What a program asks.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) profile_id: Option<String>,
    pub(crate) place: Place,
    /// What was said before. It counts where the session is made for it.
    pub(crate) history: Vec<ImportedMessage>,
    pub(crate) text: String,
    pub(crate) images: Vec<String>,
    pub(crate) lent: LentByProgram,
    /// What makes this request the same as another.
    pub(crate) sameness: Sameness,
    /// How long the program may take to come back where its connection was cut.
    pub(crate) patience: Duration,
}

/// Where the conversation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the request.
    Request,
    /// In the session that the program knows by this name: its id, or a word of its own.
    Session(String),
}

/// How a request is known when it comes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sameness {
    /// SHA-256 of the request, or of the key that it names.
    pub(crate) hash: [u8; 32],
    /// The program says that it asks once more.
    pub(crate) again: bool,
}

/// What a program is told, in order.
#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    Thinking(String),
    Text(String),
    /// A step of Navi's own work, begun or done.
    Doing {
        what: String,
        done: bool,
    },
    /// A call of a tool that the program lent: its to make.
    Call {
        id: CallId,
        name: String,
        args: Value,
    },
    /// Nothing was told for a while.
    Silence,
    Over(Ending),
}

/// How an answer ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Whole,
    /// A limit of the run ended it.
    Limited,
    /// It goes on with the results of the calls that were told.
    Calls,
    Failed(NaviError),
}

/// A run that is listened to. Dropped before its end, it goes on where its session can be seen,
/// and is stopped soon where nobody could ever read it.
pub(crate) struct Answer {
    app: App,
    who: Principal,
    pub(crate) session: SessionId,
    pub(crate) run_id: RunId,
    ephemeral: bool,
    /// How long a program that went away may take to come back, before a run that nobody else
    /// sees is stopped.
    patience: Duration,
    over: bool,
    feed: Feed,
    view: View,
    told: VecDeque<Told>,
    admission: Admission,
}

impl Answer {
    /// Sends the question, or joins the run that answers it already.
    ///
    /// # Errors
    /// What is wrong with it; nothing was sent then.
    pub(crate) async fn of(
        app: &App,
        who: Principal,
        question: Question,
    ) -> Result<Self, NaviError> {
        let engine = &app.engine;
        let Question {
            profile_id,
            place,
            history,
            text,
            images,
            lent,
            sameness,
            patience,
        } = question;
        let hash = hex(&sameness.hash);
        let ephemeral = place == Place::Request;
        let session = find(app, who, &place, &sameness).await?;
        let tools = lent.tools.iter().map(|tool| tool.name.clone()).collect();
        let wanted = ProgramSession {
            wish: NewSessionWish {
                profile_id,
                ..NewSessionWish::default()
            },
            ephemeral,
            history: if ephemeral { history } else { Vec::new() },
        };
        engine.session_of_program(who.user, session, wanted).await?;
        engine.lend(who.user, session, lent).await?;
        let admission = Admission::new(app, Some(session), who.key)?;
        let after = ephemeral.then_some(0);
        let mut feed = engine
            .attach(who.user, session, after, None, Some(1))
            .await?;
        let input = |client_id: &str| UserInput {
            content: text.clone(),
            images: images.clone(),
            client_id: Some(client_id.to_owned()),
            ..UserInput::default()
        };
        let client_id = if ephemeral { ONLY } else { &*hash };
        let mut accepted = engine.send(who.user, session, input(client_id)).await?;
        if accepted.duplicate && !ephemeral {
            let found = engine.with_newest(who.user, session, Some(1)).await?;
            let goes = found.run.is_some_and(|run| run.run_id == accepted.run_id);
            if sameness.again || accepted.queued || goes {
                feed = engine
                    .attach(who.user, session, Some(0), None, None)
                    .await?;
            } else {
                let anew = format!("{hash}:{}", Uuid::now_v7().simple());
                accepted = engine.send(who.user, session, input(&anew)).await?;
            }
        }
        Ok(Self {
            app: app.clone(),
            who,
            session,
            run_id: accepted.run_id,
            ephemeral,
            patience,
            over: false,
            feed,
            view: View::of(accepted.run_id, tools),
            told: VecDeque::new(),
            admission,
        })
    }

    /// Goes on with the run that waits for these results of lent tools. None where no run does
    /// (any more).
    ///
    /// # Errors
    /// What the store says.
    pub(crate) async fn going_on(
        app: &App,
        who: Principal,
        results: &[(CallId, String)],
        tools: HashSet<String>,
        patience: Duration,
    ) -> Result<Option<Self>, NaviError> {
        let engine = &app.engine;
        let Some((first, _)) = results.first() else {
            return Ok(None);
        };
        let Some(session) = engine.lent_call(who.user, first).await else {
            return Ok(None);
        };
        let admission = Admission::new(app, Some(session), who.key)?;
        let found = engine.with_newest(who.user, session, Some(1)).await?;
        let Some(run) = found.run else {
            return Ok(None);
        };
        // The run from its start: what was told before is passed over.
        let feed = engine
            .attach(who.user, session, None, None, Some(1))
            .await?;
        let mut answered = HashSet::new();
        for (call, result) in results {
            if engine.answer_lent(session, call, result.clone()) {
                answered.insert(call.clone());
            }
        }
        if answered.is_empty() {
            return Ok(None);
        }
        let mut view = View::of(run.run_id, tools);
        view.passes_over = answered;
        Ok(Some(Self {
            app: app.clone(),
            who,
            session,
            run_id: run.run_id,
            ephemeral: found.summary.ephemeral,
            patience,
            over: false,
            feed,
            view,
            told: VecDeque::new(),
            admission,
        }))
    }

    /// What is told next. Nothing comes behind [`Told::Over`].
    pub(crate) async fn next(&mut self) -> Told {
        loop {
            if let Some(told) = self.told.pop_front() {
                self.over = matches!(told, Told::Over(_));
                return told;
            }
            let calls = self.view.has_called;
            let frame = tokio::select! {
                biased;
                () = self.admission.hold.ended() => return self.failed(
                    ErrorCode::Unauthorized,
                    crate::http::ws::LOGGED_OUT,
                ),
                frame = self.feed.next() => frame,
                () = tokio::time::sleep(TOGETHER), if calls => {
                    self.told.push_back(Told::Over(Ending::Calls));
                    continue;
                }
                () = tokio::time::sleep(KEEP_ALIVE) => return Told::Silence,
            };
            let Some(frame) = frame else {
                let closes = self.app.closing.is_cancelled();
                return if closes {
                    self.failed(ErrorCode::ShuttingDown, "navi is shutting down")
                } else {
                    self.failed(ErrorCode::SessionNotFound, "the session was closed")
                };
            };
            match serde_json::from_str::<Envelope>(&frame) {
                Ok(envelope) => self.view.take(envelope, &mut self.told),
                Err(error) => tracing::error!(%error, "a frame of ours cannot be read"),
            }
        }
    }

    fn failed(&mut self, code: ErrorCode, message: &str) -> Told {
        self.over = true;
        Told::Over(Ending::Failed(NaviError::new(code, message)))
    }

    /// What the run's model calls came to so far: tokens read, and written.
    pub(crate) async fn usage(&self) -> (u64, u64) {
        let run = self.app.engine.run(self.who.user, self.run_id).await;
        let calls = run.map(|run| run.calls).unwrap_or_default();
        calls.iter().fold((0, 0), |(read, written), call| {
            (
                read + u64::from(call.prompt_tokens.unwrap_or(0)),
                written + u64::from(call.completion_tokens.unwrap_or(0)),
            )
        })
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if self.over || !self.ephemeral {
            return;
        }
        let (app, user, session) = (self.app.clone(), self.who.user, self.session);
        let patience = self.patience;
        actix::spawn(async move {
            tokio::time::sleep(patience).await;
            if app.tabs.of(session) == 0 {
                // It may have ended by itself.
                let _ = app.engine.stop(user, session).await;
            }
        });
    }
}

/// The session's id. One that is made for a name is made of it, so that the name leads there
/// again, after a restart too.
async fn find(
    app: &App,
    who: Principal,
    place: &Place,
    sameness: &Sameness,
) -> Result<SessionId, NaviError> {
    match place {
        Place::Session(name) => {
            if let Ok(id) = name.parse::<SessionId>()
                && app.engine.with_newest(who.user, id, Some(1)).await.is_ok()
            {
                return Ok(id);
            }
            Ok(made_of(who, &[b"session", name.as_bytes()]))
        }
        Place::Request => {
            let id = made_of(who, &[b"request", &sameness.hash]);
            if sameness.again {
                return Ok(id);
            }
            let is_taken = app.engine.with_newest(who.user, id, Some(1)).await.is_ok();
            Ok(if is_taken { SessionId::new() } else { id })
        }
    }
}

fn made_of(who: Principal, parts: &[&[u8]]) -> SessionId {
    let mut hash = Sha256::new_with_prefix(who.user.0.as_bytes());
    for part in parts {
        hash.update([0]);
        hash.update(part);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    SessionId(uuid::Builder::from_random_bytes(bytes).into_uuid())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // A string takes whatever is written.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What of a session's events a program is told.
struct View {
    run_id: RunId,
    /// Names of the tools that the program lent.
    lent: HashSet<String>,
    /// The text part that was told last, and how much of it.
    text: Option<(PartId, u64)>,
    thinking: Option<(PartId, u64)>,
    /// Calls with whose results what is told begins.
    passes_over: HashSet<CallId>,
    /// Calls of lent tools were told.
    has_called: bool,
}

impl View {
    fn of(run_id: RunId, lent: HashSet<String>) -> Self {
        Self {
            run_id,
            lent,
            text: None,
            thinking: None,
            passes_over: HashSet::new(),
            has_called: false,
        }
    }

    fn take(&mut self, envelope: Envelope, told: &mut VecDeque<Told>) {
        let Envelope {
            run_id,
            parent_run_id,
            event,
            ..
        } = envelope;
        if let Event::Resync { session, .. } = event {
            return self.take_snapshot(&session, told);
        }
        if run_id != Some(self.run_id) || parent_run_id.is_some() {
            return;
        }
        if !self.passes_over.is_empty() {
            return self.pass_over(&event, told);
        }
        match event {
            Event::StreamDelta(delta) => {
                let begins = Self::begins_anew(&self.text, &delta.part_id);
                if let Some(text) = new_text(&mut self.text, delta) {
                    told.push_back(Told::Text(if begins {
                        format!("\n\n{text}")
                    } else {
                        text
                    }));
                }
            }
            Event::ThinkingDelta(delta) => {
                let begins = Self::begins_anew(&self.thinking, &delta.part_id);
                if let Some(text) = new_text(&mut self.thinking, delta) {
                    told.push_back(Told::Thinking(if begins {
                        format!("\n\n{text}")
                    } else {
                        text
                    }));
                }
            }
            Event::ToolStarted {
                tool,
                args,
                call_id,
                ..
            } if self.lent.contains(&tool) => {
                self.has_called = true;
                told.push_back(Told::Call {
                    id: call_id,
                    name: tool,
                    args,
                });
            }
            Event::ToolStarted { tool, .. } => told.push_back(Told::Doing {
                what: tool,
                done: false,
            }),
            Event::ToolCall { tool, .. } => told.push_back(Told::Doing {
                what: tool,
                done: true,
            }),
            Event::PlanReady { .. } => told.push_back(doing("made a plan")),
            Event::SubagentStarted { .. } => told.push_back(doing("sent out a subagent")),
            Event::ApprovalRequested { request, .. } => told.push_back(Told::Doing {
                what: format!("waits for you to allow on Navi's page: {}", request.summary),
                done: false,
            }),
            Event::RunWaiting { detail, .. } => told.push_back(Told::Doing {
                what: detail,
                done: false,
            }),
            Event::ContextCompressed { .. } => {
                told.push_back(doing("summarised the older part of the conversation"));
            }
            Event::StreamEnd {
                content,
                message_id,
                completed,
                ..
            } => {
                let part = PartId::text(message_id);
                let have = place_in(&self.text, &part);
                let rest = behind_utf16(&content, have);
                if !rest.is_empty() {
                    told.push_back(Told::Text(rest.to_owned()));
                }
                told.push_back(Told::Over(if completed {
                    Ending::Whole
                } else {
                    Ending::Limited
                }));
            }
            Event::StreamStopped {} => told.push_back(Told::Over(Ending::Whole)),
            Event::RunInterrupted { reason, .. } => {
                told.push_back(Told::Over(Ending::Failed(interrupted(&reason))));
            }
            Event::Error {
                message,
                recoverable: false,
                code,
                ..
            } => {
                let error = NaviError { code, message };
                told.push_back(Told::Over(Ending::Failed(error)));
            }
            // What stands in the answer already, what is the page's alone, and what a person does
            // there meanwhile.
            Event::Error { .. }
            | Event::MessageAccepted { .. }
            | Event::QueueChanged { .. }
            | Event::MessageSteered { .. }
            | Event::BranchChanged { .. }
            | Event::StreamStart { .. }
            | Event::ThinkingEnd { .. }
            | Event::TurnThinking { .. }
            | Event::SubagentFinished { .. }
            | Event::ProfileSwitched { .. }
            | Event::ToolOutput { .. }
            | Event::ApprovalResolved { .. }
            | Event::CallResolved { .. }
            | Event::ModeChanged { .. }
            | Event::ModelChanged { .. }
            | Event::TodoUpdated { .. }
            | Event::Notice { .. }
            | Event::Resync { .. }
            | Event::Pong {} => {}
        }
    }

    /// What was told before the program came with its results; calls that it does not know yet
    /// are told.
    fn pass_over(&mut self, event: &Event, told: &mut VecDeque<Told>) {
        match event {
            Event::ToolCall { call_id, .. } => {
                self.passes_over.remove(call_id);
            }
            Event::StreamDelta(delta) => drop(new_text(&mut self.text, delta.clone())),
            Event::ThinkingDelta(delta) => drop(new_text(&mut self.thinking, delta.clone())),
            Event::StreamEnd { .. }
            | Event::StreamStopped {}
            | Event::RunInterrupted { .. }
            | Event::Error {
                recoverable: false, ..
            } => {
                self.passes_over.clear();
                let envelope = Envelope {
                    seq: None,
                    run_id: Some(self.run_id),
                    parent_run_id: None,
                    at: chrono::Utc::now(),
                    event: event.clone(),
                };
                self.take(envelope, told);
            }
            _ => {}
        }
    }

    /// The log does not go back to where the run began, or the session changed hands: what can be
    /// told is the answer as it is stored.
    fn take_snapshot(&mut self, session: &SessionSnapshot, told: &mut VecDeque<Told>) {
        let of_run = session.messages.iter().filter(|message| {
            message.run_id == self.run_id && message.role == Role::Assistant && !message.is_plan
        });
        for message in of_run {
            let content = message.content.as_deref().unwrap_or_default();
            let part = PartId::text(message.id);
            let rest = behind_utf16(content, place_in(&self.text, &part));
            if !rest.is_empty() {
                self.text = Some((part, utf16_len(content)));
                told.push_back(Told::Text(rest.to_owned()));
            }
        }
        let goes = session
            .run
            .as_ref()
            .is_some_and(|run| run.run_id == self.run_id);
        let waits = session.queue.iter().any(|it| it.run_id == self.run_id);
        if goes || waits {
            return;
        }
        let reason = session.reason.clone().unwrap_or_default();
        told.push_back(Told::Over(match session.summary.state {
            SessionState::Interrupted => Ending::Failed(interrupted(&reason)),
            SessionState::Failed => Ending::Failed(NaviError::new(ErrorCode::RunFailed, reason)),
            SessionState::Idle | SessionState::Running => Ending::Whole,
        }));
    }

    /// Whether a part begins behind another one: a reply of the model behind the one before.
    fn begins_anew(last: &Option<(PartId, u64)>, part: &PartId) -> bool {
        last.as_ref().is_some_and(|(known, _)| known != part)
    }
}

fn doing(what: &str) -> Told {
    Told::Doing {
        what: what.to_owned(),
        done: true,
    }
}

fn interrupted(reason: &str) -> NaviError {
    NaviError::new(
        ErrorCode::RunFailed,
        format!("the run was interrupted: {reason}"),
    )
}

fn place_in(last: &Option<(PartId, u64)>, part: &PartId) -> u64 {
    match last {
        Some((known, place)) if known == part => *place,
        _ => 0,
    }
}

/// What of a piece is new, and the place behind it.
fn new_text(last: &mut Option<(PartId, u64)>, piece: Delta) -> Option<String> {
    let have = place_in(last, &piece.part_id);
    let end = piece.offset + utf16_len(&piece.delta);
    if end <= have {
        return None;
    }
    let new = behind_utf16(&piece.delta, have.saturating_sub(piece.offset)).to_owned();
    *last = Some((piece.part_id, end));
    Some(new)
}
