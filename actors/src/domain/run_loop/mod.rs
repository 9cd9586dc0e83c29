//! The loop of one run (SPEC section 5), as data that can be stepped, stored and replayed.
//!
//! A driver asks [`RunLoop::next_step`], does what it says, and tells the outcome to one of
//! the `on_…` methods. Each gives back what must be recorded, in order, in one commit. The
//! loop never waits and never decides by a clock; the driver never decides.

mod calls;
mod steps;

pub use steps::{
    CallBook, CallPlan, CallResult, Cut, NOT_RUN, OUTCOME_UNKNOWN, PlannedCall, Record, Reply,
    RunEnd, RunSummary, Step, ToolUse,
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use self::calls::{Closing, OpenCalls};
use super::guards::{Guards, Iteration, Progress};
use super::leaked_calls;
use super::planning::{Planned, Planner, Task};
use crate::protocol::chat::Usage;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::Event;
use crate::protocol::ids::{CallId, MessageId, Origin};
use crate::protocol::message::{Message, MessageState, ToolCall};
use crate::protocol::plan::Plan;
use crate::protocol::profile::{Profile, ProfileFlags};
use crate::protocol::todo::TodoItem;

/// What the model is told once, right after its plan.
const CARRY_OUT: &str = "[plan] Carry out the plan above now, one step after the other. Mark each step in the todo list as you begin and end it.";

/// What it is told when it may only say how things stand.
const LIMIT: &str = "[limit] The limit of this task is reached. Say briefly what is done and what is not; call no tools.";

/// What ends a run whose model did not even say that.
const LIMIT_TEXT: &str = "The limit of this task was reached before it was done. What was done so far is above; say \"continue\" to go on.";

/// What a run starts from.
#[derive(Clone, Debug)]
pub struct RunStart<'a> {
    pub origin: Origin,
    pub profile: &'a Profile,
    /// What the user asked for, or a child's task.
    pub goal: String,
    /// Whether it plans first.
    pub plans: bool,
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
    children_tokens: u64,
    leaked_calls: u32,
    /// The model said nothing and was asked once more.
    asked_again: bool,
    /// A plan was made and the model has not answered since.
    fresh_plan: bool,
    goal: String,
    guards: Guards,
    /// The calls of the last iteration, until the todo list after it is known.
    called: Vec<ToolCall>,
    /// The todo list as it was last seen.
    todo: Vec<TodoItem>,
    phase: Phase,
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
            children_tokens: 0,
            leaked_calls: 0,
            asked_again: false,
            fresh_plan: false,
            goal: start.goal,
            guards: Guards::default(),
            called: Vec::new(),
            todo: Vec::new(),
            phase: if start.plans {
                Phase::Planning(Planner::new())
            } else {
                Phase::Model(ToolUse::Offered)
            },
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
        reply: Option<&str>,
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
            self.prompt_tokens += u64::from(usage.prompt_tokens);
            self.completion_tokens += u64::from(usage.completion_tokens);
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
        self.todo = todo.to_vec();
    }

    /// Another profile holds from the next iteration on.
    pub fn on_switch(&mut self, profile: &Profile, window: u32) {
        self.flags = profile.flags.clone();
        self.max_iterations = profile.max_iterations.max(1);
        self.window = window;
    }

    /// Child runs used tokens of this run's.
    pub fn on_children(&mut self, tokens: u64) {
        self.children_tokens += tokens;
        if self.phase == Phase::Model(ToolUse::Offered) {
            self.phase = Phase::Model(self.offer());
        }
    }

    /// The user said more while the run goes: that is part of what is wanted.
    pub fn on_steered(&mut self, text: &str) {
        self.goal.push_str("\n\nThen the user added: ");
        self.goal.push_str(text);
    }

    /// What the model is told at the end of the next call, and only there.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        if self.phase == Phase::Model(ToolUse::Withheld) {
            return vec![LIMIT.to_owned()];
        }
        let mut notes = Vec::new();
        if self.fresh_plan {
            notes.push(CARRY_OUT.to_owned());
        }
        let progress = Progress {
            iterations: self.iterations,
            max_iterations: self.max_iterations,
        };
        notes.extend(self.guards.notes(progress, &self.goal, &self.flags));
        notes
    }

    /// The model answered. `book` looks each requested call up.
    pub fn on_reply(
        &mut self,
        mut reply: Reply,
        book: &mut impl CallBook,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        let Phase::Model(tools) = self.phase else {
            return Vec::new();
        };
        self.iterations += 1;
        self.fresh_plan = false;
        let mut records = self.count(&reply);
        match tools {
            // It was asked to say how things stand; calls made all the same are not run.
            ToolUse::Withheld => reply.calls.clear(),
            ToolUse::Offered => self.take_leaked(&mut reply, book),
        }
        if reply.says_nothing() {
            return self.on_silence(tools, records, now);
        }
        if reply.calls.is_empty() {
            let end = match tools {
                ToolUse::Offered => RunEnd::Answered,
                ToolUse::Withheld => RunEnd::Limited,
            };
            self.conclude(reply, end, now, &mut records);
            return records;
        }
        self.open_calls(reply, book, now, &mut records);
        records
    }

    /// The call failed for good. What had been said is kept.
    pub fn on_model_failed(
        &mut self,
        partial: Reply,
        error: NaviError,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        let mut records = self.keep_partial(partial, MessageState::Failed, now);
        self.fail(error, &mut records);
        records
    }

    /// These calls begin. To be recorded before they do: that is what makes a crash
    /// between a call's effect and its result visible afterwards.
    pub fn on_tools_started(&mut self, group: &[PlannedCall]) -> Vec<Record> {
        match &mut self.phase {
            Phase::Tools(open) => open.start(group, self.origin),
            Phase::Planning(_) | Phase::Model(_) | Phase::Ended(_) => Vec::new(),
        }
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
        let records = open.end(call_id, result, self.origin, now);
        if open.is_empty() {
            self.phase = Phase::Model(self.offer());
        }
        records
    }

    /// The run's time is up: what is under way is closed, and the model may say how things
    /// stand. Where that was what it was about, the run ends.
    pub fn on_time_up(&mut self, partial: Option<Reply>, now: DateTime<Utc>) -> Vec<Record> {
        let mut records = Vec::new();
        match &mut self.phase {
            Phase::Ended(_) => {}
            Phase::Planning(_) | Phase::Model(ToolUse::Offered) => {
                if let Some(partial) = partial {
                    records = self.keep_partial(partial, MessageState::Interrupted, now);
                }
                self.phase = Phase::Model(ToolUse::Withheld);
            }
            Phase::Tools(open) => {
                open.close(&Closing::TimeUp, self.origin, now, &mut records);
                self.phase = Phase::Model(ToolUse::Withheld);
            }
            Phase::Model(ToolUse::Withheld) => {
                let mut reply = partial.unwrap_or_else(|| Reply::empty(MessageId::new()));
                reply.calls.clear();
                if reply.text.trim().is_empty() {
                    LIMIT_TEXT.clone_into(&mut reply.text);
                }
                self.conclude(reply, RunEnd::Limited, now, &mut records);
            }
        }
        records
    }

    /// The run is cut off, by its user or by a shutdown. Keeps what was said and gives
    /// every open call its result.
    pub fn cut(&mut self, cut: &Cut, partial: Option<Reply>, now: DateTime<Utc>) -> Vec<Record> {
        if self.is_over() {
            return Vec::new();
        }
        let state = match cut {
            Cut::Stopped => MessageState::Stopped,
            Cut::Interrupted { .. } => MessageState::Interrupted,
        };
        let text = partial.as_ref().map(|partial| partial.text.clone());
        let mut records = partial.map_or_else(Vec::new, |p| self.keep_partial(p, state, now));
        if let Phase::Tools(open) = &mut self.phase {
            open.close(&Closing::Cut(cut), self.origin, now, &mut records);
        }
        let (event, end) = match cut {
            Cut::Stopped => (Event::StreamStopped {}, RunEnd::Stopped),
            Cut::Interrupted { reason } => (
                Event::RunInterrupted {
                    reason: reason.clone(),
                    can_continue: true,
                },
                RunEnd::Interrupted {
                    reason: reason.clone(),
                },
            ),
        };
        self.end(end, event, text.unwrap_or_default(), &mut records);
        records
    }

    /// Whether the model may go on calling tools.
    fn offer(&self) -> ToolUse {
        if self.iterations < self.max_iterations && self.tokens_left() > 0 {
            ToolUse::Offered
        } else {
            ToolUse::Withheld
        }
    }

    fn count(&mut self, reply: &Reply) -> Vec<Record> {
        let Some(usage) = reply.usage else {
            return Vec::new();
        };
        self.prompt_tokens += u64::from(usage.prompt_tokens);
        self.completion_tokens += u64::from(usage.completion_tokens);
        self.context_tokens = usage.prompt_tokens.saturating_add(usage.completion_tokens);
        vec![Record::ContextTokens(self.context_tokens)]
    }

    /// A small model may write its call as text: a reply that is nothing else is that call.
    fn take_leaked(&mut self, reply: &mut Reply, book: &impl CallBook) {
        if !reply.calls.is_empty() {
            return;
        }
        if let Some(calls) = leaked_calls::parse(&reply.text, |tool| book.is_known(tool)) {
            reply.calls = calls;
            reply.text.clear();
            self.leaked_calls += 1;
        }
    }

    fn on_silence(
        &mut self,
        tools: ToolUse,
        mut records: Vec<Record>,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        if !std::mem::replace(&mut self.asked_again, true) {
            return records;
        }
        if tools == ToolUse::Withheld {
            let mut reply = Reply::empty(MessageId::new());
            LIMIT_TEXT.clone_into(&mut reply.text);
            self.conclude(reply, RunEnd::Limited, now, &mut records);
            return records;
        }
        self.fail(
            NaviError::new(
                ErrorCode::EmptyReply,
                "the model answered nothing, twice; try again, or choose another model",
            ),
            &mut records,
        );
        records
    }

    fn open_calls(
        &mut self,
        reply: Reply,
        book: &mut impl CallBook,
        now: DateTime<Utc>,
        records: &mut Vec<Record>,
    ) {
        let message_id = reply.message_id;
        let calls: Vec<ToolCall> = reply
            .calls
            .iter()
            .map(|requested| ToolCall {
                id: CallId::new(),
                name: requested.name.clone(),
                arguments: requested.arguments.clone(),
            })
            .collect();
        if !reply.thinking.is_empty() {
            records.push(Record::Event(Event::TurnThinking {
                thinking: reply.thinking.clone(),
                is_subagent: self.origin.is_subagent(),
            }));
        }
        let mut message = reply.into_message(self.origin.run_id, MessageState::Complete, now);
        message.tool_calls.clone_from(&calls);
        records.push(Record::Message(message));
        self.asked_again = false;
        self.called.clone_from(&calls);
        let planned = calls
            .into_iter()
            .map(|call| PlannedCall {
                plan: match self.guards.on_call(&call.name, &call.arguments) {
                    Some(hint) => CallPlan::Refuse(hint),
                    None => book.plan(&call),
                },
                call,
            })
            .collect();
        self.phase = Phase::Tools(OpenCalls::of(message_id, planned));
    }

    fn keep_partial(
        &mut self,
        partial: Reply,
        state: MessageState,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        let mut records = self.count(&partial);
        if !partial.text.is_empty() || !partial.thinking.is_empty() {
            // Calls that were cut off with it never began: they are not part of the history.
            records.push(Record::Message(partial.into_message(
                self.origin.run_id,
                state,
                now,
            )));
        }
        records
    }

    /// The run ends with an answer.
    fn conclude(
        &mut self,
        reply: Reply,
        end: RunEnd,
        now: DateTime<Utc>,
        records: &mut Vec<Record>,
    ) {
        let text = reply.text.clone();
        let event = Event::StreamEnd {
            content: text.clone(),
            message_id: reply.message_id,
            context_tokens: self.context_tokens,
            max_context_tokens: self.window,
            completed: end == RunEnd::Answered,
        };
        let state = MessageState::Complete;
        let message = reply.into_message(self.origin.run_id, state, now);
        records.push(Record::Message(message));
        self.end(end, event, text, records);
    }

    fn fail(&mut self, error: NaviError, records: &mut Vec<Record>) {
        let event = failed(&error);
        self.end(RunEnd::Failed(error), event, String::new(), records);
    }

    /// The run is over. Its closing event is the session's own: how a child ended is told by
    /// its frame.
    fn end(&mut self, end: RunEnd, event: Event, text: String, records: &mut Vec<Record>) {
        if !self.origin.is_subagent() {
            records.push(Record::Event(event));
        }
        records.push(Record::Ended(RunSummary {
            end: end.clone(),
            text,
            iterations: self.iterations,
            prompt_tokens: self.prompt_tokens,
            completion_tokens: self.completion_tokens,
            leaked_calls: self.leaked_calls,
        }));
        self.phase = Phase::Ended(end);
    }
}

/// The event of a run that failed.
#[must_use]
pub fn failed(error: &NaviError) -> Event {
    Event::Error {
        message: error.message.clone(),
        recoverable: false,
        code: error.code,
        client_id: None,
    }
}
