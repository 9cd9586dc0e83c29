//! The calls of one reply: started, watched, answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::Addr;
use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio_util::task::AbortOnDropHandle;

use super::driver::{Driver, Way};
use crate::domain::run_loop::{CallPlan, CallResult, PlannedCall};
use crate::domain::scratchpad::ScratchpadCommand;
use crate::domain::todo::TodoCommand;
use crate::memory::MemoryOf;
use crate::protocol::ids::{CallId, RunId};
use crate::protocol::memory::FactSource;
use crate::protocol::message::ToolOutcome;
use crate::protocol::todo::{Scratchpad, TodoItem};
use crate::services::now;
use crate::session::SessionActor;
use crate::session::messages::{ChangeScratchpad, ChangeTodo, RunGone, SwitchProfile};
use crate::tools::registry::PreparedCall;
use crate::tools::{Agents, SessionState, ToolContext, ToolError, spawn_agent};

impl Driver {
    /// Runs calls side by side; each one's start is committed before it begins.
    pub(super) async fn run_tools(
        &mut self,
        way: &Way,
        group: &[PlannedCall],
    ) -> Result<(), RunGone> {
        let records = self.run_loop.on_tools_started(group);
        self.commit(records).await?;
        let spawning = group
            .iter()
            .filter(|planned| planned.call.name == spawn_agent::NAME);
        let spawning = spawning.count() as u64;
        let agents: Arc<dyn Agents> = Arc::new(self.spawner(&way.profile.id, spawning));
        let mut running: FuturesUnordered<_> = group
            .iter()
            .map(|planned| self.run_call(planned, &agents))
            .collect();
        let deadline = self.deadline;
        loop {
            let ended = tokio::select! {
                biased;
                () = self.ends.stop.cancelled() => break,
                () = self.ends.interrupt.cancelled() => break,
                () = tokio::time::sleep_until(deadline) => break,
                ended = running.next() => ended,
            };
            let Some((call_id, result)) = ended else {
                return Ok(());
            };
            let records = self.run_loop.on_tool_result(&call_id, result, now());
            self.commit(records).await?;
        }
        // Dropping what runs ends it.
        drop(running);
        match self.cut_now(false) {
            Some(cut) => self.end_cut(&cut, None).await,
            None => self.time_up(None).await,
        }
    }

    /// One call as a task of its own: a panic in it is its result, and no more.
    fn run_call(
        &self,
        planned: &PlannedCall,
        agents: &Arc<dyn Agents>,
    ) -> impl Future<Output = (CallId, CallResult)> + use<> {
        let call_id = planned.call.id.clone();
        let refusal = match &planned.plan {
            CallPlan::Refuse(reason) => Some(reason.clone()),
            CallPlan::Run { .. } => None,
        };
        let prepared = self.prepared.get(&call_id).cloned();
        let context = ToolContext {
            session_id: self.session_id,
            call_id: call_id.clone(),
            workspace: self.services.sessions_dir.join(self.session_id.to_string()),
            stop: self.ends.stop.child_token(),
            session: Arc::new(SessionOf {
                session: self.session.clone(),
                run_id: self.origin.run_id,
            }),
            agents: Arc::clone(agents),
            memory: Arc::new(MemoryOf {
                memory: self.services.memory.clone(),
                user: self.user_id,
                source: FactSource {
                    session_id: Some(self.session_id),
                    message_id: self.asked_in(),
                },
            }),
            untrusted: false,
        };
        async move {
            let began = Instant::now();
            let answer = match (refusal, prepared) {
                (Some(refusal), _) => Err(ToolError(refusal)),
                (None, Some(prepared)) => execute(prepared, context).await,
                (None, None) => Err(ToolError("this call was lost; make it again".to_owned())),
            };
            let (outcome, text) = match answer {
                Ok(text) => (ToolOutcome::Success, text),
                Err(error) => (ToolOutcome::Failed, error.0),
            };
            let result = CallResult {
                outcome,
                text,
                duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            };
            (call_id, result)
        }
    }
}

async fn execute(prepared: PreparedCall, context: ToolContext) -> Result<String, ToolError> {
    let limit = Duration::from_millis(prepared.tool.spec().time_limit_ms);
    let name = prepared.tool.spec().name.clone();
    let stop = context.stop.clone();
    let task = AbortOnDropHandle::new(tokio::spawn(async move {
        fail::fail_point!("tool::call");
        tokio::fs::create_dir_all(&context.workspace)
            .await
            .map_err(|error| {
                ToolError(format!("the session's workspace cannot be made: {error}"))
            })?;
        prepared.tool.call(prepared.args, context).await
    }));
    // Blocking work that a tool handed out heeds the token: dropping the task does not end it.
    let _guard = stop.drop_guard();
    match tokio::time::timeout(limit, task).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => {
            tracing::error!(tool = name, %error, "tool panicked");
            Err(ToolError(format!(
                "the tool {name} failed because of a mistake in Navi; do this in another way"
            )))
        }
        Err(_) => Err(ToolError(format!(
            "the tool {name} did not end within its limit of {} s and was ended; it may have taken effect in part",
            limit.as_secs()
        ))),
    }
}

/// The session behind a run's tools.
#[derive(Debug)]
struct SessionOf {
    session: Addr<SessionActor>,
    run_id: RunId,
}

#[async_trait]
impl SessionState for SessionOf {
    async fn todo(&self, command: TodoCommand) -> Result<Vec<TodoItem>, ToolError> {
        let change = ChangeTodo {
            run_id: self.run_id,
            command,
        };
        self.session.send(change).await.map_err(gone)?
    }

    async fn switch_profile(&self, profile_id: String) -> Result<String, ToolError> {
        let switch = SwitchProfile {
            run_id: self.run_id,
            profile_id,
        };
        let profile = self.session.send(switch).await.map_err(gone)??;
        Ok(profile.name.clone())
    }

    async fn scratchpad(&self, command: ScratchpadCommand) -> Result<Scratchpad, ToolError> {
        let change = ChangeScratchpad {
            run_id: self.run_id,
            command,
        };
        self.session.send(change).await.map_err(gone)?
    }
}

fn gone(_: actix::MailboxError) -> ToolError {
    ToolError("the session went away; nothing was changed".to_owned())
}
