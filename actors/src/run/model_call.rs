//! One model call: slot, stream, retries before the first chunk, and the text on its way out.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::asking::QUIET;
use super::calls::{CallInFlight, outcome_of};
use super::driver::Driver;
use super::joined::Joined;
use super::pace::Pace;
use crate::domain::context::overflow::{self, Overflow};
use crate::domain::lanes::waiting_phrase;
use crate::domain::model_choice::RunConfig;
use crate::domain::run_loop::{ModelReply, Record, ToolUse};
use crate::domain::{context, leaked_calls};
use crate::llm::LlmError;
use crate::llm_actor::{Acquire, Lease, Priority, Ticket};
use crate::metrics;
use crate::protocol::chat::{ChatDelta, ChatRequest, FinishReason, Usage};
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::{Event, PartKind, WaitReason};
use crate::protocol::ids::MessageId;
use crate::protocol::inspect::CallOutcome;
use crate::protocol::phrase::{Phrase, PhraseCode, Trouble};
use crate::services::now;
use crate::session::messages::{RunGone, Stream};
use crate::session::replies::reply;
use crate::session::sequencer::Piece;

/// How often a call is tried again before its first chunk.
const RETRIES: usize = 3;

/// The longest pause before one that a server can ask for.
const RETRY_AFTER_CAP: Duration = Duration::from_secs(30);

/// How far the prompt is read is told at most this often.
const PROGRESS: Duration = Duration::from_secs(2);

/// What came of one attempt.
enum Attempt {
    Whole,
    /// The stop token or a shutdown cut it off.
    Cut,
    /// The run's time is up.
    TimeUp,
    Failed(NaviError),
    /// The server takes no prompt of this length; with its lease's `retired`.
    TooLong(NaviError, Overflow, CancellationToken),
    /// It failed before it said anything, and may do better.
    Again(LlmError),
}

/// Whether a prompt that is too long may be followed by a shorter one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shorter {
    May,
    MayNot,
}

/// A prompt that a server found too long.
struct TooLong {
    told: Overflow,
    /// What it comes to by our guess.
    estimated: u32,
    /// Of the backend that told it.
    retired: CancellationToken,
}

impl Driver {
    /// Calls the model and has what comes of it recorded. A server that finds the prompt too
    /// long teaches the model's window: what is old is summarised, what does not fit even so is
    /// left out of this call, and the model is asked again.
    pub(super) async fn call_model(
        &mut self,
        config: &mut RunConfig,
        tools: ToolUse,
    ) -> Result<(), RunGone> {
        for again in [Shorter::May, Shorter::May, Shorter::MayNot] {
            let compressed = self.room.is_some();
            let Some(too_long) = self.ask_model(config, tools, again).await? else {
                return Ok(());
            };
            let learnt = overflow::learn(too_long.told, config.window, too_long.estimated);
            self.room = Some(learnt.room);
            if learnt.window != config.window {
                config.window = learnt.window;
                config.choice.model.context_window = Some(learnt.window);
                let (models, model) = (&self.services.models, &config.choice.model.name);
                let kind = config.choice.kind;
                models.learn_window(kind, &too_long.retired, model, learnt.window);
                let records = self.run_loop.on_window(learnt.window);
                self.commit(records).await?;
            }
            if !compressed {
                self.compress(config).await?;
            }
        }
        Ok(())
    }

    /// Asks the model once, and again where it failed before it said anything. Gives back a
    /// prompt that was too long, where a shorter one may follow.
    async fn ask_model(
        &mut self,
        config: &RunConfig,
        tools: ToolUse,
        shorter: Shorter,
    ) -> Result<Option<TooLong>, RunGone> {
        let setup = self.call_setup(config, tools);
        let built = setup.request(&self.context.conversation());
        self.tell_left_out(built.left_out_turns).await?;
        let request = Arc::new(built.request);
        let mut call = self.open_call(config, setup, &request);
        let mut reply = ModelReply::empty(MessageId::new());
        let mut pauses = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(500))
            .with_max_delay(Duration::from_secs(8))
            .with_max_times(RETRIES)
            .with_jitter()
            .build();
        let ended = loop {
            call.attempts += 1;
            match self
                .attempt(config, &request, &mut reply, &mut call)
                .await?
            {
                Attempt::Whole => {
                    match reply.usage {
                        Some(usage) => {
                            self.tell_cut_prompt(&request, usage).await?;
                            if usage.prompt_tokens == 0 {
                                // Its own words alone were counted.
                                reply.usage = Some(Usage {
                                    prompt_tokens: context::request_tokens(&request),
                                    ..usage
                                });
                            }
                        }
                        None => {
                            let said = format!("{}{}", reply.thinking, reply.text);
                            reply.usage = Some(Usage {
                                prompt_tokens: context::request_tokens(&request),
                                completion_tokens: context::text_tokens(&said),
                                cached_tokens: None,
                            });
                        }
                    }
                    self.close_call(call, CallOutcome::Done, &reply).await;
                    break self.take_reply(config, reply).await;
                }
                Attempt::Cut if self.is_to_be_left() => break self.park(Some(reply)).await,
                Attempt::Cut => {
                    // The token that cut it says which.
                    let cut = self.cut_now(false).ok_or(RunGone)?;
                    self.close_call(call, outcome_of(&cut), &reply).await;
                    break self.end_cut(&cut, Some(reply)).await;
                }
                Attempt::TimeUp => {
                    self.close_call(call, CallOutcome::TimeUp, &reply).await;
                    break self.time_up(Some(reply)).await;
                }
                Attempt::TooLong(error, told, retired) => {
                    self.close_call(call, CallOutcome::Failed, &reply).await;
                    if shorter == Shorter::May {
                        let estimated = context::request_tokens(&request);
                        return Ok(Some(TooLong {
                            told,
                            estimated,
                            retired,
                        }));
                    }
                    break self.model_failed(reply, error).await;
                }
                Attempt::Failed(error) => {
                    self.close_call(call, CallOutcome::Failed, &reply).await;
                    break self.model_failed(reply, error).await;
                }
                Attempt::Again(error) => {
                    let Some(pause) = pauses.next() else {
                        self.close_call(call, CallOutcome::Failed, &reply).await;
                        let error = error.told();
                        break self.model_failed(reply, error).await;
                    };
                    self.pause_before_retry(&error, pause).await?;
                }
            }
        };
        ended.map(|()| None)
    }

    /// Turns that did not fit into a call are told once each time that it gets worse.
    async fn tell_left_out(&mut self, left_out: usize) -> Result<(), RunGone> {
        if left_out <= std::mem::replace(&mut self.told_left_out, left_out) {
            return Ok(());
        }
        let phrase = match left_out {
            1 => PhraseCode::LeftOutOne.into(),
            _ => Phrase::new(PhraseCode::LeftOut, [("n", left_out.to_string())]),
        };
        self.notice("context_left_out", phrase).await
    }

    /// A backend that read clearly less than it was sent has cut the prompt in silence.
    async fn tell_cut_prompt(&mut self, sent: &ChatRequest, usage: Usage) -> Result<(), RunGone> {
        let read = usage.prompt_tokens;
        if self.told_cut_prompt || !context::prompt_was_cut(&sent.messages, read) {
            return Ok(());
        }
        self.told_cut_prompt = true;
        let tokens = [("tokens", read.to_string())];
        self.notice("prompt_cut", Phrase::new(PhraseCode::PromptCut, tokens))
            .await
    }

    async fn notice(&mut self, code: &str, phrase: Phrase) -> Result<(), RunGone> {
        let mut notice = Event::notice(code, phrase);
        if self.origin.is_subagent() {
            notice.mark_subagent();
        }
        self.tell(vec![Record::Event(notice)]).await
    }

    async fn model_failed(&mut self, reply: ModelReply, error: NaviError) -> Result<(), RunGone> {
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
        let seconds = [("seconds", format!("{:.1}", pause.as_secs_f32()))];
        let tries = Phrase::new(PhraseCode::TriesAgain, seconds).with("problem", error.phrase());
        self.waiting(WaitReason::Retry, tries).await?;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = tokio::time::sleep_until(self.deadline) => {}
            () = self.ends.stop.cancelled() => {}
            () = self.ends.interrupt.cancelled() => {}
        }
        Ok(())
    }

    pub(super) async fn waiting(
        &mut self,
        reason: WaitReason,
        phrase: Phrase,
    ) -> Result<(), RunGone> {
        fail::fail_point!("run::waiting", |_| Ok(()));
        let waits = Event::waiting(reason, phrase, self.origin.is_subagent());
        self.tell(vec![Record::Event(waits)]).await
    }

    /// Waits for a slot of the backend. None where the run was cut off or its time was up first.
    async fn slot(
        &mut self,
        config: &RunConfig,
    ) -> Result<Option<Result<Lease, NaviError>>, RunGone> {
        let deadline = self.deadline;
        let models = self.services.models.clone();
        let priority = if self.origin.is_subagent() {
            Priority::Subagent
        } else {
            Priority::Interactive
        };
        let ticket = Ticket::new();
        let asked = Acquire {
            priority,
            person: Some(self.user_id),
            ticket,
            stop: self.ends.stop.clone(),
        };
        let acquire = models.acquire(config.choice.kind, asked);
        tokio::pin!(acquire);
        let mut quiet = Some(Box::pin(tokio::time::sleep(QUIET)));
        loop {
            tokio::select! {
                biased;
                () = self.ends.stop.cancelled() => return Ok(None),
                () = self.ends.interrupt.cancelled() => return Ok(None),
                () = tokio::time::sleep_until(deadline) => return Ok(None),
                lease = &mut acquire => return Ok(Some(lease)),
                () = async { if let Some(q) = &mut quiet { q.await } }, if quiet.is_some() => {
                    quiet = None;
                    if let Some(view) = models.queue(config.choice.kind, ticket).await {
                        self.waiting(WaitReason::Lane, waiting_phrase(&view)).await?;
                    }
                }
            }
        }
    }

    async fn attempt(
        &mut self,
        config: &RunConfig,
        request: &Arc<ChatRequest>,
        reply: &mut ModelReply,
        call: &mut CallInFlight,
    ) -> Result<Attempt, RunGone> {
        if self.cut_now(false).is_some() {
            return Ok(Attempt::Cut);
        }
        if self.is_time_up() {
            return Ok(Attempt::TimeUp);
        }
        let lease = match self.slot(config).await? {
            None if self.cut_now(false).is_some() => return Ok(Attempt::Cut),
            None => return Ok(Attempt::TimeUp),
            // The backend's guard went down. It is started again at once.
            Some(Err(error)) if error.code == ErrorCode::BackendUnavailable => {
                return Ok(Attempt::Again(LlmError::NotReady(Trouble::new(
                    error.into_phrase(),
                    PhraseCode::ComesBack,
                ))));
            }
            Some(Err(error)) => return Ok(Attempt::Failed(error)),
            Some(Ok(lease)) => lease,
        };
        fail::fail_point!("run::slot");
        let interrupt = self.ends.interrupt.clone();
        // Kept from one token to the next.
        let mut interrupted = pin!(interrupt.cancelled());
        let mut time_up = pin!(sleep_until(self.deadline));
        let mut alarm = pin!(sleep_until(self.deadline));
        metrics::record(|on| on.runs.request_leaves(self.origin.run_id));
        let run = Some(self.in_run());
        let called = lease.call(Arc::clone(request), self.services.limits, run);
        let mut stream = Joined::new(called);
        let mut pace = Pace::new(self.origin, reply.message_id);
        let mut quiet = Some(Instant::now() + QUIET);
        let mut read_so_far = None;
        let mut hides = !request.tools.is_empty();
        let holds = self.run_loop.holds_text();
        loop {
            let due = pace.due().into_iter().chain(quiet).min();
            if let Some(due) = due.filter(|due| *due != alarm.deadline()) {
                alarm.as_mut().reset(due);
            }
            let item = tokio::select! {
                biased;
                () = &mut interrupted => {
                    self.let_go(pace, holds).await?;
                    return Ok(Attempt::Cut);
                }
                () = &mut time_up => {
                    self.let_go(pace, holds).await?;
                    return Ok(Attempt::TimeUp);
                }
                () = &mut alarm, if due.is_some() => {
                    if due == pace.due() {
                        self.stream(pace.flush()).await?;
                        continue;
                    }
                    quiet = None;
                    let (reason, detail) = wait_told(&lease, read_so_far);
                    self.waiting(reason, detail).await?;
                    continue;
                }
                item = stream.next() => item,
            };
            // What a tab is told must not wait behind what is decided next.
            match item {
                None => {
                    self.let_go(pace, holds).await?;
                    return Ok(Attempt::Cut);
                }
                Some(Err(error)) => {
                    self.let_go(pace, holds).await?;
                    let nothing_said = reply.text.is_empty()
                        && reply.thinking.is_empty()
                        && reply.calls.is_empty();
                    let said_why = error.told();
                    return Ok(match error {
                        LlmError::ContextOverflow { told, .. } if nothing_said => {
                            Attempt::TooLong(said_why, told, lease.retired.clone())
                        }
                        error if nothing_said && error.is_retryable() => Attempt::Again(error),
                        _ => Attempt::Failed(said_why),
                    });
                }
                Some(Ok(ChatDelta::Prefill { read, total })) => {
                    read_so_far = Some((read, total));
                    // Where it was told already, that is told again after a while.
                    quiet = quiet.or_else(|| Some(Instant::now() + PROGRESS));
                }
                Some(Ok(ChatDelta::Thinking(text))) => {
                    quiet = None;
                    call.heard();
                    reply.thinking.push_str(&text);
                    let pieces = pace.take(PartKind::Thinking, text);
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
                    pace.holds = hides || holds;
                    let pieces = pace.take(PartKind::Text, text);
                    self.stream(pieces).await?;
                }
                Some(Ok(ChatDelta::Calling)) => {
                    quiet = None;
                    call.heard();
                }
                Some(Ok(ChatDelta::ToolCall(requested))) => {
                    quiet = None;
                    call.heard();
                    reply.calls.push(requested);
                }
                Some(Ok(ChatDelta::Done { usage, finish })) => {
                    let allowed = self.allowed(&config.profile);
                    let is_known = |tool: &str| allowed.iter().any(|known| known == tool);
                    let is_leaked = hides && leaked_calls::parse(&reply.text, is_known).is_some();
                    reply.cut = finish == FinishReason::Length;
                    if is_leaked || holds && !self.tells_text(config, reply) {
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

    /// The call is cut off: what was said so far is told, but for a draft that may be anything but
    /// what a program demands.
    async fn let_go(&self, mut pace: Pace, is_draft: bool) -> Result<(), RunGone> {
        if is_draft {
            pace.forget();
        }
        self.stream(pace.release()).await
    }

    async fn end_thinking(&mut self, pace: &mut Pace) -> Result<(), RunGone> {
        self.stream(pace.flush()).await?;
        pace.thinking_ended();
        self.tell(vec![Record::Event(Event::ThinkingEnd {
            is_subagent: self.origin.is_subagent(),
        })])
        .await
    }

    /// Hands text to the session. One is on its way at a time, so a slow session slows the
    /// backend's socket and fills no queue.
    async fn stream(&self, pieces: Vec<Piece>) -> Result<(), RunGone> {
        if pieces.is_empty() {
            return Ok(());
        }
        let (tx, told) = oneshot::channel();
        // One at a time: it is waited for.
        self.session.do_send(Stream(pieces, tx));
        reply::<()>(told).await.map_err(RunGone::from)
    }
}

/// What a call that says nothing waits for, by how many tokens of how many were read.
fn wait_told(lease: &Lease, read: Option<(u32, u32)>) -> (WaitReason, Phrase) {
    match read {
        Some((read, total)) => {
            let tokens = [("read", read.to_string()), ("total", total.to_string())];
            let so_far = Phrase::new(PhraseCode::ReadSoFar, tokens);
            (WaitReason::Prefill, so_far)
        }
        None if lease.is_tried() => (WaitReason::Lane, PhraseCode::AskedBeside.into()),
        None => (WaitReason::Prefill, PhraseCode::ReadsConversation.into()),
    }
}
