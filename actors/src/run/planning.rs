//! The planning phase: short questions to the model before the loop begins.

use std::time::Duration;

use tokio::time::Instant;

use super::context::agents;
use super::driver::{Driver, Way};
use crate::completion::{self, Question};
use crate::domain::lanes::waiting_detail;
use crate::domain::planning::{Planner, TEMPERATURE, Task};
use crate::llm_actor::{Priority, Ticket};
use crate::protocol::event::WaitReason;
use crate::services::now;
use crate::session::messages::RunGone;
use crate::tools::spawn_agent;

/// A wait that takes longer than this is told, and what it is for is looked at again as often.
const QUIET: Duration = Duration::from_millis(700);

impl Driver {
    /// Asks one question of planning. Whatever fails here costs the plan, never the run.
    pub(super) async fn plan(&mut self, way: &Way, planner: &Planner) -> Result<(), RunGone> {
        let profiles = self.services.profiles.all();
        let mut agents = agents(&profiles);
        let tools = self.specs(way, &agents);
        if tools.iter().all(|tool| tool.name != spawn_agent::NAME) {
            agents.clear();
        }
        let recent = self.context.recent();
        let request = self.context.request_text();
        let task = Task {
            request: &request,
            recent: &recent,
            tools: &tools,
            agents: &agents,
        };
        let services = std::sync::Arc::clone(&self.services);
        let ticket = Ticket::new();
        let kind = way.choice.kind;
        let asked = completion::ask_as(
            ticket,
            &services.models,
            services.limits,
            Question {
                choice: way.choice.clone(),
                messages: planner.messages(&task),
                temperature: TEMPERATURE,
                context_window: way.window,
                max_output_tokens: planner.max_output_tokens(),
                priority: Priority::Planning,
            },
            self.ends.stop.child_token(),
        );
        tokio::pin!(asked);
        let mut told = None;
        let mut quiet = tokio::time::interval_at(Instant::now() + QUIET, QUIET);
        let interrupt = self.ends.interrupt.clone();
        let answer = loop {
            let deadline = self.deadline;
            tokio::select! {
                biased;
                () = interrupt.cancelled() => return Ok(()),
                answer = &mut asked => break answer,
                () = tokio::time::sleep_until(deadline) => return Ok(()),
                _ = quiet.tick() => {
                    let (reason, detail) = match services.models.queue(kind, ticket).await {
                        Some(view) => (WaitReason::Lane, waiting_detail(&view)),
                        None => (WaitReason::Prefill, "Navi thinks about how to go about it".to_owned()),
                    };
                    if told.replace(reason) != Some(reason) {
                        self.waiting(reason, detail).await?;
                    }
                }
            }
        };
        if self.cut_now(false).is_some() {
            return Ok(());
        }
        if let Err(error) = &answer {
            tracing::info!(%error, "no plan, going on without");
        }
        let reply = answer.as_ref().ok().map(|answer| answer.text.as_str());
        let records = self.run_loop.on_planned(reply, &task, now());
        self.commit(records).await
    }
}
