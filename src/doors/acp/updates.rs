//! A session's events as a client is told of them.

mod children;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandsUpdate, CompactionStatus, CompactionUpdate, ContentBlock,
    ContentChunk, Notice, NoticeSeverity, SessionUpdate, ToolCall, ToolCallStatus,
    ToolCallUpdateFields, UsageUpdate,
};
use navi_actors::protocol::approval::{ApprovalRequest, ConsentMode, PendingApproval};
use navi_actors::protocol::error::{ErrorCode, NaviError};
use navi_actors::protocol::event::{Delta, Envelope, Event, behind_utf16, utf16_len};
use navi_actors::protocol::ids::{ApprovalId, CallId, MessageId, PartId, RunId};
use navi_actors::protocol::session::SessionSnapshot;
use serde_json::Value;
use tokio::time::Instant;

use super::calls::{self, Workspace, as_it_stands};
use super::editor;
use super::shapes::{changed, chunk, ended, message, plan, plan_of, said};

/// As much of a running command's output as is shown, and how often: each time it is all of it.
const OUTPUT_BYTES: usize = 16 * 1024;
const OUTPUT_PACE: Duration = Duration::from_millis(200);
/// What a person says who wants an interrupted run to go on.
pub(super) const CONTINUE: &str = "continue";

/// What of an event matters to a session of the bridge.
#[derive(Debug)]
pub(super) enum Told {
    Update(Box<SessionUpdate>),
    Accepted {
        client_id: Option<String>,
        message_id: MessageId,
        run_id: RunId,
        queued: bool,
    },
    /// A message that waited does not any more: nobody will answer it.
    Withdrawn(MessageId),
    /// A run took a message in that waited.
    Steered(MessageId, RunId),
    /// What was said was not taken.
    Refused(Option<String>, NaviError),
    Asked(ApprovalId, CallId, Box<ApprovalRequest>),
    Answered(ApprovalId),
    /// A call of a tool that an editor lent began.
    Lent(RunId, CallId),
    /// It is over.
    Returned(CallId),
    Over(RunId, Ending),
    Mode(ConsentMode),
    /// The session's row says which model and profile it has now.
    Chosen,
    /// Events are missing in between.
    Stands(Box<SessionSnapshot>),
}

/// How a run ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Whole,
    /// Its iterations or its time were used up.
    Limited,
    /// The model was cut off at its limit of tokens.
    TooLong,
    Stopped,
    Failed(NaviError),
}

/// What the client says that it can show.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shows {
    pub(super) notices: bool,
    pub(super) compaction: bool,
}

/// What the client was told so far.
#[derive(Debug)]
pub(super) struct View {
    workspace: Workspace,
    shows: Shows,
    /// Client ids of this process begin so: the client knows what it said itself.
    own: String,
    /// How much of each part of the run that goes was told, in UTF-16 code units.
    parts: HashMap<PartId, u64>,
    /// Calls that the client knows.
    known: HashSet<CallId>,
    output: HashMap<CallId, Output>,
    /// The subagents that go, and the call of the run that each of them hangs under.
    children: HashMap<RunId, CallId>,
    /// What the subagents under a call did.
    steps: HashMap<CallId, Vec<String>>,
    /// Messages of others that wait.
    waiting: HashMap<MessageId, Vec<ContentBlock>>,
    can_continue: bool,
}

/// What a running call has said.
#[derive(Debug, Default)]
struct Output {
    tail: String,
    /// When it is to be told; none where all of it was.
    due: Option<Instant>,
}

impl View {
    pub(super) fn new(workspace: Workspace, shows: Shows, own: String) -> Self {
        Self {
            workspace,
            shows,
            own,
            parts: HashMap::new(),
            known: HashSet::new(),
            output: HashMap::new(),
            children: HashMap::new(),
            steps: HashMap::new(),
            waiting: HashMap::new(),
            can_continue: false,
        }
    }

    pub(super) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The call was told already, by what the session held when it was read.
    pub(super) fn know(&mut self, call: CallId) {
        self.known.insert(call);
    }

    pub(super) fn take(&mut self, envelope: Envelope) -> Vec<Told> {
        let Envelope {
            seq,
            run_id,
            parent_run_id,
            event,
            ..
        } = envelope;
        let mut told = Vec::new();
        match (run_id, parent_run_id) {
            (Some(run_id), Some(parent)) => self.take_of_child(run_id, parent, event, &mut told),
            _ => self.take_own(seq, run_id, event, &mut told),
        }
        told
    }

    /// When output is to be told, at the earliest.
    pub(super) fn due(&self) -> Option<Instant> {
        self.output.values().filter_map(|output| output.due).min()
    }

    /// The output whose time has come.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<SessionUpdate> {
        let mut due = Vec::new();
        for (call, output) in &mut self.output {
            if output.due.is_some_and(|at| at <= now) {
                output.due = None;
                let fields = ToolCallUpdateFields::new().content(vec![as_it_stands(&output.tail)]);
                due.push(changed(call, fields));
            }
        }
        due
    }

    /// Whether `/continue` would do something. Tells the client where that changed.
    pub(super) fn may_continue(&mut self, can_continue: bool) -> Option<SessionUpdate> {
        if self.can_continue == can_continue {
            return None;
        }
        self.can_continue = can_continue;
        let commands = can_continue.then(|| {
            AvailableCommand::new(
                CONTINUE,
                "Goes on with the run that was interrupted or limited",
            )
        });
        let commands = AvailableCommandsUpdate::new(commands.into_iter().collect());
        Some(SessionUpdate::AvailableCommandsUpdate(commands))
    }

    /// The rest of a message of the run, where it is known whole.
    pub(super) fn rest(&mut self, message_id: MessageId, content: &str) -> Option<SessionUpdate> {
        let whole = Delta {
            part_id: PartId::text(message_id),
            offset: 0,
            delta: content.to_owned(),
            is_subagent: false,
        };
        let new = self.new_of(&whole.part_id, whole.offset, &whole.delta)?;
        Some(SessionUpdate::AgentMessageChunk(chunk(new, &whole.part_id)))
    }

    /// What of a piece was not told yet: what is open is told again after a lost connection.
    fn new_of(&mut self, part: &PartId, offset: u64, piece: &str) -> Option<String> {
        let have = self.parts.get(part).copied().unwrap_or(0);
        let end = offset + utf16_len(piece);
        if end <= have {
            return None;
        }
        self.parts.insert(part.clone(), end);
        Some(behind_utf16(piece, have.saturating_sub(offset)).to_owned())
    }

    fn take_own(
        &mut self,
        seq: Option<u64>,
        run_id: Option<RunId>,
        event: Event,
        told: &mut Vec<Told>,
    ) {
        let mut update = |update: SessionUpdate| told.push(Told::Update(Box::new(update)));
        match event {
            Event::MessageAccepted {
                client_id,
                message_id,
                queued,
                content,
                images,
                ..
            } => {
                let is_own = client_id
                    .as_ref()
                    .is_some_and(|id| id.starts_with(&self.own));
                if !is_own {
                    let blocks = said(content, images);
                    if queued {
                        self.waiting.insert(message_id, blocks);
                    } else {
                        message(message_id, blocks).into_iter().for_each(&mut update);
                    }
                }
                told.extend(run_id.map(|run_id| Told::Accepted {
                    client_id,
                    message_id,
                    run_id,
                    queued,
                }));
            }
            Event::QueueChanged {
                message_id,
                content: Some(content),
                ..
            } => {
                if let Some(blocks) = self.waiting.get_mut(&message_id) {
                    *blocks = said(content, Vec::new());
                }
            }
            Event::QueueChanged {
                message_id,
                content: None,
                ..
            } => {
                self.waiting.remove(&message_id);
                told.push(Told::Withdrawn(message_id));
            }
            Event::MessageSteered { message_id } => {
                let blocks = self.waiting.remove(&message_id).unwrap_or_default();
                message(message_id, blocks).into_iter().for_each(&mut update);
                told.extend(run_id.map(|run_id| Told::Steered(message_id, run_id)));
            }
            Event::StreamStart { message_id, .. } => {
                self.begin_run();
                let blocks = self.waiting.remove(&message_id).unwrap_or_default();
                message(message_id, blocks).into_iter().for_each(&mut update);
                self.may_continue(false).into_iter().for_each(&mut update);
            }
            Event::ThinkingDelta(Delta {
                part_id,
                offset,
                delta,
                ..
            }) => {
                let new = self.new_of(&part_id, offset, &delta);
                let new = new.map(|new| SessionUpdate::AgentThoughtChunk(chunk(new, &part_id)));
                new.into_iter().for_each(update);
            }
            Event::StreamDelta(Delta {
                part_id,
                offset,
                delta,
                ..
            }) => {
                let new = self.new_of(&part_id, offset, &delta);
                let new = new.map(|new| SessionUpdate::AgentMessageChunk(chunk(new, &part_id)));
                new.into_iter().for_each(update);
            }
            Event::PlanReady { steps, .. } => update(plan_of(&steps)),
            Event::TodoUpdated { items, .. } => update(plan(&items)),
            Event::ToolStarted {
                tool,
                args,
                call_id,
                ..
            } => {
                update(self.began(&call_id, &tool, args));
                let lent = run_id.filter(|_| editor::is_its(&tool));
                told.extend(lent.map(|run_id| Told::Lent(run_id, call_id)));
            }
            Event::ToolOutput {
                call_id,
                part_id,
                offset,
                delta,
                ..
            } => self.take_output(call_id, &part_id, offset, &delta),
            Event::ToolCall {
                tool,
                args,
                result,
                success,
                outcome,
                call_id,
                files,
                ..
            } => {
                if !self.known.contains(&call_id) {
                    update(self.began(&call_id, &tool, args.clone()));
                }
                self.output.remove(&call_id);
                self.steps.remove(&call_id);
                let workspace = &self.workspace;
                let content = workspace.result(&tool, &args, success, &result, &files);
                update(ended(&call_id, outcome, content, result));
                if editor::is_its(&tool) {
                    told.push(Told::Returned(call_id));
                }
            }
            Event::ApprovalRequested {
                approval_id,
                call_id,
                tool,
                request,
                ..
            } => {
                self.ask(&call_id, &tool, &request).into_iter().for_each(update);
                told.push(Told::Asked(approval_id, call_id, Box::new(request)));
            }
            Event::ApprovalResolved { approval_id, .. } => told.push(Told::Answered(approval_id)),
            Event::Notice { message, .. } => update(self.notice(message)),
            Event::ContextCompressed { .. } => {
                if self.shows.compaction {
                    let id = format!("compaction-{}", seq.unwrap_or_default());
                    let done = CompactionUpdate::new(id, CompactionStatus::Completed);
                    update(SessionUpdate::CompactionUpdate(done));
                }
            }
            Event::BranchChanged { .. } => update(self.notice(
                "the conversation was edited elsewhere and goes another way now: load it again to \
                 see it"
                    .to_owned(),
            )),
            Event::StreamEnd {
                content,
                message_id,
                context_tokens,
                max_context_tokens,
                completed,
            } => {
                self.rest(message_id, &content).into_iter().for_each(&mut update);
                let usage = UsageUpdate::new(context_tokens.into(), max_context_tokens.into());
                update(SessionUpdate::UsageUpdate(usage));
                self.may_continue(!completed).into_iter().for_each(update);
                let ending = if completed {
                    Ending::Whole
                } else {
                    Ending::Limited
                };
                self.end_run(run_id, ending, told);
            }
            Event::StreamStopped {} => self.end_run(run_id, Ending::Stopped, told),
            Event::RunInterrupted {
                reason,
                can_continue,
                ..
            } => {
                self.may_continue(can_continue).into_iter().for_each(update);
                let error = interrupted(&reason, can_continue);
                self.end_run(run_id, Ending::Failed(error), told);
            }
            Event::Error {
                message,
                code,
                client_id,
                ..
            } if seq.is_none() => {
                told.push(Told::Refused(client_id, NaviError::new(code, message)));
            }
            Event::Error {
                message,
                recoverable: false,
                code,
                ..
            } => {
                self.may_continue(true).into_iter().for_each(update);
                let ending = match code {
                    ErrorCode::ReplyTooLong => Ending::TooLong,
                    code => Ending::Failed(NaviError::new(code, message)),
                };
                self.end_run(run_id, ending, told);
            }
            Event::Error { message, .. } => update(self.notice(message)),
            Event::ModeChanged { mode } => told.push(Told::Mode(mode)),
            Event::ModelChanged { .. } | Event::ProfileSwitched { .. } => told.push(Told::Chosen),
            Event::Resync { session, .. } => told.push(Told::Stands(session)),
            // Told by what follows; or nothing that a client has a place for.
            Event::RunWaiting { .. }
            | Event::ThinkingEnd { .. }
            | Event::TurnThinking { .. }
            | Event::SubagentStarted { .. }
            | Event::SubagentFinished { .. }
            | Event::CallResolved { .. }
            | Event::Pong {} => {}
        }
    }

    /// A request that waits as the session is read.
    pub(super) fn ask_again(&mut self, pending: &PendingApproval) -> Option<SessionUpdate> {
        self.ask(&pending.call_id, &pending.tool, &pending.request)
    }

    /// A call that a person is asked about has not begun: it is told as one that waits.
    fn ask(
        &mut self,
        call: &CallId,
        tool: &str,
        request: &ApprovalRequest,
    ) -> Option<SessionUpdate> {
        self.known.insert(call.clone()).then(|| {
            let waits = ToolCall::new(call.to_string(), calls::title_asked(request))
                .name(tool.to_owned())
                .kind(calls::kind_asked(tool, request))
                .status(ToolCallStatus::Pending);
            SessionUpdate::ToolCall(waits)
        })
    }

    fn began(&mut self, call: &CallId, tool: &str, args: Value) -> SessionUpdate {
        let (title, kind) = (calls::title(tool, &args), calls::kind(tool, &args));
        let locations = self.workspace.locations(tool, &args);
        if self.known.insert(call.clone()) {
            let began = ToolCall::new(call.to_string(), title)
                .name(tool.to_owned())
                .kind(kind)
                .status(ToolCallStatus::InProgress)
                .locations(locations)
                .raw_input(args);
            return SessionUpdate::ToolCall(began);
        }
        let fields = ToolCallUpdateFields::new()
            .title(title)
            .kind(kind)
            .status(ToolCallStatus::InProgress)
            .locations(locations)
            .raw_input(args);
        changed(call, fields)
    }

    fn take_output(&mut self, call: CallId, part: &PartId, offset: u64, delta: &str) {
        let Some(new) = self.new_of(part, offset, delta) else {
            return;
        };
        let output = self.output.entry(call).or_default();
        output.tail.push_str(&new);
        let excess = output.tail.len().saturating_sub(OUTPUT_BYTES);
        if excess > 0 {
            output.tail.drain(..output.tail.ceil_char_boundary(excess));
        }
        output
            .due
            .get_or_insert_with(|| Instant::now() + OUTPUT_PACE);
    }

    /// Something that the user should know, and that is no part of the answer.
    fn notice(&self, message: String) -> SessionUpdate {
        if self.shows.notices {
            return SessionUpdate::Notice(Notice::new(NoticeSeverity::Info, message));
        }
        let before = if self.parts.is_empty() { "" } else { "\n\n" };
        let message = format!("{before}({message})\n\n");
        SessionUpdate::AgentThoughtChunk(ContentChunk::new(ContentBlock::from(message)))
    }

    fn begin_run(&mut self) {
        self.parts.clear();
        self.known.clear();
        self.output.clear();
        self.children.clear();
        self.steps.clear();
    }

    fn end_run(&mut self, run_id: Option<RunId>, ending: Ending, told: &mut Vec<Told>) {
        self.output.clear();
        told.extend(run_id.map(|run_id| Told::Over(run_id, ending)));
    }
}

/// What is said of a run that a crash or a shutdown ended.
pub(super) fn interrupted(reason: &str, can_continue: bool) -> NaviError {
    let how = if can_continue {
        format!("; /{CONTINUE} goes on with it")
    } else {
        String::new()
    };
    let message = format!("the run was interrupted: {reason}{how}");
    NaviError::new(ErrorCode::RunFailed, message)
}

#[cfg(test)]
#[path = "updates/tests.rs"]
mod tests;
