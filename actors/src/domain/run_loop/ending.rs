//! How a run ends: answered, at its limit, failed, or cut off.

use chrono::{DateTime, Utc};

use super::call_end::Unfinished;
use super::{Cut, ModelReply, Phase, Record, RunEnd, RunLoop, RunSummary, ToolUse};
use crate::domain::demands;
use crate::protocol::error::NaviError;
use crate::protocol::event::Event;
use crate::protocol::ids::{MessageId, Origin};
use crate::protocol::message::MessageState;

/// What ends a run whose model did not even say that.
pub(super) const LIMIT_TEXT: &str = "The limit of this task was reached before it was done. What was done so far is above; say \"continue\" to go on.";

impl RunLoop {
    /// The call failed for good. What had been said is kept.
    pub fn on_model_failed(
        &mut self,
        partial: ModelReply,
        error: NaviError,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        let mut records = self.keep_partial(partial, MessageState::Failed, now);
        self.fail(error, &mut records);
        records
    }

    /// It cannot go on after a restart: it fails, and every open call gets its result.
    pub fn on_not_resumed(&mut self, error: NaviError, now: DateTime<Utc>) -> Vec<Record> {
        let mut records = Vec::new();
        if let Phase::Tools(open) = &mut self.phase {
            open.close(Unfinished::Down, self.origin, now, &mut records);
        }
        self.fail(error, &mut records);
        records
    }

    /// The run's time is up: what is under way is closed, and the model may say how things
    /// stand. Where that was what it was about, the run ends; where a program demands something
    /// else of the answer, it fails.
    pub fn on_time_up(&mut self, partial: Option<ModelReply>, now: DateTime<Utc>) -> Vec<Record> {
        let mut records = Vec::new();
        self.time_is_up = true;
        match &mut self.phase {
            Phase::Ended(_) => {}
            Phase::Model(ToolUse::Withheld) if self.demands.is_empty() => {
                let mut reply = partial.unwrap_or_else(|| ModelReply::empty(MessageId::new()));
                reply.calls.clear();
                if reply.text.trim().is_empty() {
                    LIMIT_TEXT.clone_into(&mut reply.text);
                }
                self.conclude(reply, RunEnd::Limited, now, &mut records);
            }
            Phase::Planning(_) | Phase::Model(_) => {
                if let Some(partial) = partial {
                    records = self.keep_partial(partial, MessageState::Interrupted, now);
                }
                self.phase = Phase::Model(ToolUse::Withheld);
            }
            Phase::Tools(open) => {
                open.close(Unfinished::TimeUp, self.origin, now, &mut records);
                self.phase = Phase::Model(ToolUse::Withheld);
            }
        }
        if !self.is_over() && !self.demands.is_empty() {
            self.fail(demands::out_of_time(), &mut records);
        }
        records
    }

    /// The run is cut off, by its user or by a shutdown. Keeps what was said and gives
    /// every open call its result.
    pub fn cut(
        &mut self,
        cut: &Cut,
        partial: Option<ModelReply>,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        if self.is_over() {
            return Vec::new();
        }
        let state = match cut {
            Cut::Stopped => MessageState::Stopped,
            Cut::Interrupted { .. } => MessageState::Interrupted,
        };
        let text = partial
            .as_ref()
            .filter(|_| !self.holds_text())
            .map(|partial| partial.text.clone());
        let mut records = partial.map_or_else(Vec::new, |p| self.keep_partial(p, state, now));
        if let Phase::Tools(open) = &mut self.phase {
            let why = match cut {
                Cut::Stopped => Unfinished::Stopped,
                Cut::Interrupted { .. } => Unfinished::Down,
            };
            open.close(why, self.origin, now, &mut records);
        }
        let (event, end) = match cut {
            Cut::Stopped => (Event::StreamStopped {}, RunEnd::Stopped),
            Cut::Interrupted { reason } => (
                Event::interrupted(reason),
                RunEnd::Interrupted {
                    reason: reason.clone(),
                },
            ),
        };
        self.end(end, event, text.unwrap_or_default(), &mut records);
        records
    }

    /// The run ends with an answer.
    pub(super) fn conclude(
        &mut self,
        reply: ModelReply,
        end: RunEnd,
        now: DateTime<Utc>,
        records: &mut Vec<Record>,
    ) {
        let text = reply.text.clone();
        let event = Event::StreamEnd {
            content: text.clone(),
            message_id: reply.message_id,
            context_tokens: self.context_tokens,
            max_context_tokens: self.window,
            completed: end == RunEnd::Answered,
        };
        let state = if reply.cut {
            MessageState::Failed
        } else {
            MessageState::Complete
        };
        let message = reply.into_message(self.origin.run_id, state, now);
        records.push(Record::Message(message));
        self.end(end, event, text, records);
    }

    pub(super) fn fail(&mut self, error: NaviError, records: &mut Vec<Record>) {
        let event = failed(&error);
        self.end(RunEnd::Failed(error), event, String::new(), records);
    }

    /// The run is over. Its closing event is the session's own: how a child ended is told by
    /// its frame.
    pub(super) fn end(
        &mut self,
        end: RunEnd,
        event: Event,
        text: String,
        records: &mut Vec<Record>,
    ) {
        if !self.origin.is_subagent() {
            records.push(Record::Event(event));
        }
        records.push(Record::Ended(RunSummary {
            end: end.clone(),
            text,
            iterations: self.iterations,
            prompt_tokens: self.prompt_tokens,
            completion_tokens: self.completion_tokens,
            cached_tokens: self.cached_tokens,
            leaked_calls: self.leaked_calls,
        }));
        self.phase = Phase::Ended(end);
    }
}

/// What is recorded of a run that ended before its loop began: it failed with this error, or
/// was stopped.
#[must_use]
pub fn ended_unbegun(origin: Origin, error: Option<NaviError>) -> Vec<Record> {
    let event = error.as_ref().map_or(Event::StreamStopped {}, failed);
    let summary = RunSummary {
        end: error.map_or(RunEnd::Stopped, RunEnd::Failed),
        text: String::new(),
        iterations: 0,
        prompt_tokens: 0,
        completion_tokens: 0,
        cached_tokens: 0,
        leaked_calls: 0,
    };
    let event = (!origin.is_subagent()).then_some(Record::Event(event));
    event.into_iter().chain([Record::Ended(summary)]).collect()
}

/// The event of a run that failed.
#[must_use]
pub fn failed(error: &NaviError) -> Event {
    Event::Error {
        message: error.message.clone(),
        recoverable: false,
        code: error.code,
        phrase: error.phrase.as_deref().cloned(),
        client_id: None,
    }
}
