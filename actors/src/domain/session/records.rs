//! What a run hands to its session: records to commit, and what its tools change.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::change::Closed;
use super::transition::{Effect, Refused, Reply, ReplyTo};
use super::write::{ConsentRow, Write};
use super::{KnownParts, Session};
use crate::domain::model_calls::ModelCall;
use crate::domain::plan_edit;
use crate::domain::run_loop::{Record, RunEnd, RunSummary};
use crate::domain::scratchpad::{self, ScratchpadCommand};
use crate::domain::todo::{self, TodoCommand};
use crate::protocol::command::PlanEdit;
use crate::protocol::event::Event;
use crate::protocol::ids::{Origin, RunId};
use crate::protocol::message::Message;
use crate::protocol::profile::Profile;
use crate::protocol::todo::TodoItem;

impl Session {
    /// Records of a run, in one step.
    pub(super) fn record_all(
        &mut self,
        run_id: RunId,
        records: Vec<Record>,
        to: ReplyTo,
        now: DateTime<Utc>,
    ) -> Result<(), Refused> {
        let origin = self.origin_of(run_id)?;
        for record in records {
            self.record(origin, record, now);
        }
        let last_seq = self.ahead.last_seq;
        self.reply(to, Reply::Recorded(last_seq));
        self.next(now);
        Ok(())
    }

    /// One record. A child's events are the session's; its conversation, its plan and its loop
    /// are not.
    pub(super) fn record(&mut self, origin: Origin, record: Record, now: DateTime<Utc>) {
        let run_id = origin.run_id;
        let is_child = origin.is_subagent();
        match record {
            Record::Event(event) => {
                if let Event::ToolCall { call_id, .. } = &event {
                    // Whatever of the call was still open is closed before its result is told.
                    self.close_approvals_of_call(call_id, now);
                    self.close_child_of_call(call_id, now);
                }
                self.tell(Some(origin), event);
            }
            Record::Message(message) => {
                self.out.change.closed.push(closed_by(run_id, &message));
                if !is_child {
                    self.write(Write::Message(Arc::new(message)));
                }
            }
            Record::Began {
                backend,
                model,
                window,
            } => {
                if !is_child {
                    self.window = Some(window);
                }
                self.write(Write::RunModel {
                    run_id,
                    backend,
                    model: model.clone(),
                });
                if !is_child {
                    self.tell_start(origin, model);
                }
            }
            Record::Ask(asking) => {
                let id = asking.pending.approval_id;
                self.write(Write::ApprovalRequested(*asking));
                let after = self.policy.consent_timeout;
                self.out.then.push(Effect::ExpireLater(id, after));
            }
            Record::Consented(entry) => {
                let user_id = self.ahead.summary.user_id;
                self.write(Write::Consented(ConsentRow { user_id, entry }));
            }
            // What a child read, its parent is told of.
            Record::Tainted if self.ahead.tainted_at.is_none() => self.write(Write::Tainted(now)),
            Record::Tainted => {}
            Record::Called(call) => self.keep_call(run_id, call),
            Record::Ended(summary) if is_child => {
                let completed = summary.end == RunEnd::Answered;
                self.end_child(run_id, completed, ended(run_id, &summary, now), now);
            }
            Record::Ended(summary) => self.end_run(run_id, &summary, now),
            Record::Plan(_)
            | Record::Mark(_)
            | Record::Window(_)
            | Record::ContextTokens(_)
            | Record::Context(_)
            | Record::Waits(_)
                if is_child => {}
            Record::Plan(plan) => {
                let items = todo::of_plan(&plan.steps, &self.ahead.todo, now);
                self.set_todo(Some(origin), items);
                self.write(Write::Plan(Some(plan)));
            }
            Record::Mark(mark) => {
                let items = todo::marked(&self.ahead.todo, &mark);
                if items != self.ahead.todo {
                    self.set_todo(Some(origin), items);
                }
            }
            Record::Window(window) => self.window = Some(window),
            Record::ContextTokens(tokens) => self.write(Write::ContextTokens(tokens)),
            Record::Context(context) => {
                let branch_id = self.ahead.branch_id;
                self.write(Write::Context { branch_id, context });
            }
            Record::Waits(json) => self.write(Write::RunLoop { run_id, json }),
        }
    }

    /// The foreground run begins to answer, with this model.
    pub(super) fn tell_start(&mut self, origin: Origin, model: String) {
        let Some(run) = self.ahead.running() else {
            return;
        };
        let event = Event::StreamStart {
            message_id: run.message_id,
            model,
            profile_id: self.ahead.summary.profile_id.clone(),
        };
        self.tell(Some(origin), event);
    }

    /// A model call came to its end. What its request has in common with others is written once.
    pub(super) fn keep_call(&mut self, run_id: RunId, mut call: Box<ModelCall>) {
        call.after_seq.get_or_insert(self.ahead.last_seq);
        let known = &mut self.prompt_parts;
        let day = call.started_at.date_naive();
        if known.day != day || known.calls == super::PARTS_KNOWN_FOR {
            *known = KnownParts {
                day,
                ..KnownParts::default()
            };
        }
        known.calls += 1;
        call.prompt
            .parts
            .retain(|part| known.names.insert(part.sha256.clone()));
        self.write(Write::ModelCall { run_id, call });
    }

    fn set_todo(&mut self, origin: Option<Origin>, items: Vec<TodoItem>) {
        self.write(Write::Todo(items.clone()));
        let event = Event::TodoUpdated {
            items,
            is_subagent: false,
        };
        self.tell(origin, event);
    }

    /// A person changes the list of steps. A run that goes is told at its next checkpoint.
    pub(super) fn edit_plan(
        &mut self,
        edit: PlanEdit,
        to: ReplyTo,
        now: DateTime<Utc>,
    ) -> Result<(), Refused> {
        if self.closing.is_some() {
            return Err(Refused::shutting_down());
        }
        let items = plan_edit::apply(&self.ahead.todo, edit, now)?;
        if items != self.ahead.todo {
            self.set_todo(None, items.clone());
        }
        self.reply(to, Reply::Todo(items));
        Ok(())
    }

    pub(super) fn change_todo(
        &mut self,
        run_id: RunId,
        profile: &Profile,
        command: TodoCommand,
        to: ReplyTo,
    ) -> Result<(), Refused> {
        let origin = self.origin_of(run_id)?;
        let step_validation = profile.flags.step_validation_enabled;
        let items =
            todo::apply(&self.ahead.todo, command, step_validation).map_err(Refused::Problem)?;
        if items != self.ahead.todo {
            self.set_todo(Some(origin), items.clone());
        }
        self.reply_now(to, Reply::Todo(items));
        Ok(())
    }

    pub(super) fn change_scratchpad(
        &mut self,
        run_id: RunId,
        profile: &Profile,
        command: ScratchpadCommand,
        to: ReplyTo,
    ) -> Result<(), Refused> {
        self.origin_of(run_id)?;
        let sections = &profile.scratchpad_sections;
        let notes = scratchpad::apply(&self.ahead.scratchpad, command, sections)
            .map_err(Refused::Problem)?;
        if notes != self.ahead.scratchpad {
            self.write(Write::Scratchpad(notes.clone()));
        }
        self.reply_now(to, Reply::Scratchpad(notes));
        Ok(())
    }

    /// A tool's wish for another profile. It holds from the run's next iteration on.
    pub(super) fn switch_profile(
        &mut self,
        run_id: RunId,
        profile: Arc<Profile>,
        to: ReplyTo,
    ) -> Result<(), Refused> {
        if self.running_id() != Some(run_id) {
            return Err(Refused::Problem(
                "only the conversation itself can change its profile".to_owned(),
            ));
        }
        if self.ahead.summary.profile_id == profile.id {
            let name = &profile.name;
            return Err(Refused::Problem(format!(
                "you are {name} already; go on with the task"
            )));
        }
        self.change_profile(&profile, Some(Origin::foreground(run_id)));
        self.reply(to, Reply::Profile(profile));
        Ok(())
    }

    pub(super) fn change_profile(&mut self, profile: &Profile, by: Option<Origin>) {
        self.write(Write::Profile(profile.id.clone()));
        if self.is_idle() {
            // A run that goes takes the memory anew itself.
            self.drop_memory();
        }
        let event = Event::ProfileSwitched {
            profile_id: profile.id.clone(),
            profile_name: profile.name.clone(),
        };
        self.tell(by, event);
    }
}

/// The streamed text that a message puts an end to.
fn closed_by(run_id: RunId, message: &Message) -> Closed {
    match &message.tool_call_id {
        Some(call_id) => Closed::Output(run_id, call_id.clone()),
        None => Closed::Message(run_id, message.id),
    }
}

pub(super) fn ended(run_id: RunId, summary: &RunSummary, at: DateTime<Utc>) -> Write {
    Write::RunEnded {
        run_id,
        state: summary.end.state(),
        reason: summary.end.reason(),
        iterations: summary.iterations,
        prompt_tokens: summary.prompt_tokens,
        completion_tokens: summary.completion_tokens,
        cached_tokens: summary.cached_tokens,
        leaked_calls: summary.leaked_calls,
        at,
    }
}
