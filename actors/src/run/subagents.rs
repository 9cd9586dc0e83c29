//! Child runs: started for a `spawn_agent` call, watched, and reported to the model.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use actix::Addr;
use async_trait::async_trait;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;

use super::driver::Driver;
use super::{
    ChildReport, ChildTask, Ends, FileChanges, Resting, RunActor, RunChild, RunSetup, Work,
};
use crate::domain::consent;
use crate::domain::session::command::ChildStart;
use crate::memory::Remembers;
use crate::protocol::command::PlainConsent;
use crate::protocol::ids::{CallId, MessageId, Origin, RunId, SessionId, UserId};
use crate::protocol::profile::Profile;
use crate::protocol::tool::Effect;
use crate::services::Services;
use crate::session::SessionActor;
use crate::session::messages::StartChild;
use crate::tools::{Agents, SpawnOrder, ToolError, ToolOutput, ToolResult};

/// Starts the children of one run.
#[derive(Debug)]
pub(super) struct Spawner {
    services: Arc<Services>,
    session: Addr<SessionActor>,
    session_id: SessionId,
    user_id: UserId,
    remembers: Remembers,
    parent: Origin,
    parent_actor: Addr<RunActor>,
    parent_ends: Ends,
    asked_in: Option<MessageId>,
    /// The profile of a child for which none is named.
    profile_id: String,
    /// The model that was chosen for the session: that of a child whose profile names none.
    model: Option<String>,
    /// Of the parent: 0 for a foreground run.
    depth: u32,
    /// The most that a child's calls may do.
    ceiling: Effect,
    consent: PlainConsent,
    changes: FileChanges,
    /// The tokens that each child of this group may use.
    tokens: u64,
    slots: Arc<Semaphore>,
    resting: Resting,
    left: Arc<AtomicU64>,
    used: Arc<AtomicU64>,
}

impl Driver {
    /// What starts the children of a group of calls, of which `spawning` ask for one.
    pub(super) fn spawner(&self, profile: &Profile, spawning: u64) -> Spawner {
        let allowed = self.allowed(profile);
        let tools = self.registry.all();
        let own = tools
            .filter(|tool| allowed.contains(&tool.name))
            .map(|tool| (tool.name.as_str(), tool.effect));
        let ceiling = consent::ceiling(own, self.ceiling);
        Spawner {
            services: Arc::clone(&self.services),
            session: self.session.clone(),
            session_id: self.session_id,
            user_id: self.user_id,
            remembers: self.remembers,
            parent: self.origin,
            parent_actor: self.own.clone(),
            parent_ends: self.ends.clone(),
            asked_in: self.asked_in(),
            profile_id: profile.id.clone(),
            model: self.model.clone(),
            ceiling,
            consent: self.consent,
            changes: self.changes.clone(),
            depth: match &self.work {
                Work::Turn(_) => 0,
                Work::Child(child) => child.depth,
            },
            // What they leave over goes back by itself: only what was used is counted.
            tokens: self.run_loop.tokens_left() / spawning.max(1),
            slots: Arc::clone(&self.child_slots),
            resting: self.resting.clone(),
            left: Arc::clone(&self.children_left),
            used: Arc::clone(&self.children_tokens),
        }
    }
}

impl Spawner {
    /// Counts one child more, if there may be one.
    fn admit(&self) -> Result<(), ToolError> {
        let limits = self.services.runs;
        if self.depth >= limits.child_depth {
            return Err(ToolError(format!(
                "subagents may not be nested deeper than {}; do this yourself",
                limits.child_depth
            )));
        }
        let counted = self
            .left
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
        counted.map(|_| ()).map_err(|_| {
            ToolError(format!(
                "this run has started {} subagents, which is the limit; do the rest yourself",
                limits.children
            ))
        })
    }

    fn setup(
        &self,
        order: SpawnOrder,
        profile_id: String,
        run_id: RunId,
        ends: Ends,
        finished: oneshot::Sender<ChildReport>,
    ) -> RunSetup {
        let profile = self.services.profiles.of_session(&profile_id).profile;
        RunSetup {
            services: Arc::clone(&self.services),
            session: self.session.clone(),
            session_id: self.session_id,
            user_id: self.user_id,
            remembers: self.remembers,
            origin: Origin {
                run_id,
                parent_run_id: Some(self.parent.run_id),
            },
            model: self.model.clone().filter(|_| profile.model.is_none()),
            profile_id,
            work: Work::Child(ChildTask {
                task: order.task,
                context: order.context,
                asked_in: self.asked_in,
                depth: self.depth + 1,
                resting: self.resting.clone(),
                finished,
            }),
            ends,
            // That its parent's time is up ends it too.
            deadline: Instant::now() + self.services.runs.child_time,
            max_tokens: self.tokens,
            consent: self.consent,
            ceiling: self.ceiling,
            changes: self.changes.clone(),
        }
    }
}

#[async_trait]
impl Agents for Spawner {
    async fn spawn(&self, call_id: &CallId, order: SpawnOrder) -> ToolResult {
        let profile_id = order
            .profile_id
            .clone()
            .unwrap_or_else(|| self.profile_id.clone());
        self.services
            .profiles
            .find(&profile_id)
            .map_err(|error| ToolError(error.message))?;
        self.admit()?;
        let rest = self.resting.begin();
        // Closed never: the driver that owns it waits for this.
        let Ok(_slot) = self.slots.acquire().await else {
            return Err(gone());
        };
        drop(rest);
        let ends = self.parent_ends.child();
        // Whoever drops this call ends the child with it.
        let _stop = ends.stop.clone().drop_guard();
        let run_id = RunId::new();
        let start = StartChild {
            start: ChildStart {
                origin: Origin {
                    run_id,
                    parent_run_id: Some(self.parent.run_id),
                },
                call_id: call_id.clone(),
                profile_id: profile_id.clone(),
                task: order.task.clone(),
            },
            stop: ends.stop.clone(),
            stopped: ends.stopped.clone(),
        };
        match self.session.send(start).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return Err(gone()),
        }
        let (finished, report) = oneshot::channel();
        let setup = self.setup(order, profile_id, run_id, ends, finished);
        self.parent_actor
            .send(RunChild(setup))
            .await
            .map_err(|_| gone())?;
        let report = report.await.map_err(|_| {
            ToolError(
                "completed_normally: false\nthe subagent failed because of a mistake in Navi; do this in another way"
                    .to_owned(),
            )
        })?;
        self.used.fetch_add(report.tokens, Ordering::Relaxed);
        Ok(ToolOutput {
            text: told(&report),
            outside: report.outside,
            ..ToolOutput::default()
        })
    }
}

/// What the model is told of its child.
fn told(report: &ChildReport) -> String {
    let text = report.text.trim();
    let text = if text.is_empty() {
        "(it said nothing)"
    } else {
        text
    };
    match &report.problem {
        None => format!("completed_normally: true\n\n{text}"),
        Some(problem) => {
            format!("completed_normally: false ({problem})\n\nWhat it said last:\n{text}")
        }
    }
}

fn gone() -> ToolError {
    ToolError("the run is over; no subagent was started".to_owned())
}
