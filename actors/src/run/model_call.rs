//! One model call: slot, stream, retries before the first chunk, and the text on its way out.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use futures_util::StreamExt;
use tokio::time::Instant;

use super::asking::QUIET;
use super::calls::{OpenCall, outcome_of};
use super::driver::{Driver, Way};
use super::pace::Pace;
use crate::domain::lanes::waiting_detail;
use crate::domain::run_loop::{Record, Reply, ToolUse};
use crate::domain::{context, leaked_calls};
use crate::llm::LlmError;
use crate::llm_actor::{Lease, Priority, Ticket};
use crate::protocol::chat::{ChatDelta, ChatRequest, Usage};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::{Event, PartKind, WaitReason};
use crate::protocol::ids::MessageId;
use crate::protocol::inspect::CallOutcome;
use crate::services::now;
use crate::session::messages::{RunGone, Stream};

/// How often a call is tried again before its first chunk.
const RETRIES: usize = 3;

/// The longest pause before one that a server can ask for.
const RETRY_AFTER_CAP: Duration = Duration::from_secs(30);

/// What came of one attempt.
enum Attempt {
    Whole,
    /// The stop token or a shutdown cut it off.
    Cut,
    /// The run's time is up.
    TimeUp,
    Failed(NaviError),
    /// It failed before it said anything, and may do better.
    Again(LlmError),
}

impl Driver {
    /// Calls the model and has what comes of it recorded.
    pub(super) async fn call_model(&mut self, way: &Way, tools: ToolUse) -> Result<(), RunGone> {
        let frame = self.frame(way, tools);
        let built = frame.request(&self.context.conversation());
        self.tell_left_out(built.left_out_turns).await?;
        let request = built.request;
        let mut call = self.open_call(way, frame, &request);
        let mut reply = Reply::empty(MessageId::new());
        let mut pauses = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(500))
            .with_max_delay(Duration::from_secs(8))
            .with_max_times(RETRIES)
            .with_jitter()
            .build();
        loop {
            call.attempts += 1;
            match self.attempt(way, &request, &mut reply, &mut call).await? {
                Attempt::Whole => {
                    match reply.usage {
                        Some(usage) => {
                            self.tell_cut_prompt(built.estimated_tokens, usage, way)
                                .await?;
                        }
                        None => {
                            let said = format!("{}{}", reply.thinking, reply.text);
                            reply.usage = Some(Usage {
                                prompt_tokens: built.estimated_tokens,
                                completion_tokens: context::text_tokens(&said),
                            });
                        }
                    }
                    self.close_call(call, CallOutcome::Done, &reply).await;
                    return self.take_reply(way, reply).await;
                }
                Attempt::Cut if self.is_to_be_left() => return self.park(Some(reply)).await,
                Attempt::Cut => {
                    // The token that cut it says which.
                    let cut = self.cut_now(false).ok_or(RunGone)?;
                    self.close_call(call, outcome_of(&cut), &reply).await;
                    return self.end_cut(&cut, Some(reply)).await;
                }
                Attempt::TimeUp => {
                    self.close_call(call, CallOutcome::TimeUp, &reply).await;
                    return self.time_up(Some(reply)).await;
                }
                Attempt::Failed(error) => {
                    self.close_call(call, CallOutcome::Failed, &reply).await;
                    return self.model_failed(reply, error).await;
                }
                Attempt::Again(error) => {
                    let Some(pause) = pauses.next() else {
                        self.close_call(call, CallOutcome::Failed, &reply).await;
                        let error = NaviError::new(error.code(), error.to_string());
                        return self.model_failed(reply, error).await;
                    };
                    self.pause_before_retry(&error, pause).await?;
                }
            }
        }
    }

    /// Turns that did not fit into a call are told once each time that it gets worse.
    async fn tell_left_out(&mut self, left_out: usize) -> Result<(), RunGone> {
        if left_out <= std::mem::replace(&mut self.told_left_out, left_out) {
            return Ok(());
        }
        let turns = if left_out == 1 { "turn" } else { "turns" };
        self.notice(
            "context_left_out",
            format!("the model's window is full: the oldest {left_out} {turns} of this conversation were left out of this call"),
        )
        .await
    }

    /// A backend that read clearly less than it was sent has cut the prompt in silence.
    async fn tell_cut_prompt(
        &mut self,
        estimated: u32,
        usage: Usage,
        way: &Way,
    ) -> Result<(), RunGone> {
        let read = usage.prompt_tokens;
        if self.told_cut_prompt || !context::prompt_was_cut(estimated, read, way.window) {
            return Ok(());
        }
        self.told_cut_prompt = true;
        self.notice(
            "prompt_cut",
            format!("the model server read only {read} of about {estimated} tokens: it cut the prompt to its own window; give it a larger context window, or Navi a smaller one (OLLAMA_NUM_CTX)"),
        )
        .await
    }

    pub(super) async fn notice(&mut self, code: &str, message: String) -> Result<(), RunGone> {
        let code = code.to_owned();
        self.commit(vec![Record::Event(Event::Notice {
            code,
            message,
            is_subagent: self.origin.is_subagent(),
        })])
        .await
    }

    async fn model_failed(&mut self, reply: Reply, error: NaviError) -> Result<(), RunGone> {
        tracing::warn!(code = ?error.code, %error, "model call failed");
        let records = self.run_loop.on_model_failed(reply, error, now());
        self.commit(records).await
    }

    async fn pause_before_retry(
        &mut self,
        error: &LlmError,
        pause: Duration,
    ) -> Result<(), RunGone> {
        let asked = match error {
            LlmError::Busy { retry_after, .. } => retry_after.unwrap_or(pause),
            _ => pause,
        };
        let pause = asked.min(RETRY_AFTER_CAP).max(pause.min(RETRY_AFTER_CAP));
        let detail = format!("{error}; trying again in {:.1} s", pause.as_secs_f32());
        self.waiting(WaitReason::Retry, detail).await?;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.ends.stop.cancelled() => {}
            () = self.ends.interrupt.cancelled() => {}
        }
        Ok(())
    }

    pub(super) async fn waiting(
        &mut self,
        reason: WaitReason,
        detail: String,
    ) -> Result<(), RunGone> {
        self.commit(vec![Record::Event(Event::RunWaiting {
            reason,
            detail,
            is_subagent: self.origin.is_subagent(),
        })])
        .await
    }

    /// Waits for a slot of the backend. None where the run was cut off meanwhile.
    async fn slot(&mut self, way: &Way) -> Result<Option<Result<Lease, NaviError>>, RunGone> {
        let models = self.services.models.clone();
        let priority = if self.origin.is_subagent() {
            Priority::Subagent
        } else {
            Priority::Interactive
        };
        let ticket = Ticket::new();
        let acquire = models.acquire_as(ticket, way.choice.kind, priority);
        tokio::pin!(acquire);
        let mut quiet = Some(Box::pin(tokio::time::sleep(QUIET)));
        loop {
            tokio::select! {
                biased;
                () = self.ends.stop.cancelled() => return Ok(None),
                () = self.ends.interrupt.cancelled() => return Ok(None),
                lease = &mut acquire => return Ok(Some(lease)),
                () = async { if let Some(q) = &mut quiet { q.await } }, if quiet.is_some() => {
                    quiet = None;
                    if let Some(view) = models.queue(way.choice.kind, ticket).await {
                        self.waiting(WaitReason::Lane, waiting_detail(&view)).await?;
                    }
                }
            }
        }
    }

    async fn attempt(
        &mut self,
        way: &Way,
        request: &ChatRequest,
        reply: &mut Reply,
        call: &mut OpenCall,
    ) -> Result<Attempt, RunGone> {
        if self.cut_now(false).is_some() {
            return Ok(Attempt::Cut);
        }
        let lease = match self.slot(way).await? {
            None => return Ok(Attempt::Cut),
            // The backend's guard went down. It is started again at once.
            Some(Err(error)) if error.code == ErrorCode::BackendUnavailable => {
                return Ok(Attempt::Again(LlmError::NotReady {
                    problem: error.message,
                    remedy: "it comes back by itself".to_owned(),
                }));
            }
            Some(Err(error)) => return Ok(Attempt::Failed(error)),
            Some(Ok(lease)) => lease,
        };
        let stop = self.ends.stop.clone();
        let interrupt = self.ends.interrupt.clone();
        let deadline = self.deadline;
        let mut stream = lease.call(request.clone(), self.services.limits, stop);
        let mut pace = Pace::new(self.origin, reply.message_id);
        let mut quiet = Some(Instant::now() + QUIET);
        let mut hides = !request.tools.is_empty();
        loop {
            let tick = pace.due();
            let told_quiet = quiet;
            let item = tokio::select! {
                biased;
                () = interrupt.cancelled() => {
                    self.stream(pace.release()).await?;
                    return Ok(Attempt::Cut);
                }
                () = tokio::time::sleep_until(deadline) => {
                    self.stream(pace.release()).await?;
                    return Ok(Attempt::TimeUp);
                }
                () = until(tick) => {
                    self.stream(pace.flush()).await?;
                    continue;
                }
                () = until(told_quiet) => {
                    quiet = None;
                    self.waiting(WaitReason::Prefill, "the model reads the conversation".to_owned()).await?;
                    continue;
                }
                item = stream.next() => item,
            };
            // What a tab is told must not wait behind what is decided next.
            match item {
                None => {
                    self.stream(pace.release()).await?;
                    return Ok(Attempt::Cut);
                }
                Some(Err(error)) => {
                    self.stream(pace.release()).await?;
                    let nothing_said = reply.text.is_empty()
                        && reply.thinking.is_empty()
                        && reply.calls.is_empty();
                    return Ok(if nothing_said && error.is_retryable() {
                        Attempt::Again(error)
                    } else {
                        Attempt::Failed(NaviError::new(error.code(), error.to_string()))
                    });
                }
                Some(Ok(ChatDelta::Prefill { .. })) => {}
                Some(Ok(ChatDelta::Thinking(text))) => {
                    quiet = None;
                    call.heard();
                    reply.thinking.push_str(&text);
                    let pieces = pace.take(PartKind::Thinking, &text);
                    self.stream(pieces).await?;
                }
                Some(Ok(ChatDelta::Text(text))) => {
                    quiet = None;
                    call.heard();
                    if pace.ends_thinking() {
                        self.end_thinking(&mut pace).await?;
                    }
                    reply.text.push_str(&text);
                    // What may be a call in disguise is not shown before it is plain.
                    // Once it cannot be one it never will be: it is not asked again.
                    hides = hides && leaked_calls::may_be_call(&reply.text);
                    pace.holds = hides;
                    let pieces = pace.take(PartKind::Text, &text);
                    self.stream(pieces).await?;
                }
                Some(Ok(ChatDelta::ToolCall(requested))) => {
                    quiet = None;
                    call.heard();
                    reply.calls.push(requested);
                }
                Some(Ok(ChatDelta::Done { usage, .. })) => {
                    let allowed = self.allowed(&way.profile);
                    let is_known = |tool: &str| allowed.iter().any(|known| known == tool);
                    if hides && leaked_calls::parse(&reply.text, is_known).is_some() {
                        pace.forget();
                    }
                    self.stream(pace.release()).await?;
                    if pace.ends_thinking() {
                        self.end_thinking(&mut pace).await?;
                    }
                    reply.usage = usage;
                    return Ok(Attempt::Whole);
                }
            }
        }
    }

    async fn end_thinking(&mut self, pace: &mut Pace) -> Result<(), RunGone> {
        self.stream(pace.flush()).await?;
        pace.thinking_ended();
        self.commit(vec![Record::Event(Event::ThinkingEnd {
            is_subagent: self.origin.is_subagent(),
        })])
        .await
    }

    /// Hands text to the session. One is on its way at a time, so a slow session slows the
    /// backend's socket and fills no queue.
    async fn stream(&self, pieces: Vec<crate::session::sequencer::Piece>) -> Result<(), RunGone> {
        if pieces.is_empty() {
            return Ok(());
        }
        self.session
            .send(Stream(pieces))
            .await
            .unwrap_or(Err(RunGone))
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
