//! What a person at a terminal is shown of a session: events in, lines out. No terminal is in
//! sight here, and whatever came from elsewhere is in the lines as `style` lets it through.

pub(super) mod shown;

use std::collections::VecDeque;

use navi_actors::protocol::approval::{ApprovalRequest, DecidedBy, Permission};
use navi_actors::protocol::command::Decision;
use navi_actors::protocol::event::{Envelope, Event, WaitReason};
use navi_actors::protocol::ids::{ApprovalId, PartId, RunId};
use navi_actors::protocol::session::SessionSnapshot;
use navi_actors::protocol::todo::{TodoItem, TodoStatus};

use self::shown::Tool;
use super::markdown::Markdown;
use super::style::{Line, Look, Tint, brief};
use crate::doors::heard::Heard;

/// How much of the model's reasoning is kept to be shown.
const REASONING: usize = 256 * 1024;
/// How many messages of this terminal wait to be accepted.
const OWN: usize = 64;

/// A request that a person may answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    pub(super) id: ApprovalId,
    pub(super) request: ApprovalRequest,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Screen {
    width: usize,
    markdown: Markdown,
    text: Heard,
    thinking: Heard,
    /// The reasoning that was told last, and whether it goes on.
    reasoning: String,
    reasons: bool,
    /// The foreground run that goes.
    run: Option<RunId>,
    model: String,
    /// What it was last said to wait for.
    waits: Option<WaitReason>,
    todo: Vec<TodoItem>,
    questions: VecDeque<Question>,
    /// What was sent from here, by its `client_id`.
    own: VecDeque<String>,
    answered_here: Option<ApprovalId>,
}

impl Screen {
    pub(super) fn new(width: usize) -> Self {
        Self {
            width,
            markdown: Markdown::new(width),
            text: Heard::default(),
            thinking: Heard::default(),
            reasoning: String::new(),
            reasons: false,
            run: None,
            model: String::new(),
            waits: None,
            todo: Vec::new(),
            questions: VecDeque::new(),
            own: VecDeque::new(),
            answered_here: None,
        }
    }

    pub(super) fn set_width(&mut self, width: usize) {
        self.width = width;
        self.markdown.set_width(width);
    }

    pub(super) fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// What a person is asked: one after the other.
    pub(super) fn question(&self) -> Option<&Question> {
        self.questions.front()
    }

    /// The question of this id, where it is the one that a person is asked.
    pub(super) fn asked(&self, id: ApprovalId) -> Option<&Question> {
        self.question().filter(|question| question.id == id)
    }

    /// A message goes from here: its text stands on the screen already.
    pub(super) fn sends(&mut self, client_id: &str) {
        self.own.push_back(client_id.to_owned());
        if self.own.len() > OWN {
            self.own.pop_front();
        }
    }

    /// A request was answered from here.
    pub(super) fn answers(&mut self, id: ApprovalId) {
        self.answered_here = Some(id);
    }

    /// The reasoning that was told last, whole.
    pub(super) fn reasoning(&self) -> Vec<Line> {
        if self.reasoning.is_empty() {
            return vec![dim("the model told no reasoning")];
        }
        let lines = self.reasoning.lines();
        lines.map(|line| Line::of(Tint::Dim, line)).collect()
    }

    /// Another session, as it stands: its newest messages, and what goes on there.
    pub(super) fn open(&mut self, session: &SessionSnapshot) -> Vec<Line> {
        let (own, answered_here) = (std::mem::take(&mut self.own), self.answered_here);
        *self = Self {
            own,
            answered_here,
            ..Self::new(self.width)
        };
        let mut out = shown::opened(session, self.width);
        self.todo = session.todo.clone();
        self.run = session.run.as_ref().map(|run| run.run_id);
        let asked = session.approvals.iter().map(|pending| Question {
            id: pending.approval_id,
            request: pending.request.clone(),
        });
        self.questions.extend(asked);
        self.ask(&mut out);
        out
    }

    /// What an event adds to the screen.
    pub(super) fn take(&mut self, envelope: Envelope) -> Vec<Line> {
        let mut out = Vec::new();
        let is_child = envelope.parent_run_id.is_some();
        let is_repeat = envelope.seq.is_none();
        let run_id = envelope.run_id;
        match envelope.event {
            // What a subagent says is the result of its call.
            Event::StreamDelta(_)
            | Event::ThinkingDelta(_)
            | Event::ThinkingEnd { .. }
            | Event::TurnThinking { .. }
            | Event::StreamStart { .. }
            | Event::StreamEnd { .. }
            | Event::TodoUpdated { .. }
                if is_child => {}
            Event::StreamDelta(delta) => {
                self.end_reasoning(&mut out);
                if let Some(piece) = self.text.take(delta) {
                    self.waits = None;
                    self.markdown.push(&piece, &mut out);
                }
            }
            Event::ThinkingDelta(delta) => {
                if let Some(piece) = self.thinking.take(delta) {
                    self.reason(&piece, &mut out);
                }
            }
            Event::ThinkingEnd { .. } => self.end_reasoning(&mut out),
            // Told by its deltas; what the log has no deltas of is not for the screen.
            Event::TurnThinking { .. } => {}
            // The call's end tells of it.
            Event::ToolOutput { .. } => {}
            // It repeats, to who said the message again, what the log tells.
            Event::MessageAccepted { .. } if is_repeat => {}
            Event::MessageAccepted {
                client_id,
                queued,
                content,
                files,
                ..
            } => self.accepted(client_id.as_ref(), queued, &content, files.len(), &mut out),
            Event::QueueChanged { content, .. } => {
                let what = if content.is_some() {
                    "a message that waits was changed"
                } else {
                    "a message that waited was withdrawn"
                };
                self.say(dim(what), &mut out);
            }
            Event::MessageSteered { .. } => {
                self.say(dim("the message that waited went to the run"), &mut out);
            }
            Event::BranchChanged { .. } => {
                let what = "the conversation goes on from another place; /open shows it";
                self.say(dim(what), &mut out);
            }
            Event::StreamStart {
                model, profile_id, ..
            } => {
                self.run = run_id;
                self.waits = None;
                let who = format!("{profile_id} · {model}");
                if who != self.model {
                    self.say(dim(&who), &mut out);
                    self.model = who;
                }
            }
            Event::RunWaiting { reason, detail, .. } => {
                self.wait(reason, &detail, is_child, &mut out);
            }
            Event::PlanReady { steps, .. } => {
                if is_child {
                    let made = format!("  the subagent made a plan of {} steps", steps.len());
                    self.say(dim(&made), &mut out);
                } else {
                    self.say(Line::of(Look::BOLD, "Plan"), &mut out);
                    self.todo = steps.into_iter().map(shown::item).collect();
                    out.extend(self.todo.iter().map(shown::step));
                }
            }
            Event::TodoUpdated { items, .. } => self.update(items, &mut out),
            Event::SubagentStarted {
                profile_id, task, ..
            } => {
                let line = Line::of(Tint::Dim, "  ↳ subagent ").and(Tint::Plain, &profile_id);
                let task = brief(&task, self.room(30));
                self.say(line.and(Tint::Dim, &format!(": {task}")), &mut out);
            }
            Event::SubagentFinished {
                completed_normally, ..
            } => {
                let line = if completed_normally {
                    Line::of(Tint::Good, "  ✓ ").and(Tint::Dim, "the subagent is done")
                } else {
                    Line::of(Tint::Bad, "  ✗ ").and(Tint::Dim, "the subagent did not finish")
                };
                self.say(line, &mut out);
            }
            Event::ProfileSwitched { profile_name, .. } => {
                self.say(dim(&format!("the profile is {profile_name} now")), &mut out);
            }
            Event::ContextCompressed { .. } => {
                let what = "the older part of the conversation was summarised for the model";
                self.say(dim(what), &mut out);
            }
            Event::ToolStarted { tool, args, .. } => {
                self.waits = None;
                let call = Tool::begins(&tool, &args, is_child, self.room(0));
                self.say(call, &mut out);
            }
            Event::ToolCall {
                tool,
                result,
                outcome,
                duration_ms,
                ..
            } => {
                let call = Tool {
                    name: &tool,
                    outcome,
                    took: duration_ms,
                    result: &result,
                    is_child,
                };
                self.say(call.ends(self.room(0)), &mut out);
            }
            Event::ApprovalRequested {
                approval_id,
                request,
                ..
            } => {
                self.questions.push_back(Question {
                    id: approval_id,
                    request,
                });
                if self.questions.len() == 1 {
                    self.ask(&mut out);
                } else {
                    let more = format!("{} more to answer after this", self.questions.len() - 1);
                    self.say(Line::of(Tint::Asks, &more), &mut out);
                }
            }
            Event::ApprovalResolved {
                approval_id,
                decision,
                by,
                note,
                ..
            } => self.resolved(approval_id, decision, by, note.as_deref(), &mut out),
            Event::CallResolved { .. } => {
                self.say(dim("it was said what became of the call"), &mut out);
            }
            Event::ModeChanged { mode } => {
                self.say(
                    dim(&format!("the mode is {} now", shown::mode(mode))),
                    &mut out,
                );
            }
            Event::ModelChanged { model } => {
                let model = model.as_deref().unwrap_or("the profile's own");
                self.say(dim(&format!("the model is {model} now")), &mut out);
            }
            Event::StreamEnd {
                content,
                message_id,
                completed,
                ..
            } => {
                self.end_reasoning(&mut out);
                if let Some(rest) = self.text.take_whole(PartId::text(message_id), &content) {
                    self.markdown.push(&rest, &mut out);
                }
                self.end(&mut out);
                if !completed {
                    let what = "a limit ended this; /continue goes on";
                    out.push(Line::of(Tint::Asks, what));
                }
                out.push(Line::new());
            }
            Event::StreamStopped {} => {
                self.end(&mut out);
                out.push(Line::of(Tint::Asks, "stopped"));
                out.push(Line::new());
            }
            Event::RunInterrupted {
                reason,
                can_continue,
                ..
            } => {
                self.end(&mut out);
                let how = if can_continue {
                    "; /continue goes on"
                } else {
                    ""
                };
                let what = format!("interrupted: {reason}{how}");
                out.push(Line::of(Tint::Bad, &what));
            }
            Event::Notice { message, .. } => self.say(Line::of(Tint::Asks, &message), &mut out),
            Event::Error {
                message,
                recoverable,
                ..
            } => {
                self.say(Line::of(Tint::Bad, &message), &mut out);
                if !recoverable {
                    self.end(&mut out);
                    out.push(dim("/continue tries to go on"));
                }
            }
            Event::Resync { session, .. } => {
                self.end(&mut out);
                out.extend(self.open(&session));
            }
            Event::Pong {} => {}
        }
        out
    }

    /// How many columns a line has beside so many.
    fn room(&self, taken: usize) -> usize {
        self.width.saturating_sub(taken + 4).max(20)
    }

    /// A line behind what was said so far.
    fn say(&mut self, line: Line, out: &mut Vec<Line>) {
        self.end_reasoning(out);
        self.markdown.pause(out);
        out.push(line);
    }

    /// The run is over.
    fn end(&mut self, out: &mut Vec<Line>) {
        self.end_reasoning(out);
        self.markdown.finish(out);
        self.run = None;
        self.waits = None;
    }

    fn reason(&mut self, piece: &str, out: &mut Vec<Line>) {
        if !self.reasons {
            self.say(dim("thinking…"), out);
            self.reasoning.clear();
            self.reasons = true;
        }
        let piece = piece.trim_start_matches(|c| c == '\n' && self.reasoning.is_empty());
        if self.reasoning.len() + piece.len() <= REASONING {
            self.reasoning.push_str(piece);
        }
    }

    /// Folds what was thought into a line.
    fn end_reasoning(&mut self, out: &mut Vec<Line>) {
        if !std::mem::take(&mut self.reasons) {
            return;
        }
        let words = self.reasoning.split_whitespace().count();
        let folded = format!("thought for {words} words · /thinking shows them");
        out.push(dim(&folded));
    }

    fn accepted(
        &mut self,
        client_id: Option<&String>,
        queued: bool,
        content: &str,
        files: usize,
        out: &mut Vec<Line>,
    ) {
        let own = self
            .own
            .iter()
            .position(|own| client_id.is_some_and(|id| id == own));
        if let Some(at) = own {
            self.own.remove(at);
        } else {
            self.end_reasoning(out);
            self.markdown.pause(out);
            out.extend(shown::said(content, files));
        }
        if queued {
            self.say(dim("it waits for the run that goes"), out);
        }
    }

    fn wait(&mut self, reason: WaitReason, detail: &str, is_child: bool, out: &mut Vec<Line>) {
        // A question stands there by itself; how far a prompt is read is told many times a second.
        if reason == WaitReason::Approval || is_child || self.waits == Some(reason) {
            return;
        }
        self.waits = Some(reason);
        self.say(dim(detail), out);
    }

    /// Shows what changed of the list of steps.
    fn update(&mut self, items: Vec<TodoItem>, out: &mut Vec<Line>) {
        let known = |item: &TodoItem| {
            let mut known = self.todo.iter();
            known.find(|known| known.id == item.id && known.text == item.text)
        };
        let has_new = items.iter().any(|item| known(item).is_none());
        let changed = items.iter().filter(|item| {
            let is_same = known(item)
                .is_some_and(|known| (known.status, known.held) == (item.status, item.held));
            // A list that is another one is shown whole.
            has_new || !is_same
        });
        let lines: Vec<Line> = changed.map(shown::step).collect();
        for line in lines {
            self.say(line, out);
        }
        let is_done = |items: &[TodoItem]| {
            let open = |item: &TodoItem| {
                matches!(item.status, TodoStatus::Pending | TodoStatus::InProgress)
            };
            !items.is_empty() && !items.iter().any(open)
        };
        if is_done(&items) && !is_done(&self.todo) {
            self.say(dim("  every step is settled"), out);
        }
        self.todo = items;
    }

    /// Shows what a person is asked now, if they are.
    fn ask(&mut self, out: &mut Vec<Line>) {
        if let Some(question) = self.questions.front() {
            let lines = shown::question(&question.request);
            self.end_reasoning(out);
            self.markdown.pause(out);
            out.extend(lines);
        }
    }

    fn resolved(
        &mut self,
        id: ApprovalId,
        decision: Decision,
        by: DecidedBy,
        note: Option<&str>,
        out: &mut Vec<Line>,
    ) {
        let was_shown = self.questions.front().is_some_and(|it| it.id == id);
        self.questions.retain(|question| question.id != id);
        let here = self.answered_here.take_if(|answered| *answered == id);
        let mut words = match (decision, by) {
            (_, DecidedBy::Timeout) => "nobody answered in time: denied".to_owned(),
            (_, DecidedBy::Stop) => "not asked any more".to_owned(),
            (Decision::Once, DecidedBy::User) => "allowed".to_owned(),
            (Decision::Always, DecidedBy::User) => "allowed from now on".to_owned(),
            (Decision::Deny, DecidedBy::User) => "denied".to_owned(),
            (Decision::Never, DecidedBy::User) => "denied from now on".to_owned(),
        };
        if here.is_none() && by == DecidedBy::User {
            words.push_str(" elsewhere");
        }
        if let Some(note) = note {
            words.push_str(": ");
            words.push_str(note);
        }
        let tint = match decision.permission() {
            Permission::Allow => Tint::Good,
            Permission::Deny => Tint::Bad,
        };
        self.say(Line::of(tint, &words), out);
        if was_shown {
            self.ask(out);
        }
    }
}

fn dim(text: &str) -> Line {
    Line::of(Tint::Dim, text)
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
