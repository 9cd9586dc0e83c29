//! The loop of one run (SPEC section 5), as data that can be stepped, stored and replayed.
//!
//! A driver asks [`RunLoop::next_step`], does what it says, and tells the outcome to one of
//! the `on_…` methods. Each gives back what must be recorded, in order, in one commit. The
//! loop never waits and never decides by a clock; the driver never decides.

mod call_end;
mod calls;
mod ending;
mod notes;
mod reply;
mod steps;
mod unfinished;

pub(in crate::domain) use call_end::end_call;
pub use call_end::{
    CallStage, NOT_FINISHED, NOT_RUN, OUTCOME_UNKNOWN, Unfinished, call_ended, call_started,
};
pub use calls::{Asked, Since};
pub use ending::{ended_unbegun, failed};
pub use steps::{
    CallBook, CallPlan, CallResult, Cut, EndReason, ModelReply, PlannedCall, Record, RunEnd,
    RunSummary, Step, ToolUse,
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use self::calls::OpenCalls;
use super::consent::Asking;
use super::demands::Demands;
use super::guards::{Guards, Iteration};
use super::planning::{self, Planned, Planner, PlanningReply, Task, ToolSteps};
use crate::protocol::chat::Usage;
use crate::protocol::event::Event;
use crate::protocol::ids::{CallId, MessageId, Origin};
use crate::protocol::message::{Message, MessageState, ToolCall};
use crate::protocol::plan::Plan;
use crate::protocol::profile::{Profile, ProfileFlags};
use crate::protocol::todo::{TodoItem, TodoStatus};

/// What a run starts from.
#[derive(Clone, Debug)]
pub struct RunStart<'a> {
    pub origin: Origin,
    pub profile: &'a Profile,
    /// What the user asked for, or a child's task.
    pub goal: String,
    /// Whether it plans first.
    pub plans: bool,
    /// Steps of the plan that it goes on from.
    pub steps: ToolSteps,
    /// What the user changed of the list of steps since then, no call before this run's is sure to
    /// have told.
    pub edits_since: Option<DateTime<Utc>>,
    /// The most tokens, read and written, that it may use, its children's included.
    pub max_tokens: u64,
    /// What the last run of the session left.
    pub context_tokens: u32,
    /// The model's window, in tokens.
    pub window: u32,
}

/// The loop of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunLoop {
    origin: Origin,
    flags: ProfileFlags,
    max_iterations: u32,
    max_tokens: u64,
    window: u32,
    context_tokens: u32,
    iterations: u32,
    prompt_tokens: u64,
    completion_tokens: u64,
    #[serde(default)]
    cached_tokens: u64,
    children_tokens: u64,
    leaked_calls: u32,
    /// The model said nothing, or nothing that ends a turn, and was asked once more.
    asked_again: bool,
    /// What it said last was the beginning of work that it did not do.
    #[serde(default)]
    unfinished: bool,
    /// A plan was made and the model has not answered since.
    fresh_plan: bool,
    goal: String,
    guards: Guards,
    /// The calls of the last iteration, until the todo list after it is known.
    called: Vec<ToolCall>,
    /// The todo list as it was last seen.
    todo: Vec<TodoItem>,
    /// The steps of the plan that calls carry out.
    #[serde(default)]
    steps: ToolSteps,
    /// See [`RunStart::edits_since`].
    #[serde(default)]
    edits_since: Option<DateTime<Utc>>,
    /// Of the program that asks.
    #[serde(default)]
    demands: Demands,
    /// The answer that missed them and was not told.
    #[serde(default)]
    draft: String,
    phase: Phase,
    /// Its time is up: it may only say how things stand.
    #[serde(default)]
    time_is_up: bool,
    /// It was left in the store at a safe point, to go on when the service is back.
    #[serde(default)]
    parked: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Phase {
    Planning(Planner),
    /// The model's turn.
    Model(ToolUse),
    Tools(OpenCalls),
    Ended(RunEnd),
}

impl RunLoop {
    /// A loop at its start.
    #[must_use]
    pub fn new(start: RunStart<'_>) -> Self {
        let phase = if start.plans && !planning::is_direct(&start.goal) {
            Phase::Planning(Planner::new())
        } else {
            Phase::Model(ToolUse::Offered)
        };
        Self {
            origin: start.origin,
            flags: start.profile.flags.clone(),
            max_iterations: start.profile.max_iterations.max(1),
            max_tokens: start.max_tokens,
            window: start.window,
            context_tokens: start.context_tokens,
            iterations: 0,
            prompt_tokens: 0,
            completion_tokens: 0,
            cached_tokens: 0,
            children_tokens: 0,
            leaked_calls: 0,
            asked_again: false,
            unfinished: false,
            fresh_plan: false,
            goal: start.goal,
            guards: Guards::default(),
            called: Vec::new(),
            todo: Vec::new(),
            steps: start.steps,
            edits_since: start.edits_since,
            demands: Demands::default(),
            draft: String::new(),
            phase,
            time_is_up: false,
            parked: false,
        }
    }

    /// What to do next. Asking twice changes nothing.
    #[must_use]
    pub fn next_step(&self) -> Step {
        match &self.phase {
            Phase::Planning(planner) => Step::Plan(planner.clone()),
            Phase::Model(tools) => Step::CallModel { tools: *tools },
            Phase::Tools(open) => Step::RunTools(open.next_group()),
            Phase::Ended(end) => Step::Finish(end.clone()),
        }
    }

    /// Whether the run has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    /// The tokens that are left to this run and its children.
    #[must_use]
    pub fn tokens_left(&self) -> u64 {
        self.max_tokens.saturating_sub(self.tokens_used())
    }

    /// The tokens that this run and its children used.
    #[must_use]
    pub fn tokens_used(&self) -> u64 {
        self.prompt_tokens + self.completion_tokens + self.children_tokens
    }

    /// The model answered a question of planning; none where that failed, which costs the
    /// plan and never the run.
    pub fn on_planned(
        &mut self,
        reply: Option<PlanningReply<'_>>,
        task: &Task<'_>,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        let Phase::Planning(planner) = &self.phase else {
            return Vec::new();
        };
        let planned = reply.map_or(Planned::NoPlan, |reply| {
            planner.clone().on_reply(reply, &self.flags, task)
        });
        let steps = match planned {
            Planned::Ask(next) => {
                self.phase = Phase::Planning(next);
                return Vec::new();
            }
            Planned::Direct | Planned::NoPlan => {
                self.phase = Phase::Model(ToolUse::Offered);
                return Vec::new();
            }
            Planned::Plan(steps) => steps,
        };
        self.phase = Phase::Model(ToolUse::Offered);
        self.fresh_plan = true;
        let mut message = Message::assistant(MessageId::new(), self.origin.run_id, now);
        message.content = Some(steps.text.clone());
        message.is_plan = true;
        let message_id = message.id;
        let mut records = vec![
            Record::Message(message),
            Record::Event(Event::PlanReady {
                plan: steps.text.clone(),
                message_id,
                steps: steps.steps.clone(),
                is_subagent: self.origin.is_subagent(),
            }),
        ];
        if !self.origin.is_subagent() {
            // The list and the plan are the session's: a child changes nothing of them.
            self.steps = ToolSteps::of(&steps.steps);
            records.push(Record::Plan(Plan {
                run_id: self.origin.run_id,
                message_id,
                text: steps.text,
                steps: steps.steps,
            }));
        }
        records
    }

    /// What a question beside the conversation cost: it counts, and is no part of the context.
    pub fn on_aside(&mut self, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.add(usage);
        }
    }

    /// The todo list before a model call.
    pub fn on_todo(&mut self, todo: &[TodoItem]) {
        let called = std::mem::take(&mut self.called);
        if !called.is_empty() {
            let iteration = Iteration {
                calls: &called,
                todo_before: &self.todo,
                todo_after: todo,
            };
            self.guards.on_iteration(&iteration, &self.flags);
        }
        self.steps.on_todo(todo);
        self.todo = todo.to_vec();
    }

    /// Another profile, or the same as it is now, holds from the next iteration on.
    pub fn on_switch(&mut self, profile: &Profile, window: u32) -> Vec<Record> {
        self.flags = profile.flags.clone();
        self.max_iterations = profile.max_iterations.max(1);
        // What a program demands of the next answer stays.
        if let Phase::Model(ToolUse::Offered | ToolUse::Withheld) = self.phase {
            self.phase = Phase::Model(self.offer());
        }
        self.on_window(window)
    }

    /// The model's window is another one than was thought.
    pub fn on_window(&mut self, window: u32) -> Vec<Record> {
        if std::mem::replace(&mut self.window, window) == window {
            return Vec::new();
        }
        vec![Record::Window(window)]
    }

    /// Child runs used tokens of this run's. To be told before the results of the calls that
    /// started them.
    pub fn on_children(&mut self, tokens: u64) {
        self.children_tokens += tokens;
    }

    /// What the program that asks demands of the answer from here on.
    pub fn demand(&mut self, demands: Demands) {
        self.demands = demands;
        let has_form = self.demands.form.is_some() && self.demands.calls.is_empty();
        if has_form && self.phase == Phase::Model(ToolUse::Withheld) {
            self.phase = Phase::Model(ToolUse::Formed);
        }
    }

    /// What the program that asks demands of the answer.
    #[must_use]
    pub fn demands(&self) -> &Demands {
        &self.demands
    }

    /// The user said more while the run goes: that is part of what is wanted.
    pub fn on_steered(&mut self, text: &str) {
        self.goal.push_str("\n\nThen the user added: ");
        self.goal.push_str(text);
    }

    /// These calls begin. To be recorded before they do: that is what makes a crash
    /// between a call's effect and its result visible afterwards.
    pub fn on_tools_started(&mut self, group: &[PlannedCall]) -> Vec<Record> {
        let Phase::Tools(open) = &mut self.phase else {
            return Vec::new();
        };
        let mut records = open.start(group, self.origin);
        for planned in group {
            records.extend(self.on_made(planned));
        }
        records
    }

    /// A call is denied or refused: this is its result, and it never begins.
    pub fn on_refused(
        &mut self,
        planned: &PlannedCall,
        result: CallResult,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        let mut records = Vec::from_iter(self.on_made(planned));
        records.extend(self.on_tool_result(&planned.call.id, result, now));
        records
    }

    /// The model made a call: what it was to call, and the step of the plan that this is.
    fn on_made(&mut self, planned: &PlannedCall) -> Option<Record> {
        let CallPlan::Run { .. } = planned.plan else {
            // It carries nothing out.
            return None;
        };
        if self.demands.calls.contains(&planned.call.name) {
            self.demands.calls.clear();
        }
        self.steps.begin(&planned.call).map(Record::Mark)
    }

    /// A person is asked about a call. It begins when they allow it.
    pub fn on_asked(&mut self, asking: Asking) -> Vec<Record> {
        let Phase::Tools(open) = &mut self.phase else {
            return Vec::new();
        };
        let pending = &asking.pending;
        let asked = Asked {
            approval_id: pending.approval_id,
            digest: asking.digest.clone(),
            summary: pending.request.summary.clone(),
        };
        open.ask(&pending.call_id, asked);
        let event = Event::ApprovalRequested {
            approval_id: pending.approval_id,
            call_id: pending.call_id.clone(),
            tool: pending.tool.clone(),
            request: pending.request.clone(),
            expires_at: pending.expires_at,
            is_subagent: self.origin.is_subagent(),
        };
        vec![Record::Ask(Box::new(asking)), Record::Event(event)]
    }

    /// What a person was asked about this call.
    #[must_use]
    pub fn asked(&self, call_id: &CallId) -> Option<&Asked> {
        match &self.phase {
            Phase::Tools(open) => open.asked(call_id),
            Phase::Planning(_) | Phase::Model(_) | Phase::Ended(_) => None,
        }
    }

    /// The message that made this call.
    #[must_use]
    pub fn asked_by(&self, call_id: &CallId) -> Option<MessageId> {
        match &self.phase {
            Phase::Tools(open) => open.asked_by(call_id),
            Phase::Planning(_) | Phase::Model(_) | Phase::Ended(_) => None,
        }
    }

    /// The calls of the last reply that have not begun, and are not refused.
    #[must_use]
    pub fn not_begun(&self) -> Vec<PlannedCall> {
        match &self.phase {
            Phase::Tools(open) => open.not_begun().cloned().collect(),
            Phase::Planning(_) | Phase::Model(_) | Phase::Ended(_) => Vec::new(),
        }
    }

    /// The service goes down at a safe point of this run, and the run is to go on when it is
    /// back. What the model had said of a reply that was cut off is kept.
    pub fn park(&mut self, partial: Option<ModelReply>, now: DateTime<Utc>) -> Vec<Record> {
        self.parked = true;
        partial.map_or_else(Vec::new, |partial| {
            self.keep_partial(partial, MessageState::Interrupted, now)
        })
    }

    /// Whether it was left to go on by itself.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        self.parked
    }

    /// Makes calls again that a crash cut off, before the model is asked: they stand in a
    /// message of their own, since each call has one result.
    pub fn repeat(
        &mut self,
        calls: &[ToolCall],
        book: &mut impl CallBook,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        if calls.is_empty() || self.is_over() {
            return Vec::new();
        }
        let mut message = Message::assistant(MessageId::new(), self.origin.run_id, now);
        message.tool_calls = calls
            .iter()
            .map(|call| ToolCall {
                id: CallId::new(),
                ..call.clone()
            })
            .collect();
        let planned = message.tool_calls.iter().map(|call| PlannedCall {
            plan: book.plan(call),
            lent: book.is_lent(&call.name),
            call: call.clone(),
        });
        self.phase = Phase::Tools(OpenCalls::of(message.id, planned.collect()));
        vec![Record::Message(message)]
    }

    /// Goes on after a restart from a loop that was stored while it waited.
    pub fn resume(&mut self, since: &Since<'_>, now: DateTime<Utc>) -> Vec<Record> {
        self.parked = false;
        let Phase::Tools(open) = &mut self.phase else {
            return Vec::new();
        };
        let records = open.resume(since, self.origin, now);
        if open.is_empty() {
            self.phase = Phase::Model(self.offer());
        }
        records
    }

    /// A call ended. Results are recorded in the order of the calls: this one may have
    /// to wait for those before it.
    pub fn on_tool_result(
        &mut self,
        call_id: &CallId,
        result: CallResult,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        let Phase::Tools(open) = &mut self.phase else {
            return Vec::new();
        };
        let mark = self.steps.end(call_id, result.outcome, &result.text);
        let mut records = open.end(call_id, result, self.origin, now);
        // Where a step is to be proven, the model marks it as done.
        let proven = self.flags.step_validation_enabled;
        let mark = mark.filter(|mark| !(proven && mark.status == TodoStatus::Done));
        records.extend(mark.map(Record::Mark));
        if open.is_empty() {
            self.phase = Phase::Model(self.offer());
        }
        records
    }

    /// Whether the model may go on calling tools.
    fn offer(&self) -> ToolUse {
        let goes_on = self.iterations < self.max_iterations && self.tokens_left() > 0;
        if goes_on && !self.time_is_up {
            ToolUse::Offered
        } else if self.demands.form.is_some() && self.demands.calls.is_empty() {
            ToolUse::Formed
        } else {
            ToolUse::Withheld
        }
    }
}
