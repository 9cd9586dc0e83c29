//! The planning phase: short questions to the model before the loop begins.

use super::asking::Wait;
use super::calls::outcome_of;
use super::context::agents;
use super::driver::Driver;
use crate::completion::{self, AskedCall, Question};
use crate::domain::model_choice::RunConfig;
use crate::domain::planning::{Planner, PlanningReply, TEMPERATURE, Task};
use crate::llm_actor::{Priority, Ticket};
use crate::metrics;
use crate::protocol::inspect::{CallKind, CallOutcome};
use crate::protocol::phrase::PhraseCode;
use crate::services::now;
use crate::session::messages::RunGone;
use crate::tools::spawn_agent;

impl Driver {
    /// Asks one question of planning. Whatever fails here costs the plan, never the run.
    pub(super) async fn plan(
        &mut self,
        config: &RunConfig,
        planner: &Planner,
    ) -> Result<(), RunGone> {
        let profiles = self.services.profiles.all();
        let mut agents = agents(&profiles);
        let tools = self.offered(config);
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
        let question = Question {
            choice: config.choice.clone(),
            messages: planner.messages(&task),
            temperature: TEMPERATURE,
            context_window: config.window,
            max_output_tokens: planner.max_output_tokens(services.runs.plan_tokens),
            form: None,
            priority: Priority::Planning,
            person: Some(self.user_id),
            run: Some(self.in_run()),
        };
        let call = AskedCall::new(CallKind::Plan, Some(self.last_seq), &question);
        let (models, limits) = (&services.models, services.limits);
        let stop = self.ends.stop.child_token();
        metrics::record(|on| on.runs.request_leaves(self.origin.run_id));
        let asked = completion::ask_as(ticket, models, limits, question, stop);
        let wait = Wait {
            kind: config.choice.kind,
            ticket,
            doing: PhraseCode::ThinksHow,
        };
        let answer = self.wait_for(asked, wait).await?;
        let ended = match (&answer, self.cut_now(false)) {
            (_, Some(cut)) => Err(outcome_of(&cut)),
            (None, None) => Err(CallOutcome::TimeUp),
            (Some(Err(_)), None) => Err(CallOutcome::Failed),
            (Some(Ok(answer)), None) => Ok(answer),
        };
        self.called.extend(call.ended(ended));
        let Some(answer) = answer else {
            return Ok(());
        };
        if self.cut_now(false).is_some() {
            return Ok(());
        }
        if let Err(error) = &answer {
            tracing::info!(%error, "no plan, going on without");
        }
        let usage = answer.as_ref().ok().and_then(|answer| answer.usage);
        self.run_loop.on_aside(usage);
        let reply = answer.as_ref().ok().map(|answer| PlanningReply {
            text: &answer.text,
            finish: answer.finish,
        });
        let records = self.run_loop.on_planned(reply, &task, now());
        self.commit(records).await
    }
}
