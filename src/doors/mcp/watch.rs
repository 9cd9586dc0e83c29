//! What a session tells behind a cursor, for a client that asks and waits: the answer's text, the
//! steps of the work, what is asked for consent.

mod cursor;
mod progress;

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use futures_util::StreamExt as _;
use navi_actors::domain::unseen;
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::event::{Envelope, Event};
use navi_actors::protocol::ids::{ApprovalId, PartId, RunId, SessionId};
use navi_actors::protocol::message::Role;
use navi_actors::protocol::session::{RunState, SessionSnapshot, SessionState};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, sleep_until};

pub(super) use self::cursor::Cursor;
use self::progress::Progress;
use super::approvals::Shown;
use super::server::Call;
use crate::doors::heard::Heard;

/// What is stored already is read for this long, whatever the caller's limit is.
const READING: Duration = Duration::from_secs(10);
/// What is open is told at once, and has this long to come.
const AT_ONCE: Duration = Duration::from_millis(200);
/// As much text is told in one answer; the cursor leads to the rest.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// The newest steps that are told.
const MAX_STEPS: usize = 100;
/// The newest messages that a snapshot has, where the log does not go back to the cursor.
const MESSAGES: u32 = 20;

/// What a client waits for.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) session: SessionId,
    /// Whichever goes, where it is not said.
    pub(super) run_id: Option<RunId>,
    pub(super) after: Cursor,
    pub(super) limit: Duration,
}

/// What came of waiting.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Report {
    session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<RunId>,
    state: ReportedState,
    /// Text of the answer that came behind the cursor.
    text: String,
    /// Steps of the work that came behind the cursor, the newest hundred.
    steps: VecDeque<String>,
    /// What waits for the user's consent now; approval_answer asks the user.
    approvals: Vec<Shown>,
    /// Where to go on.
    cursor: String,
    /// Whether there is more to read at once behind the cursor.
    more: bool,
    /// Whether what came right behind the cursor is not known any more: the text is that of the
    /// messages as they are stored.
    gap: bool,
    /// Why the run did not come to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ReportedState {
    /// It waits for the run before it.
    Queued,
    Running,
    /// The user is asked for consent.
    WaitingForConsent,
    /// The answer is whole.
    Completed,
    /// A limit ended it; there is an answer.
    Limited,
    Stopped,
    Failed,
    /// A crash or a shutdown cut it off; the user can have it go on.
    Interrupted,
    /// The message was taken back before its run began.
    Withdrawn,
    /// Nothing goes on in the session.
    Idle,
}

impl From<RunState> for ReportedState {
    fn from(state: RunState) -> Self {
        match state {
            RunState::Running => Self::Running,
            RunState::Completed => Self::Completed,
            RunState::Limited => Self::Limited,
            RunState::Stopped => Self::Stopped,
            RunState::Failed => Self::Failed,
            RunState::Interrupted => Self::Interrupted,
        }
    }
}

/// Waits, and tells of progress where the client asked for that.
///
/// # Errors
/// `session_not_found`; `not_found` where the session has no such run.
pub(super) async fn wait(call: &Call<'_>, wish: Wish) -> Result<Report, NaviError> {
    let (engine, user) = (&call.app.engine, call.who.user);
    let began = Instant::now();
    let stands = engine.standing(user, wish.session).await?;
    let attach = engine.attach(
        user,
        wish.session,
        Some(wish.after.seq),
        None,
        Some(MESSAGES),
    );
    let mut feed = attach.await?;
    let mut view = View::of(&wish, &stands);
    let mut progress = Progress::of(call);
    while !view.is_done() {
        let until = began + wish.limit.max(AT_ONCE);
        let until = if view.has_caught_up() {
            until
        } else {
            until.max(began + READING)
        };
        tokio::select! {
            biased;
            () = call.context.ct.cancelled() => break,
            frame = feed.next() => {
                let Some(frame) = frame else { break };
                match serde_json::from_str::<Envelope>(&frame) {
                    Ok(envelope) => view.take(envelope),
                    Err(error) => tracing::error!(%error, "a frame of ours cannot be read"),
                }
                progress.tell(&view).await;
            }
            () = sleep_until(until) => break,
        }
    }
    view.report(call, wish).await
}

/// What was told behind the cursor.
struct View {
    /// The run that is waited for; None where it is whichever goes.
    wanted: Option<RunId>,
    /// The run that was heard of last.
    run_id: Option<RunId>,
    cursor_seq: u64,
    /// The last event there was when the waiting began.
    target: u64,
    /// Whether there was something to wait for then, and what came of it since.
    goes: bool,
    queued: bool,
    heard: Heard,
    text: String,
    steps: VecDeque<String>,
    /// How many steps there were.
    stepped: usize,
    asked: HashSet<ApprovalId>,
    /// Something is asked that was not at the cursor.
    asks: bool,
    ended: Option<ReportedState>,
    reason: Option<String>,
    gap: bool,
}

impl View {
    fn of(wish: &Wish, stands: &SessionSnapshot) -> Self {
        let is_wanted = |run_id: RunId| wish.run_id.is_none_or(|wanted| wanted == run_id);
        let runs = stands.run.as_ref().is_some_and(|run| is_wanted(run.run_id));
        let queued = stands.queue.iter().any(|it| is_wanted(it.run_id));
        // One that is ahead of everything was never given: a snapshot comes first.
        let is_ahead = wish.after.seq > stands.last_seq;
        Self {
            wanted: wish.run_id,
            run_id: wish.run_id.or(stands.run.as_ref().map(|run| run.run_id)),
            cursor_seq: if is_ahead { 0 } else { wish.after.seq },
            target: stands.last_seq,
            goes: runs || queued,
            queued: queued && !runs,
            heard: Heard::at(wish.after.heard.clone()),
            text: String::new(),
            steps: VecDeque::new(),
            stepped: 0,
            asked: stands.approvals.iter().map(|it| it.approval_id).collect(),
            asks: false,
            ended: None,
            reason: None,
            gap: false,
        }
    }

    fn has_caught_up(&self) -> bool {
        self.cursor_seq >= self.target
    }

    fn is_done(&self) -> bool {
        let is_still = !self.goes || (self.asks && !self.asked.is_empty());
        self.ended.is_some() || self.is_full() || (self.has_caught_up() && is_still)
    }

    fn is_full(&self) -> bool {
        self.text.len() >= MAX_TEXT_BYTES
    }

    fn take(&mut self, envelope: Envelope) {
        let Envelope {
            seq,
            run_id,
            parent_run_id,
            event,
            ..
        } = envelope;
        self.cursor_seq = seq.unwrap_or(self.cursor_seq);
        let is_of_run = parent_run_id.is_none() && run_id.is_some();
        let is_wanted = self.wanted.is_none() || run_id == self.wanted;
        let is_foreground = is_of_run && is_wanted;
        match event {
            Event::Resync { session, .. } => self.resync(&session),
            // Whose ever it is, it holds the session up.
            Event::ApprovalRequested {
                approval_id,
                request,
                ..
            } => {
                self.asked.insert(approval_id);
                self.asks = true;
                let summary = unseen::named_on_a_line(&request.summary);
                self.step(format!("asks for consent: {summary}"));
            }
            Event::ApprovalResolved { approval_id, .. } => {
                self.asked.remove(&approval_id);
            }
            Event::SubagentStarted { profile_id, .. } => {
                self.step(format!("sends out a subagent: {profile_id}"));
            }
            Event::StreamStart { .. } if is_foreground => {
                self.run_id = run_id;
                self.goes = true;
                self.queued = false;
            }
            Event::StreamDelta(delta) if is_foreground => {
                let new = self.heard.take(delta);
                self.text.extend(new);
            }
            Event::ToolStarted { tool, .. } if is_foreground => self.step(format!("uses {tool}")),
            Event::ToolCall { tool, success, .. } if is_foreground => {
                let became = if success { "done" } else { "failed" };
                self.step(format!("{tool}: {became}"));
            }
            Event::PlanReady { steps, .. } if is_foreground => {
                self.step(format!("made a plan of {} steps", steps.len()));
            }
            Event::RunWaiting { detail, .. } if is_foreground => self.step(detail),
            Event::ProfileSwitched { profile_name, .. } if is_foreground => {
                self.step(format!("goes on as {profile_name}"));
            }
            Event::ContextCompressed { .. } if is_foreground => {
                self.step("summarised the older part of the conversation".to_owned());
            }
            Event::Notice { message, .. } if is_foreground => self.step(message),
            Event::StreamEnd {
                content,
                message_id,
                completed,
                ..
            } if is_foreground => {
                let rest = self.heard.take_whole(PartId::text(message_id), &content);
                self.text.extend(rest);
                self.run_id = run_id;
                self.ended = Some(if completed {
                    ReportedState::Completed
                } else {
                    ReportedState::Limited
                });
            }
            Event::StreamStopped {} if is_foreground => {
                self.end(run_id, ReportedState::Stopped, None);
            }
            Event::RunInterrupted { reason, .. } if is_foreground => {
                self.end(run_id, ReportedState::Interrupted, Some(reason));
            }
            Event::Error {
                message,
                recoverable,
                ..
            } if is_foreground => {
                if recoverable {
                    self.step(message);
                } else {
                    self.end(run_id, ReportedState::Failed, Some(message));
                }
            }
            Event::QueueChanged { content: None, .. } if is_of_run && run_id == self.wanted => {
                self.end(run_id, ReportedState::Withdrawn, None);
            }
            // Of another run, what stands in the answer already, and what is the page's alone.
            Event::MessageAccepted { .. }
            | Event::QueueChanged { .. }
            | Event::MessageSteered { .. }
            | Event::BranchChanged { .. }
            | Event::StreamStart { .. }
            | Event::RunWaiting { .. }
            | Event::ThinkingDelta(_)
            | Event::ThinkingEnd { .. }
            | Event::PlanReady { .. }
            | Event::SubagentFinished { .. }
            | Event::ProfileSwitched { .. }
            | Event::ContextCompressed { .. }
            | Event::TurnThinking { .. }
            | Event::StreamDelta(_)
            | Event::ToolStarted { .. }
            | Event::ToolOutput { .. }
            | Event::ToolCall { .. }
            | Event::CallResolved { .. }
            | Event::ModeChanged { .. }
            | Event::ModelChanged { .. }
            | Event::TodoUpdated { .. }
            | Event::StreamEnd { .. }
            | Event::StreamStopped {}
            | Event::RunInterrupted { .. }
            | Event::Notice { .. }
            | Event::Error { .. }
            | Event::Pong {} => {}
        }
    }

    fn end(&mut self, run_id: Option<RunId>, state: ReportedState, reason: Option<String>) {
        self.run_id = run_id;
        self.ended = Some(state);
        self.reason = reason;
    }

    fn step(&mut self, what: String) {
        if self.steps.back() == Some(&what) {
            return;
        }
        if self.steps.len() == MAX_STEPS {
            self.steps.pop_front();
        }
        self.steps.push_back(what);
        self.stepped += 1;
    }

    /// The log does not go back to the cursor, or the session changed hands: what can be told is
    /// the answer as it is stored.
    fn resync(&mut self, session: &SessionSnapshot) {
        self.gap = true;
        self.cursor_seq = session.last_seq;
        self.target = session.last_seq;
        self.asked = session.approvals.iter().map(|it| it.approval_id).collect();
        self.asks = !self.asked.is_empty();
        let runs = session.run.as_ref().map(|run| run.run_id);
        let of_run = |run_id| self.wanted.is_none_or(|wanted| wanted == run_id);
        self.queued = session.queue.iter().any(|it| of_run(it.run_id));
        self.goes = runs.is_some_and(of_run) || self.queued;
        let told = session.messages.iter().filter(|message| {
            of_run(message.run_id) && message.role == Role::Assistant && !message.is_plan
        });
        for message in told {
            let content = message.content.as_deref().unwrap_or_default();
            let rest = self.heard.take_whole(PartId::text(message.id), content);
            self.text.extend(rest);
        }
    }

    async fn report(self, call: &Call<'_>, wish: Wish) -> Result<Report, NaviError> {
        let (engine, user) = (&call.app.engine, call.who.user);
        let mut approvals = Vec::new();
        if !self.asked.is_empty() {
            let open = engine.approvals(user, wish.session).await?;
            approvals.extend(open.iter().map(|it| Shown::of(wish.session, it)));
        }
        let is_full = self.is_full();
        let (mut reason, run_id) = (self.reason, self.run_id);
        let state = if let Some(state) = self.ended {
            state
        } else if !self.goes {
            // It ended before the cursor, or nothing began.
            match run_id {
                Some(run_id) => {
                    let run = engine.run(user, run_id).await?.run;
                    if run.session_id != wish.session {
                        let message = "this session has no such run";
                        return Err(NaviError::new(ErrorCode::NotFound, message));
                    }
                    reason = run.reason;
                    ReportedState::from(run.state)
                }
                None => {
                    let stands = engine.standing(user, wish.session).await?;
                    reason = stands.reason;
                    match stands.summary.state {
                        SessionState::Idle => ReportedState::Idle,
                        SessionState::Running => ReportedState::Running,
                        SessionState::Interrupted => ReportedState::Interrupted,
                        SessionState::Failed => ReportedState::Failed,
                    }
                }
            }
        } else if !approvals.is_empty() {
            ReportedState::WaitingForConsent
        } else if self.queued {
            ReportedState::Queued
        } else {
            ReportedState::Running
        };
        let cursor = Cursor {
            seq: self.cursor_seq,
            heard: self.heard.place().cloned(),
        };
        Ok(Report {
            session_id: wish.session,
            run_id,
            state,
            text: self.text,
            steps: self.steps,
            approvals,
            cursor: cursor.to_string(),
            more: is_full,
            gap: self.gap,
            reason,
        })
    }
}
