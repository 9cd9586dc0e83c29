//! What a reply of the model comes to: calls to open, an answer, or nothing.

use chrono::{DateTime, Utc};

use super::calls::OpenCalls;
use super::ending::LIMIT_TEXT;
use super::unfinished::is_unfinished;
use super::{CallBook, CallPlan, ModelReply, Phase, PlannedCall, Record, RunEnd, RunLoop, ToolUse};
use crate::domain::demands::Missed;
use crate::domain::leaked_calls;
use crate::domain::reasoning::split_reasoning;
use crate::protocol::chat::Usage;
use crate::protocol::error::{ErrorCode, NaviError};
use crate::protocol::event::Event;
use crate::protocol::ids::{CallId, MessageId};
use crate::protocol::message::{MessageState, ToolCall};
use crate::protocol::phrase::PhraseCode;

impl RunLoop {
    /// The model answered. `book` looks each requested call up.
    pub fn on_reply(
        &mut self,
        mut reply: ModelReply,
        book: &mut impl CallBook,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        let Phase::Model(tools) = self.phase else {
            return Vec::new();
        };
        self.iterations += 1;
        self.fresh_plan = false;
        self.unfinished = false;
        let mut records = self.count(&reply);
        // Where the server told it apart, the answer speaks of it.
        if reply.thinking.is_empty()
            && let Some((thinking, answer)) = split_reasoning(&reply.text)
        {
            let answer = answer.to_owned();
            reply.thinking.push_str(thinking);
            reply.text = answer;
        }
        match tools {
            // It was asked for text; calls made all the same are not run.
            ToolUse::Withheld | ToolUse::Formed => reply.calls.clear(),
            ToolUse::Offered | ToolUse::Demanded => self.take_leaked(&mut reply, book),
        }
        if reply.says_nothing() {
            return self.on_silence(tools, reply.cut, records, now);
        }
        if reply.calls.is_empty() {
            if let Some(missed) = self.missed(&reply, book) {
                return self.on_missed(missed, tools, reply, records);
            }
            let is_free = tools == ToolUse::Offered && self.demands.is_empty();
            if is_free && is_unfinished(&reply.text, |tool| book.is_known(tool)) {
                return self.on_unfinished(reply, records, now);
            }
            let end = if reply.cut || tools == ToolUse::Withheld {
                RunEnd::Limited
            } else {
                RunEnd::Answered
            };
            if reply.cut {
                records.push(self.notice("reply_cut", PhraseCode::ReplyCut));
            }
            self.conclude(reply, end, now, &mut records);
            return records;
        }
        if self.demands.form.is_some() {
            // Words beside the calls would stand in an answer that is JSON alone.
            reply.text.clear();
        }
        self.open_calls(reply, book, now, &mut records);
        records
    }

    /// Whether the text of a reply is told only once it is whole: it may miss what is demanded.
    #[must_use]
    pub fn holds_text(&self) -> bool {
        match self.phase {
            Phase::Model(ToolUse::Offered | ToolUse::Withheld) => !self.demands.is_empty(),
            Phase::Model(tools) => tools == ToolUse::Demanded,
            Phase::Planning(_) | Phase::Tools(_) | Phase::Ended(_) => false,
        }
    }

    /// Whether what was held of a reply is told, now that it is whole.
    #[must_use]
    pub fn tells_text(&self, reply: &ModelReply, book: &impl CallBook) -> bool {
        if reply.calls.is_empty() {
            self.missed(reply, book).is_none()
        } else {
            self.demands.form.is_none()
        }
    }

    /// What a reply without calls misses of what the program demands.
    fn missed(&self, reply: &ModelReply, book: &impl CallBook) -> Option<Missed> {
        if !reply.calls.is_empty() {
            return None;
        }
        if !self.demands.calls.is_empty() {
            return Some(Missed::Call);
        }
        // What a limit cut off is told as such.
        let form = self.demands.form.as_ref().filter(|_| !reply.cut)?;
        book.fits(form, &reply.text).err().map(Missed::Form)
    }

    /// Nobody is told what was said, and the model is asked once more, so that it can do nothing but
    /// what is demanded.
    fn on_missed(
        &mut self,
        missed: Missed,
        tools: ToolUse,
        reply: ModelReply,
        mut records: Vec<Record>,
    ) -> Vec<Record> {
        let next = match &missed {
            Missed::Call => ToolUse::Demanded,
            Missed::Form(_) => ToolUse::Formed,
        };
        if tools == next || tools == ToolUse::Withheld {
            self.fail(self.demands.failure(missed), &mut records);
            return records;
        }
        self.draft = reply.text;
        self.phase = Phase::Model(next);
        records
    }

    /// A small model may write its call as text: a reply that is nothing else is that call.
    fn take_leaked(&mut self, reply: &mut ModelReply, book: &impl CallBook) {
        if !reply.calls.is_empty() {
            return;
        }
        if let Some(calls) = leaked_calls::parse(&reply.text, |tool| book.is_known(tool)) {
            reply.calls = calls;
            reply.text.clear();
            self.leaked_calls += 1;
        }
    }

    fn on_silence(
        &mut self,
        tools: ToolUse,
        cut: bool,
        mut records: Vec<Record>,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        if !self.asked_again {
            if tools == ToolUse::Offered {
                self.phase = Phase::Model(self.offer());
            }
            // At the limit it is another question, which may be asked twice as well.
            self.asked_again = self.phase == Phase::Model(tools);
            return records;
        }
        if tools == ToolUse::Withheld && self.demands.is_empty() {
            let mut reply = ModelReply::empty(MessageId::new());
            LIMIT_TEXT.clone_into(&mut reply.text);
            self.conclude(reply, RunEnd::Limited, now, &mut records);
            return records;
        }
        let problem = if cut {
            PhraseCode::TokensUsedUp
        } else {
            PhraseCode::NothingTwice
        };
        let error = NaviError::said(ErrorCode::EmptyReply, problem);
        self.fail(error, &mut records);
        records
    }

    /// What was said stands in the conversation, and the model is asked to go on, once. Where it
    /// only says so again, the user is told that nothing was done.
    fn on_unfinished(
        &mut self,
        reply: ModelReply,
        mut records: Vec<Record>,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        if !std::mem::replace(&mut self.asked_again, true) {
            let message = reply.into_message(self.origin.run_id, MessageState::Complete, now);
            records.push(Record::Message(message));
            self.unfinished = true;
            self.phase = Phase::Model(self.offer());
            return records;
        }
        records.push(self.notice("unfinished_answer", PhraseCode::Unfinished));
        self.conclude(reply, RunEnd::Answered, now, &mut records);
        records
    }

    fn notice(&self, code: &str, phrase: PhraseCode) -> Record {
        let mut notice = Event::notice(code, phrase);
        if self.origin.is_subagent() {
            notice.mark_subagent();
        }
        Record::Event(notice)
    }

    fn open_calls(
        &mut self,
        reply: ModelReply,
        book: &mut impl CallBook,
        now: DateTime<Utc>,
        records: &mut Vec<Record>,
    ) {
        let message_id = reply.message_id;
        let calls: Vec<ToolCall> = reply
            .calls
            .iter()
            .map(|requested| ToolCall {
                id: CallId::new(),
                name: requested.name.clone(),
                arguments: requested.arguments.clone(),
            })
            .collect();
        if !reply.thinking.is_empty() {
            records.push(Record::Event(Event::TurnThinking {
                thinking: reply.thinking.clone(),
                is_subagent: self.origin.is_subagent(),
            }));
        }
        let mut message = reply.into_message(self.origin.run_id, MessageState::Complete, now);
        message.tool_calls.clone_from(&calls);
        records.push(Record::Message(message));
        self.asked_again = false;
        self.called.clone_from(&calls);
        let planned = calls
            .into_iter()
            .map(|call| {
                let lent = book.is_lent(&call.name);
                let mut plan = match self.guards.on_call(&call.name, &call.arguments) {
                    Some(hint) => CallPlan::Refuse(hint),
                    None => book.plan(&call),
                };
                if let CallPlan::Run { side_by_side, .. } = &mut plan {
                    *side_by_side &= !(lent && self.demands.one_by_one);
                }
                PlannedCall { call, plan, lent }
            })
            .collect();
        self.phase = Phase::Tools(OpenCalls::of(message_id, planned));
    }

    pub(super) fn add(&mut self, usage: Usage) {
        self.prompt_tokens += u64::from(usage.prompt_tokens);
        self.completion_tokens += u64::from(usage.completion_tokens);
        self.cached_tokens += u64::from(usage.cached_tokens.unwrap_or(0));
    }

    pub(super) fn count(&mut self, reply: &ModelReply) -> Vec<Record> {
        let Some(usage) = reply.usage else {
            return Vec::new();
        };
        self.add(usage);
        self.context_tokens = usage.prompt_tokens.saturating_add(usage.completion_tokens);
        vec![Record::ContextTokens(self.context_tokens)]
    }

    pub(super) fn keep_partial(
        &mut self,
        mut partial: ModelReply,
        state: MessageState,
        now: DateTime<Utc>,
    ) -> Vec<Record> {
        let mut records = self.count(&partial);
        if self.holds_text() {
            // Nobody was told of it: it may be anything but what is demanded.
            partial.text.clear();
        }
        if !partial.text.is_empty() || !partial.thinking.is_empty() {
            // Calls that were cut off with it never began: they are not part of the history.
            records.push(Record::Message(partial.into_message(
                self.origin.run_id,
                state,
                now,
            )));
        }
        records
    }
}
