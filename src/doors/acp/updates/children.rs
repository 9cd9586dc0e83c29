//! What subagents do, under the call that sent them out.

use agent_client_protocol::v1::schema::{SessionUpdate, ToolCallUpdateFields};
use navi_actors::protocol::event::Event;
use navi_actors::protocol::ids::RunId;

use super::{Told, View};
use crate::doors::acp::calls::{self, words};
use crate::doors::acp::shapes::{changed, ended, plan};

/// As many steps of a subagent as are shown.
const STEPS: usize = 40;

impl View {
    /// A subagent's steps stand in the call that sent it out; its words are that call's result.
    pub(super) fn take_of_child(
        &mut self,
        run_id: RunId,
        parent: RunId,
        event: Event,
        told: &mut Vec<Told>,
    ) {
        let mut update = |update: SessionUpdate| told.push(Told::Update(Box::new(update)));
        match event {
            Event::SubagentStarted {
                call_id,
                profile_id,
                ..
            } => {
                let root = self.children.get(&parent).cloned().unwrap_or(call_id);
                self.children.insert(run_id, root);
                let step = format!("a subagent (`{profile_id}`) began");
                self.step(run_id, &step).into_iter().for_each(update);
            }
            Event::SubagentFinished {
                completed_normally, ..
            } => {
                let how = if completed_normally {
                    "is done"
                } else {
                    "ended early"
                };
                let step = format!("the subagent {how}");
                self.step(run_id, &step).into_iter().for_each(update);
                self.children.remove(&run_id);
            }
            Event::ToolStarted {
                tool,
                args,
                call_id,
                ..
            } => {
                let step = calls::title(&tool, &args);
                if self.known.contains(&call_id) {
                    update(self.began(&call_id, &tool, args));
                }
                self.step(run_id, &step).into_iter().for_each(update);
            }
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
                if self.known.remove(&call_id) {
                    let workspace = &self.workspace;
                    let content = workspace.result(&tool, &args, success, &result, &files);
                    update(ended(&call_id, outcome, content, result));
                }
                if !success {
                    let step = format!("{} failed", calls::title(&tool, &args));
                    self.step(run_id, &step).into_iter().for_each(update);
                }
            }
            Event::ApprovalRequested {
                approval_id,
                call_id,
                tool,
                request,
                ..
            } => {
                self.ask(&call_id, &tool, &request)
                    .into_iter()
                    .for_each(update);
                told.push(Told::Asked(approval_id, call_id, Box::new(request)));
            }
            Event::ApprovalResolved { approval_id, .. } => told.push(Told::Answered(approval_id)),
            Event::PlanReady { steps, .. } => {
                let step = format!("a plan of {} steps", steps.len());
                self.step(run_id, &step).into_iter().for_each(update);
            }
            // The list of steps is the session's.
            Event::TodoUpdated { items, .. } => update(plan(&items)),
            Event::Notice { message, .. } | Event::Error { message, .. } => {
                self.step(run_id, &message).into_iter().for_each(update);
            }
            Event::MessageAccepted { .. }
            | Event::QueueChanged { .. }
            | Event::MessageSteered { .. }
            | Event::BranchChanged { .. }
            | Event::StreamStart { .. }
            | Event::RunWaiting { .. }
            | Event::ThinkingDelta(_)
            | Event::ThinkingEnd { .. }
            | Event::TurnThinking { .. }
            | Event::StreamDelta(_)
            | Event::ToolOutput { .. }
            | Event::CallResolved { .. }
            | Event::ModeChanged { .. }
            | Event::ModelChanged { .. }
            | Event::ProfileSwitched { .. }
            | Event::ContextCompressed { .. }
            | Event::StreamEnd { .. }
            | Event::StreamStopped {}
            | Event::RunInterrupted { .. }
            | Event::Resync { .. }
            | Event::Pong {} => {}
        }
    }

    fn step(&mut self, child: RunId, step: &str) -> Option<SessionUpdate> {
        let root = self.children.get(&child)?;
        let steps = self.steps.entry(root.clone()).or_default();
        if steps.len() == STEPS {
            steps.remove(0);
        }
        steps.push(format!("- {step}"));
        let fields = ToolCallUpdateFields::new().content(vec![words(&steps.join("\n"))]);
        Some(changed(root, fields))
    }
}
