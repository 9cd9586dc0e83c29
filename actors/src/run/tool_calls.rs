//! The calls of one reply: started, watched, answered.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use actix::Addr;
use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use super::consent::{Approval, CallFuture, CallProgress};
use super::driver::Driver;
use super::live_output::{self, Live, OutputOf};
use super::proposals::propose;
use super::{FileChanges, Work};
use crate::domain::consent;
use crate::domain::files::FileViews;
use crate::domain::model_choice::RunConfig;
use crate::domain::run_loop::{CallResult, PlannedCall};
use crate::domain::scratchpad::ScratchpadCommand;
use crate::domain::session::command::Command;
use crate::domain::session::transition::Reply;
use crate::domain::todo::TodoCommand;
use crate::files::KeptImages;
use crate::homes::ensure_workspace;
use crate::memory::{MemoryOf, NobodysMemory, Remembers};
use crate::people::People;
use crate::profiles::Profiles;
use crate::protocol::ids::{CallId, RunId, UserId};
use crate::protocol::memory::FactSource;
use crate::protocol::message::ToolOutcome;
use crate::protocol::profile::Profile;
use crate::protocol::todo::{Scratchpad, TodoItem};
use crate::services::now;
use crate::session::SessionActor;
use crate::session::messages::{Ask, RunGone};
use crate::tools::means::Means;
use crate::tools::registry::{PreparedCall, withheld};
use crate::tools::{
    Agents, LiveOutput, SessionState, ToolContext, ToolError, ToolResult, spawn_agent,
};
use crate::traces::ToolSpan;

impl Driver {
    /// Runs calls side by side; the start of one that may change something is committed before it
    /// begins. One that a
    /// person is asked about begins when they allow it, and the others go on meanwhile.
    pub(super) async fn run_tools(
        &mut self,
        config: &RunConfig,
        group: &[PlannedCall],
    ) -> Result<(), RunGone> {
        let spawning = group
            .iter()
            .filter(|planned| planned.call.name == spawn_agent::NAME);
        let spawning = spawning.count() as u64;
        let agents: Arc<dyn Agents> = Arc::new(self.spawner(&config.profile, spawning));
        let opened = self.open_group(config, group, &agents).await?;
        // How many calls run, and how many of them are Navi's own work; the others of `moving` wait
        // for a person.
        let mut working = opened.begun.len();
        let begun = opened.begun.iter();
        let mut of_own = begun.filter(|it| !it.0.waits_for_program()).count();
        let mut moving: FuturesUnordered<CallFuture> = FuturesUnordered::new();
        for (planned, approval) in opened.begun {
            moving.push(self.ending(config, &planned, approval, opened.untrusted, &agents));
        }
        for asked in opened.asked {
            moving.push(self.answering(asked));
        }
        let mut resting = self.resting.watch();
        loop {
            if of_own == 0 && !moving.is_empty() {
                self.turn.give_back();
            }
            // What still works are calls that rest.
            let rests = working <= *resting.borrow_and_update();
            let rest = match &self.work {
                Work::Child(child) if rests => Some(child.resting.begin()),
                Work::Child(_) | Work::Turn(_) => None,
            };
            let before = tokio::time::Instant::now();
            let moved = tokio::select! {
                biased;
                () = self.ends.stop.cancelled() => break,
                () = self.ends.interrupt.cancelled() => break,
                // Before it is left: what came in is not forgotten.
                moved = moving.next() => Some(moved),
                () = self.ends.leaves(), if working == 0 && self.may_park() => {
                    return self.park(None).await;
                }
                _ = resting.changed() => None,
                () = tokio::time::sleep_until(self.deadline), if !rests => break,
            };
            drop(rest);
            if rests {
                // What a person takes to answer is not the run's time.
                self.deadline += before.elapsed();
            }
            let Some(moved) = moved else {
                continue;
            };
            match moved {
                None => return Ok(()),
                Some(CallProgress::Ended(call_id, result, views)) => {
                    working -= 1;
                    of_own -= usize::from(!planned_of(group, &call_id)?.waits_for_program());
                    self.context.views.extend(views);
                    let used = self.children_tokens.swap(0, Ordering::Relaxed);
                    self.run_loop.on_children(used);
                    let mut records = self.run_loop.on_tool_result(&call_id, result, now());
                    if moving.len() > working {
                        // It may be kept until a person has answered for a call before it.
                        records.extend(self.waits());
                    }
                    if self.only_reads(group) {
                        self.tell_soon(records).await?;
                    } else {
                        // What was done is not forgotten, whatever comes next.
                        self.commit(records).await?;
                    }
                }
                Some(CallProgress::Answered(call_id, answer)) => {
                    let planned = planned_of(group, &call_id)?;
                    if let Some((approval, untrusted)) = self.on_answer(planned, answer?).await? {
                        working += 1;
                        of_own += usize::from(!planned.waits_for_program());
                        let approval = Some(approval);
                        moving.push(self.ending(config, planned, approval, untrusted, &agents));
                    }
                }
            }
        }
        // Dropping what runs ends it.
        drop(moving);
        // Of a child that ended in the last moment.
        let used = self.children_tokens.swap(0, Ordering::Relaxed);
        self.run_loop.on_children(used);
        match self.cut_now(false) {
            Some(cut) => self.end_cut(&cut, None).await,
            None => self.time_up(None).await,
        }
    }

    fn ending(
        &self,
        config: &RunConfig,
        planned: &PlannedCall,
        approval: Option<Approval>,
        untrusted: bool,
        agents: &Arc<dyn Agents>,
    ) -> CallFuture {
        let ended = on_its_own(self.run_call(config, planned, approval, untrusted, agents));
        Box::pin(async move {
            let (call_id, result, views) = ended.await;
            CallProgress::Ended(call_id, result, views)
        })
    }

    /// What a call may use.
    pub(super) fn tool_context(
        &self,
        config: &RunConfig,
        call_id: &CallId,
        untrusted: bool,
        agents: &Arc<dyn Agents>,
        output: LiveOutput,
    ) -> ToolContext {
        ToolContext {
            session_id: self.session_id,
            run_id: self.origin.run_id,
            is_subagent: self.origin.is_subagent(),
            user_id: self.user_id,
            call_id: call_id.clone(),
            output,
            workspace: self.services.homes.workspace(self.user_id, self.session_id),
            means: Means::default(),
            stop: self.ends.stop.child_token(),
            stopped: self.ends.stopped.clone(),
            session: Arc::new(SessionOf {
                session: self.session.clone(),
                run_id: self.origin.run_id,
                profile: Arc::clone(&config.profile),
                profiles: Arc::clone(&self.services.profiles),
            }),
            agents: Arc::clone(agents),
            memory: match self.remembers {
                Remembers::Owner(user) => Arc::new(MemoryOf {
                    memory: self.services.memory.clone(),
                    user,
                    source: FactSource {
                        session_id: Some(self.session_id),
                        message_id: self.asked_in(),
                    },
                }),
                Remembers::Nobody => Arc::new(NobodysMemory),
            },
            untrusted,
            approved: false,
            sees_images: config.choice.model.vision != Some(false),
        }
    }

    /// One call with all that is noted of it. A panic in it is its result, and no more.
    fn run_call(
        &self,
        config: &RunConfig,
        planned: &PlannedCall,
        approval: Option<Approval>,
        untrusted: bool,
        agents: &Arc<dyn Agents>,
    ) -> impl Future<Output = (CallId, CallResult, FileViews)> + use<> {
        let call_id = planned.call.id.clone();
        let tool = planned.call.name.clone();
        let files = self.services.files.clone();
        let session_id = self.session_id;
        let run = self.in_run();
        let prepared = self.prepared.get(&call_id).cloned();
        let mut live = self.run_loop.asked_by(&call_id).map(|message_id| {
            let piece = OutputOf {
                origin: self.origin,
                call_id: call_id.clone(),
                message_id,
            };
            Live::new(self.session.clone(), piece)
        });
        let output = live.as_ref().map_or_else(live_output::unseen, Live::output);
        let mut context = self.tool_context(config, &call_id, untrusted, agents, output);
        context.approved = matches!(approval, Some(Approval::Answer { .. }));
        let changes = self.changes.clone();
        let mut origins = self.origins(&context);
        let people = self.services.people.clone();
        let means = self.services.means.clone();
        async move {
            let began = Instant::now();
            let span = ToolSpan::begin(run, &call_id, &tool);
            let granted = match prepared {
                Some(prepared) => Some(still_granted(&people, prepared, context.user_id).await),
                None => None,
            };
            let (answer, outside) = match granted {
                Some(Err(refusal)) => (Err(refusal), false),
                Some(Ok(prepared)) => {
                    files.used_by_call(session_id, &prepared.args).await;
                    origins.look(&prepared).await;
                    let (owner, tool) = (context.user_id, &prepared.tool.spec().name);
                    context.means = means.of_call(owner, tool, prepared.effect).await;
                    let answer = approved_or_free(prepared.clone(), approval, context, &changes);
                    let answer = match &mut live {
                        Some(live) => live.beside(answer).await,
                        None => answer.await,
                    };
                    if consent::may_change_files(tool, prepared.effect) {
                        means.changed(owner);
                    }
                    (answer, origins.is_outside(&prepared).await)
                }
                None => (
                    Err(ToolError("this call was lost; make it again".to_owned())),
                    false,
                ),
            };
            if let Some(live) = live {
                live.finish().await;
            }
            let (outcome, text, outside, kept) = match answer {
                Ok(output) => {
                    let kept = files.keep_images(session_id, &tool, output.images).await;
                    let mut text = output.text;
                    for problem in &kept.problems {
                        text.push_str(&format!("\n[{problem}]"));
                    }
                    (ToolOutcome::Success, text, outside || output.outside, kept)
                }
                Err(error) => (ToolOutcome::Failed, error.0, outside, KeptImages::default()),
            };
            if let Some(span) = span {
                span.ended(outcome);
            }
            let result = CallResult {
                outcome,
                text,
                outside,
                files: kept.files,
                duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            };
            (call_id, result, kept.views)
        }
    }
}

fn planned_of<'a>(group: &'a [PlannedCall], call: &CallId) -> Result<&'a PlannedCall, RunGone> {
    let planned = group.iter().find(|planned| planned.call.id == *call);
    planned.ok_or(RunGone)
}

/// Does this as a task of its own, once begun, until it is dropped. A run waits for its own commits
/// and asks none of its calls how far they are meanwhile: what one holds of the database has to go
/// on.
async fn on_its_own<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    match AbortOnDropHandle::new(tokio::spawn(work.in_current_span())).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime ends, and the run with it.
            Err(_) => std::future::pending().await,
        },
    }
}

/// The call as its user may still make it: what was taken back since the run began is not done.
async fn still_granted(
    people: &People,
    prepared: PreparedCall,
    user: UserId,
) -> Result<PreparedCall, ToolError> {
    let powers = people.powers(user).await.map_err(|error| {
        tracing::error!(%error, "what a user may use is not known");
        ToolError("the database does not say whether the user may use this; try again".to_owned())
    })?;
    let name = prepared.tool.spec().name.clone();
    let tool = prepared.tool.for_powers(&powers);
    let tool = tool.ok_or_else(|| ToolError(withheld(&name)))?;
    Ok(PreparedCall { tool, ..prepared })
}

/// Runs a call, where a person allowed it only if it is still one that they allowed.
async fn approved_or_free(
    prepared: PreparedCall,
    approval: Option<Approval>,
    context: ToolContext,
    changes: &FileChanges,
) -> ToolResult {
    if let Some(approval) = approval {
        let proposal = propose(&prepared, &context).await?;
        if !approval.holds(&prepared, &proposal, changes) {
            return Err(ToolError(consent::CHANGED.to_owned()));
        }
    }
    let tool = &prepared.tool.spec().name;
    let _changes = consent::may_change_files(tool, prepared.effect).then(|| changes.begin());
    execute(prepared, context).await
}

async fn execute(prepared: PreparedCall, context: ToolContext) -> ToolResult {
    let limit = Duration::from_millis(prepared.tool.spec().time_limit_ms);
    let margin = prepared.tool.margin();
    let name = prepared.tool.spec().name.clone();
    let stop = context.stop.clone();
    let ended = stop.clone();
    let work = async move {
        fail::fail_point!("tool::call");
        if prepared.tool.needs_workspace() {
            let made = ensure_workspace(&context.workspace).await;
            made.map_err(|error| {
                ToolError(format!("the session's workspace cannot be made: {error}"))
            })?;
        }
        let result = prepared.tool.call(prepared.args, context).await;
        fail::fail_point!("tool::done");
        result
    };
    // It ends with its run's token, too, where the run itself hangs and drops nothing.
    let task = AbortOnDropHandle::new(tokio::spawn(async move {
        let worked = ended.run_until_cancelled(work).await;
        worked.unwrap_or_else(|| Err(ToolError("it was stopped".to_owned())))
    }));
    // Blocking work that a tool handed out heeds the token: dropping the task does not end it.
    let _guard = stop.drop_guard();
    match tokio::time::timeout(limit + margin, task).await {
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
    profile: Arc<Profile>,
    profiles: Arc<Profiles>,
}

impl SessionOf {
    async fn ask<T>(&self, command: Command) -> Result<T, ToolError>
    where
        T: TryFrom<Reply> + Send + 'static,
    {
        let asked = self.session.send(Ask::new(command)).await;
        Ok(asked.map_err(gone)??)
    }
}

#[async_trait]
impl SessionState for SessionOf {
    async fn todo(&self, command: TodoCommand) -> Result<Vec<TodoItem>, ToolError> {
        self.ask(Command::ChangeTodo {
            run_id: self.run_id,
            profile: Arc::clone(&self.profile),
            command,
        })
        .await
    }

    async fn switch_profile(&self, profile_id: String) -> Result<String, ToolError> {
        let found = self.profiles.find(&profile_id);
        let switch = Command::SwitchProfile {
            run_id: self.run_id,
            profile: found.map_err(|error| ToolError(error.message))?,
        };
        let profile: Arc<Profile> = self.ask(switch).await?;
        Ok(profile.name.clone())
    }

    async fn scratchpad(&self, command: ScratchpadCommand) -> Result<Scratchpad, ToolError> {
        self.ask(Command::ChangeScratchpad {
            run_id: self.run_id,
            profile: Arc::clone(&self.profile),
            command,
        })
        .await
    }
}

fn gone(_: actix::MailboxError) -> ToolError {
    ToolError("the session went away; nothing was changed".to_owned())
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn what_a_call_does_goes_on_while_nobody_asks_how_far_it_is() {
        let (done, seen) = oneshot::channel();
        let mut call = Box::pin(on_its_own(async {
            tokio::task::yield_now().await;
            done.send(()).map(|()| "its result")
        }));
        assert!(call.as_mut().now_or_never().is_none());
        seen.await.unwrap();
        assert_eq!(call.await, Ok("its result"));
    }

    #[tokio::test]
    async fn what_nobody_waits_for_any_more_ends() {
        let (alive, gone) = oneshot::channel::<()>();
        let mut call = Box::pin(on_its_own(async {
            std::future::pending::<()>().await;
            drop(alive);
        }));
        assert!(call.as_mut().now_or_never().is_none());
        drop(call);
        gone.await.unwrap_err();
    }
}
