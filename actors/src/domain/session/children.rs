//! The child runs of a session's foreground run, while they go.
//!
//! A child's conversation is not stored; its events stand in the session's log. Whatever
//! ends a child, its frame is closed before the result of the call that asked for it is told.

use chrono::{DateTime, Utc};

use super::Session;
use super::change::Closed;
use super::command::ChildStart;
use super::transition::{Effect, Refused, Reply, ReplyTo};
use super::write::{RunRow, Write};
use crate::domain::run_loop::{CallResult, CallStage, Unfinished, call_ended};
use crate::protocol::event::Event;
use crate::protocol::ids::{CallId, RunId};
use crate::protocol::message::ToolCall;
use crate::protocol::session::RunState;

impl Session {
    pub(super) fn start_child(
        &mut self,
        start: ChildStart,
        to: ReplyTo,
        now: DateTime<Utc>,
    ) -> Result<(), Refused> {
        let ChildStart {
            origin,
            call_id,
            profile_id,
            task,
        } = start;
        let parent = origin.parent_run_id.ok_or(Refused::RunGone)?;
        self.origin_of(parent)?;
        let foreground = self.ahead.running().ok_or(Refused::RunGone)?;
        let row = RunRow {
            run_id: origin.run_id,
            parent_run_id: Some(parent),
            message_id: foreground.message_id,
            call_id: Some(call_id.clone()),
            profile_id: profile_id.clone(),
            backend: String::new(),
            model: String::new(),
            started_at: now,
        };
        self.write(Write::RunStarted(row));
        let event = Event::SubagentStarted {
            call_id,
            profile_id,
            task,
            is_subagent: true,
        };
        self.tell(Some(origin), event);
        self.reply(to, Reply::Done(()));
        Ok(())
    }

    pub(super) fn stop_child(&mut self, run_id: RunId, to: ReplyTo) {
        let goes = self.ahead.children.contains_key(&run_id);
        if goes {
            self.out.now.push(Effect::Cancel(run_id));
        }
        self.reply_now(to, Reply::Found(goes));
    }

    /// A child ended in order, as `ended` says.
    pub(super) fn end_child(
        &mut self,
        run_id: RunId,
        completed: bool,
        ended: Write,
        now: DateTime<Utc>,
    ) {
        self.close_below(run_id, Unfinished::EndedWithRun, now);
        self.close_approvals_of(&[run_id], now);
        self.close_frame(run_id, completed, ended);
    }

    /// The call has its result: the child that answers it is over.
    pub(super) fn close_child_of_call(&mut self, call_id: &CallId, now: DateTime<Utc>) {
        let mut children = self.ahead.children.values();
        let child = children.find(|child| child.call_id == *call_id);
        if let Some(run_id) = child.map(|child| child.origin.run_id) {
            self.close_child(run_id, Unfinished::EndedWithRun, now);
        }
    }

    /// Closes all that is left.
    pub(super) fn close_children(&mut self, now: DateTime<Utc>) {
        self.close_all_children(Unfinished::EndedWithRun, now);
    }

    /// Closes the frames of children that a crash cut off.
    pub(super) fn close_lost_children(&mut self, now: DateTime<Utc>) {
        self.close_all_children(Unfinished::Down, now);
    }

    fn close_all_children(&mut self, why: Unfinished, now: DateTime<Utc>) {
        while let Some(run_id) = self.ahead.children.keys().next().copied() {
            self.close_child(run_id, why, now);
        }
    }

    fn close_below(&mut self, run_id: RunId, why: Unfinished, now: DateTime<Utc>) {
        while let Some(child) = self
            .ahead
            .children
            .values()
            .find(|child| child.origin.parent_run_id == Some(run_id))
        {
            let run_id = child.origin.run_id;
            self.close_child(run_id, why, now);
        }
    }

    /// Closes a child that did not end by itself, and all that it had started, innermost first.
    fn close_child(&mut self, run_id: RunId, why: Unfinished, now: DateTime<Utc>) {
        self.close_below(run_id, why, now);
        self.close_approvals_of(&[run_id], now);
        let Some(child) = self.ahead.children.get(&run_id).cloned() else {
            return;
        };
        if why != Unfinished::Down {
            self.out.now.push(Effect::Cancel(run_id));
        }
        for open in child.open_calls {
            let call = ToolCall {
                id: open.call_id,
                name: open.tool,
                arguments: open.args,
            };
            // What a child's call does is not known here.
            let result = CallResult::unfinished(why, CallStage::Working);
            // Programs lend to the foreground run alone.
            let ended = call_ended(call, result, child.origin, false);
            self.tell(Some(child.origin), ended);
        }
        let ended = Write::RunEnded {
            run_id,
            state: RunState::Stopped,
            reason: None,
            iterations: 0,
            prompt_tokens: child.used.prompt,
            completion_tokens: child.used.completion,
            cached_tokens: child.used.cached,
            leaked_calls: 0,
            at: now,
        };
        self.close_frame(run_id, false, ended);
    }

    fn close_frame(&mut self, run_id: RunId, completed: bool, ended: Write) {
        let Some(child) = self.ahead.children.get(&run_id) else {
            return;
        };
        let origin = child.origin;
        let event = Event::SubagentFinished {
            call_id: child.call_id.clone(),
            completed_normally: completed,
            is_subagent: true,
        };
        self.write(ended);
        self.out.change.closed.push(Closed::Run(run_id));
        self.tell(Some(origin), event);
    }
}
